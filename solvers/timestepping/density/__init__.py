"""Steps of densities by the error of their moments: of one, or of many at once."""

from .integrator import DensityIntegrator

__all__ = ["DensityIntegrator"]
