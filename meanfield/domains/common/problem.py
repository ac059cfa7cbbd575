"""A case made ready to run: its state, how it moves, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from meanfield.diagnostics.table import Diagnostics
from meanfield.model.discrete_layers import Layer, run_layers
from solvers.io.layout import Space, Variable
from solvers.mesh.mesh import Floats
from solvers.timestepping.evolution import STEPPERS, Equation, Exploding, Observer, State, evolve
from solvers.timestepping.schedules import Schedule

MAX_ESCAPED = 1e-3  # of the mass: moments of what is left would be off by as much
AfterStep = Callable[[State], bool]
Prepare = Callable[[State], Any]


@dataclass(frozen=True)
class AdvanceOptions:
    """End time, observers and step limits of an advance: the arguments of `evolve` beside the equation.

    until        time
    observers    look when they are due
    cfl          fraction of the largest stable time step that is used
    after_step   called after each step; True stops
    """

    until: float
    observers: Sequence[Observer] = ()
    cfl: float = 0.5
    after_step: AfterStep = lambda state: False


Advance = Callable[[State, AdvanceOptions], State]  # moves a state in place, and returns it
Turn = Callable[[int, State, AdvanceOptions], State]  # the same for turn number k


@dataclass(frozen=True)
class Problem:
    """What a run needs to know, whatever the manifold.

    space        the cells or the tokens of a snapshot, as the file describes them
    initial      () → values of the state at time 0; CaseError for a density that cannot be
    advance      moves a state over a part of the run
    prepare      evaluates the equation once, which compiles its kernels
    diagnostics  names, last degree of the power or None → what is measured along the run
    snapshot     values → density (cells), or positions (n, d), of a snapshot
    whole        whether a snapshot is the whole state
    variables    what the file keeps of the mesh beside its cells
    marks        numbers that the run finds out on its way, by the name of the file's attribute; NaN until then
    attributes   what the file keeps of how this is computed
    """

    space: Space
    initial: Callable[[], Floats]
    advance: Advance
    prepare: Prepare
    diagnostics: Callable[[Sequence[str], int | None], Diagnostics]
    snapshot: Callable[[Floats], Floats] = field(default=lambda values: values)
    whole: bool = True
    variables: tuple[Variable, ...] = ()
    marks: dict[str, float] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)


def advance_by(equation: Equation, method: str) -> Advance:
    """Advance by one equation with a stepper of that name."""

    def advance(state: State, options: AdvanceOptions) -> State:
        return evolve(
            state,
            equation,
            STEPPERS[method],
            options.until,
            options.observers,
            options.cfl,
            options.after_step,
            rtol=None,
        )

    return advance


def placed(advance: Advance, place: Callable[[Floats], Floats]) -> Advance:
    """The same for a state that may begin on the host: ``place`` puts its values where they move."""

    def go(state: State, options: AdvanceOptions) -> State:
        state.values = place(state.values)
        return advance(state, options)

    return go


def within_mesh(advance: Advance, escaped: Callable[[State], float], end: str) -> Advance:
    """Advance, but stop where more than MAX_ESCAPED of the mass is in the last cells of the mesh.

    escaped   state → that mass
    end       where these cells are, for the message
    Raises Exploding then, since what comes there can go no farther, and the rest would follow it.
    """

    def go(state: State, options: AdvanceOptions) -> State:
        def look(state: State) -> bool:
            if (mass := escaped(state)) > MAX_ESCAPED:
                raise Exploding(
                    f"{state.when}: {mass:.2g} of the mass has reached {end}, where "
                    "the mesh ends; domain.outermost can be larger"
                )
            return options.after_step(state)

        return advance(state, replace(options, after_step=look))

    return go


def advance_in_layers(layer: Layer) -> Advance:
    """Advance by one layer after another."""
    return lambda state, options: run_layers(state, layer, options.until, options.observers, options.after_step)


def advance_in_turn(equation: Callable[[int], Equation], turns: Schedule, method: str) -> Advance:
    """Advance by equation number k from time turns.due(k) to turns.due(k + 1); no step crosses from one to the next."""
    return in_turn(lambda k, state, options: advance_by(equation(k), method)(state, options), turns)


def in_turn(turn: Turn, turns: Schedule) -> Advance:
    """Advance by turn number k from time turns.due(k) to turns.due(k + 1); one that ends early is called again."""

    def advance(state: State, options: AdvanceOptions) -> State:
        stopped = False

        def look(state: State) -> bool:
            nonlocal stopped
            stopped = options.after_step(state)
            return stopped

        k = 0
        while state.time < options.until and not stopped:
            while turns.due(k + 1) <= state.time:
                k += 1
            turn(k, state, replace(options, until=min(options.until, turns.due(k + 1)), after_step=look))
        return state

    return advance
