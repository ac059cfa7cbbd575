"""Sections [domain] of tokens x = rω with a free radius r, ω on the circle or the sphere."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from meanfield.domains.domain import MAX_CELLS, Domain
from meanfield.domains.sphere.section import ON_SPHERES, Circle, Sphere, vector_problems
from meanfield.domains.unbounded import length_problems
from meanfield.model.layer_norm import RADIAL_NORMS
from meanfield.sections.initial import Formula, Gaussian
from meanfield.sections.section import Key, Positive, Problems

if TYPE_CHECKING:
    from meanfield.case.case import Case

MAX_SIZE = 1e100  # largest rate: its square is a double too


class _FreeRadius(Domain, frozen=True, kw_only=True):
    """Section [domain] of tokens with a free radius, on ``radii`` radial cells from ``innermost`` to ``outermost``.

    Radial cells are equal within ``core`` and logarithmic beyond. All radii grow as e^{``expansion``·t}: for growth
    over decades a good value is ‖V‖ − gate, which bounds the growth of tokens. The defaults have radial steps of 4 %;
    `check` estimates by how much the mesh widens a Gaussian.
    """

    set_up: ClassVar = "meanfield.domains.free_radius.setup:set_up_free_radius"
    diagnostics: ClassVar = "meanfield.diagnostics.unbounded:DIAGNOSTICS"
    layer_norms: ClassVar = RADIAL_NORMS
    radial_norms: ClassVar = RADIAL_NORMS
    initial: ClassVar = (*ON_SPHERES, Formula, Gaussian)
    features: ClassVar = frozenset({"matrices", "feed-forward", "gate"})
    has_radius: ClassVar = True
    edges: ClassVar = "radius_edge"
    ends: ClassVar = ("innermost", "outermost")
    figure: ClassVar = (
        "meanfield.figures.free_radius:draw_free_radius", "meanfield.figures.free_radius:free_radius_height"
    )  # fmt: skip
    movie: ClassVar = "meanfield.movie.pictures:draw_directions_and_radii"

    resolution: int | None = None
    radii: Annotated[int, Meta(ge=4)] = 128
    innermost: Positive = 0.02
    outermost: Positive = 100.0
    core: Positive = 2.0
    expansion: float = 0.0

    about: ClassVar = {
        "radii": Key("number of cells of the radius", 128),
        "innermost": Key("smallest radius of the mesh", 0.02),
        "outermost": Key("largest radius of the mesh", 100.0),
        "core": Key("radius within which radial cells are equal; beyond it they are logarithmic", 2.0),
        "expansion": Key("rate at which all radii of the mesh grow: e^{expansion·t}", 1.0, unit="1/time"),
    }

    @property
    def location(self) -> str:
        """Return the text that names the place of tokens in messages."""
        return "with a free radius"

    @property
    def max_degree(self) -> int | None:
        """Return the highest degree of an initial density that the cells of the directions resolve."""
        return self._directions_domain.max_degree

    @property
    def _directions_domain(self) -> Domain:
        """Return the domain record of the directions alone: circle or sphere."""
        assert self.directions is not None
        return self.directions(resolution=self.cells_across)

    def cells_and_width(self) -> tuple[int, float]:
        """Return the number of cells of all radii together, and the width of a cell of the directions in radians."""
        cells, width = self._directions_domain.cells_and_width()
        return cells * self.radii, width

    def problems(self, case: Case) -> Problems:
        """Yield the errors of the radii, the number of cells and the expansion: key, value, and what is expected."""
        if self.innermost >= self.outermost:
            yield "domain.innermost", self.innermost, f"less than domain.outermost = {self.outermost}"
        yield from length_problems(self.outermost, {"core": self.core, "innermost": self.innermost})
        cells = self.cells_and_width()[0] // self.radii
        if self.radii * cells > MAX_CELLS:
            yield "domain.radii", self.radii, f"at most {MAX_CELLS // cells} with domain.resolution = {self.resolution}"
        if abs(self.expansion) > MAX_SIZE:
            yield "domain.expansion", self.expansion, f"numbers of at most {MAX_SIZE:g} in size"

    def estimates(self, case: Case) -> list[str]:
        """Return a line about the relative error of the variance of an initial Gaussian on this mesh; none for others.

        The error follows from the ratio of the size of the cells at the mean radius to the width of the Gaussian.
        """
        initial = case.initial
        if not isinstance(initial, Gaussian):
            return []
        mean = initial.mean if isinstance(initial.mean, tuple) else (0.0,) * self.d
        variance = initial.variance
        width = math.sqrt(min(row[k] for k, row in enumerate(variance)) if isinstance(variance, tuple) else variance)
        error = 100 * self.spreading(math.hypot(*mean, width * math.sqrt(self.d)), width)
        return [f"mesh error    variance about {error:.2g} % high after unit time at unit speed (radii, resolution)"]

    def spreading(self, radius: float, width: float) -> float:
        """Return the approximate relative error of the variance of a density with a standard deviation at a radius.

        With r = ``radius``, σ = ``width`` and cells Δr × rΔω, the estimate is 1.1 (Δr/σ)² + 0.27 (rΔω/σ)² after unit
        time at unit speed: limited slopes widen densities that span few cells. The factors are measured for peri and
        N((1.5, 0.5), 0.1) on 64 × 128, 128 × 128, 64 × 256 and 128 × 256 cells, where the errors are 15.4, 10.5, 8.4
        and 3.6 %; the fit is within a tenth of each.
        """
        steps = math.asinh(self.outermost / self.core) - math.asinh(self.innermost / self.core)
        along = math.hypot(radius, self.core) * steps / self.radii
        across = radius * self._directions_domain.cells_and_width()[1]
        return (1.1 * along**2 + 0.27 * across**2) / width**2

    def point_problems(self, key: str, point: tuple[float, ...]) -> Problems:
        """Yield an error for a point that is zero or too large to have a direction."""
        yield from vector_problems(key, point)


class LogRadius(Domain, frozen=True, kw_only=True, tag="radius"):
    """Record of the coordinate log r, for figures of the marginal density over radii; no case has this domain."""

    coordinate: ClassVar = "meanfield.figures.coordinate:log_radius"


class FreeRadiusCircle(_FreeRadius, frozen=True, kw_only=True, tag="free_radius_circle"):
    """Section [domain] of the plane: a free radius, and directions on the circle in ``resolution`` cells."""

    typical: ClassVar = {"resolution": 64, "radii": 96, "innermost": 0.005, "core": 1.0, "outermost": 8.0}
    phenomena: ClassVar = ("blow_up",)
    ambient: ClassVar = 2
    formula: ClassVar = Circle.formula
    space: ClassVar = "R2"
    directions: ClassVar = Circle

    default_resolution: ClassVar = Circle.default_resolution._replace(most=512)

    resolution: Annotated[int, Meta(ge=8, le=10**6)] | None = None  # set in a resolved case

    about: ClassVar = {
        "resolution": Key("cells of the direction; by default 16 per kernel width 1/√β, at most 512", 64)
    }


class FreeRadiusSphere(_FreeRadius, frozen=True, kw_only=True, tag="free_radius_sphere"):
    """Section [domain] of space R³: a free radius, and directions on the sphere in ``resolution`` rings of latitude."""

    ambient: ClassVar = 3
    formula: ClassVar = Sphere.formula
    space: ClassVar = "R3"
    directions: ClassVar = Sphere
    shows_rings: ClassVar = True

    default_resolution: ClassVar = Sphere.default_resolution._replace(most=128)

    resolution: Annotated[int, Meta(ge=4, le=1000)] | None = None  # set in a resolved case

    about: ClassVar = {
        "resolution": Key("rings of latitude of the direction; by default 8 per kernel width 1/√β, at most 128", 32)
    }
