"""Optional speed that only internals of Numba give."""
