"""Sections [domain] of the circle S¹ and the sphere S², to which layer norm confines tokens."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from meanfield.domains.domain import MAX_CELLS, DefaultResolution, Domain, load
from meanfield.model.layer_norm import SPHERICAL_NORMS
from meanfield.sections.initial import (
    Array,
    ByLabel,
    Formula,
    Harmonic,
    Moebius,
    Perturbed,
    Points,
    Snapshot,
    Tokens,
    Uniform,
    Values,
    VonMisesFisher,
)
from meanfield.sections.section import Count, Key, Problems

if TYPE_CHECKING:
    from meanfield.case.case import Case

LABELS = 8  # of a causal mask, by default
ON_SPHERES = (Uniform, Perturbed, Harmonic, VonMisesFisher, Moebius, Points, Tokens, Snapshot)
NORMS = (1e-150, 1e150)  # of vectors of which only the direction matters: their squares are doubles too


def cells_of_sphere(rings: int) -> int:
    """Return the number of cells of a sphere with ``rings`` rings of latitude."""
    from solvers.mesh.rings import cells_of_rings

    return int(cells_of_rings(rings).sum())


class _ClosedDomain(Domain, frozen=True, kw_only=True):
    """Section [domain] shared by circle and sphere.

    labels      number of labels of a causal mask (positions of tokens in the sequence), each with a density of its own;
                by default 8, or the number of points
    precision   single: the state is in float32, its harmonics in float64; `check` measures the error
    """

    set_up: ClassVar = "meanfield.domains.sphere.setup:set_up_round"
    diagnostics: ClassVar = "meanfield.domains.sphere.diagnostics:DIAGNOSTICS"
    layer_norms: ClassVar = SPHERICAL_NORMS
    initial: ClassVar = (*ON_SPHERES, Array, Values, Formula, ByLabel)
    features: ClassVar = frozenset(
        {"matrices", "heads", "file", "kernels", "sinkhorn", "causal mask", "feed-forward", "reaction", "noise",
         "scale", "layers", "handover", "linear stability"}
    )  # fmt: skip
    phenomena: ClassVar = ("clusters", "merging", "noise", "drift")
    is_closed: ClassVar = True
    bounded_speed: ClassVar = True

    def resolved(self, case: Case) -> Domain:
        """Return this section [domain] with its defaults filled in, including the number of labels of a causal mask."""
        resolved = super().resolved(case)
        if case.attention.mask == "none" or self.labels is not None:
            return resolved
        labels = LABELS
        if isinstance(case.initial, Points):
            labels = len(case.initial.points)
        elif isinstance(case.initial, ByLabel):
            labels = len(case.initial.parts)
        return msgspec.structs.replace(resolved, labels=labels)

    def estimates(self, case: Case) -> list[str]:
        """Return a line about the rounding error of a density in single precision, for the command `check`."""
        return (
            [load("meanfield.domains.sphere.precision:describe_rounding_error")(case)]
            if self.is_single_precision
            else []
        )

    @property
    def is_single_precision(self) -> bool:
        """Return whether states are in float32."""
        return getattr(self, "precision", "double") == "single"

    def problems(self, case: Case) -> Problems:
        """Yield the errors of single precision and of the labels of a causal mask: key, value, and what is expected."""
        if self.is_single_precision and case.time.method == "layers":
            yield "domain.precision", "single", '"double" with time.method = "layers"'
        if self.is_single_precision and case.attention.normalization == "sinkhorn":
            yield "domain.precision", "single", '"double" with sinkhorn attention, whose rounds would not end'
        cells = self.cells_and_width()[0] // (self.labels or 1)
        if (self.labels or 0) * cells > MAX_CELLS:
            expected = f"at most {MAX_CELLS // cells} with domain.resolution = {self.resolution}"
            yield "domain.labels", self.labels, expected
        if case.attention.mask == "none":
            if self.labels is not None:
                yield "domain.labels", self.labels, 'only allowed with attention.mask = "causal"'
            if isinstance(case.initial, ByLabel):
                yield "initial.kind", "by_label", 'another, or attention.mask = "causal"'
        elif isinstance(case.initial, ByLabel):
            if (self.labels or 1) % len(case.initial.parts):
                yield (
                    "domain.labels",
                    self.labels,
                    f"a multiple of the number of initial.parts, {len(case.initial.parts)}",
                )
        elif isinstance(case.initial, Points):
            if len(case.initial.points) % (self.labels or 1):
                yield "domain.labels", self.labels, f"a divisor of the number of points, {len(case.initial.points)}"
            if case.initial.masses is not None:
                yield "initial.masses", case.initial.masses, "not allowed with a causal mask: labels have equal masses"

    def point_problems(self, key: str, point: tuple[float, ...]) -> Problems:
        """Yield an error for a point that is zero or too large to have a direction."""
        yield from vector_problems(key, point)


def vector_problems(key: str, vector: tuple[float, ...]) -> Problems:
    """Yield an error for a vector whose length is zero or out of range, where only the direction matters."""
    if not NORMS[0] <= math.hypot(*vector) <= NORMS[1]:
        yield key, vector, f"a vector that is not zero (norm from {NORMS[0]:g} to {NORMS[1]:g})"


class Circle(_ClosedDomain, frozen=True, kw_only=True, tag="circle"):
    """Section [domain] of the circle S¹ in ``resolution`` equal cells."""

    typical: ClassVar = {"resolution": 256}
    aliases: ClassVar = ("S1",)
    measure: ClassVar = ("rad", "density of tokens with respect to surface area")
    mesh: ClassVar = "solvers.mesh.mesh:circle"
    batch: ClassVar = "meanfield.domains.sphere.batch:BATCH"
    ambient: ClassVar = 2
    formula: ClassVar = ("x", "y", "phi")
    space: ClassVar = "S1"
    volume: ClassVar = 2 * math.pi
    figure: ClassVar = ("meanfield.figures.profiles:draw_profiles", "meanfield.figures.profiles:profiles_height")
    movie: ClassVar = "meanfield.movie.pictures:draw_profile_and_history"
    stage: ClassVar = "meanfield.view.stages:RING"
    coordinate: ClassVar = "meanfield.figures.coordinate:angle_on_circle"
    netcdf: ClassVar = "meanfield.export.netcdf:circle_grid"
    vtkhdf: ClassVar = "meanfield.export.vtkhdf:circle_lines"

    default_resolution: ClassVar = DefaultResolution(2 * math.pi, per_width=16, most=4096)

    resolution: Annotated[int, Meta(ge=8, le=10**8)] | None = None  # set in a resolved case
    labels: Count | None = None
    precision: Literal["double", "single"] = "double"

    about: ClassVar = {
        "resolution": Key("number of cells; by default 16 per kernel width 1/√β, at most 4096", 256),
        "labels": Key("number of labels of a causal mask, each a density of its own", 8),
        "precision": Key("format of the density and its velocity: float64, or float32 in half of the memory", "single"),
    }

    @property
    def max_degree(self) -> int:
        """Return the highest degree of an initial density that the cells resolve."""
        return (self.cells_across - 1) // 2

    def cells_and_width(self) -> tuple[int, float]:
        """Return the number of cells of all labels together, and the width of a cell in radians."""
        return self.cells_across * (self.labels or 1), 2 * math.pi / self.cells_across


class Sphere(_ClosedDomain, frozen=True, kw_only=True, tag="sphere"):
    """Section [domain] of the sphere S² in ``resolution`` rings of latitude from pole to pole.

    All cells have about the same area.
    """

    typical: ClassVar = {"resolution": 64}
    aliases: ClassVar = ("S2",)
    measure: ClassVar = ("sr", "density of tokens with respect to surface area")
    mesh: ClassVar = "solvers.mesh.mesh:sphere"
    ambient: ClassVar = 3
    formula: ClassVar = ("x", "y", "z", "phi", "theta")
    space: ClassVar = "S2"
    volume: ClassVar = 4 * math.pi
    figure: ClassVar = ("meanfield.figures.sphere_map:draw_sphere", "meanfield.figures.sphere_map:sphere_height")
    movie: ClassVar = "meanfield.movie.pictures:draw_sphere"
    stage: ClassVar = "meanfield.view.stages:GLOBE"
    shows_rings: ClassVar = True
    netcdf: ClassVar = "meanfield.export.netcdf:sphere_grid"
    vtkhdf: ClassVar = "meanfield.export.vtkhdf:sphere_polygons"

    default_resolution: ClassVar = DefaultResolution(math.pi, per_width=8, most=512)

    resolution: Annotated[int, Meta(ge=4, le=8600)] | None = None  # set in a resolved case
    labels: Count | None = None
    precision: Literal["double", "single"] = "double"

    about: ClassVar = {
        "resolution": Key("number of rings of latitude; by default 8 per kernel width 1/√β, at most 512", 64),
        "labels": Key("number of labels of a causal mask, each a density of its own", 8),
        "precision": Key("format of the density and its velocity: float64, or float32 in half of the memory", "single"),
    }

    @property
    def max_degree(self) -> int:
        """Return the highest degree of an initial density that the rings resolve."""
        return self.cells_across - 1

    def cells_and_width(self) -> tuple[int, float]:
        """Return the number of cells of all labels together, and the width of a cell, the square root of its area."""
        cells = cells_of_sphere(self.cells_across)
        return cells * (self.labels or 1), math.sqrt(4 * math.pi / cells)
