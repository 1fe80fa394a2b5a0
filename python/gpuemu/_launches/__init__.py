"""Launches of compiled kernels, which the PTX machine runs in place of a GPU."""
