"""Checks of the sections of a case that determine the velocity of tokens."""

from __future__ import annotations

from meanfield.case.case import Case
from meanfield.domains.domain import Domain
from meanfield.domains.table import DOMAINS
from meanfield.model.kernel import KERNELS
from meanfield.model.layer_norm import LAYER_NORMS, RADIAL_NORMS, SPHERICAL_NORMS
from meanfield.model.normalization import NORMALIZATIONS
from meanfield.sections.attention import Attention, FeedForward, RandomMatrix, Reaction, Replicator
from meanfield.sections.section import Matrix, Problems, any_of, matrix_problem

MAX_BETA = 1e5
_MAX_NOISE = 1e6  # a diffusion step takes about √κ stages
_MAX_SIZE = 1e100  # largest factor of a speed or rate, so that its square is a double
_MAX_WEIGHTS = 10**8  # of one matrix of a network: 800 MB
_MAX_LOG_KERNEL = 700.0  # e^709 is the largest double


def model_problems(case: Case) -> Problems:
    """Yield the faults (key, value, expected value) of sections that determine velocities and local rates."""
    yield from _attention(case.attention, case.domain, case.stabilizers.scale)
    if isinstance(case.feed_forward, FeedForward):
        yield from _feed_forward(case.feed_forward, case.domain)
    yield from _reaction(case)
    yield from _sizes(case)
    yield from _stabilizers(case)


def _attention(attention: Attention, domain: Domain, scale: float) -> Problems:
    """Yield the problems of the section [attention] on a sphere of radius ``scale``."""
    yield from _matrices(attention, domain)
    if attention.rescaled and NORMALIZATIONS[attention.normalization].is_relative:
        yield "attention.rescaled", True, 'false, unless attention.normalization is "unnormalized"'
    scales = "" if attention.query is attention.key is None else ", times the scales of query and key"
    scales += "" if scale == 1 else f", times the square of stabilizers.scale = {scale:g}"
    if not abs(attention.beta_effective) * scale * scale <= MAX_BETA:  # not <=, so that nan from 0·∞ is rejected too
        yield "attention.beta", attention.beta, f"a number <= {MAX_BETA:g}{scales}"
    if attention.log_kernel_bound * scale * scale > _MAX_LOG_KERNEL:
        expected = f"a number <= {_MAX_LOG_KERNEL:g}{scales}; beyond, e^beta overflows"
        yield "attention.beta", attention.beta, f"{expected} (attention.rescaled = true avoids it)"


def _matrices(attention: Attention, domain: Domain) -> Problems:
    """Yield the problems of matrices, heads, file and window in the section [attention]."""
    given = [name for name in ("query", "key", "value") if getattr(attention, name) is not None]
    if attention.heads is not None and given:
        yield f"attention.{given[0]}", getattr(attention, given[0]), "not allowed beside attention.heads"
    if attention.file is not None and (given or attention.heads is not None):
        yield "attention.file", attention.file, f"not allowed beside attention.{given[0] if given else 'heads'}"
    for key, matrix in attention.matrices():
        if not isinstance(matrix, RandomMatrix | None):
            yield from matrix_problem(key, matrix, domain.d)
    if KERNELS[attention.kernel].takes_window != (attention.window is not None):
        yield "attention.window", attention.window, 'an angle with attention.kernel = "windowed", else none'


def _feed_forward(network: FeedForward, domain: Domain) -> Problems:
    """Yield the problems of the section [feed_forward]: width, or shapes of the matrices."""
    given = (network.inner, network.bias, network.outer)
    if network.width is None and any(matrix is None for matrix in given):
        yield "feed_forward.width", None, "a width, for random weights, or inner, bias and outer"
    if network.width is not None and any(matrix is not None for matrix in given):
        yield "feed_forward.width", network.width, "not allowed beside inner, bias and outer"
    if (network.width or 0) * domain.d > _MAX_WEIGHTS:
        yield "feed_forward.width", network.width, f"at most {_MAX_WEIGHTS // domain.d} in {domain.d} dimensions"
    if network.inner is not None and network.bias is not None and network.outer is not None:
        width = len(network.inner)
        if [len(row) for row in network.inner] != [domain.d] * width:
            yield "feed_forward.inner", network.inner, f"rows of {domain.d} numbers"
        if len(network.bias) != width:
            yield "feed_forward.bias", network.bias, f"{width} numbers, one for each row of inner"
        if [len(row) for row in network.outer] != [width] * domain.d:
            yield "feed_forward.outer", network.outer, f"{domain.d} rows of {width} numbers"


def _reaction(case: Case) -> Problems:
    """Yield the problems of the fitness of a replicator reaction."""
    reaction, d = case.reaction, case.domain.d
    if isinstance(reaction, Replicator):
        if reaction.vector is None and reaction.matrix is None:
            yield "reaction.vector", None, f"{d} numbers, or reaction.matrix, to define the fitness"
        if reaction.vector is not None and len(reaction.vector) != d:
            yield "reaction.vector", reaction.vector, f"{d} numbers"
        if reaction.matrix is not None:
            yield from matrix_problem("reaction.matrix", reaction.matrix, d)


def _sizes(case: Case) -> Problems:
    """Yield the factors of velocities and rates whose absolute values are too large; any sign is allowed."""
    network, reaction = case.feed_forward, case.reaction
    sized = {"feed_forward.strength": network.strength} if isinstance(network, FeedForward) else {}
    sized |= {"reaction.rate": reaction.rate} if isinstance(reaction, Reaction) else {}
    sized |= {f"attention.heads[{index}].weight": head.weight for index, head in enumerate(case.attention.heads or ())}
    for key, matrix in case.attention.matrices():
        sized[f"{key}.scale" if isinstance(matrix, RandomMatrix) else key] = _largest(matrix)
    for key, value in sized.items():
        if abs(value) > _MAX_SIZE:
            yield key, value, f"numbers of at most {_MAX_SIZE:g} in size"


def _largest(matrix: Matrix | RandomMatrix | None) -> float:
    """Return the entry of a matrix with the largest absolute value, with its sign; for a random matrix, its scale."""
    if matrix is None:
        return 0.0
    return matrix.scale if isinstance(matrix, RandomMatrix) else max((x for row in matrix for x in row), key=abs)


def _stabilizers(case: Case) -> Problems:
    """Yield the problems of the section [stabilizers]."""
    stabilizers, domain = case.stabilizers, case.domain
    norm = stabilizers.layer_norm if stabilizers.layer_norm in (*SPHERICAL_NORMS, *RADIAL_NORMS) else "post"
    if norm not in domain.layer_norms:  # layer norms of components keep the radius, as post does
        elsewhere = [] if domain.has_radius else [
            name for name, kind in DOMAINS.items() if stabilizers.layer_norm in kind.layer_norms
        ]  # fmt: skip
        hint = f"; {stabilizers.layer_norm} is for domain.manifold = {any_of(tuple(elsewhere))}" if elsewhere else ""
        yield (
            "stabilizers.layer_norm",
            stabilizers.layer_norm,
            f"{any_of(domain.layer_norms)} {domain.location}{hint}",
        )
    if not case.noise_on_unit_sphere <= _MAX_NOISE:
        scale = "" if stabilizers.scale == 1 else f" times the square of stabilizers.scale = {stabilizers.scale:g}"
        yield "stabilizers.noise", stabilizers.noise, f"a number <= {_MAX_NOISE:g}{scale}"
    parameter = LAYER_NORMS[stabilizers.layer_norm].parameter
    if stabilizers.switch is not None and parameter != "switch":
        yield "stabilizers.switch", stabilizers.switch, 'only allowed with stabilizers.layer_norm = "mix"'
    if stabilizers.alpha != 1 and parameter != "alpha":
        yield "stabilizers.alpha", stabilizers.alpha, 'only allowed with stabilizers.layer_norm = "ngpt"'
