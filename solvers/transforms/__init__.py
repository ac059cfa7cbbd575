"""Fast sums over cells and points: harmonics, zonal and bilinear kernels, special functions."""
