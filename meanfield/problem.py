"""A case made ready to run: its state, how it moves, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from meanfield.diagnostics_table import Diagnostics
from meanfield.layers import Layer, run_layers
from solvers.evolution import STEPPERS, Equation, Exploding, Observer, Schedule, State, evolve
from solvers.layout import Space, Variable
from solvers.mesh import Floats

MOST_ESCAPED = 1e-3  # of the mass: moments of what is left would be off by as much
AfterStep = Callable[[State], bool]
Prepare = Callable[[State], Any]
Turn = Callable[[int, State, float, Sequence[Observer], float, AfterStep], State]  # k, state, its end, …


class Advance(Protocol):
    """Moves a state in place to a time, as :func:`solvers.evolution.evolve` does."""

    def __call__(
        self, state: State, until: float, observers: Sequence[Observer], cfl: float, after_step: AfterStep
    ) -> State: ...


@dataclass(frozen=True)
class Problem:
    """What a run needs to know, whatever the manifold.

    space        the cells or the tokens of a snapshot, as the file describes them
    initial      () → values of the state at time 0; CaseError for a density that cannot be
    advance      moves a state
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

    def advance(state: State, until: float, observers: Sequence[Observer], cfl: float, after_step: AfterStep) -> State:
        return evolve(state, equation, STEPPERS[method], until, observers, cfl, after_step)

    return advance


def placed(advance: Advance, place: Callable[[Floats], Floats]) -> Advance:
    """The same for a state that may begin on the host: ``place`` puts its values where they move."""

    def go(state: State, until: float, observers: Sequence[Observer], cfl: float, after_step: AfterStep) -> State:
        state.values = place(state.values)
        return advance(state, until, observers, cfl, after_step)

    return go


def within_mesh(advance: Advance, escaped: Callable[[State], float], end: str) -> Advance:
    """Advance, but stop where more than MOST_ESCAPED of the mass is in the last cells of the mesh.

    escaped   state → that mass
    end       where these cells are, for the message
    Raises Exploding then, since what comes there can go no farther, and the rest would follow it.
    """

    def go(state: State, until: float, observers: Sequence[Observer], cfl: float, after_step: AfterStep) -> State:
        def look(state: State) -> bool:
            if (mass := escaped(state)) > MOST_ESCAPED:
                raise Exploding(
                    f"at time {state.time:.6g}, step {state.steps}: {mass:.2g} of the mass has come to {end}, where "
                    "the mesh ends; domain.outermost can be larger"
                )
            return after_step(state)

        return advance(state, until, observers, cfl, look)

    return go


def advance_in_layers(layer: Layer) -> Advance:
    """Advance by one layer after another."""

    def advance(state: State, until: float, observers: Sequence[Observer], cfl: float, after_step: AfterStep) -> State:
        return run_layers(state, layer, until, observers, after_step)

    return advance


def advance_in_turn(equation: Callable[[int], Equation], turns: Schedule, method: str) -> Advance:
    """Advance by equation number k from time turns.due(k) to turns.due(k + 1); no step crosses from one to the next."""

    def turn(k: int, state: State, end: float, observers: Sequence[Observer], cfl: float, look: AfterStep) -> State:
        return evolve(state, equation(k), STEPPERS[method], end, observers, cfl, look)

    return in_turn(turn, turns)


def in_turn(turn: Turn, turns: Schedule) -> Advance:
    """Advance by turn number k from time turns.due(k) to turns.due(k + 1); one that ends early is called again."""

    def advance(state: State, until: float, observers: Sequence[Observer], cfl: float, after_step: AfterStep) -> State:
        stopped = False

        def look(state: State) -> bool:
            nonlocal stopped
            stopped = after_step(state)
            return stopped

        k = 0
        while state.time < until and not stopped:
            while turns.due(k + 1) <= state.time:
                k += 1
            turn(k, state, min(until, turns.due(k + 1)), observers, cfl, look)
        return state

    return advance
