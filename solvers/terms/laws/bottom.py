"""Bottom of shallow water, with a force in balance with the pressure at faces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...mesh.mesh import Floats, Mesh
from .fluid import TINY

DRY = 1e-8  # of the largest depth: a film in which velocities are reduced


def speed_per_momentum(depth: Floats, least: Floats) -> Floats:
    """Return v/(hv) (n,) at a depth h: 1/h where h is at least ``least`` (n,), and less in films and on dry ground."""
    weight: Floats = 2 * depth / (depth**2 + np.maximum(depth, least) ** 2 + TINY)
    return weight


@dataclass(frozen=True, eq=False)
class Bottom:
    """Source −gh∇b of shallow water over a bottom b, by the hydrostatic reconstruction.

    The level h + b and the depth h are reconstructed at the faces, and b is their difference. A face is as high as the
    higher of its two sides: the Riemann solver takes the depths above it. In a lake at rest all forces then vanish.
    With dry ground a limiter is needed: the level is least in the lake, where limiters make it constant.

    gravity   gravity g
    mesh      mesh of the water
    height    (cells,) height b of the bottom

    References
    ----------
    Audusse, Bouchut, Bristeau, Klein and Perthame (2004); Audusse and Bristeau (2005).
    """

    gravity: float
    mesh: Mesh
    height: Floats

    def level(self, values: Floats) -> Floats:
        """Return the level h + b (cells,) of the state ``values`` (d + 1, cells)."""
        level: Floats = values[0] + self.height
        return level

    def balance(self, values: Floats, at_side: Floats, level: Floats) -> tuple[Floats, Floats]:
        """Return the states (d + 1, sides) above the faces, and the pressure (sides,) that balances their fluxes.

        ``at_side`` (d + 1, sides) and ``level`` (sides,) are the reconstructed states and levels at the sides of faces,
        ``values`` (d + 1, cells) the cell averages.
        """
        xp, cells = self.mesh.backend.xp, self.mesh.side_cells
        own, own_level = values[:, cells], self.level(values)[cells]
        bottom = level - at_side[0]
        depth = np.maximum(level - np.maximum(bottom, _across(bottom)), 0.0)
        velocity = speed_per_momentum(at_side[0], 0.5 * own[0]) * at_side[1:]
        pressure = 0.5 * self.gravity * ((at_side[0] + own[0]) * (level - own_level) - depth**2)
        return xp.concatenate([depth[None], depth * velocity]), pressure


def _across(at_side: Floats) -> Floats:
    """Return the values (sides,) of the opposite sides of all faces."""
    return at_side.reshape(-1, 2)[:, ::-1].reshape(-1)
