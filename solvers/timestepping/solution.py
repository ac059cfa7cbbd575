"""Solution of an evolution equation: times, fields, how it ended; dense output, datasets and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..mesh.mesh import Floats, Mesh

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset


@dataclass(frozen=True)
class Solution:
    """What `solve` returns; ``solution(t)`` is the field at any time that it covers.

    t          (n,) times
    u          (n, cells) or (n, fields, cells)
    steps      that were taken
    rejected   steps that were taken again, shorter; 0 of methods that do not count them
    message    how it ended, and by which method
    event      number of the event that ended it, None for t1
    mesh       of the equation; None where no term has one
    """

    t: Floats
    u: Floats
    steps: int
    rejected: int
    message: str
    event: int | None = None
    mesh: Mesh | None = field(default=None, repr=False)
    _rate: Callable[[float, Floats], Floats] | None = field(default=None, repr=False)

    def __call__(self, time: float) -> Floats:
        """u at a time between the first and the last, by cubic Hermite interpolation between the times ``t``.

        Of third order in their distance; without ``times`` they are the steps. Raises ValueError for another time.
        """
        t = self.t
        if not t[0] <= time <= t[-1]:
            raise ValueError(f"t = {time}: expected a time from {t[0]:g} to {t[-1]:g}")
        k = max(min(int(np.searchsorted(t, time, side="right")) - 1, len(t) - 2), 0)
        if time == t[k] or len(t) == 1:
            values: Floats = self.u[k].copy()
            return values
        h, s = t[k + 1] - t[k], (time - t[k]) / (t[k + 1] - t[k])
        linear: Floats = (1 - s) * self.u[k] + s * self.u[k + 1]
        if self._rate is None:
            return linear
        first, last = (h * self._rate(t[j], self.u[j]) for j in (k, k + 1))
        change = self.u[k + 1] - self.u[k]
        return np.asarray(linear + s * (1 - s) * ((1 - s) * (first - change) - s * (last - change)))

    def to_xarray(self, fields: Sequence[str] | None = None) -> Dataset:
        """The fields by name ("u", or u0, u1, …) over time and the mesh's coordinates, with the volume of each cell.

        Raises ValueError without a mesh, or where there are not as many names as fields.
        """
        from ..mesh.views import dataset

        return dataset(self.t, self.u, self._on_mesh(), fields)

    def plot(self, ax: Axes | None = None, *, time: float | None = None, field: int = 0, **style: Any) -> Axes:
        """Draw a field with Matplotlib; returns the axes.

        time    the kept time nearest to it; by default some times as curves on a line, else the last
        field   its number;  style   for Matplotlib's plot, pcolormesh or scatter
        Raises ValueError without a mesh, and for a box of three dimensions.
        """
        from ..mesh.views import draw

        return draw(self.t, self.u, self._on_mesh(), ax, time, field, **style)

    def movie(self, path: str | Path, *, field: int = 0, fps: int = 10, **style: Any) -> Path:
        """Draw a field at each kept time into a GIF, or an MP4 where ffmpeg is at hand; returns the path.

        field   its number;  fps   times in a second;  style   for Matplotlib's plot, pcolormesh or scatter
        Raises ValueError without a mesh, and for a box of three dimensions.
        """
        from ..mesh.views import film

        return film(self.t, self.u, self._on_mesh(), path, field, fps, **style)

    def _on_mesh(self) -> Mesh:
        if self.mesh is None:
            raise ValueError("the equation has no mesh: expected Equation(mesh, [term, …])")
        return self.mesh
