"""Velocity and longest steps of many densities on one circle at once, each with attention of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from meanfield.equation import Velocity
from meanfield.model.heads import values_of_rows
from meanfield.model.kernel_sums import ZonalRows, ZonalSums
from meanfield.model.layer_norm import by_row, projected
from meanfield.model.linear_stability import MAX_DENSITY, linear_step
from solvers.mesh.mesh import Floats


class VelocityOfRows:
    """X (rows, cells, d) of densities (rows, cells) on a circle, each by a velocity of its own.

    velocities   of as many rows, which differ in numbers alone: their attention ``takes_rows``, all of it tangent or
                 none, of one normalization and as many heads; they have one layer norm, and all or none a local part
    """

    def __init__(self, velocities: Sequence[Velocity]) -> None:
        first, attentions = velocities[0], [velocity.attention for velocity in velocities]
        self._norm, self._normalization, d = first.norm, attentions[0].normalization, first.centers.shape[1]
        self._log_rescaling = np.array([attention.log_rescaling for attention in attentions])[:, None]
        self._sums = [
            ZonalRows([sums for sums in of_head if isinstance(sums, ZonalSums)])
            for of_head in zip(*(attention.sums for attention in attentions), strict=True)
        ]
        of_heads = zip(*(attention.heads for attention in attentions), strict=True)
        self._values = [values_of_rows(heads, d) for heads in of_heads]
        local = [velocity.local for velocity in velocities if velocity.local is not None]
        self._local = np.stack(local) if local else None
        self._centers = None if attentions[0].tangent else np.tile(first.centers, (len(velocities), 1))

    def __call__(self, times: Floats, densities: Floats) -> Floats:
        """X at times (rows,)."""
        output: Floats | None = None
        for sums, values in zip(self._sums, self._values, strict=True):
            attended = self._normalization(sums.apply(densities), self._log_rescaling, reach=1.0)
            attended = attended * values if values.shape[1] == 1 else attended @ values
            output = attended if output is None else output + attended
        assert output is not None
        if self._local is not None:
            output += self._local
        scale = self._norm.speed_scale(times[:, None], 1.0, output)
        if self._centers is not None:
            output = projected(self._centers, output.reshape(self._centers.shape)).reshape(output.shape)
        return output if np.ndim(scale) == 0 and scale == 1.0 else output / by_row(scale)


def longest_steps(velocities: Sequence[Velocity], noises: Sequence[float]) -> Callable[[Floats], Floats]:
    """Densities (rows, cells) → (rows,) the longest step near the uniform density, infinite elsewhere."""
    mesh, pairs = velocities[0].attention.mesh, zip(velocities, noises, strict=True)
    steps = np.array([linear_step(velocity.attention, noise, mesh.ambient_dimension) for velocity, noise in pairs])

    def longest(densities: Floats) -> Floats:
        mean = densities @ mesh.volumes / mesh.volume
        return np.where(densities.max(axis=1) < MAX_DENSITY * mean, steps, np.inf)

    return longest
