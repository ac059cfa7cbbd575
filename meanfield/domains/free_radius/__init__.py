"""Densities of tokens x = rω with a free radius, on the plane and in space."""
