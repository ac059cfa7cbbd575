"""Densities on S^{d−1} that are symmetric about an axis: distributions of the polar angle, any d."""
