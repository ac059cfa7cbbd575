"""Section [domain] of a trained Transformer: hidden states in R^d, transformed by the layers of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from meanfield.domains.domain import Domain
from meanfield.model.trained_parts import PARTS
from meanfield.sections.initial import Tokens
from meanfield.sections.section import Key, Problems

if TYPE_CHECKING:
    from meanfield.case.case import Case

    Part = str
else:
    Part = Literal[PARTS]


class Trained(Domain, frozen=True, kw_only=True, tag="transformer"):
    """Section [domain] of a trained Transformer: states in R^``dimension``, transformed by the layers in a file.

    The file is ``file`` (.h5); the parts of layers in ``without`` are left out. Layers beyond those of the file repeat
    the layers of the file. ``logits``: whether attention is softmax of β⟨Qx, Ky⟩; "unknown" in files of models of
    another kind, which can be read but not run. ``lengths``: whether a file has states and not only their directions.
    """

    set_up: ClassVar = "meanfield.domains.trained.setup:set_up_trained"
    diagnostics: ClassVar = "meanfield.domains.trained.diagnostics:DIAGNOSTICS"
    layer_norms: ClassVar = ("post",)  # the default, without effect: layer norm is part of the model
    initial: ClassVar = (Tokens,)
    features: ClassVar = frozenset({"causal mask", "layers"})
    has_tokens: ClassVar = True
    figure: ClassVar = (
        "meanfield.figures.particles.panels:draw_particles", "meanfield.figures.particles.panels:particles_height"
    )  # fmt: skip
    movie: ClassVar = "meanfield.movie.particles:draw_tokens"

    dimension: Annotated[int, Meta(ge=2, le=4096)]
    file: str
    without: tuple[Part, ...] = ()
    logits: Literal["softmax", "unknown"] = "softmax"
    lengths: bool = True

    about: ClassVar = {
        "dimension": Key("width d of the model", 384),
        "file": Key("file of the layers, .h5, as `meanfield transformer case` writes them", "layers.h5"),
        "without": Key("parts of the layers that are left out", ("network",)),
        "logits": Key(
            "softmax: of β⟨Qx, Ky⟩; unknown: another attention, in a file that can be read but not run", "softmax"
        ),
        "lengths": Key("true: a run keeps states; false: only their directions", True),
    }

    @property
    def d(self) -> int:
        """Return the dimension d of the states of the model."""
        return self.dimension

    @property
    def location(self) -> str:
        """Return the text that names the place of tokens in messages."""
        return "for a trained Transformer"

    @property
    def radial_norms(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return the layer norms with which a run keeps the lengths of states; empty if it keeps directions only."""
        return self.layer_norms if self.lengths else ()

    @property
    def has_softmax(self) -> bool:
        """Return whether the attention of the model is the softmax of β⟨Qx, Ky⟩."""
        return self.logits == "softmax"

    @property
    def describe_layer(self) -> list[str]:
        """Return a text that names the parts of the layers that are left out."""
        return [f"without {', '.join(self.without)}"] if self.without else ["all parts of a trained layer"]

    def problems(self, case: Case) -> Problems:
        """Yield the errors of a case with the layers of a trained model: key, value, and what is expected."""
        attention = case.attention
        if case.time.method != "layers":
            yield "time.method", case.time.method, '"layers" for a trained Transformer'
        if case.time.step != 1.0:
            yield "time.step", case.time.step, "1 for a trained Transformer, whose layers are whole"
        if attention.normalization != "softmax":
            yield "attention.normalization", attention.normalization, '"softmax" for a trained Transformer'
        for name in ("query", "key", "value"):
            if getattr(attention, name) is not None:
                yield f"attention.{name}", getattr(attention, name), "not allowed beside domain.file"
        if not case.stabilizers.residual:
            yield "stabilizers.residual", False, 'true; domain.without = ["residual"] leaves it out'
        if case.initial.radius is not None:
            yield "initial.radius", case.initial.radius, "none: states of the file are taken as they are"
