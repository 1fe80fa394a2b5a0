"""Talking with the daemon: the connection, and the records that come back."""
