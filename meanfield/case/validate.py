"""What a case must satisfy beyond the types and ranges of its keys. A Problem is (key, value, expected)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from meanfield.case.errors import CaseError, refusal
from meanfield.case.sections import Case, Domain, Output, Time
from meanfield.case.validate_initial import initial_problems
from meanfield.case.validate_model import Problem, model_problems
from meanfield.case.validate_particles import hand_over_problems, particle_problems

_CELLS = {  # least and most resolution; 10⁸ cells take about 40 GB
    "circle": (8, 10**8),
    "sphere": (4, 8600),
    "axisymmetric": (8, 4096),  # all pairs of polar angles are kept
    "line": (8, 10**4),  # attention on the line sums over cells²
    "free_radius_circle": (8, 10**6),
    "free_radius_sphere": (4, 1000),
}
_OWN_KEYS = {  # keys of [domain] that only some manifolds have
    "dimension": ("axisymmetric", "particles"),
    "count": ("particles",),
    "seed": ("particles",),
    "labels": ("circle", "sphere"),
    "radii": ("free_radius_circle", "free_radius_sphere"),
    "innermost": ("free_radius_circle", "free_radius_sphere"),
    "outermost": ("free_radius_circle", "free_radius_sphere", "line"),
    "expansion": ("free_radius_circle", "free_radius_sphere"),
    "core": ("free_radius_circle", "free_radius_sphere", "line"),
}
_MOST_CELLS = 10**8  # of all radii or labels together
_LENGTHS = (1e-100, 1e100)  # of an unbounded mesh: squares of its cells are doubles too
_LEAST_CORE = 1e-12  # of domain.outermost: decades beyond, cells between which a density cannot be told apart
_MOST_SNAPSHOTS = 10**6
_MOST_SAMPLES = 10**7


def check(case: Case) -> None:
    """Raise CaseError for the first impossible value or combination."""
    if case.time.end == 0:
        raise CaseError("time.end: missing; expected a number > 0")
    for key, value, expected in _problems(case):
        raise refusal(key, value, expected)


def _problems(case: Case) -> Iterator[Problem]:
    yield from _domain(case.domain)
    yield from _time(case.time, case.attention.file is not None)
    yield from model_problems(case)
    yield from particle_problems(case)
    yield from hand_over_problems(case)
    yield from initial_problems(case)
    yield from _snapshots(case.output, case.time.end)
    yield from _output(case.output, case.time.end)
    yield from _diagnostics(case)


def _domain(domain: Domain) -> Iterator[Problem]:
    if domain.manifold == "particles":
        if domain.resolution is not None:
            yield "domain.resolution", domain.resolution, "no such key for particles; domain.count is their number"
    else:
        least, most = _CELLS[domain.manifold]
        if domain.resolution is None or not least <= domain.resolution <= most:
            yield "domain.resolution", domain.resolution, f"{least} to {most} {domain.place}"
    for key, manifolds in _OWN_KEYS.items():
        if getattr(domain, key) is not None and domain.manifold not in manifolds:
            yield f"domain.{key}", getattr(domain, key), f"no such key {domain.place}"
    if domain.innermost is not None and domain.outermost is not None and domain.innermost >= domain.outermost:
        yield "domain.innermost", domain.innermost, f"less than domain.outermost = {domain.outermost}"
    if domain.outermost is not None:
        yield from _unbounded(domain, domain.outermost)
    for key in ("radii", "labels"):
        across = domain.resolution or 1
        cells = across * across if domain.manifold.endswith("sphere") else across
        if (getattr(domain, key) or 0) * cells > _MOST_CELLS:
            told = f"at most {_MOST_CELLS // cells} with domain.resolution = {across}"
            yield f"domain.{key}", getattr(domain, key), told


def _unbounded(domain: Domain, outermost: float) -> Iterator[Problem]:
    """Meshes of the line and of radii, whose cells are equal within the core and grow in proportion to it beyond."""
    low, high = _LENGTHS
    if not low <= outermost <= high:
        yield "domain.outermost", outermost, f"a number from {low:g} to {high:g}"
    for key in ("core", "innermost"):
        length = getattr(domain, key)
        if length is not None and not _LEAST_CORE * outermost <= length <= high:
            told = f"a number from {_LEAST_CORE * outermost:g}, {_LEAST_CORE:g} of domain.outermost, to {high:g}"
            yield f"domain.{key}", length, told


def _time(time: Time, has_file: bool) -> Iterator[Problem]:
    if time.layers is not None and time.method != "layers":
        yield "time.layers", time.layers, 'no such key without time.method = "layers"'
    if time.tolerance is not None and time.method != "adaptive":
        yield "time.tolerance", time.tolerance, 'no such key without time.method = "adaptive"'
    if time.step is not None and time.method != "layers" and not has_file:
        yield "time.step", time.step, 'no such key without time.method = "layers" or attention.file'


def _snapshots(output: Output, end: float) -> Iterator[Problem]:
    given = [name for name in ("snapshots", "every", "times") if getattr(output, name) is not None]
    if len(given) > 1:
        yield f"output.{given[1]}", getattr(output, given[1]), f"no such key beside output.{given[0]}"
    if output.snapshots is not None and output.snapshots > _MOST_SNAPSHOTS:
        yield "output.snapshots", output.snapshots, f"an integer from 1 to {_MOST_SNAPSHOTS}"
    if output.every is not None and end / output.every > _MOST_SNAPSHOTS:
        yield "output.every", output.every, f"at least time.end / {_MOST_SNAPSHOTS}"
    if output.times is not None and not all(a < b for a, b in pairwise(output.times)):
        yield "output.times", list(output.times), "increasing numbers"
    if output.times is not None and output.times[-1] > end:
        yield "output.times", list(output.times), f"numbers from 0 to time.end = {end}"


def _output(output: Output, end: float) -> Iterator[Problem]:
    if output.first is not None and output.spacing == "linear":
        yield "output.first", output.first, 'no such key with output.spacing = "linear"'
    if output.first is not None and not 0 < output.first < end:  # 0 from the default of a subnormal end
        yield "output.first", output.first, f"a number > 0 and < time.end = {end}"
    if output.samples > _MOST_SAMPLES:
        yield "output.samples", output.samples, f"an integer from 1 to {_MOST_SAMPLES}"


def _diagnostics(case: Case) -> Iterator[Problem]:
    names, possible = case.output.diagnostics or (), case.possible_diagnostics
    if len(set(names)) < len(names):
        yield "output.diagnostics", list(names), "each name once"
    for name in names:
        if name not in possible:
            yield "output.diagnostics", name, f"some of {', '.join(possible)} for this case"
