"""The kernels of this project."""
