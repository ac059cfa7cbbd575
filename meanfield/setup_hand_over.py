"""A run in two stages: a density until it has collapsed, and from then on its clusters as atoms, to any time.

The state of the first stage is the density (cells,), that of the second (atoms, 1 + d): mass and position of each. The
file goes on with densities, the atoms deposited on its mesh; its diagnostics are those of the atoms themselves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from meanfield.atoms import AtomLaw, Atoms
from meanfield.atoms_flow import until_merger
from meanfield.case import Case
from meanfield.diagnostics_atoms import DIAGNOSTICS as of_atoms
from meanfield.diagnostics_atoms import AtomSample
from meanfield.diagnostics_table import Diagnostics
from meanfield.hand_over import HandOverError, atoms_of, collapsed, hand_over_error
from meanfield.problem import AfterStep, Problem
from meanfield.setup_model import heads_by_layer
from meanfield.setup_particles import particle_law
from solvers.backends import kernels_for
from solvers.deposit import deposit_points
from solvers.evolution import Observer, Schedule, State
from solvers.mesh import Floats, Mesh

MARKS = ("hand_over_time", "hand_over_error", "hand_over_angle")


def with_hand_over(case: Case, problem: Problem, looks: Schedule) -> Problem:
    """A problem on a circle or sphere that goes on as atoms once its density has collapsed.

    looks    when to look whether it has

    The marks say when it was handed over, by how much the time of the next merger, relative to what is left to it, is
    another if that is done ``again`` later, and how far the atoms are then from those (radians).
    """
    law = AtomLaw(particle_law(case, heads_by_layer(case)[0]))
    mesh = problem.space
    assert isinstance(mesh, Mesh)
    stages = _Stages(case, problem, mesh, law, looks)
    return replace(
        problem,
        advance=stages.advance,
        prepare=lambda state: problem.prepare(state) if _is_density(state.values) else None,
        diagnostics=lambda names, degrees: _OfEitherStage(problem.diagnostics(names, degrees), law),
        snapshot=lambda values: values if _is_density(values) else _deposit(mesh, values),
        whole=False,
        marks=stages.marks,
    )


class _Stages:
    """Moves a density, and the atoms that it becomes."""

    def __init__(self, case: Case, problem: Problem, mesh: Mesh, law: AtomLaw, looks: Schedule) -> None:
        assert case.hand_over is not None
        self.marks = dict.fromkeys(MARKS, np.nan)
        self._spread, self._again = case.hand_over.spread, case.hand_over.again / case.attention.speed_bound
        self._problem, self._mesh, self._law, self._looks = problem, mesh, law, looks

    def advance(
        self, state: State, until: float, observers: Sequence[Observer], cfl: float, after_step: AfterStep
    ) -> State:
        """Advance a state of either stage, in place."""
        stopped = False
        if _is_density(state.values):
            stopped, found = self._advance_density(state, until, observers, cfl, after_step)
            state.values = _on_host(state.values)
            if not found or state.time >= until:
                return state
            self._hand_over(state, until, cfl)
        if not stopped:
            self._advance_atoms(state, until, observers, after_step)
        return state

    def _advance_density(
        self, state: State, until: float, observers: Sequence[Observer], cfl: float, after_step: AfterStep
    ) -> tuple[bool, bool]:
        """Advance until the density has collapsed; whether the run is to stop, and whether it has collapsed."""
        stopped = found = False

        def look(state: State) -> None:
            nonlocal found
            found = collapsed(self._mesh, state.values, self._spread) is not None

        def after(state: State) -> bool:
            nonlocal stopped
            stopped = after_step(state)
            return stopped or found

        watch = Observer(look, self._looks, _events_before(self._looks, state.time))
        self._problem.advance(state, until, [*observers, watch], cfl, after)
        return stopped, found

    def _hand_over(self, state: State, until: float, cfl: float) -> None:
        """From the density to atoms, with the error that another moment tells."""
        clusters = collapsed(self._mesh, state.values, np.inf)
        assert clusters is not None  # it has collapsed
        error = self._error(state, until, cfl)
        self.marks.update(zip(MARKS, (state.time, error.merger, error.angle), strict=True))
        state.values = _rows(atoms_of(clusters))

    def _error(self, state: State, until: float, cfl: float) -> HandOverError:
        def carry_on(density: Floats, start: float, end: float) -> Floats:
            copy = State(start, density.copy())
            return _on_host(self._problem.advance(copy, end, (), cfl, lambda state: False).values)

        later = min(state.time + self._again, until)
        return hand_over_error(self._law, self._mesh, state.values, state.time, later, until, carry_on)

    def _advance_atoms(self, state: State, until: float, observers: Sequence[Observer], after_step: AfterStep) -> None:
        """Advance atoms; observers look at their times, and at each merger besides."""
        for observer in observers:
            observer.look_if_due(state)
        while state.time < until:
            target = min([until, *(observer.due() for observer in observers)])
            atoms, state.time, mergers = until_merger(self._law, _atoms(state.values), state.time, target)
            state.values, state.steps = _rows(atoms), state.steps + 1
            for observer in observers:
                if mergers and observer.due() > state.time:
                    observer.look_now(state)
                observer.look_if_due(state)
            if after_step(state):
                return


class _OfEitherStage(Diagnostics):
    """The diagnostics of a density, and from the hand-over on the same ones of atoms."""

    def __init__(self, of_density: Diagnostics, law: AtomLaw) -> None:
        super().__init__(of_density.names, of_density.table, of_density.lengths, of_density.look)
        self._law = law

    def __call__(self, time: float, values: Floats) -> dict[str, float | Floats]:
        if _is_density(values):
            return super().__call__(time, values)
        sample = AtomSample(self._law, time, _atoms(values), self.lengths["degree"])
        return {name: of_atoms[name](sample) for name in self.names}


def _is_density(values: Floats) -> bool:
    return values.ndim == 1


def _on_host(values: Floats) -> Floats:
    brought: Floats = kernels_for(values).bring(values)
    return brought


def _atoms(values: Floats) -> Atoms:
    return Atoms(np.ascontiguousarray(values[:, 1:]), values[:, 0].copy())


def _rows(atoms: Atoms) -> Floats:
    return np.column_stack([atoms.masses, atoms.positions])


def _deposit(mesh: Mesh, values: Floats) -> Floats:
    return deposit_points(mesh, values[:, 1:], values[:, 0])


def _events_before(schedule: Schedule, time: float) -> int:
    """How many events of a schedule lie before a time."""
    most = 1
    while schedule.due(most) < time:
        most *= 2
    return bisect_left(range(most), time, key=schedule.due)
