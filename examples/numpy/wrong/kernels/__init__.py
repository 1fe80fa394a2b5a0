"""The kernels of this project, wrong on purpose."""
