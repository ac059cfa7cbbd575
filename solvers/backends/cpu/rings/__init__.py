"""Kernels on rings of latitude, whose cells are all alike."""
