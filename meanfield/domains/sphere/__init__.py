"""Densities on the circle S¹ and the sphere S², with or without the labels of a causal mask."""
