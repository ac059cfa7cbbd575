"""Cost estimate of a case, without building its mesh."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.case.case import Case
from meanfield.case.load import to_toml
from meanfield.domains.domain import load
from meanfield.model.layer_norm import LAYER_NORMS
from meanfield.runtime.messages import counted
from meanfield.sections.initial import Uniform
from solvers.timestepping.schedules import events_before

if TYPE_CHECKING:
    from meanfield.diagnostics.table import Table

# number of copies of the state of particles in memory, by method
_STATES = {"adaptive": 30, "ssprk3": 12, "ssprk2": 12, "layers": 8}
# steps of adaptive over κn²t/L², measured; number of steps above which a note is printed
_STIFF_STEPS, _MANY_STEPS = 0.6, 1000
_MAX_TIME = 1e13  # time in which a velocity of 1e-16 moves a token by 1e-3
_BYTES_PER_CELL = 400  # memory of a run, fields and mesh together
_CHUNK = 8192  # bytes, the smallest chunk of a dataset that grows
_DEGREES = 64  # approximate bound of the degrees of the power, and of other dimensions of diagnostics
_HEADERS = 3e4  # bytes of a file without rows: tree, attributes and text, measured


def memory_bytes(case: Case) -> float:
    """Return the approximate memory of a run in bytes, beyond that of the program.

    The result is 0 if only the initial file determines the number of tokens.
    """
    if case.domain.has_tokens:
        return 8.0 * _STATES[case.time.method] * _numbers(case)
    return float(_BYTES_PER_CELL * _numbers(case))


def file_bytes(case: Case) -> float:
    """Return an approximate upper bound of the size of the run file in bytes.

    The result is 0 if only the initial file determines the number of tokens.
    """
    if not (numbers := _numbers(case)):
        return 0.0
    row = numbers // (case.domain.labels or 1)
    coordinates = 0 if case.domain.has_tokens else row * (case.domain.d + 5)  # areas, centers, edges and coordinates
    return _HEADERS + 8.0 * (row * _snapshots(case) + numbers + coordinates) + _bytes_of_samples(case, row)


def _numbers(case: Case) -> int:
    """Return the number of values of a state: cells of all its densities, or coordinates of all its tokens.

    A state has one density for each label (position in the sequence of a causal mask) or radius. The number is 0 for
    tokens whose number only the initial file determines.
    """
    domain = case.domain
    return (domain.count or 0) * domain.d if domain.has_tokens else domain.cells_and_width()[0]


def _bytes_of_samples(case: Case, cells: int) -> float:
    """Return an approximate upper bound of the bytes that all samples of the diagnostics take in the run file."""
    domain, total = case.domain, 0.0
    from meanfield.diagnostics.table import LENGTHS

    table: Table = load(domain.diagnostics)
    lengths = {"d": domain.d, "label": domain.labels or 1, "cell": cells, **LENGTHS}
    for name in case.output.diagnostics or ():
        width = math.prod(lengths.get(dimension, _DEGREES) for dimension in table[name].dimensions.split())
        total += max(8.0 * (case.output.samples + 1) * width, _CHUNK)
    return total


def estimate(case: Case) -> str:
    """Return the resolved case as TOML, followed by its estimated cost in comments: the text is again a case file."""
    from meanfield.runtime.limits import exceeded_limits

    lines = _cost_of_tokens(case) if case.domain.has_tokens else _cost_of_cells(case)
    lines += [f"TOO LARGE     {text}" for text in exceeded_limits(case, Path())]
    return to_toml(case) + "\n" + "\n".join(f"# {line}" for line in lines)


def _cost_of_cells(case: Case) -> list[str]:
    """Return the lines of the cost estimate of a density: cells, memory, size of the file and time steps."""
    cells, width = case.domain.cells_and_width()
    snapshots = _snapshots(case)
    return [
        f"cells         {cells}",
        f"cell width    {width:.4g} (mean){_per_smallest_scale(case, width)}",
        f"memory        about {as_bytes(memory_bytes(case))}",
        f"file          at most about {as_bytes(file_bytes(case))} for {counted(snapshots, 'snapshot')}",
        f"time steps    {_steps(case)}",
        *case.domain.estimates(case),
    ]


def _per_smallest_scale(case: Case, width: float) -> str:
    """Return a text on the number of cells, of a given width, per smallest scale; empty for a scale of 1 rad."""
    scale = case.domain.smallest_scale(case)
    return f", {scale / width:.2g} in the smallest scale {scale:.3g}" if scale < 1 else ""


def _cost_of_tokens(case: Case) -> list[str]:
    """Return the lines of the cost estimate of tokens: number, memory, size of the file, velocity and time steps."""
    if case.domain.count is None:
        return ["tokens        as many as the file has"]
    snapshots = _snapshots(case)
    return [
        f"tokens        {case.domain.count} in {case.domain.d} dimensions",
        f"memory        about {as_bytes(memory_bytes(case))}",
        f"file          at most about {as_bytes(file_bytes(case))} for {counted(snapshots, 'snapshot')}",
        f"velocity      {_velocity_of_tokens(case, case.domain.count)}",
        f"time steps    {_steps_of_tokens(case, case.domain.count)}",
        *_handover(case, case.domain.count),
        *(f"rounding      {note}" for note in rounding_notes(case)),
    ]


def _velocity_of_tokens(case: Case, count: int) -> str:
    """Return a text on the cost of one evaluation of the velocity of ``count`` tokens.

    Where a case of a density exists, the text suggests it: its cost does not depend on the number of tokens.
    """
    attention, d = case.attention, case.domain.d
    if attention.pattern is not None:
        return "the pairs of tokens in attention.pattern: about twice as many for twice the tokens"
    pairs = count**2 * len(attention.all_heads)
    if d not in (2, 3) or attention.mask != "none" or LAYER_NORMS[case.stabilizers.layer_norm].sees_positions:
        return (
            f"{pairs:.2g} pairs of tokens, each in {counted(d, 'dimension')}: four times as many for twice the tokens"
        )
    text = f"at most {pairs:.2g} pairs of tokens, fewer if there are many: a transform replaces them"
    if case.tokens_have_radius or case.sequence is not None:
        return text
    return f'{text}; manifold = "{"circle" if d == 2 else "sphere"}" costs the same for any number of tokens'


def rounding_notes(case: Case) -> list[str]:
    """Return a note if the run is so long that velocities lost to rounding matter, else an empty list.

    The output of attention has errors of 1e-16 of the position of a token. Tokens that would take longer than
    ``_MAX_TIME`` to merge therefore do not move. Atoms, after a handover, have accurate velocities.
    """
    if not case.domain.has_tokens or case.handover is not None or case.time.end <= _MAX_TIME:
        return []
    return [
        f"velocities below 1e-16 are lost: tokens that take longer than t = {_MAX_TIME:g} to merge stand still; "
        "a section [handover] follows them"
    ]


def _handover(case: Case, count: int) -> list[str]:
    """Return a list with a line that says when atoms (point masses, one for each cluster) can replace the tokens.

    The list is empty without such a handover, or if there are at most as many tokens as atoms are allowed.
    """
    from meanfield.domains.atoms.handover_states import atom_limit

    max_atoms, beta = atom_limit(case.domain.d), case.beta_on_unit_sphere
    if case.handover is None or count <= max_atoms:
        return []
    line = f"handover      only once {count} tokens are at most {max_atoms} clusters"
    if case.domain.d == 2 and beta > 0 and isinstance(case.initial, Uniform):
        from meanfield.model.linear_stability import expected_clusters_from_tokens

        expected = min(float(count), expected_clusters_from_tokens(beta))
        line += f"; about {expected:.0f} form at first"
    return [line]


def _steps_of_tokens(case: Case, count: int) -> str:
    """Return the expected number of time steps of tokens as text: a number, or the condition that limits the steps."""
    if case.time.method == "layers":
        return counted(case.time.layers or 0, "layer")
    sequence = case.sequence
    if case.time.method == "adaptive" and sequence is not None:
        min_steps = _STIFF_STEPS * sequence.diffusion * (count / sequence.length) ** 2 * case.time.end
        if min_steps > _MANY_STEPS:
            return (
                f'at least about {min_steps:.2g}, for diffusion is stiff; time.method = "ssprk3" takes it in any step'
            )
    later = "" if case.handover is None else ", then some for each merger of their atoms"
    limit = "time.tolerance" if case.time.method == "adaptive" else "the CFL condition"
    return f"limited by {limit}, not known in advance{later}"


def _steps(case: Case) -> str:
    """Return the expected number of time steps of a density as text: a number, a bound, or the limiting condition.

    The bound counts steps in which a token moves by at most cfl times the cell width. With noise there are a few more
    steps at the start.
    """
    if case.time.method == "layers":
        return counted(case.time.layers or 0, "layer")
    if case.handover is not None:
        return "limited by the CFL condition until the handover, then some for each merger of its atoms"
    bounded = case.domain.bounded_speed and case.attention.is_scalar
    bounded = bounded and not LAYER_NORMS[case.stabilizers.layer_norm].sees_size
    if case.reaction is not None:
        return "limited by the CFL condition and the reaction, not known in advance"
    if not bounded or case.feed_forward is not None:
        return "limited by the CFL condition, not known in advance"
    bound = f"at most about {case.flow_steps:.2g}"
    return f"{bound}, and some tens where noise smooths initial points" if case.stabilizers.noise else bound


def _snapshots(case: Case) -> int:
    """Return the number of snapshots of the whole run, the first state included."""
    from meanfield.simulation import snapshot_schedule

    return events_before(snapshot_schedule(case), case.time.end, or_at=True)


def as_bytes(count: float) -> str:
    """Return a number of bytes as text with a decimal unit, such as "1.5 MB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
