"""Tokens as particles in R^d, in a sequence or in none: the same velocity for n points with masses."""
