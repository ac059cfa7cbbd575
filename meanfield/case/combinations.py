"""Options of a case that some domains lack or that exclude each other: one table for errors, README and tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from meanfield.case.case import Case
from meanfield.model.kernel import KERNELS
from meanfield.model.layer_norm import LAYER_NORMS, SPHERICAL_NORMS
from meanfield.model.normalization import NORMALIZATIONS
from meanfield.sections.attention import RandomMatrix, scale_of
from meanfield.sections.section import Problems, tag_of

Used = tuple[str, object]  # the key that selects an option, and its value


class Option(NamedTuple):
    """Option of a case: ``used`` returns the key and value by which a case selects the option, else None.

    ``otherwise`` is the expected value on a domain without the option; None if every domain has the option.
    """

    used: Callable[[Case], Used | None]
    otherwise: str | None = None


def combination_problems(case: Case) -> Problems:
    """Yield the options of a case that its domain lacks, then those that exclude each other, with expected values."""
    used = {name: found for name, option in OPTIONS.items() if (found := option.used(case)) is not None}
    for name, found in used.items():
        if (otherwise := OPTIONS[name].otherwise) is not None and name not in case.domain.features:
            yield *found, otherwise.format(where=case.domain.location)
    for first, second, expected in EXCLUSIONS:
        if first in used and second in used:
            yield *used[first], expected


def _matrix(case: Case) -> Used | None:
    """Return the key and value of the first matrix of a head that is not a multiple of the identity, else None."""
    for key, matrix in case.attention.matrices():
        if scale_of(matrix) is None:
            return key, matrix.ensemble if isinstance(matrix, RandomMatrix) else matrix
    return None


def _heads(case: Case) -> Used | None:
    """Return the key and value of several heads, or of a single head whose weight is not 1; otherwise None."""
    heads = case.attention.all_heads
    if len(heads) > 1:
        return "attention.heads", len(heads)
    return ("attention.heads[0].weight", heads[0].weight) if heads[0].weight != 1 else None


def _windowed_matrices(case: Case) -> Used | None:
    """Return the key of query matrices if query or key matrices are no multiples of the identity, else None.

    Matrices from a file count as such matrices, whatever they are.
    """
    scalar = all(scale_of(matrix) is not None for key, matrix in case.attention.matrices() if not key.endswith("value"))
    return None if scalar and case.attention.file is None else ("attention.query", None)


def _reaction(case: Case) -> Used | None:
    """Return the key and value of the kind of the reaction of a case, else None."""
    return None if case.reaction is None else ("reaction.kind", tag_of(type(case.reaction)))


def _labels(case: Case) -> Used | None:
    """Return the key and value of a causal mask on densities, else None.

    With this mask each label (position in the sequence) has its own density.
    """
    return ("attention.mask", "causal") if case.attention.mask == "causal" and not case.domain.has_tokens else None


def _key_condition(key: str, holds: Callable[[Any], object] = lambda value: True) -> Callable[[Case], Used | None]:
    """Return a function of a case: a dotted ``key`` with its value in the case, if the value satisfies ``holds``.

    Otherwise the function returns None, and also for a key or a section that the case lacks.
    """

    def used(case: Case) -> Used | None:
        value: object = case
        for name in key.split("."):
            value = None if value is None else getattr(value, name)
        return (key, value) if value is not None and holds(value) else None

    return used


_NORM = "stabilizers.layer_norm"
OPTIONS: dict[str, Option] = {
    "matrices": Option(_matrix, "a multiple of the identity {where}"),
    "heads": Option(_heads, "one head of weight 1 {where}"),
    "file": Option(_key_condition("attention.file"), "not available {where}"),
    "kernels": Option(_key_condition("attention.kernel", lambda name: name != "exponential"), '"exponential" {where}'),
    "sinkhorn": Option(
        _key_condition("attention.normalization", lambda name: NORMALIZATIONS[name].is_two_sided),
        '"softmax" or "unnormalized" {where}',
    ),
    "causal mask": Option(_key_condition("attention.mask", lambda word: word == "causal"), '"none" {where}'),
    "pattern": Option(_key_condition("attention.pattern.local"), "no pattern {where}"),
    "feed-forward": Option(_key_condition("feed_forward.activation"), "no feed_forward {where}"),
    "reaction": Option(_reaction, "no reaction {where}"),
    "gate": Option(_key_condition("stabilizers.gate", bool), "0 {where}: layer norm removes the component along x"),
    "noise": Option(_key_condition("stabilizers.noise", bool), "0 {where}"),
    "scale": Option(_key_condition("stabilizers.scale", lambda scale: scale != 1), "1 {where}"),
    "layers": Option(_key_condition("time.method", lambda word: word == "layers"), "ssprk3 or ssprk2 {where}"),
    "adaptive": Option(
        _key_condition("time.method", lambda word: word == "adaptive"), "ssprk3, ssprk2 or layers {where}"
    ),
    "sequence": Option(_key_condition("sequence.diffusion"), "not available {where}: its tokens have no order"),
    "handover": Option(_key_condition("handover.spread"), "not available {where}"),
    "radial norm": Option(_key_condition(_NORM, lambda name: LAYER_NORMS[name].carries_radius)),
    "no layer norm": Option(_key_condition(_NORM, lambda name: LAYER_NORMS[name].sees_positions)),
    "spherical norm": Option(_key_condition(_NORM, lambda name: not LAYER_NORMS[name].carries_radius)),
    "windowed": Option(_key_condition("attention.kernel", lambda name: KERNELS[name].takes_window)),
    "query or key matrices": Option(_windowed_matrices),
    "rescaled": Option(_key_condition("attention.rescaled", bool)),
    "no residual": Option(_key_condition("stabilizers.residual", lambda residual: not residual)),
    "continuous time": Option(_key_condition("time.method", lambda word: word != "layers")),
    "labels": Option(_labels),
}
BY_DOMAIN = tuple(name for name, option in OPTIONS.items() if option.otherwise is not None)

_UNIT_VECTORS = "another layer norm with {} attention, which requires unit vectors"
_HANDED_OVER = "with a section [handover]"
EXCLUSIONS: tuple[tuple[str, str, str], ...] = (  # (rejected option, option beside it, expected value)
    (
        "windowed",
        "query or key matrices",
        "another kernel, or query and key that are multiples of the identity: the window limits the angle of x and y",
    ),
    ("rescaled", "file", "false with attention.file: each layer would have its own time scale"),
    ("causal mask", "sinkhorn", '"none" with sinkhorn, which normalizes rows and columns'),
    ("pattern", "sinkhorn", "none with sinkhorn, which normalizes rows and columns"),
    ("pattern", "windowed", "none with a windowed kernel, which is a pattern of its own"),
    ("causal mask", "reaction", '"none" with a reaction: the mass of each label is constant'),
    ("gate", "spherical norm", "0 with a layer norm that removes the component along x"),
    ("scale", "radial norm", "1 with a layer norm that lets the radius of tokens vary"),
    ("no layer norm", "windowed", _UNIT_VECTORS.format("windowed")),
    ("no layer norm", "sinkhorn", _UNIT_VECTORS.format("sinkhorn")),
    ("no residual", "continuous time", 'true, unless time.method = "layers": continuous time requires the residual'),
    ("gate", "no residual", "0 without a residual: the gate acts on it"),
    ("noise", "layers", 'none with time.method = "layers"'),
    ("reaction", "layers", 'none with time.method = "layers"'),
    ("labels", "layers", 'none with time.method = "layers"'),
    ("adaptive", "noise", "ssprk3 or ssprk2 with stabilizers.noise"),
    ("sequence", "handover", "not allowed beside [handover]: diffusion along a sequence separates tokens"),
    ("radial norm", "handover", f"{' or '.join(SPHERICAL_NORMS)} {_HANDED_OVER}"),
    ("causal mask", "handover", f"none {_HANDED_OVER}"),
    ("pattern", "handover", f"none {_HANDED_OVER}: atoms have no order"),
    ("sinkhorn", "handover", f"softmax or unnormalized {_HANDED_OVER}"),
    ("kernels", "handover", f"exponential {_HANDED_OVER}"),
    ("file", "handover", f"not allowed {_HANDED_OVER}"),
    ("noise", "handover", f"0.0 {_HANDED_OVER}"),
    ("reaction", "handover", f"not allowed {_HANDED_OVER}"),
    ("layers", "handover", f"ssprk3 or ssprk2 or adaptive {_HANDED_OVER}"),
)
