"""Stochastic partial differential equations: steps with noise that is white in space and time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..mesh.arguments import check_count
from ..mesh.checks import check_call, check_mesh, check_number
from ..mesh.mesh import Floats, Mesh
from .checks import check_positive, check_real
from .equation import Equation
from .integrate import Integrator, fixed, integrate
from .methods import choose, integrator_of
from .runge_kutta.semi_discrete import SemiDiscrete
from .state import MethodState, NonFinite, State, StepResult

CALCULI = ("ito", "stratonovich")


@dataclass(frozen=True)
class Noise:
    """Method of :func:`~solvers.solve` for du = f(t, u) dt + g(t, u) dW, or du = f dt + div(g dW) with conserved ∫u.

    W has independent increments in space and time: in a time dt, the mean of dW over a cell of volume V has the
    variance dt/V. The noise of each field is independent of that of the others.

    Parameters
    ----------
    mesh : Mesh
        Mesh of the fields, on the host.
    amplitude : float or callable
        Amplitude g: a number, or a function (t, u) that returns a number or an array of the shape of u. With
        ``conservative`` u are the values at the faces, the means of both cells, (faces,) or (fields, faces).
    step : float
        Length of the steps; shorter steps meet the times of the solution.
    seed : int, default 0
        Seed of the noise, ≥ 0. The same seed and times give the same bits, whatever the number of threads.
    calculus : {"ito", "stratonovich"}, optional
        Meaning of g(t, u) dW. Required if g is a function.
    conservative : bool, default False
        Whether the noise is the divergence of a random flux through the faces. None flows through a boundary.

    Raises
    ------
    TypeError
        If ``mesh`` is no mesh, ``amplitude`` neither a number nor a function of (t, u), or ``step`` no number.
    ValueError
        If ``step`` is not finite and > 0, ``seed`` is negative, or ``calculus`` is unknown, or missing for a function.
    NonFinite
        In a step, if the amplitude or the state is not finite.

    Notes
    -----
    A step is symmetric (Strang): half a step of f by the default method of the equation, to the tolerances of
    ``solve``, a step of the noise, and half a step of f. Where "etd4" applies, it replaces the default method "ark4".
    The noise is advanced by the method of Euler and Maruyama (Itô), or of Heun (Stratonovich). Means of functions of u
    have an error O(dt²) if g is a number, else O(dt). A mode that decays at the rate λ has z/sinh z times its exact
    stationary variance, z = λ ``step``: steps must be short relative to 1/λ of the modes of interest. The first steps
    are shorter than ``step`` unless ``first_step`` of ``solve`` is given.

    The noise of a step depends on the seed and on the time of its start. ``solution(t)`` between two steps therefore
    has the same path at both ends, but no additional noise between.

    With ``conservative`` and g² = 2Du the noise is that of N = 1 diffusing particles for each unit of ∫u (Dean and
    Kawasaki). Its amplitude has to be bounded where noise makes u negative, as in ``np.maximum(u, 0)``. The noise is
    in balance with a :class:`~solvers.Diffusion` of an array D, whose fluxes are those of two cells. Beside a number D
    on equal cells, whose fluxes are of fourth order, the variance of waves of a few cells is up to a quarter smaller.

    References
    ----------
    Kloeden and Platen (1992), sections 10.2 and 11.1. Dean, J. Phys. A 29 (1996) L613. Salmon, Moraes, Dror and Shaw
    (2011): generators by counters.

    Examples
    --------
    The stationary variance of du = −u dt + g dW in a cell of volume V is g²/(2V):

    >>> import numpy as np
    >>> from solvers import Equation, Noise, interval, solve
    >>> mesh = interval(0.0, 1.0, 4000)
    >>> noise = Noise(mesh, 0.1, step=0.1, seed=1)
    >>> u = solve(Equation(mesh, [lambda t, u: -u]), np.zeros(4000), (0.0, 5.0), times=[5.0], method=noise).u[-1]
    >>> bool(abs(u.var() / (0.1**2 / 2 * 4000) - 1) < 0.1)
    True
    """

    mesh: Mesh
    amplitude: float | Callable[[float, Floats], Floats]
    step: float
    seed: int = 0
    calculus: str | None = None
    conservative: bool = False

    def __post_init__(self) -> None:
        check_mesh(self.mesh)
        check_positive(step=self.step)
        check_count("seed", self.seed, 0)
        if not callable(self.amplitude):
            check_number("amplitude", self.amplitude)
        else:
            check_call("amplitude", self.amplitude, "t, u")
        if self.calculus not in CALCULI and (callable(self.amplitude) or self.calculus is not None):
            raise ValueError(
                f'calculus = {self.calculus!r}: expected "ito" or "stratonovich", the meaning of g(t, u) dW'
            )

    def __call__(self, equation: Equation, rtol: float, atol: float, cfl: float | None) -> Integrator:
        """Return the integrator of du = ``equation`` dt + noise."""
        return _NoisySteps(self, equation, (rtol, atol, cfl))


class _NoisySteps:
    """Integrator of a stochastic equation, with another integrator of its deterministic part.

    numbers   rtol, atol and cfl of the deterministic part
    """

    def __init__(self, noise: Noise, equation: Equation, numbers: tuple[float, float, float | None]) -> None:
        self._noise, self._equation, self._numbers = noise, equation, numbers
        self._deterministic: Any = None

    def begin(self, state: State) -> None:
        """Compute the geometry of the noise and choose the method; raise errors for complex fields and other meshes."""
        check_real("u0", state.values, "Noise")
        if state.values.shape[-1] != self._noise.mesh.cells:
            raise ValueError(f"mesh of Noise has {self._noise.mesh.cells} cells: expected {state.values.shape[-1]}")
        if self._deterministic is None:
            method = choose(self._equation)
            if method == "ark4" and SemiDiscrete(self._equation).modes(state.values) is not None:
                method = "etd4"
            self._deterministic = integrator_of(self._equation, method, *self._numbers)
        mesh = self._noise.mesh
        self._faces, self._sizes = mesh.face_cells, 1 / np.sqrt(mesh.volumes)
        if self._noise.conservative:
            self._sizes = np.sqrt(np.maximum(np.asarray(mesh.face_conductances()), 0.0))
            self._sizes[self._faces[:, 0] == self._faces[:, 1]] = 0.0
        if state.method_state:
            self._deterministic.begin(state)

    @property
    def method_state(self) -> MethodState:
        """Return the numbers and arrays of the method of the deterministic part, such as its factorization."""
        return getattr(self._deterministic, "method_state", {})

    def step(self, state: State, target: float) -> StepResult:
        """Advance a state by one step: half a step without noise, the noise, half a step without noise."""
        left = target - state.time
        parts = max(math.ceil(left / self._noise.step * (1 - 1e-12)), 1)
        dt, time = left / parts, state.time
        end = target if parts == 1 else time + dt
        middle = self._advance(time, state.values, time + dt / 2)
        state.values[...] = self._advance(middle.time, self._with_noise(middle, time, dt), end).values
        if not np.isfinite(state.values).all():
            raise NonFinite(f"{state.time_and_step}: the state after a step of {dt:.3g} with noise is not finite")
        state.time, state.steps, state.dt = end, state.steps + 1, dt
        return StepResult(stable_dt=self._noise.step)

    def _advance(self, time: float, values: Floats, end: float) -> State:
        """Return the state at ``end``, without noise, from values at ``time``; a single step is tried first."""
        return integrate(State(time, values.copy(), dt=end - time), fixed(self._deterministic), end)

    def _with_noise(self, state: State, start: float, dt: float) -> Floats:
        """Return the values after the noise of a step of dt from the time ``start``."""
        bits = np.float64(start).view(np.uint64)  # of the time: its random numbers follow no others
        random = np.random.Generator(np.random.Philox(key=self._noise.seed, counter=np.array([0, 0, 0, bits])))
        shape = (*state.values.shape[:-1], len(self._sizes))
        draw = math.sqrt(dt) * self._sizes * random.standard_normal(shape)
        change = self._change(state.time, state.values, draw)
        if self._noise.calculus == "stratonovich":
            change = 0.5 * (change + self._change(state.time, state.values + change, draw))
        return np.asarray(state.values + change)

    def _change(self, time: float, values: Floats, draw: Floats) -> Floats:
        """Return the change of the values by the noise with increments ``draw``, with the amplitude at ``values``."""
        noise = self._noise
        at = values[..., self._faces].mean(axis=-1) if noise.conservative else values
        amplitude = noise.amplitude(time, at) if callable(noise.amplitude) else noise.amplitude
        if np.shape(amplitude) not in ((), at.shape, at.shape[-1:]) or not np.isfinite(amplitude).all():
            raise NonFinite(
                f"at time {time:.6g}: amplitude of shape {np.shape(amplitude)}: expected finite numbers, {at.shape}"
            )
        increments: Floats = amplitude * draw
        if not noise.conservative:
            return increments
        mesh, backend, changes = noise.mesh, noise.mesh.backend, np.zeros(values.shape)
        rows = changes.reshape(-1, mesh.cells), increments.reshape(-1, mesh.faces)
        for change, fluxes in zip(*rows, strict=True):
            backend.launch(
                backend.divergence_of_sides, mesh.cells, mesh.volumes, mesh.cell_start, mesh.cell_sides, fluxes, change,
            )  # fmt: skip
        return changes
