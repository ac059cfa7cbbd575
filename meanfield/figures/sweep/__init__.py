"""Figures of a sweep: a scalar over one or two keys, with theoretical curves."""
