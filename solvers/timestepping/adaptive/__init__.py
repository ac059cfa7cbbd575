"""Explicit steps whose length finds itself by the error of each: of one system, or of many at once."""

from .integrator import AdaptiveIntegrator

__all__ = ["AdaptiveIntegrator"]
