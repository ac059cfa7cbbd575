"""Velocity and longest steps of many densities on one circle at once, each with separate attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from meanfield.equation import Velocity
from meanfield.model.heads import values_of_rows
from meanfield.model.kernel_sums import ZonalRows, ZonalSums
from meanfield.model.linear_stability import MAX_DENSITY, linear_step
from solvers.mesh.mesh import Floats


class VelocityOfRows:
    """Velocity X (rows, cells, d) of densities (rows, cells) on a circle, with one velocity for each row.

    velocities   one for each row; their attention ``takes_rows``, has the same normalization and number of heads, and
                 is tangent for all rows or for none
    """

    def __init__(self, velocities: Sequence[Velocity]) -> None:
        attentions = [velocity.attention for velocity in velocities]
        self._velocities, self._normalization = velocities, attentions[0].normalization
        self._log_rescaling = np.array([attention.log_rescaling for attention in attentions])[:, None]
        of_heads = zip(*(zip(attention.sums, attention.heads, strict=True) for attention in attentions), strict=True)
        self._heads = [
            (
                ZonalRows([sums for sums, _ in of_head if isinstance(sums, ZonalSums)]),
                values_of_rows([head for _, head in of_head], attentions[0].mesh.ambient_dimension),
            )
            for of_head in of_heads
        ]

    def __call__(self, times: Floats, densities: Floats) -> Floats:
        """Return the velocity X (rows, cells, d) of densities (rows, cells), each row at its own time (rows,)."""
        output: Floats | None = None
        for sums, values in self._heads:
            attended = self._normalization(sums.apply(densities), self._log_rescaling, reach=1.0)
            attended = attended * values if values.shape[1] == 1 else attended @ values
            output = attended if output is None else output + attended
        assert output is not None
        for velocity, time, row in zip(self._velocities, times.tolist(), output, strict=True):
            row[...] = velocity.of_output(time, row)
        return output


def longest_steps(velocities: Sequence[Velocity], noises: Sequence[float]) -> Callable[[Floats], Floats]:
    """Return a function from densities (rows, cells) to the longest time steps (rows,) near the uniform density.

    The step is infinite for a density that is not near uniform. ``noises`` are the coefficients κ of the diffusion κΔρ.
    """
    mesh, pairs = velocities[0].attention.mesh, zip(velocities, noises, strict=True)
    steps = np.array([linear_step(velocity.attention, noise, mesh.ambient_dimension) for velocity, noise in pairs])

    def longest(densities: Floats) -> Floats:
        """Return the longest step (rows,) of each density (rows, cells) near the uniform density, ∞ elsewhere."""
        mean = densities @ mesh.volumes / mesh.volume
        return np.where(densities.max(axis=1) < MAX_DENSITY * mean, steps, np.inf)

    return longest
