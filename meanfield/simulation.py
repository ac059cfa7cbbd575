"""Problem of a case, ready to run, and the schedules of its output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import CaseError, refusal
from meanfield.clusters.pairs import EDGES
from meanfield.domains.atoms.setup import with_handover
from meanfield.domains.common.model_of_case import heads_by_layer
from meanfield.domains.common.problem import Problem
from meanfield.domains.domain import load
from meanfield.domains.sphere.from_run import density_of_run
from meanfield.model.errors import ArgumentError
from meanfield.sections.initial import Snapshot
from meanfield.sections.section import tag_of
from solvers.backends import Backend, name_of
from solvers.io.layout import Space, Variable
from solvers.mesh.mesh import Floats, Mesh
from solvers.timestepping.schedules import Every, Listed, Logarithmic, Schedule

HOST_ATTRIBUTES = {"device": "cpu"}  # attributes of a run on the host
MAX_CHECKED_SIZE = 10**5  # cells, or coordinates of tokens: set up within a second, and tested before a run is started
MAX_GIVEN_SIZE = 2 * 10**6  # the same where a file or formula of the user may be invalid; this set-up takes seconds
GIVEN_KINDS = ("array", "by_label", "file", "formula", "tokens", "values")  # of initial densities that users give


def set_up(case: Case, backend: Backend | None = None) -> Problem:
    """Return the problem that a case describes, on the device of ``backend``, by default the host.

    Raises CaseError for errors that only the set-up finds, such as a missing file.
    """
    with _as_case_errors():
        problem: Problem = load(case.domain.set_up)(case, backend)
        if isinstance(problem.space, Mesh) and problem.space.manifold != case.domain.manifold:
            problem = replace(problem, space=replace(problem.space, manifold=case.domain.manifold))
        problem = replace(problem, attributes=HOST_ATTRIBUTES if backend is None else {"device": name_of(backend)})
        initial = _from_run(case, problem.space) or problem.initial
        problem = replace(problem, initial=_as_case_errors()(_finite(initial, case)))
        if "pairs" in (case.output.diagnostics or ()):
            problem = replace(problem, variables=(*problem.variables, PAIR_EDGE))
        return problem if case.handover is None else with_handover(case, problem)


def validate_setup(case: Case) -> None:
    """Raise CaseError for errors that only the set-up finds: matrices, files, impossible initial densities.

    States of more than MAX_CHECKED_SIZE numbers, or MAX_GIVEN_SIZE where a file or a formula of the user gives them,
    are not built: for these only the matrices are validated.
    """
    with _as_case_errors():
        heads_by_layer(case)
    size = case.domain.cells_and_width()[0] or (case.domain.count or 0) * case.domain.d
    if size <= (MAX_GIVEN_SIZE if tag_of(case.initial) in GIVEN_KINDS else MAX_CHECKED_SIZE):
        problem = set_up(case)
        problem.initial()
        problem.diagnostics(case.output.diagnostics or (), None)


def _from_run(case: Case, cells: Space) -> Callable[[], Floats] | None:
    """Return a function with initial values from the snapshot of another run; None for a case without such a run.

    The values are equal for all labels of a causal mask.
    """
    if not (isinstance(case.initial, Snapshot) and isinstance(cells, Mesh)):
        return None
    labels = case.domain.labels or 1
    return lambda: np.tile(density_of_run(case, cells) / labels, labels)


def _finite(initial: Callable[[], Floats], case: Case) -> Callable[[], Floats]:
    """Return a function with the same initial values that raises CaseError where they are not finite.

    The reason is a density narrower than a cell, or an overflow.
    """

    def values() -> Floats:
        """Return the initial values. Raises CaseError if they are not finite."""
        first = initial()
        if not np.isfinite(first).all():
            expected = f"numbers that leave a finite density {case.domain.location}"
            raise refusal("initial.kind", tag_of(type(case.initial)), expected)
        return first

    return values


@contextmanager
def _as_case_errors() -> Iterator[None]:
    """Convert ValueError and OSError within the block to CaseError, which names the key of the case.

    NumPy's warnings are suppressed, because the results are checked.
    """
    try:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            yield
    except CaseError:
        raise
    except ArgumentError as error:
        raise refusal(_key_of(error.argument), error.value, error.expected) from None
    except (ValueError, OSError) as error:
        raise CaseError(str(error)) from None


def _key_of(argument: str) -> str:
    """Return the key of a case, such as "attention.beta", for an argument of the model; else the argument itself.

    The model has no access to case files.
    """
    return next((f"{section}.{argument}" for section, names in _ARGUMENTS.items() if argument in names), argument)


_ARGUMENTS = {
    "attention": ("beta", "normalization", "kernel", "window", "rescaled"),
    "stabilizers": ("layer_norm", "gate"),
    "initial": ("amplitude", "radius", "variance"),
    "sequence": ("diffusion", "length"),
}
PAIR_EDGE = Variable("pair_edge", ("pair_bin_edge",), EDGES, "1", "edges of the bins of <x, y> in diagnostics/pairs")


def snapshot_schedule(case: Case) -> Schedule:
    """Return the schedule of the times at which a run of a case writes snapshots."""
    output = case.output
    if output.times is not None:
        return Listed(tuple(output.times))
    if output.every is not None:
        return Every(output.every)
    assert output.snapshots is not None
    return _spaced(case, output.snapshots)


def sample_schedule(case: Case) -> Schedule:
    """Return the schedule of the times at which a run of a case records diagnostics."""
    return _spaced(case, case.output.samples)


def _spaced(case: Case, parts: int) -> Schedule:
    """Return a schedule with a number of intervals to the end of a case, in equal or logarithmic spacing."""
    if case.output.spacing == "log":
        assert case.output.first is not None
        return Logarithmic(case.output.first, case.time.end, parts)
    return Every(case.time.end, parts)
