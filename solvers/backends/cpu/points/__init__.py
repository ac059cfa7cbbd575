"""Kernels for points anywhere: angles, and transforms between points and a periodic grid."""
