"""Explicit steps of order 8, each as long as its error allows: of one system, or of many at once."""

from .integrator import AdaptiveIntegrator

__all__ = ["AdaptiveIntegrator"]
