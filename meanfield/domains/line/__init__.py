"""Densities on the line, d = 1, without layer norm."""
