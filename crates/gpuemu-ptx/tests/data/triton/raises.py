"""Cannot be imported."""


def fail():
    """Raise."""
    raise ValueError("this module does not want to be imported")


fail()
