"""A run in two stages: a density or tokens until they have collapsed, and from then on their clusters as atoms, to any
time.

The file goes on with densities, the atoms deposited on its mesh, or with tokens, each where its atom is; its
diagnostics are those of the atoms themselves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.case.case import Case
from meanfield.diagnostics.table import Diagnostics
from meanfield.domains.atoms.diagnostics import DIAGNOSTICS as of_atoms
from meanfield.domains.atoms.diagnostics import AtomSample
from meanfield.domains.atoms.flow import until_merger
from meanfield.domains.atoms.handover import HandOverError, hand_over_error
from meanfield.domains.atoms.handover_states import DensityStates, States, TokenStates
from meanfield.domains.atoms.velocity import AtomLaw
from meanfield.domains.common.model_of_case import heads_by_layer
from meanfield.domains.common.problem import Problem
from meanfield.domains.particles.diagnostics import cluster_scale
from meanfield.domains.particles.setup import particle_law
from solvers.backends import backend_for
from solvers.io.layout import Points
from solvers.mesh.mesh import Floats, Mesh
from solvers.timestepping.integrate import Integrator, integrate
from solvers.timestepping.schedules import Logarithmic, events_before, is_reached
from solvers.timestepping.state import State, StepResult

MARKS = ("hand_over_time", "hand_over_error", "hand_over_angle")
FIRST_LOOK, LOOKS = 0.1, 24  # in times of ``_Stages``, and how many a decade: a hand-over is at most 10 % late


def with_hand_over(case: Case, problem: Problem) -> Problem:
    """A problem on a circle or sphere, or of tokens, that goes on as atoms once they have collapsed.

    The marks say when it was handed over, by how much the time of the next merger, relative to what is left to it, is
    another if that is done ``again`` later, and how far the atoms are then from those (radians).
    """
    law = AtomLaw(particle_law(case, heads_by_layer(case)[0]))
    states = _states(case, problem, law)
    stages = _Stages(case, problem, states, law)
    return replace(
        problem,
        dynamics=stages.dynamics,
        prepare=lambda state: None if states.are_atoms(state.values) else problem.prepare(state),
        diagnostics=lambda names, degrees: _OfEitherStage(problem.diagnostics(names, degrees), law, states),
        snapshot=states.snapshot,
        check=lambda state: None if states.are_atoms(state.values) else problem.check(state),
        whole=False,
        marks=stages.marks,
    )


def _states(case: Case, problem: Problem, law: AtomLaw) -> States:
    assert case.hand_over is not None
    space, spread = problem.space, case.hand_over.spread
    if isinstance(space, Points):
        return TokenStates(space.weights, case.domain.d, spread, cluster_scale(law.particles))
    assert isinstance(space, Mesh)
    return DensityStates(space, spread)


class _Stages:
    """The dynamics of a density or tokens, and of the atoms that they become.

    Whether all has collapsed is looked at when a time is due, from the first after 0 on, whatever the samples: in a run
    to 1e14 they may be 1e11 apart. A run that goes on from that time, or from before, is handed over then as well.
    """

    def __init__(self, case: Case, problem: Problem, states: States, law: AtomLaw) -> None:
        assert case.hand_over is not None
        self.marks = dict.fromkeys(MARKS, np.nan)
        unit = 1 / (case.attention.speed_bound or 1.0)  # the time in which the fastest token could move by a radian
        self._again, first = case.hand_over.again * unit, FIRST_LOOK * unit
        self._looks = Logarithmic(first, 10 * first, 1 + LOOKS)
        self._problem, self._states, self._atoms = problem, states, AtomIntegrator(law, states)

    def dynamics(self, state: State, until: float) -> tuple[Integrator, float]:
        """The integrator of a state of either stage, to the next look; hands it over where all has collapsed."""
        if self._states.are_atoms(state.values):
            return self._atoms, np.inf
        looks = max(1, events_before(self._looks, state.time))
        if is_reached(self._looks.due(looks), state.time):
            if self._states.have_collapsed(_on_host(state.values)):
                self._hand_over(state, until)
                return self._atoms, np.inf
            looks += 1
        integrator, end = self._problem.dynamics(state, until)
        return integrator, min(end, self._looks.due(looks))

    def _hand_over(self, state: State, until: float) -> None:
        """On to atoms, with an estimate of the error from a handover at another time."""
        state.values = _on_host(state.values)
        error = self._error(state, until)
        self.marks.update(zip(MARKS, (state.time, error.merger, error.angle), strict=True))
        state.values = self._states.handed_over(state.values)

    def _error(self, state: State, until: float) -> HandOverError:
        def carry_on(values: Floats, start: float, end: float) -> Floats:
            copy = State(start, values.copy())
            return _on_host(integrate(copy, self._problem.dynamics, end).values)

        law, later = self._atoms.law, min(state.time + self._again, until)
        return hand_over_error(law, self._states.atoms, state.values, state.time, later, until, carry_on)


class AtomIntegrator:
    """Steps of atoms, each to its target or to the next merger, at which observers look besides."""

    def __init__(self, law: AtomLaw, states: States) -> None:
        self.law, self._states = law, states

    def begin(self, state: State) -> None:
        state.values = _on_host(state.values)

    def step(self, state: State, target: float) -> StepResult:
        before = state.values
        atoms, state.time, mergers = until_merger(self.law, self._states.atoms(before), state.time, target)
        state.values, state.steps = self._states.moved(before, atoms, mergers), state.steps + 1
        return StepResult(event=bool(mergers))


class _OfEitherStage(Diagnostics):
    """The diagnostics of the first stage, and from the hand-over on the same ones of atoms."""

    def __init__(self, at_first: Diagnostics, law: AtomLaw, states: States) -> None:
        super().__init__(at_first.names, at_first.table, at_first.lengths, at_first.look)
        self._law, self._states = law, states

    def __call__(self, time: float, values: Floats) -> dict[str, float | Floats]:
        if not self._states.are_atoms(values):
            return super().__call__(time, values)
        sample = AtomSample(self._law, time, self._states.atoms(values), self.lengths.get("degree", 0))
        theirs = [name for name in self.names if name in self._states.diagnostics]
        rest = [name for name in self.names if name not in theirs]
        found = {name: of_atoms[name](sample) for name in theirs}
        if rest:  # of tokens, each where its atom is
            found |= Diagnostics(rest, self.table, self.lengths, self.look)(time, self._states.snapshot(values))
        return found


def _on_host(values: Floats) -> Floats:
    brought: Floats = backend_for(values).to_host(values)
    return brought
