"""What particles must satisfy, and what is to be handed over to atoms, a density or particles."""

from __future__ import annotations

from collections.abc import Iterator

from meanfield.case.initial import Points, Snapshot, Tokens
from meanfield.case.sections import Case
from meanfield.case.validate_model import Problem, tag_of

_MOST_ATOM_DIMENSION = 128  # of four atoms at least, whose law is differentiated by each coordinate
_MOST_NUMBERS = 10**9  # coordinates of all tokens together: 8 GB a state, of which a method keeps several


def particle_problems(case: Case) -> Iterator[Problem]:
    """What is wrong with the particles of a case, and what only particles may have."""
    domain, time = case.domain, case.time
    if domain.manifold != "particles":
        if case.sequence is not None:
            diffusion = case.sequence.diffusion
            yield "sequence.diffusion", diffusion, f"no such section {domain.place}: its tokens have no order"
        if time.method == "adaptive":
            yield "time.method", "adaptive", f"ssprk3, ssprk2 or layers {domain.place}"
        return
    if domain.count is None and not isinstance(case.initial, Tokens | Snapshot):
        yield "domain.count", None, "how many tokens, an integer >= 1"
    if isinstance(case.initial, Points) and domain.count != len(case.initial.points):
        yield "domain.count", domain.count, f"{len(case.initial.points)}, the number of initial.points, or no such key"
    if isinstance(case.initial, Tokens | Snapshot) and domain.count is not None:
        yield "domain.count", domain.count, "no such key: a file has as many tokens as it has"
    if (domain.count or 0) * domain.d > _MOST_NUMBERS:
        yield "domain.count", domain.count, f"at most {_MOST_NUMBERS // domain.d} with domain.dimension = {domain.d}"
    if case.sequence is not None and isinstance(case.initial, Points) and case.initial.masses is not None:
        yield "initial.masses", list(case.initial.masses), "no such key with a section [sequence]: its tokens are alike"
    attention, norm = case.attention, case.stabilizers.layer_norm
    if norm == "none" and (attention.kernel == "windowed" or attention.normalization == "sinkhorn"):
        kind = "windowed" if attention.kernel == "windowed" else "sinkhorn"
        yield "stabilizers.layer_norm", norm, f"another with {kind} attention, which is for unit vectors"
    if case.stabilizers.noise and time.method not in ("ssprk3", "ssprk2"):
        yield "time.method", time.method, "ssprk3 or ssprk2 with stabilizers.noise"


def hand_over_problems(case: Case) -> Iterator[Problem]:
    """What becomes atoms has to obey the law of atoms: nothing may spread or order them, or weigh them anew."""
    if case.hand_over is None:
        return
    if case.sequence is not None:
        told = "no such section beside [hand_over]: diffusion along a sequence keeps tokens from becoming atoms"
        yield "sequence.diffusion", case.sequence.diffusion, told
    against = {
        "domain.manifold": (case.domain.manifold, ("circle", "sphere", "particles")),
        "stabilizers.layer_norm": (case.stabilizers.layer_norm, ("post", "ngpt", "cod")),
        "attention.mask": (case.attention.mask, ("none",)),
        "attention.normalization": (case.attention.normalization, ("softmax", "unnormalized")),
        "attention.kernel": (case.attention.kernel, ("exponential",)),
        "attention.file": (case.attention.file, (None,)),
        "stabilizers.noise": (case.stabilizers.noise, (0.0,)),
        "reaction.kind": (case.reaction and tag_of(type(case.reaction)), (None,)),
        "time.method": (case.time.method, ("ssprk3", "ssprk2", "adaptive")),
    }
    for key, (value, possible) in against.items():
        if value not in possible:
            told = " or ".join("no such key" if choice is None else str(choice) for choice in possible)
            yield key, value, f"{told} with a section [hand_over]"
    if case.domain.manifold == "particles" and case.domain.d > _MOST_ATOM_DIMENSION:
        yield "domain.dimension", case.domain.d, f"at most {_MOST_ATOM_DIMENSION} with a section [hand_over]"
