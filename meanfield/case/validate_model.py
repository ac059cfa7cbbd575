"""What the law of motion of a case must satisfy, each part of it and all of them together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from meanfield.case.attention import Attention, FeedForward, Matrix, RandomMatrix, Replicator, scale_of
from meanfield.case.initial import Points
from meanfield.case.sections import Case, Domain

Problem = tuple[str, object, str]

MOST_BETA = 1e5
_MOST_NOISE = 1e6  # a step of diffusion takes √κ stages
_MOST_SIZE = 1e100  # of a number that speeds are in proportion to: its square is a double too
_MOST_WEIGHTS = 10**8  # of one matrix of a network: 800 MB
_MOST_LOG_KERNEL = 700.0  # e^709 is the largest double
_ROUND = ("circle", "sphere")
_GENERAL = (*_ROUND, "particles")  # any matrices, kernels and normalizations
_LAYER_NORMS = {
    "circle": ("post", "ngpt", "cod"),
    "sphere": ("post", "ngpt", "cod"),
    "axisymmetric": ("post", "ngpt", "cod"),
    "line": ("none",),
    "particles": ("post", "pre", "peri", "mix", "ngpt", "cod", "none"),
    "free_radius_circle": ("pre", "peri", "mix", "none"),
    "free_radius_sphere": ("pre", "peri", "mix", "none"),
}


def model_problems(case: Case) -> Iterator[Problem]:
    """What is wrong with how tokens are to move."""
    yield from _attention(case.attention, case.domain, case.stabilizers.scale)
    yield from _causal(case)
    if case.feed_forward is not None:
        yield from _feed_forward(case.feed_forward, case.domain)
    yield from _reaction(case)
    yield from _sizes(case)
    yield from _stabilizers(case)
    if case.time.method == "layers":
        yield from _layers(case)


def _attention(attention: Attention, domain: Domain, scale: float) -> Iterator[Problem]:
    yield from _matrices(attention, domain)
    yield from _kernel(attention, domain)
    if attention.rescaled and attention.normalization != "unnormalized":
        yield "attention.rescaled", True, 'false, unless attention.normalization is "unnormalized"'
    if attention.rescaled and attention.file is not None:
        yield "attention.rescaled", True, "false with attention.file: each layer would have a clock of its own"
    scales = "" if attention.query is attention.key is None else ", times the scales of query and key"
    scales += "" if scale == 1 else f", times the square of stabilizers.scale = {scale:g}"
    if not abs(attention.beta_effective) * scale * scale <= MOST_BETA:  # not nan either, which 0·∞ would give
        yield "attention.beta", attention.beta, f"a number <= {MOST_BETA:g}{scales}"
    if attention.log_kernel_bound * scale * scale > _MOST_LOG_KERNEL:
        most = f"a number <= {_MOST_LOG_KERNEL:g}{scales}; beyond, e^beta overflows"
        yield "attention.beta", attention.beta, f"{most} (attention.rescaled = true avoids it)"


def _matrices(attention: Attention, domain: Domain) -> Iterator[Problem]:
    own = [name for name in ("query", "key", "value") if getattr(attention, name) is not None]
    if attention.heads is not None and own:
        yield f"attention.{own[0]}", getattr(attention, own[0]), "no such key beside attention.heads"
    if attention.file is not None and (own or attention.heads is not None):
        yield "attention.file", attention.file, f"no such key beside attention.{own[0] if own else 'heads'}"
    if attention.file is not None and domain.manifold not in _GENERAL:
        yield "attention.file", attention.file, "no such key but on the circle, on the sphere and for particles"
    for index, head in enumerate(attention.all_heads):
        place = "attention" if attention.heads is None else f"attention.heads[{index}]"
        for name in ("query", "key", "value"):
            matrix = getattr(head, name)
            if not isinstance(matrix, RandomMatrix | None):
                yield from matrix_problem(f"{place}.{name}", matrix, domain.d)
            if domain.manifold in ("axisymmetric", "line") and scale_of(matrix) is None:
                shown = matrix.ensemble if isinstance(matrix, RandomMatrix) else matrix
                yield f"{place}.{name}", shown, f"a multiple of the identity {domain.place}"
    if len(attention.all_heads) > 1 and domain.manifold not in _GENERAL:
        yield "attention.heads", len(attention.all_heads), f"one head {domain.place}"


def _kernel(attention: Attention, domain: Domain) -> Iterator[Problem]:
    if attention.kernel != "exponential" and domain.manifold not in _GENERAL:
        yield "attention.kernel", attention.kernel, f'"exponential" {domain.place}'
    if (attention.kernel == "windowed") != (attention.window is not None):
        yield "attention.window", attention.window, 'an angle with attention.kernel = "windowed", else no such key'
    scalar = all(scale_of(head.query) is not None and scale_of(head.key) is not None for head in attention.all_heads)
    if attention.kernel == "windowed" and not (scalar and attention.file is None):
        told = "query and key that are multiples of the identity: its window is one of angles between x and y"
        yield "attention.kernel", "windowed", told
    if attention.normalization == "sinkhorn" and domain.manifold not in _GENERAL:
        yield "attention.normalization", "sinkhorn", f'"softmax" or "unnormalized" {domain.place}'


def tag_of(section: Any) -> str:
    """The word that a case says to choose this section among its kind."""
    return str(section.__struct_config__.tag)


def matrix_problem(key: str, matrix: Matrix, d: int) -> Iterator[Problem]:
    """A matrix has to be d×d."""
    if [len(row) for row in matrix] != [d] * d:
        yield key, matrix, f"a {d}×{d} matrix"


def _causal(case: Case) -> Iterator[Problem]:
    causal = case.attention.mask == "causal"
    if case.domain.labels is not None and not causal:
        yield "domain.labels", case.domain.labels, 'no such key without attention.mask = "causal"'
    if not causal:
        return
    if case.domain.manifold not in _GENERAL:
        yield "attention.mask", "causal", f'"none" {case.domain.place}'
    if case.attention.normalization == "sinkhorn":
        yield "attention.mask", "causal", '"none" with sinkhorn, which needs both sides of the kernel'
    if case.reaction is not None:
        yield "attention.mask", "causal", '"none" with a reaction: labels keep their mass'
    if isinstance(case.initial, Points) and case.domain.manifold != "particles":
        if len(case.initial.points) % (case.domain.labels or 1):
            yield "domain.labels", case.domain.labels, f"a divisor of the number of points, {len(case.initial.points)}"
        if case.initial.masses is not None:
            yield "initial.masses", case.initial.masses, "no such key with a causal mask: labels have equal masses"


def _feed_forward(network: FeedForward, domain: Domain) -> Iterator[Problem]:
    if domain.manifold in ("axisymmetric", "line"):
        yield "feed_forward.activation", network.activation, f"no feed_forward {domain.place}"
    given = (network.inner, network.bias, network.outer)
    if network.width is None and any(matrix is None for matrix in given):
        yield "feed_forward.width", None, "a width, for random weights, or inner, bias and outer"
    if network.width is not None and any(matrix is not None for matrix in given):
        yield "feed_forward.width", network.width, "no such key beside inner, bias and outer"
    if (network.width or 0) * domain.d > _MOST_WEIGHTS:
        yield "feed_forward.width", network.width, f"at most {_MOST_WEIGHTS // domain.d} in {domain.d} dimensions"
    if network.inner is not None and network.bias is not None and network.outer is not None:
        width = len(network.inner)
        if [len(row) for row in network.inner] != [domain.d] * width:
            yield "feed_forward.inner", network.inner, f"rows of {domain.d} numbers"
        if len(network.bias) != width:
            yield "feed_forward.bias", network.bias, f"{width} numbers, one for each row of inner"
        if [len(row) for row in network.outer] != [width] * domain.d:
            yield "feed_forward.outer", network.outer, f"{domain.d} rows of {width} numbers"


def _reaction(case: Case) -> Iterator[Problem]:
    reaction, domain = case.reaction, case.domain
    if reaction is None:
        return
    kind = tag_of(type(reaction))
    if domain.manifold not in _ROUND:
        yield "reaction.kind", kind, f"no reaction {domain.place}"
    if isinstance(reaction, Replicator):
        if reaction.vector is reaction.matrix is None:
            yield "reaction.vector", None, f"{domain.d} numbers, or reaction.matrix: what fitness is"
        if reaction.vector is not None and len(reaction.vector) != domain.d:
            yield "reaction.vector", reaction.vector, f"{domain.d} numbers"
        if reaction.matrix is not None:
            yield from matrix_problem("reaction.matrix", reaction.matrix, domain.d)


def _sizes(case: Case) -> Iterator[Problem]:
    """Numbers that only scale a velocity or a rate may have any sign and size that can be computed with."""
    heads, network, reaction = case.attention.all_heads, case.feed_forward, case.reaction
    sized: dict[str, float | None] = {
        "domain.expansion": case.domain.expansion,
        "feed_forward.strength": None if network is None else network.strength,
        "reaction.rate": None if reaction is None else reaction.rate,
    }
    for index, head in enumerate(heads):
        place = "attention" if case.attention.heads is None else f"attention.heads[{index}]"
        sized[f"{place}.weight"] = head.weight
        for name in ("query", "key", "value"):
            matrix = getattr(head, name)
            random = isinstance(matrix, RandomMatrix)
            sized[f"{place}.{name}.scale" if random else f"{place}.{name}"] = _largest(matrix)
    for key, value in sized.items():
        if value is not None and abs(value) > _MOST_SIZE:
            yield key, value, f"numbers of at most {_MOST_SIZE:g} in size"


def _largest(matrix: Matrix | RandomMatrix | None) -> float:
    """The largest number of a matrix, with its sign; of a random one its scale."""
    if matrix is None:
        return 0.0
    return matrix.scale if isinstance(matrix, RandomMatrix) else max((x for row in matrix for x in row), key=abs)


def _stabilizers(case: Case) -> Iterator[Problem]:
    stabilizers, manifold, place = case.stabilizers, case.domain.manifold, case.domain.place
    possible = _LAYER_NORMS[manifold]
    if stabilizers.layer_norm not in possible:
        hint = "" if case.domain.has_radius or manifold == "line" else (
            "; the others let the radius go: domain.manifold = free_radius_circle or _sphere, line or particles"
        )  # fmt: skip
        yield "stabilizers.layer_norm", stabilizers.layer_norm, f"{_any(possible)} {place}{hint}"
    if stabilizers.gate and not (case.tokens_have_radius or manifold == "line"):
        yield "stabilizers.gate", stabilizers.gate, f"0 {place}: layer norm takes away what points along x"
    if stabilizers.noise and case.domain.has_radius:
        yield "stabilizers.noise", stabilizers.noise, f"0 {place}"
    if stabilizers.noise > _MOST_NOISE:
        yield "stabilizers.noise", stabilizers.noise, f"a number <= {_MOST_NOISE:g}; by far less makes all uniform"
    if stabilizers.scale != 1 and (manifold not in _GENERAL or case.tokens_have_radius):
        yield "stabilizers.scale", stabilizers.scale, f"1 {place}"
    if stabilizers.switch is not None and stabilizers.layer_norm != "mix":
        yield "stabilizers.switch", stabilizers.switch, 'no such key without stabilizers.layer_norm = "mix"'
    if stabilizers.alpha != 1 and stabilizers.layer_norm != "ngpt":
        yield "stabilizers.alpha", stabilizers.alpha, '1 without stabilizers.layer_norm = "ngpt", which it is for'
    if not stabilizers.residual and case.time.method != "layers":
        yield "stabilizers.residual", False, 'true, unless time.method = "layers": a flow is made of residuals'


def _layers(case: Case) -> Iterator[Problem]:
    stabilizers, manifold = case.stabilizers, case.domain.manifold
    if manifold not in (*_GENERAL, "line"):
        yield "time.method", "layers", f"ssprk3 or ssprk2 on the {manifold}"
    if stabilizers.gate and not stabilizers.residual:
        yield "stabilizers.gate", stabilizers.gate, "0 without a residual, which it would act on"
    causal = case.attention.mask != "none" and manifold != "particles"
    if stabilizers.noise or case.reaction is not None or causal:
        key, value = next(
            (key, value)
            for key, value in (
                ("stabilizers.noise", stabilizers.noise),
                ("reaction.kind", case.reaction and tag_of(type(case.reaction))),
                ("attention.mask", case.attention.mask),
            )
            if value and value != "none"
        )
        yield key, value, 'none with time.method = "layers"'


def _any(choices: tuple[str, ...]) -> str:
    return ", ".join(f'"{choice}"' for choice in choices[:-1]) + (" or " if choices[1:] else "") + f'"{choices[-1]}"'
