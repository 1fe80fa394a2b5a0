"""gpuemu: catch silently wrong GPU kernels without a GPU.

Importing this package loads nothing heavy; `gpuemu.rng` needs NumPy and is imported by name.
"""

__version__ = "0.1.0"
