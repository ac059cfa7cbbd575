"""Figures of a sweep: a scalar over one key or two, with theory beside it."""
