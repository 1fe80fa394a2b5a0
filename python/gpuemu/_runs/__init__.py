"""Calling a function on cases: its signature and settings, the calls, and what they do to memory."""
