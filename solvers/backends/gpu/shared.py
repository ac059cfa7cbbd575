"""Kernels with the source of the CPU's: a thread visits an item, a cell or a point."""

from ..cpu import (
    cells,
    diffusion,
    locating,
    push_forward,
    transport,
    transport_curve,
    transport_faces,
    transport_surface,
)
from ..cpu.rings import transform
from ..cpu.rings import transport as on_rings
from .launching import on_grid
from .reductions import largest_on_grid

advance = on_grid(cells.advance)
advance_first = on_grid(cells.advance_first)
project_to_tangent = on_grid(cells.project_to_tangent)
scale_softmax = on_grid(cells.scale_softmax)

diffuse_on_lines = on_grid(diffusion.diffuse_on_lines)
diffuse_on_surface = on_grid(diffusion.diffuse_on_surface)
limit_outgoing_flux = on_grid(diffusion.limit_outgoing_flux)
diffusive_flux_on_lines = on_grid(diffusion.diffusive_flux_on_lines)
diffusive_flux_on_surface = on_grid(diffusion.diffusive_flux_on_surface)

reconstruct_on_curve = on_grid(transport_curve.reconstruct_on_curve)
reconstruct_on_surface = on_grid(transport_surface.reconstruct_on_surface)
outflow_rates = largest_on_grid(transport.outflow_rates)
divergence = on_grid(transport.divergence)
divergence_of_sides = on_grid(transport_faces.divergence_of_sides)
flux_at_faces = on_grid(transport_faces.flux_at_faces)
outgoing_flux_through_faces = largest_on_grid(transport_faces.outgoing_flux_through_faces)
values_at_faces = on_grid(transport_faces.values_at_faces)
vectors_at_faces = on_grid(transport_faces.vectors_at_faces)
outgoing_flux_on_curve = on_grid(transport_curve.outgoing_flux_on_curve)
outgoing_flux_on_surface = on_grid(transport_surface.outgoing_flux_on_surface)

local_components = on_grid(on_rings.local_components)

fill_corners = on_grid(push_forward.fill_corners)
reconstruct_density = on_grid(push_forward.reconstruct_density)
stretch_factors = on_grid(push_forward.stretch_factors)
locate_on_sphere = on_grid(locating.locate_on_sphere)

apply_blocks = on_grid(transform.apply_blocks)
gradient_to_vectors = on_grid(transform.gradient_to_vectors)
