"""Kernels of functions of points anywhere: their angles, and transforms between them and a periodic grid."""
