"""Section [domain] of the line R, d = 1, without a sphere that confines tokens."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from meanfield.domains.domain import DefaultResolution, Domain
from meanfield.domains.unbounded import length_problems
from meanfield.sections.initial import Array, Formula, Gaussian, Interval, Points, Snapshot, Values
from meanfield.sections.section import Key, Positive, Problems

if TYPE_CHECKING:
    from meanfield.case.case import Case


MIN_CELLS = 4.0  # in a standard deviation: tokens of narrower peaks attract from their center of mass (`equation.py`)


class Line(Domain, frozen=True, kw_only=True, tag="line"):
    """Section [domain] of the line from −``outermost`` to ``outermost``, in ``resolution`` cells.

    Cells are equal within ``core``, logarithmic beyond. The defaults are good for densities of a width of about 1.
    """

    typical: ClassVar = {"resolution": 512, "core": 4.0, "outermost": 40.0}
    phenomena: ClassVar = ("blow_up",)
    measure: ClassVar = ("1", "density of tokens with respect to length")
    set_up: ClassVar = "meanfield.domains.line.setup:set_up_line"
    diagnostics: ClassVar = "meanfield.diagnostics.unbounded:DIAGNOSTICS_LINE"
    layer_norms: ClassVar = ("none",)
    initial: ClassVar = (Points, Snapshot, Gaussian, Interval, Array, Values, Formula)
    features: ClassVar = frozenset({"noise", "gate", "layers"})
    formula: ClassVar = ("x",)
    unit_vectors: ClassVar = False
    edges: ClassVar = "cell_edge"
    ambient: ClassVar = 1
    space: ClassVar = "R1"
    figure: ClassVar = ("meanfield.figures.profiles:draw_profiles", "meanfield.figures.profiles:profiles_height")
    movie: ClassVar = "meanfield.movie.pictures:draw_profile_and_history"
    stage: ClassVar = "meanfield.view.stages:PROFILE"
    coordinate: ClassVar = "meanfield.figures.coordinate:token_on_line"

    default_resolution: ClassVar = DefaultResolution(2 * 5.0, per_width=32, most=2048)

    # attention sums over cells²; set in a resolved case
    resolution: Annotated[int, Meta(ge=8, le=10**4)] | None = None
    outermost: Positive = 20.0
    core: Positive = 5.0

    about: ClassVar = {
        "resolution": Key("number of cells; by default 320√β, 15 per kernel width 1/√β near 0, at most 2048", 400),
        "outermost": Key("end of the mesh, which runs from −outermost to outermost", 20.0),
        "core": Key("distance from 0 within which cells are equal; beyond it they are logarithmic", 5.0),
    }

    def problems(self, case: Case) -> Problems:
        """Yield the errors of the lengths of the mesh, and of a Gaussian that is narrower than its cells."""
        yield from length_problems(self.outermost, {"core": self.core})
        if isinstance(case.initial, Gaussian) and case.attention.value_scale > 0:
            variance, least = case.initial.variance, (MIN_CELLS * self.cells_and_width()[1]) ** 2
            if not isinstance(variance, tuple) and variance < least:
                expected = (
                    f"at least {least:.3g}, since a Gaussian grows by attention only where its standard deviation"
                )
                yield "initial.variance", variance, f"{expected} has {MIN_CELLS:g} cells; or a larger domain.resolution"

    def cells_and_width(self) -> tuple[int, float]:
        """Return the number of cells, and the width of the narrowest cells, those at the origin."""
        return self.cells_across, 2 * self.core * math.asinh(self.outermost / self.core) / self.cells_across
