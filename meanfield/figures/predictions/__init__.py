"""Exact and asymptotic predictions for the diagnostics of a case."""
