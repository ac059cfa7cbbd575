"""Convergence of a case in its resolution: a final diagnostic over some values of a key, errors and orders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import CaseError, refusal
from meanfield.running import run_in_memory
from solvers.analysis.convergence import ConvergenceStudy, convergence_study

HALVINGS = 2  # halvings of the case's own value, unless values are given


def convergence_of(
    case: Case, over: str = "domain.resolution", values: Sequence[int] = (), of: str = "energy"
) -> ConvergenceStudy:
    """Return errors and orders of convergence of a diagnostic at the end of a run.

    over     key of the case, an integer that refines it
    values   increasing, at least three; by default a quarter, a half and all of the case's own value
    of       name of the diagnostic; a vector is replaced by its length

    Errors are Richardson's estimates, so that no exact value is needed; see :func:`solvers.convergence_study`. Raises
    CaseError, and the errors of a run.
    """
    value = _value(case, over)
    sizes = list(values) or [value // 2**k for k in range(HALVINGS, -1, -1)]
    if len(sizes) < 3 or sizes != sorted(set(sizes)):
        raise CaseError(f"--values {','.join(map(str, sizes))}: expected at least 3 increasing integers")
    if of not in (case.output.diagnostics or ()):
        raise refusal("--of", of, f"one of {', '.join(case.output.diagnostics or ())}")
    cases = {size: case.replace({over: size}) for size in sizes}  # checks all cases before the first run

    def last(size: int) -> float:
        return float(np.linalg.norm(run_in_memory(cases[size]).diagnostics[of][-1]))

    return convergence_study(last, sizes)


def _value(case: Case, key: str) -> int:
    """Return the integer value of a dotted key in a case."""
    value: object = case
    for name in key.split("."):
        value = getattr(value, name, None)
    if not isinstance(value, int) or isinstance(value, bool):
        raise refusal("--over", key, "a key that is an integer in this case, such as domain.resolution")
    return value


def report(study: ConvergenceStudy, over: str, of: str) -> str:
    """Return the table of a convergence study as text, with a sentence on the error at the finest resolution."""
    finest = f"{of} at the end with {over} = {study.resolutions[-1]}: error about {study.estimate:.2g}"
    return f"{study}\n\n{finest}, by Richardson's extrapolation"


def as_dict(study: ConvergenceStudy, over: str, of: str) -> dict[str, object]:
    """Return a convergence study as plain values for JSON: key, diagnostic, resolutions, errors and orders."""
    return {
        "over": over,
        "of": of,
        "resolutions": list(study.resolutions),
        "errors": list(study.errors),
        "orders": list(study.orders),
    }
