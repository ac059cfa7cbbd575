"""Steps of densities with errors estimated in moments, for one density or for many at once."""

from .integrator import DensityIntegrator

__all__ = ["DensityIntegrator"]
