"""Tokens as particles in R^d, with or without an order: the mean-field velocity for n points with masses."""
