"""Case: the resolved content of a case file, with all of its sections."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, ClassVar

import msgspec

from meanfield.domains.domain import Domain, load
from meanfield.sections.attention import Attention, FeedForward, Reaction, scale_of
from meanfield.sections.evolution import HandOver, Output, Stabilizers, Time, TokenSequence
from meanfield.sections.initial import InitialKind
from meanfield.sections.section import Key, Section, tag_of

if TYPE_CHECKING:
    from meanfield.case.overrides import Overrides
    from meanfield.diagnostics.table import Diagnostic, Table

_MAX_TOKENS_FOR_PAIRS = 1000  # tokens; beyond, diagnostics over all pairs are recorded only on request


class Case(Section, frozen=True):  # types.py builds the type that a file is converted to
    """Resolved content of a case file, which determines a run."""

    domain: Domain
    attention: Attention
    initial: InitialKind
    time: Time = Time()
    title: str = ""

    about: ClassVar = {"title": Key("one line for figures and lists", "Two clusters on the sphere")}
    feed_forward: FeedForward | None = None
    reaction: Reaction | None = None
    stabilizers: Stabilizers = Stabilizers()
    sequence: TokenSequence | None = None
    hand_over: HandOver | None = None
    output: Output = Output()

    def replace(self, changes: Overrides) -> Case:
        """Return the case with ``changes``, such as {"attention.beta": 4} or ["attention.beta=4"].

        If the case records all default diagnostics, the new case records those of its own domain. Raises CaseError.
        """
        from meanfield.case.load import parse, to_toml
        from meanfield.case.overrides import overrides_of

        overrides, output = overrides_of(changes), self.output
        if any(text.startswith("domain") for text in overrides) and output.diagnostics == self.default_diagnostics:
            output = msgspec.structs.replace(output, diagnostics=None)
        return parse(to_toml(msgspec.structs.replace(self, output=output)), overrides)

    def _repr_html_(self) -> str:
        """Return the title and the layer as HTML, above a folded case file."""
        from meanfield.case.load import to_toml
        from meanfield.case.summary import layer_in_words

        words = html.escape(f"{tag_of(self.domain)}, β = {self.attention.beta:g}, {', '.join(layer_in_words(self))}")
        file = f"<details><summary>case file</summary><pre>{html.escape(to_toml(self))}</pre></details>"
        return f"<div><b>{html.escape(self.title or 'Case')}</b></div><div>{words}</div>{file}"

    @property
    def possible_diagnostics(self) -> dict[str, Diagnostic]:
        """Return the diagnostics that ``output.diagnostics`` may name, in the order of the domain's table."""
        table: Table = load(self.domain.diagnostics)
        return {name: entry for name, entry in table.items() if entry.possible(self)}

    @property
    def default_diagnostics(self) -> tuple[str, ...]:
        """Return the possible diagnostics except those of special studies and, for many particles, sums over pairs."""
        many = (self.domain.count or 0) > _MAX_TOKENS_FOR_PAIRS
        found = self.possible_diagnostics.items()
        return tuple(name for name, entry in found if entry.default and not (many and entry.sums_pairs))

    @property
    def tokens_have_radius(self) -> bool:
        """Return whether tokens have a radius besides their direction."""
        return self.domain.has_radius or self.stabilizers.layer_norm in self.domain.radial_norms

    @property
    def beta_on_unit_sphere(self) -> float:
        """Return β g², the inverse temperature on the unit sphere equivalent to β on the sphere of radius g."""
        return self.attention.beta_effective * self.stabilizers.scale**2

    @property
    def beta_of_heads(self) -> float:
        """Return β g² without the scales of query and key: the β of heads, for directions of tokens on a sphere of
        radius g.
        """
        return self.attention.beta * self.stabilizers.scale**2

    @property
    def rescaling(self) -> float:
        """Return the factor e^{−|β|} of rescaled kernels, with β on the unit sphere; 1 for other attention."""
        return math.exp(-abs(self.beta_on_unit_sphere)) if self.attention.rescaled else 1.0

    @property
    def noise_on_unit_sphere(self) -> float:
        """Return κ/g², the noise on the unit sphere equivalent to κ on the sphere of radius ``stabilizers.scale``."""
        return self.stabilizers.noise / self.stabilizers.scale / self.stabilizers.scale

    @property
    def flow_steps(self) -> float:
        """Return an approximate bound of the number of steps in which no token moves by more than ``cfl`` cells.

        The bound requires bounded speeds.
        """
        return self.time.end * self.attention.speed_bound / (self.time.cfl * self.domain.cells_and_width()[1])

    @property
    def is_gradient_flow(self) -> bool:
        """Return whether tokens move by softmax or unnormalized attention with Q = K = V = I alone.

        The rate of the entropy then follows from the velocity.
        """
        attention = self.attention
        ones = attention.is_scalar and all(
            scale_of(getattr(attention.all_heads[0], name)) == 1.0 for name in ("query", "key", "value")
        )
        plain = attention.kernel == "exponential" and attention.normalization != "sinkhorn"
        plain = plain and attention.mask == "none" and attention.pattern is None
        return ones and plain and self.stabilizers.layer_norm == "post" and self.feed_forward is None
