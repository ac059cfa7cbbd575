"""Examples of docs/examples.md beside py-pde or FiPy on the same cells, from the same fields, in the same run.

The code of an example runs twice: as it is, and with another package in place of `solve`. Both errors are computed by
the lines of the example. Times are processor times. That of `solvers` is the whole example; that of the other package
is the solution alone, without compilation. py-pde runs with LSODA of SciPy, or with RK45 where that is faster. With an
event py-pde is given the time of the end that `solvers` found, unless this time is the result.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.measure import CORES, Figure, timed
from solvers.mesh.mesh import Floats

PAGE = Path(__file__).parents[1] / "docs/examples.md"
REPEATS = 3
METHOD: dict[str, Any] = {"method": "LSODA", "rtol": 1e-5, "atol": 1e-7}
EXPLICIT: dict[str, Any] = {"method": "RK45"}  # for waves and thousands of cells, where LSODA takes minutes
SMALL: dict[str, Any] = {"atol": 1e-11}  # for perturbations of 1e-5
Names = dict[str, Any]  # the names of an example while it runs


@dataclass(frozen=True)
class Text:
    """Equation of an example for py-pde.

    rates      names of the example → right side of each field
    grid       class and arguments of the grid; by default that of the mesh of the example
    options    of pde.PDE
    method     options of its method, where others than those of METHOD are needed
    event      function of u whose zero is the end; None if the end is given
    noise      whether py-pde's own explicit steps are used, which SciPy's methods cannot replace
    """

    rates: Callable[[Names], dict[str, str]]
    grid: tuple[str, Sequence[Any], dict[str, Any]]
    options: dict[str, Any] | None = None
    method: dict[str, Any] = field(default_factory=dict)
    event: Callable[[Floats], float] | None = None
    noise: bool = False


def _line(a: float, b: float, cells: int, periodic: bool = False) -> tuple[str, Sequence[Any], dict[str, Any]]:
    return "CartesianGrid", [[[a, b]], cells], {"periodic": periodic}


def _one(rate: str) -> Callable[[Names], dict[str, str]]:
    return lambda names: {"u": rate}


def _kuramoto(names: Names) -> dict[str, str]:
    pull = "sin(x) * integral(u * cos(x)) - cos(x) * integral(u * sin(x))"
    return {"u": f"laplace(u) + {names['K']} * d_dx(u * ({pull}))"}


def _desai_zwanzig(names: Names) -> dict[str, str]:
    force = f"x**3 - x + {names['theta']} * (x - integral(x * u) / integral(u))"
    return {"u": f"{names['D']} * laplace(u) + d_dx(u * ({force}))"}


BOX, PI = "CartesianGrid", np.pi
WALLS = {"bc_ops": {"u:d_dx": {"value": 0}}}  # no flux u·force, beside no gradient
PY_PDE = {
    "heat": Text(
        _one("laplace(u)"),
        (BOX, [[[0, 2], [0, 1]], [48, 24]], {}),
        {"bc": {"value_expression": "exp(-2 * t) * cos(x) * cos(y)"}},
        method=EXPLICIT,
    ),
    "ball": Text(
        _one("laplace(u)"),
        ("SphericalSymGrid", [1.0, 100], {}),
        {"bc": {"r-": {"derivative": 0}, "r+": {"type": "mixed", "value": 2, "const": 0}}},
    ),
    "Stefan": Text(
        _one("laplace(heaviside(u - 1, 0) * (u - 1))"),
        _line(0, 1, 40),
        {"bc": {"x-": {"value": 1}, "x+": {"derivative": 0}}},
        event=lambda u: float(np.minimum(u, 1).mean() - 0.5),
    ),
    "Barenblatt": Text(_one("laplace(u**2)"), _line(-4, 4, 100)),
    "Kramers": Text(_one("0.1 * laplace(u) + d_dx(u * (x**3 - x))"), _line(-2.2, 2.2, 100), WALLS),
    "Fisher": Text(_one("laplace(u) + u * (1 - u)"), _line(0, 300, 1500), method=EXPLICIT),
    "kinks": Text(
        _one("laplace(u) + u - u**3"), _line(0, 40, 400, True), method=SMALL, event=lambda u: -float(u.min())
    ),
    "Schnakenberg": Text(
        lambda names: {
            "u": "0.001 * laplace(u) + 0.1 - u + u**2 * v",
            "v": "0.04 * laplace(v) + 0.9 - u**2 * v",
        },
        (BOX, [[[0, 4], [0, 0.2]], [240, 12]], {}),
        method=EXPLICIT | SMALL,
    ),
    "Swift–Hohenberg": Text(
        _one("-0.9 * u - 2 * laplace(u) - laplace(laplace(u)) - u**3"), _line(0, 8 * PI, 128, True)
    ),
    "Cahn–Hilliard": Text(_one("laplace(u**3 - u - laplace(u))"), _line(0, 20, 128, True), method=SMALL),
    "Kuramoto–Sivashinsky": Text(
        _one("-laplace(u) - laplace(laplace(u)) - d_dx(u**2) / 2"),
        _line(0, 32 * PI, 256, True),
        method=EXPLICIT | SMALL,
    ),
    "KPZ": Text(_one("laplace(u) + gradient_squared(u)"), _line(0, 2 * PI, 128, True)),
    "breather": Text(lambda names: {"u": "v", "v": "laplace(u) - sin(u)"}, _line(-20, 20, 256, True), method=EXPLICIT),
    "Korteweg–de Vries": Text(_one("-3 * d_dx(u**2) - laplace(d_dx(u))"), _line(-20, 20, 256, True), method=EXPLICIT),
    "network": Text(
        _one("-d_dx(u * tanh(x + 0.5 * y + 0.3)) / 2 - d_dy(u * tanh(1.2 * y - 0.7 * x - 0.2)) / 2"),
        (BOX, [[[-4, 4], [-4, 4]], [100, 100]], {}),
        method=EXPLICIT,
    ),
    "Kuramoto": Text(_kuramoto, _line(0, 2 * PI, 128, True)),
    "Desai–Zwanzig": Text(_desai_zwanzig, _line(-3.5, 3.5, 200), WALLS, method=SMALL),
    "noise": Text(_one("laplace(u)"), _line(0, 400 * PI, 6400, True), {"noise": 0.3**2}, noise=True),
}
NOT_POSSIBLE = {
    "Brusselator": "no sphere",
    "shocks": "no limiters",
    "nonlocal traffic": "no convolutions",
    "dam break": "no Riemann solvers",
    "Navier–Stokes": "no Poisson's equation in the right side",
    "Rossby–Haurwitz": "no sphere",
    "Vicsek": "no sphere",
    "Onsager": "no sphere",
    "Keller–Segel": "no convolutions",
    "aggregation": "no convolutions",
    "drum": "no eigenvalues",
}


def examples(titles: tuple[str, ...] | None = None) -> Iterator[Figure]:
    """Measure error, lines and seconds of each example, and error and seconds of another package for the same task."""
    first, codes = page()
    for title in codes if titles is None else titles:
        code, ends = codes[title], []
        ours = _ours(first, code, ends)
        yield Figure(f"{title}: error", ours(), "1")
        yield Figure(f"{title}: lines", float(sum(map(bool, code.splitlines()))), "1", most=12)
        seconds = timed(ours, REPEATS, CORES)
        yield Figure.of(f"{title}: seconds", seconds, "s")
        if title in NOT_POSSIBLE:
            yield Figure(f"{title}: other", None, "s", note=NOT_POSSIBLE[title])
            continue
        package = "FiPy" if title == "boundary layer" else "py-pde"
        try:
            error, other = _fipy(first, code) if package == "FiPy" else _py_pde(first, code, PY_PDE[title], ends)
        except ImportError:
            yield Figure(f"{title}: other", None, "s", note=f"{package} is not installed")
            continue
        yield Figure(f"{title}: error of the other", error, "1", note=package)
        yield Figure(f"{title}: other", other, "s", note=package)
        yield Figure(f"{title}: ratio", seconds.median / other, "×", most=0.5)


def markdown(figures: Sequence[Figure]) -> str:
    """Return the Markdown table of the figures of `examples`: a row for each example."""
    found: dict[str, dict[str, Figure]] = {}
    for figure in figures:
        title, _, quantity = figure.name.rpartition(": ")
        found.setdefault(title, {})[quantity] = figure
    head = ["example", "lines", "error", "seconds", "other package", "its error", "its seconds", "ratio of seconds"]
    rows = [" | ".join(head), "|".join(["---"] * len(head))]
    for title, row in found.items():
        other = row["other"]
        theirs = [other.note, *(["–"] * 3)]
        if other.value is not None:
            theirs[1:] = [f"{row['error of the other'].value:.1e}", f"{other.value:.2g}", f"{row['ratio'].value:.2g}"]
        ours = [f"{row['lines'].value:.0f}", f"{row['error'].value:.1e}", f"{row['seconds'].value:.2g}"]
        rows.append(" | ".join([title, *ours, *theirs]))
    return "\n".join(f"| {row} |" for row in rows)


def page() -> tuple[str, dict[str, str]]:
    """Return the imports of docs/examples.md, and the code of each example by its title."""
    first, *codes = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return first, {re.findall(r'f"([^:{]+):', code)[0]: code for code in codes}


def _run(first: str, code: str, replaced: Callable[[Names], Names]) -> float:
    """Return the error of an example, with other functions in place of some that it imports."""
    names: Names = {}
    exec(first, names)
    names |= replaced(names)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            exec(code, names)
        except AssertionError:  # another package may miss the tolerance
            if "error" not in names:
                raise
    return float(names["error"])


def _ours(first: str, code: str, ends: list[float]) -> Callable[[], float]:
    """Return a function that runs an example, which returns its error and stores the ends of its runs in ``ends``."""

    def replaced(names: Names) -> Names:
        solve = names["solve"]

        def observed(*args: Any, **options: Any) -> Any:
            solution = solve(*args, **options)
            ends.append(float(solution.t[-1]))
            return solution

        return {"solve": observed}

    def answer() -> float:
        ends.clear()
        return _run(first, code, replaced)

    return answer


def _py_pde(first: str, code: str, text: Text, ends: Sequence[float]) -> tuple[float, float]:
    """Return error and seconds of py-pde for an example whose runs by `solvers` end at the times ``ends``."""
    import pde

    kind, arguments, options = text.grid
    grid = getattr(pde, kind)(*arguments, **options)
    compiled: dict[str, Any] = {}
    taken: list[float] = []

    def replaced(names: Names) -> Names:
        solve, runs = names["solve"], iter(ends)

        def other(equation: Any, u0: Any, t_span: Any, times: Any = None, **unused: Any) -> Any:
            end = next(runs)
            if equation.mesh is None:  # an ordinary differential equation of the comparison
                return solve(equation, u0, t_span, times=times, **unused)
            rates = text.rates(names)
            values = np.asarray(u0, dtype=float)
            fields = [pde.ScalarField(grid, row.reshape(grid.shape)) for row in np.atleast_2d(values)]
            state = fields[0] if len(fields) == 1 else pde.FieldCollection(fields)
            right = pde.PDE(rates, **text.options or {})
            if text.noise:
                found = right.solve(state, t_range=end, dt=2e-3, tracker=None).data
                taken.append(right.diagnostics["controller"]["profiler"]["solver"])
                return SimpleNamespace(u=np.reshape(found, (1, *values.shape)))
            if str(rates) not in compiled:
                compiled[str(rates)] = right.make_pde_rhs(state, backend="numba")
            return _solved(compiled[str(rates)], state.data, t_span[0], end, times, text, values.shape, taken)

        return {"solve": other}

    seconds = []
    for _ in range(REPEATS + 1):  # the first one compiles
        taken.clear()
        error = _run(first, code, replaced)
        seconds.append(sum(taken))
    return error, float(np.median(seconds[1:]))


def _solved(
    rate: Any,
    data: Floats,
    start: float,
    end: float,
    times: Any,
    text: Text,
    shape: tuple[int, ...],
    taken: list[float],
) -> Any:
    """Return SciPy's solution for the right side of py-pde, as `solvers.solve` does; append the seconds."""
    at = [start, end] if times is None else list(times)
    if text.event is not None:
        at = list(np.linspace(start, 1.2 * end, 121))

    def right(time: float, values: Floats) -> Floats:
        return np.ravel(rate(values.reshape(data.shape), time))

    began = CORES()
    found = solve_ivp(right, (start, at[-1]), np.ravel(data), t_eval=at, **METHOD | text.method).y.T
    taken.append(CORES() - began)
    last = end
    if text.event is not None:
        marks = np.array([text.event(row) for row in found])
        k = int(np.argmax(marks[1:] * marks[0] <= 0))  # the event is between at[k] and at[k + 1]
        last = at[k] + (at[k + 1] - at[k]) * marks[k] / (marks[k] - marks[k + 1])
    return SimpleNamespace(u=found.reshape(len(at), *shape), t=np.array([start, last]))


def _fipy(first: str, code: str) -> tuple[float, float]:
    """Return error and seconds of FiPy for the steady boundary layer."""
    import fipy

    taken: list[float] = []

    def steady(equation: Any, guess: Floats) -> Floats:
        began = CORES()
        mesh = fipy.Grid1D(nx=len(guess), dx=1 / len(guess))
        u = fipy.CellVariable(mesh=mesh, value=guess)
        u.constrain(0.0, mesh.facesLeft)
        u.constrain(1.0, mesh.facesRight)
        (fipy.DiffusionTerm(coeff=0.05) == fipy.ExponentialConvectionTerm(coeff=(1.0,))).solve(var=u)
        taken.append(CORES() - began)
        return np.asarray(u.value)

    for _ in range(REPEATS + 1):
        error = _run(first, code, lambda names: {"solve_steady": steady})
    return error, float(np.median(taken[1:]))
