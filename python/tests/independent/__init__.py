"""The ops of the catalogue written a second time, with what frameworks have, in float64.

Each module has a table `REFERENCES` from the name of an op to a function that takes a case and returns the
outputs by name. They come from the text that `gpuemu ops NAME` prints and from the frameworks' documentation,
never from the Rust references, which they are there to check.
"""
