"""Kernels whose source is the CPU's: a thread visits an item, a cell or a point."""

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
from .launching import on_grid, returning_on_grid

advance = on_grid(cells.advance)
average_neighbors = on_grid(cells.average_neighbors)
project_to_tangent = on_grid(cells.project_to_tangent)
scale_softmax = on_grid(cells.scale_softmax)

diffuse_on_curve = on_grid(diffusion.diffuse_on_curve)
diffuse_on_surface = on_grid(diffusion.diffuse_on_surface)
limit_sent = on_grid(diffusion.limit_sent)
send_diffusion_on_curve = on_grid(diffusion.send_diffusion_on_curve)
send_diffusion_on_surface = on_grid(diffusion.send_diffusion_on_surface)

look_on_curve = on_grid(transport_curve.look_on_curve)
look_on_surface = on_grid(transport_surface.look_on_surface)
outflows = returning_on_grid(transport.outflows)
receive = on_grid(transport.receive)
divergence_of_sides = on_grid(transport_faces.divergence_of_sides)
flux_at_faces = on_grid(transport_faces.flux_at_faces)
send_through_faces = returning_on_grid(transport_faces.send_through_faces)
values_at_faces = on_grid(transport_faces.values_at_faces)
send_on_curve = on_grid(transport_curve.send_on_curve)
send_on_surface = on_grid(transport_surface.send_on_surface)

local_components = on_grid(on_rings.local_components)
look_on_rings = on_grid(on_rings.look_on_rings)
outflows_on_rings = returning_on_grid(on_rings.outflows_on_rings)
receive_on_rings = on_grid(on_rings.receive_on_rings)
send_on_rings = on_grid(on_rings.send_on_rings)

fill_corners = on_grid(push_forward.fill_corners)
look_at_density = on_grid(push_forward.look_at_density)
look_at_images = on_grid(push_forward.look_at_images)
locate_on_sphere = on_grid(locating.locate_on_sphere)

gradient_to_vectors = on_grid(transform.gradient_to_vectors)
