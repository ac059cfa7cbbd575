"""Section [domain] of densities on S^{d−1} that are symmetric about an axis: distributions of the polar angle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from meanfield.domains.domain import DefaultResolution, Domain
from meanfield.model.layer_norm import SPHERICAL_NORMS
from meanfield.sections.initial import (
    Array,
    Formula,
    Harmonic,
    Moebius,
    Perturbed,
    Points,
    Snapshot,
    Uniform,
    Values,
    VonMisesFisher,
)
from meanfield.sections.section import Key, Problems

if TYPE_CHECKING:
    from meanfield.case.case import Case


class Axisymmetric(Domain, frozen=True, kw_only=True, tag="axisymmetric"):
    """Section [domain] of axisymmetric densities: polar angles from 0 to π in ``resolution`` equal cells.

    The sphere is S^{``dimension`` − 1}.
    """

    typical: ClassVar = {"dimension": 64, "resolution": 256}
    phenomena: ClassVar = ("collapse",)
    measure: ClassVar = ("rad", "distribution of the polar angle of tokens")
    set_up: ClassVar = "meanfield.domains.axisymmetric.setup:set_up_axisymmetric"
    diagnostics: ClassVar = "meanfield.domains.axisymmetric.diagnostics:DIAGNOSTICS"
    layer_norms: ClassVar = SPHERICAL_NORMS
    initial: ClassVar = (
        Uniform, Perturbed, Harmonic, VonMisesFisher, Moebius, Points, Snapshot, Array, Values, Formula
    )  # fmt: skip
    features: ClassVar = frozenset({"noise", "linear stability"})
    bounded_speed: ClassVar = True
    coordinates: ClassVar = 1
    formula: ClassVar = ("theta", "z")
    unit_vectors: ClassVar = False
    edges: ClassVar = "cell_edge"
    uniform: ClassVar = "uniform"
    figure: ClassVar = ("meanfield.figures.profiles:draw_profiles", "meanfield.figures.profiles:profiles_height")
    movie: ClassVar = "meanfield.movie.pictures:draw_profile_and_history"
    stage: ClassVar = "meanfield.view.stages:PROFILE"
    coordinate: ClassVar = "meanfield.figures.coordinate:polar_angle"

    default_resolution: ClassVar = DefaultResolution(math.pi, per_width=16, most=1024)

    # the kernel of all pairs of polar angles is stored; set in a resolved case
    resolution: Annotated[int, Meta(ge=8, le=4096)] | None = None
    dimension: Annotated[int, Meta(ge=2, le=4096)] = 3

    about: ClassVar = {
        "resolution": Key("number of cells; by default 16 per 1/√β or 1/√(dimension − 2), at most 1024", 128),
        "dimension": Key("d of the sphere S^{d−1}", 64),
    }

    @property
    def d(self) -> int:
        """Return the dimension d of the space R^d that contains the sphere."""
        return self.dimension

    @property
    def location(self) -> str:
        """Return the text that names the place of tokens in messages."""
        return "on a sphere with an axis"

    @property
    def max_degree(self) -> int:
        """Return the highest degree of an initial density that the cells resolve."""
        return self.cells_across - 1

    def point_problems(self, key: str, point: tuple[float, ...]) -> Problems:
        """Yield an error for a point that is not a cosine from −1 to 1."""
        if not -1 <= point[0] <= 1:
            yield key, point, "the cosine of its angle with the axis, from -1 to 1"

    def cells_and_width(self) -> tuple[int, float]:
        """Return the number of cells, and their width in radians of the polar angle."""
        return self.cells_across, math.pi / self.cells_across

    def smallest_scale(self, case: Case) -> float:
        """Return the width of the kernel, or of the distribution of uniform tokens about the equator if narrower."""
        return min(super().smallest_scale(case), 1 / math.sqrt(max(self.dimension - 2, 1)))
