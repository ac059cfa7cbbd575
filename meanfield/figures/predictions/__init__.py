"""Exact and asymptotic predictions that a case implies, drawn beside the diagnostics that they are of."""
