"""Figures of a run: run data, panels for densities and diagnostics, captions."""
