"""Times and errors of solvers and of other installed packages for the same task on the same cells.

pip install '.[benchmarks]'    py-pde
pip install 'fipy>=4'          FiPy; not in the extra, which contains packages with permissive licenses only
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.measure import Figure, both_timed, timed
from solvers import Diffusion, DriftDiffusion, Equation, box, interval, solve
from solvers.mesh.mesh import Floats

Answer = Callable[[], float]  # runs a solver and returns its error


def peers(cells: int = 64, line: int = 400, wells: int = 100) -> Iterator[Figure]:
    """Measure the ratio of the time of other packages to that of `solvers.solve`, and the errors of both.

    The problems are the heat equation, a front of Fisher's equation and the decay rate between two wells. `solve` runs
    with its defaults; others with their defaults, and with the step whose error is nearest to that of `solve`.
    """
    for name, ours, others in (
        (f"heat in {cells}² cells", lambda: _heat(cells), _others_of_heat(cells)),
        (f"front of Fisher's equation, {line} cells", lambda: _fisher(line), _others_of_fisher(line)),
        (f"Kramers' rate, {wells} cells", lambda: _kramers(wells), _others_of_kramers(wells)),
    ):
        yield Figure.of(f"{name}: solve", 1e3 * timed(ours), "ms")
        yield Figure(f"{name}: error of solve", ours(), "1")
        for other, answer in others.items():
            try:
                error = answer()
            except ImportError:
                note = "not installed"
                yield Figure(f"{name}: {other} over solve", None, "×", least=1.0, note=note)
                continue
            seconds, theirs = both_timed(ours, answer)
            yield Figure.of(f"{name}: {other} over solve", theirs / seconds, "×", least=1.0)
            yield Figure(f"{name}: error of {other}", error, "1")


HEAT_END = 0.5  # end time of u = cos x cos 2y e^{−5t} in [0, π]²


def _heat(n: int) -> float:
    mesh = box((n, n), (np.pi, np.pi))
    x, y = mesh.centers.T
    start = np.cos(x) * np.cos(2 * y)
    found = solve(Equation(mesh, [Diffusion(mesh, 1.0)]), start, (0.0, HEAT_END), times=[HEAT_END]).u[-1]
    return float(np.abs(found - start * np.exp(-5 * HEAT_END)).max())


def _others_of_heat(n: int) -> dict[str, Answer]:
    def py_pde(**method: object) -> float:
        import pde

        grid = pde.CartesianGrid([[0, np.pi]] * 2, n)
        start = np.cos(grid.cell_coords[..., 0]) * np.cos(2 * grid.cell_coords[..., 1])
        equation = pde.DiffusionPDE(1.0, bc={"derivative": 0})
        found = equation.solve(pde.ScalarField(grid, start), t_range=HEAT_END, tracker=None, **method).data
        return float(np.abs(found - start * np.exp(-5 * HEAT_END)).max())

    def fipy(steps: int) -> float:
        import fipy

        mesh = fipy.Grid2D(dx=np.pi / n, dy=np.pi / n, nx=n, ny=n)
        x, y = mesh.cellCenters.value
        start = np.cos(x) * np.cos(2 * y)
        field = fipy.CellVariable(mesh=mesh, value=start)
        equation = fipy.TransientTerm() == fipy.DiffusionTerm(coeff=1.0)
        for _ in range(steps):
            equation.solve(var=field, dt=HEAT_END / steps)
        return float(np.abs(field.value - start * np.exp(-5 * HEAT_END)).max())

    return {
        "py-pde": py_pde,
        "py-pde with solve_ivp": lambda: py_pde(solver="scipy"),
        "FiPy, 400 steps": lambda: fipy(400),
    }


FISHER_END = 10.0  # end time of a front (1 + e^{x/√6})^{−2} with the speed 5/√6 (Ablowitz and Zeppetella 1979)


def _front(x: Floats, time: float) -> Floats:
    return np.asarray((1 + np.exp(np.minimum((x - 5 * time / np.sqrt(6)) / np.sqrt(6), 300))) ** -2.0)


def _fisher(n: int) -> float:
    mesh = interval(-40.0, 60.0, n)
    x = mesh.centers[:, 0]
    equation = Equation(mesh, [Diffusion(mesh, 1.0), lambda t, u: u * (1 - u)])
    found = solve(equation, _front(x, 0.0), (0.0, FISHER_END), times=[FISHER_END]).u[-1]
    return float(np.abs(found - _front(x, FISHER_END)).max())


def _others_of_fisher(n: int) -> dict[str, Answer]:
    def py_pde(**method: object) -> float:
        import pde

        grid = pde.CartesianGrid([[-40, 60]], n)
        x = grid.cell_coords[..., 0]
        equation = pde.PDE({"u": "laplace(u) + u * (1 - u)"}, bc={"derivative": 0})
        start = pde.ScalarField(grid, _front(x, 0.0))
        found = equation.solve(start, t_range=FISHER_END, tracker=None, **method).data
        return float(np.abs(found - _front(x, FISHER_END)).max())

    return {"py-pde": py_pde, "py-pde with solve_ivp": lambda: py_pde(solver="scipy")}


NOISE, REACH = 0.1, 2.2  # D, and half the length of [−2.2, 2.2] with the potential x⁴/4 − x²/2


def _rate_error(differences: Floats, span: float) -> float:
    """Return the relative error of the decay rate of the mass difference between the two wells of a potential.

    ``differences`` are the mass differences at two times, ``span`` apart.

    The reference is the slowest mode on 400 cells, accurate to 1e-7.
    """
    mesh = interval(-REACH, REACH, 400)
    x = mesh.centers[:, 0]
    matrix = DriftDiffusion(mesh, NOISE, x**4 / 4 - x**2 / 2).jacobian(1)[0].toarray()
    slowest = np.sort(np.linalg.eigvals(matrix).real)[-2]
    return abs(np.log(differences[0] / differences[1]) / span / -slowest - 1)


def _kramers(n: int) -> float:
    mesh = interval(-REACH, REACH, n)
    x = mesh.centers[:, 0]
    equation = Equation(mesh, [DriftDiffusion(mesh, NOISE, x**4 / 4 - x**2 / 2)])
    found = solve(equation, x < 0, (0.0, 100.0), times=[50.0, 100.0]).u * mesh.volumes
    return _rate_error(found @ np.sign(x), 50.0)


def _others_of_kramers(n: int) -> dict[str, Answer]:
    def fipy(steps: int) -> float:
        import fipy

        mesh = fipy.Grid1D(dx=2 * REACH / n, nx=n) + np.array([[-REACH]])
        x, face = mesh.cellCenters.value[0], mesh.faceCenters.value[0]
        field = fipy.CellVariable(mesh=mesh, value=(x < 0).astype(float))
        drift = fipy.FaceVariable(mesh=mesh, rank=1, value=[face**3 - face])
        drift.setValue(0.0, where=mesh.exteriorFaces)
        equation = fipy.TransientTerm() == fipy.DiffusionTerm(coeff=NOISE) + fipy.ExponentialConvectionTerm(coeff=drift)
        differences = []
        for step in range(2 * steps):
            equation.solve(var=field, dt=50.0 / steps)
            if (step + 1) % steps == 0:
                differences.append(field.value @ np.sign(x))
        return _rate_error(np.array(differences), 50.0)

    return {"FiPy, 50 steps": lambda: fipy(25), "FiPy, 2000 steps": lambda: fipy(1000)}
