"""Problem of a run in two stages: a density or tokens until they have collapsed, then their clusters as atoms.

The file continues with densities, the atoms deposited on the mesh, or with tokens, each at the position of its atom;
diagnostics are those of the atoms themselves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.case.case import Case
from meanfield.clusters.near import groups_of_number
from meanfield.diagnostics.table import Diagnostics, GoingOn
from meanfield.domains.atoms.diagnostics import DIAGNOSTICS as of_atoms
from meanfield.domains.atoms.diagnostics import AtomSample
from meanfield.domains.atoms.events import event_columns, handover_events, merger_events, present_clusters
from meanfield.domains.atoms.flow import MERGE_ANGLE, merge, until_touch
from meanfield.domains.atoms.handover import HandoverError, clusters_of, grouped, hand_over_error
from meanfield.domains.atoms.handover_states import DensityStates, HandoverStates, TokenStates
from meanfield.domains.atoms.velocity import AtomVelocity
from meanfield.domains.common.model_of_case import heads_by_layer
from meanfield.domains.common.problem import Event, Problem
from meanfield.domains.particles.diagnostics import cluster_scale
from meanfield.domains.particles.setup import particle_velocity
from solvers.backends import backend_for
from solvers.io.layout import Column, Points
from solvers.mesh.mesh import Floats, Mesh
from solvers.timestepping.integrate import Integrator, integrate
from solvers.timestepping.schedules import Logarithmic, events_before, is_reached
from solvers.timestepping.state import State, StepResult

ATOMS = "number of atoms, 0 before the handover; two that touch become one"
RUN_SCALARS = ("hand_over_time", "hand_over_error", "hand_over_angle")
FIRST_CHECK = 0.1  # time of the first check for a collapse, in units of ``_Stages``
CHECKS_PER_DECADE = 24  # a handover is at most 10 % late


def with_handover(case: Case, problem: Problem) -> Problem:
    """Return a problem that continues with atoms, point masses in place of clusters, after its state has collapsed.

    The given problem is on a circle or sphere, or of tokens. Three numbers are stored with the run: the time of the
    handover, and two differences from a handover that is later by ``again``. The differences are the relative change of
    the time left to the next merger, and the distance of the atoms (radians).
    """
    velocity = AtomVelocity(particle_velocity(case, heads_by_layer(case)[0]))
    states = _states(case, problem, velocity)
    stages = _Stages(case, problem, states, velocity)
    return replace(
        problem,
        dynamics=stages.dynamics,
        prepare=lambda state: None if states.are_atoms(state.values) else problem.prepare(state),
        diagnostics=lambda names, degrees: _StageDiagnostics(problem.diagnostics(names, degrees), velocity, states),
        snapshot=states.snapshot,
        check=lambda state: None if states.are_atoms(state.values) else problem.check(state),
        snapshot_is_state=False,
        run_scalars=stages.run_scalars,
        events=stages.events,
    )


def _states(case: Case, problem: Problem, velocity: AtomVelocity) -> HandoverStates:
    """Return the description of states in a run with a handover: a density or tokens first, then atoms."""
    assert case.handover is not None
    space, spread = problem.space, case.handover.spread
    if isinstance(space, Points):
        return TokenStates(space.weights, case.domain.d, spread, cluster_scale(velocity.particles))
    assert isinstance(space, Mesh)
    return DensityStates(space, spread)


class _Stages:
    """Dynamics of a density or tokens, and of the atoms (point masses) that replace their clusters after the collapse.

    The collapse is checked at fixed times, from the first after 0 on, independent of the samples: in a run to 1e14
    these may be 1e11 apart. A run that continues from an earlier time is handed over at the same time.
    """

    def __init__(self, case: Case, problem: Problem, states: HandoverStates, velocity: AtomVelocity) -> None:
        assert case.handover is not None
        self.run_scalars = dict.fromkeys(RUN_SCALARS, np.nan)
        unit = 1 / (case.speed_bound or 1.0)  # the time in which the fastest token could move by a radian
        self._again, first = case.handover.again * unit, FIRST_CHECK * unit
        self._check_times = Logarithmic(first, 10 * first, 1 + CHECKS_PER_DECADE)
        self.events: list[Event] = []
        self._problem, self._states = problem, states
        self._atoms = AtomIntegrator(velocity, states, self.events)

    def dynamics(self, state: State, until: float) -> tuple[Integrator, float]:
        """Return the integrator of a state, and the time up to which this integrator is valid.

        That time is the next check whether the state has collapsed to clusters. If it has, this method first replaces
        its clusters by atoms (point masses); the time is then infinite.
        """
        if self._states.are_atoms(state.values):
            return self._atoms, np.inf
        checks = max(1, events_before(self._check_times, state.time))
        if is_reached(self._check_times.due(checks), state.time):
            if self._states.have_collapsed(_on_host(state.values)):
                self._replace_by_atoms(state, until)
                return self._atoms, np.inf
            checks += 1
        integrator, end = self._problem.dynamics(state, until)
        return integrator, min(end, self._check_times.due(checks))

    def _replace_by_atoms(self, state: State, until: float) -> None:
        """Replace a collapsed state by atoms, a point mass for each cluster, and record an estimate of the error.

        The error is the difference that a later handover would make.
        """
        state.values = _on_host(state.values)
        error = self._error(state, until)
        self.run_scalars.update(zip(RUN_SCALARS, (state.time, error.merger, error.angle), strict=True))
        state.values = self._states.values_after_handover(state.values)
        clusters = clusters_of(self._states.atoms(state.values), cluster_scale(self._atoms.velocity.particles))
        self.events[:] = handover_events(state.time, clusters)

    def _error(self, state: State, until: float) -> HandoverError:
        """Return the estimated error of the handover at a state: a comparison with a later handover."""

        def carry_on(values: Floats, start: float, end: float) -> Floats:
            copy = State(start, values.copy())
            return _on_host(integrate(copy, self._problem.dynamics, end).values)

        velocity, later = self._atoms.velocity, min(state.time + self._again, until)
        return hand_over_error(velocity, self._states.atoms, state.values, state.time, later, until, carry_on)


class AtomIntegrator:
    """Integrator of atoms (point masses): a step ends at its target time, or when two clusters or two atoms merge.

    Clusters of atoms merge when they are nearer than the scale of :mod:`meanfield.clusters.near`. Atoms of one cluster
    merge when they touch. Observers are called at mergers of clusters and of atoms.

    events   events of the handover, to which mergers of clusters are added
    """

    def __init__(self, velocity: AtomVelocity, states: HandoverStates, events: list[Event]) -> None:
        self.velocity, self._states, self.events = velocity, states, events
        self._reach = 2 * np.sin(cluster_scale(velocity.particles) / 2)

    def begin(self, state: State) -> None:
        state.values = _on_host(state.values)

    def step(self, state: State, target: float) -> StepResult:
        before = self._states.atoms(state.values)
        cluster = groups_of_number(
            before.positions, len(present_clusters([event["parents"] for _, event in self.events])[-1])
        )
        same = cluster[:, None] == cluster
        atoms, state.time, touches = until_touch(
            self.velocity, before, state.time, target, np.where(same, MERGE_ANGLE, self._reach)
        )
        near = [(time, int(cluster[i]), int(cluster[j])) for time, i, j in touches if not same[i, j]]
        clusters, mergers = merge(grouped(atoms, cluster), near)
        atoms, contacts = merge(atoms, [touch for touch in touches if same[touch[1:]]])
        state.values, state.steps = self._states.values_after_step(state.values, atoms, contacts), state.steps + 1
        after = grouped(atoms, groups_of_number(atoms.positions, clusters.count))
        self.events += merger_events(self.events, mergers, after)
        return StepResult(event=bool(mergers or contacts))


class _StageDiagnostics(Diagnostics):
    """Diagnostics of a density or tokens, and of the atoms that replace their clusters after the handover."""

    may_wait = False

    def __init__(self, first_stage: Diagnostics, velocity: AtomVelocity, states: HandoverStates) -> None:
        super().__init__(first_stage.names, first_stage.table, first_stage.lengths, first_stage.sample_of)
        self._first_stage, self._velocity, self._states = first_stage, velocity, states

    @property
    def columns(self) -> list[Column]:
        return [*super().columns, Column("atoms", (), "1", ATOMS), *event_columns(self.lengths["d"])]

    def __call__(self, time: float, values: Floats, going_on: GoingOn = lambda: None) -> dict[str, float | Floats]:
        if not self._states.are_atoms(values):
            return {**self._first_stage(time, values, going_on), "atoms": 0.0}
        sample = AtomSample(self._velocity, time, self._states.atoms(values), self.lengths.get("degree", 0))
        of_atoms_names = [name for name in self.names if name in self._states.diagnostics]
        rest = [name for name in self.names if name not in of_atoms_names]
        found = {"atoms": float(sample.atoms.count), **{name: of_atoms[name](sample) for name in of_atoms_names}}
        if rest:  # of tokens at the positions of their atoms
            tokens = self._first_stage.only(rest)
            found |= tokens(time, self._states.snapshot(values), going_on)
        return found


def _on_host(values: Floats) -> Floats:
    """Return values on the host in float64."""
    return backend_for(values).to_host(values).astype(np.float64, copy=False)
