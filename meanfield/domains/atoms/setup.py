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
from meanfield.domains.common.problem import AdvanceOptions, Problem
from meanfield.domains.particles.diagnostics import cluster_scale
from meanfield.domains.particles.setup import particle_law
from solvers.backends import backend_for
from solvers.io.layout import Points
from solvers.mesh.mesh import Floats, Mesh
from solvers.timestepping.evolution import Observer, State
from solvers.timestepping.schedules import Logarithmic, events_before, next_time

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
        advance=stages.advance,
        prepare=lambda state: None if states.are_atoms(state.values) else problem.prepare(state),
        diagnostics=lambda names, degrees: _OfEitherStage(problem.diagnostics(names, degrees), law, states),
        snapshot=states.snapshot,
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
    """Moves a density or tokens, and the atoms that they become."""

    def __init__(self, case: Case, problem: Problem, states: States, law: AtomLaw) -> None:
        assert case.hand_over is not None
        self.marks = dict.fromkeys(MARKS, np.nan)
        unit = 1 / (case.attention.speed_bound or 1.0)  # the time in which the fastest token could move by a radian
        self._again, first = case.hand_over.again * unit, FIRST_LOOK * unit
        self._looks = Logarithmic(first, 10 * first, 1 + LOOKS)
        self._problem, self._states, self._law = problem, states, law

    def advance(self, state: State, options: AdvanceOptions) -> State:
        """Advance a state of either stage, in place."""
        stopped = False
        if not self._states.are_atoms(state.values):
            stopped, found = self._advance_at_first(state, options)
            state.values = _on_host(state.values)
            if not found or state.time >= options.until:
                return state
            self._hand_over(state, options)
        if not stopped:
            self._advance_atoms(state, options)
        return state

    def _advance_at_first(self, state: State, options: AdvanceOptions) -> tuple[bool, bool]:
        """Advance until all has collapsed; whether the run is to stop, and whether all has.

        Looked at when a time is due, from the first after 0 on, whatever the samples: in a run to 1e14 they may be
        1e11 apart. A run that goes on from that time, or from before, is handed over then as well.
        """
        stopped = found = False

        def look(state: State) -> None:
            nonlocal found
            found = self._states.have_collapsed(state.values)

        def after(state: State) -> bool:
            nonlocal stopped
            stopped = options.after_step(state)
            return stopped or found

        watch = Observer(look, self._looks, max(1, events_before(self._looks, state.time)))
        observers = (*options.observers, watch)
        for observer in observers:
            observer.look_if_due(state)
        if not found:
            self._problem.advance(state, replace(options, observers=observers, after_step=after))
        return stopped, found

    def _hand_over(self, state: State, options: AdvanceOptions) -> None:
        """On to atoms, with the error that another moment tells."""
        error = self._error(state, options)
        self.marks.update(zip(MARKS, (state.time, error.merger, error.angle), strict=True))
        state.values = self._states.handed_over(state.values)

    def _error(self, state: State, options: AdvanceOptions) -> HandOverError:
        def carry_on(values: Floats, start: float, end: float) -> Floats:
            copy = State(start, values.copy())
            return _on_host(self._problem.advance(copy, AdvanceOptions(end, cfl=options.cfl)).values)

        later = min(state.time + self._again, options.until)
        return hand_over_error(self._law, self._states.atoms, state.values, state.time, later, options.until, carry_on)

    def _advance_atoms(self, state: State, options: AdvanceOptions) -> None:
        """Advance atoms; observers look at their times, and at each merger besides."""
        for observer in options.observers:
            observer.look_if_due(state)
        while state.time < options.until:
            target = next_time((observer.due() for observer in options.observers), options.until)
            before = state.values
            atoms, state.time, mergers = until_merger(self._law, self._states.atoms(before), state.time, target)
            state.values, state.steps = self._states.moved(before, atoms, mergers), state.steps + 1
            for observer in options.observers:
                if mergers and not observer.is_due(state):
                    observer.look_now(state)
                observer.look_if_due(state)
            if options.after_step(state):
                return


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
