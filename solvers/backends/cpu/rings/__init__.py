"""Kernels on rings of latitude, with equal cells in each ring."""
