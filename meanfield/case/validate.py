"""Checks of a case beyond the types and ranges of its keys."""

from __future__ import annotations

from itertools import islice, pairwise

from meanfield.case.case import Case
from meanfield.case.combinations import combination_problems
from meanfield.case.errors import CaseError, all_of, did_you_mean, refusal
from meanfield.case.validate_model import model_problems
from meanfield.sections.evolution import Output, Time
from meanfield.sections.initial import Formula, Gaussian, OwnDensity, OwnTokens, Snapshot, Uniform, Waves
from meanfield.sections.section import Problems, tag_of

_MAX_SNAPSHOTS = 10**6
_MAX_SAMPLES = 10**7


def check(case: Case) -> None:
    """Raise CaseError for impossible values and combinations of a case, with a line for each faulty key.

    Velocities and local rates are checked only if the parts of the case are compatible, since these checks use all.
    """
    if case.time.end == 0:
        raise CaseError("time.end: missing; expected a number > 0")
    of_parts = [*islice(case.domain.problems(case), 1), *combination_problems(case)]
    of_model = [] if of_parts else list(islice(_model_problems(case), 1))
    of_times = [
        *_time(case.time, case.attention.file is not None),
        *_snapshots(case.output, case.time.end),
        *_output(case.output, case.time.end),
    ]
    found: dict[str, CaseError] = {}
    for key, value, expected in (*of_parts, *of_times, *of_model):
        found.setdefault(key, refusal(key, value, expected))
    if found:
        raise all_of(list(found.values()))


def _model_problems(case: Case) -> Problems:
    """Yield the problems of the model, the initial state, the diagnostics and the stop condition of a case."""
    yield from model_problems(case)
    yield from _initial(case)
    yield from _diagnostics(case)
    yield from _stop(case)


def _initial(case: Case) -> Problems:
    """Yield the problems of the section [initial] of a case."""
    initial, domain, kind = case.initial, case.domain, tag_of(type(case.initial))
    if isinstance(initial, OwnDensity | OwnTokens):
        own = OwnTokens if domain.has_tokens else OwnDensity
        if not isinstance(initial, own) or (Formula not in domain.initial and Uniform not in domain.initial):
            of_kind = f"a component of kind {'tokens' if domain.has_tokens else 'initial'}"
            yield "initial.kind", kind, f"a built-in one, or {of_kind}, with domain.manifold = {domain.manifold}"
    elif not isinstance(initial, domain.initial):
        yield "initial.kind", kind, f"one of {', '.join(map(tag_of, domain.initial))} {domain.location}"
    if initial.radius is not None and (not case.tokens_have_radius or isinstance(initial, Gaussian | Waves | Snapshot)):
        yield "initial.radius", initial.radius, f"not available {domain.location} for initial.kind = {kind}"
    yield from initial.problems(domain)


def _time(time: Time, has_file: bool) -> Problems:
    """Yield the problems of keys of [time] that its method does not use; ``has_file``: matrices are in a file."""
    if time.layers is not None and time.method != "layers":
        yield "time.layers", time.layers, 'only allowed with time.method = "layers"'
    if time.tolerance is not None and time.method != "adaptive":
        yield "time.tolerance", time.tolerance, 'only allowed with time.method = "adaptive"'
    if time.step is not None and time.method != "layers" and not has_file:
        yield "time.step", time.step, 'only allowed with time.method = "layers" or attention.file'


def _stop(case: Case) -> Problems:
    """Yield the problems of the condition that ends a run early."""
    time = case.time
    if time.stop_at is not None and time.stop is None:
        yield "time.stop_at", time.stop_at, "only allowed with time.stop"
    if time.stop == "clusters" and "clusters" not in (case.output.diagnostics or ()):
        yield "time.stop", time.stop, 'another without "clusters" in output.diagnostics'


def _snapshots(output: Output, end: float) -> Problems:
    """Yield the problems of the times of snapshots of a run until the time ``end``."""
    given = [name for name in ("snapshots", "every", "times") if getattr(output, name) is not None]
    if len(given) > 1:
        yield f"output.{given[1]}", getattr(output, given[1]), f"not allowed beside output.{given[0]}"
    if output.snapshots is not None and output.snapshots > _MAX_SNAPSHOTS:
        yield "output.snapshots", output.snapshots, f"an integer from 1 to {_MAX_SNAPSHOTS}"
    if output.every is not None and end / output.every > _MAX_SNAPSHOTS:
        yield "output.every", output.every, f"at least time.end / {_MAX_SNAPSHOTS}"
    if output.times is not None and not all(a < b for a, b in pairwise(output.times)):
        yield "output.times", list(output.times), "increasing numbers"
    if output.times is not None and output.times[-1] > end:
        yield "output.times", list(output.times), f"numbers from 0 to time.end = {end}"


def _output(output: Output, end: float) -> Problems:
    """Yield the problems of the samples and of the first output time of a run until the time ``end``."""
    if output.first is not None and output.spacing == "linear":
        yield "output.first", output.first, 'not allowed with output.spacing = "linear"'
    if output.first is not None and not 0 < output.first < end:  # the default is 0 for a subnormal end
        yield "output.first", output.first, f"a number > 0 and < time.end = {end}"
    if output.samples > _MAX_SAMPLES:
        yield "output.samples", output.samples, f"an integer from 1 to {_MAX_SAMPLES}"


def _diagnostics(case: Case) -> Problems:
    """Yield the problems of the names of diagnostics of a case."""
    names, possible = case.output.diagnostics or (), case.possible_diagnostics
    if len(set(names)) < len(names):
        yield "output.diagnostics", list(names), "each name once"
    for name in names:
        if name not in possible:
            expected = f"one or more of {', '.join(possible)} for this case{did_you_mean(name, possible)}"
            yield "output.diagnostics", name, expected
