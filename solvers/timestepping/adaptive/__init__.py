"""Explicit steps of order 8 with error control, for one system or for many at once."""

from .integrator import AdaptiveIntegrator

__all__ = ["AdaptiveIntegrator"]
