"""Damaged files of every kind through every command that reads them: bit flips, truncation, changes of structure.

Checkpoints are changed under a right hash, too. A user's addition to a sound file is not damage: commands end as
without the addition, and the addition stays.

A command may refuse a file in one line, or may not notice. A command leaves no traceback and no file, changes no
file, and shows no content of another file: with a changed structure, the printed and written data must not depend on
the values in linked files. The figure of merit is the number of file × command pairs that break one of these rules.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import h5py
import numpy as np

from solvers.io.run_file import FileError, read
from solvers.io.schema import LOCATION
from tests.support import sweeping

from .additions import add_by_user, names_in
from .checkpoints import change_checkpoint
from .commands import contents, outcome_of
from .files import BESIDE, COMMANDS, POINT, make_files

MAX_SECONDS = 300  # limit of a command; all take less than one second on these files
SECRETS = tuple(word * 200 for word in (b"the bytes of somebody else's file ", b"others that nobody else is to get "))
FACTORS = (1.25, 1.5)  # factors of the values in the file to which a damaged file is linked
# Slowest commands, and the share of them that is run.
COSTLY, COSTLY_PART = ("plot", "compare", "movie", "transformer"), 0.2


def scaled(path: Path, factor: float) -> bytes:
    """Return the bytes of an HDF5 file, with all numbers of its datasets multiplied by a factor."""
    other = path.with_name("scaled.h5")
    shutil.copy(path, other)

    def scale(name: str, node: object) -> None:
        if isinstance(node, h5py.Dataset) and node.dtype.kind == "f":
            node[...] = node[...] * factor

    with h5py.File(other, "r+", locking=False) as file:
        file.visititems(scale)
    data = other.read_bytes()
    other.unlink()
    return data


def flip_bits(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 1, 2, 8, 64])):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def truncate(path: Path, chance: random.Random) -> None:
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.truncate(chance.choice([0, 1, 8, 48, chance.randrange(size), size - 1]))


def overwrite_block(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start, length = chance.randrange(len(data)), chance.choice([8, 64, 512])
    filling = chance.choice([bytes(length), b"\xff" * length, chance.randbytes(length)])
    data[start : start + length] = filling[: len(data) - start]
    path.write_bytes(data[: len(data)])


def change_structure(path: Path, chance: random.Random) -> None:
    """Remove, retype, reshape or relink one object of an HDF5 file, or one attribute."""
    with h5py.File(path, "r+", locking=False) as file:
        names: list[str] = []
        file.visit(names.append)
        owner = file if chance.random() < 0.3 else file[chance.choice(names)]
        if chance.random() < 0.4 and len(owner.attrs):
            _change_attribute(owner, chance)
        else:
            name = chance.choice(names)
            attributes = dict(file[name].attrs) if chance.random() < 0.5 else {}
            shape = file[name].shape if isinstance(file[name], h5py.Dataset) else (5, 32)
            del file[name]
            chance.choice(REPLACED)(file, name, shape, chance)
            if isinstance(found := file.get(name) if name in file else None, h5py.Dataset):
                for key in ("units", "long_name", "spacing"):
                    if key in attributes:
                        found.attrs[key] = attributes[key]


def _change_attribute(owner: h5py.Group | h5py.Dataset, chance: random.Random) -> None:
    name = chance.choice(sorted(owner.attrs))
    del owner.attrs[name]
    value = chance.choice([None, 3, -1.5, "text", "\n= [", b"\xff\xfe", np.nan, np.arange(3.0), ["a", "b"], 10**18, ""])
    if value is not None:
        owner.attrs[name] = value


REPLACED: tuple[Callable[[h5py.File, str, tuple[int, ...], random.Random], object], ...] = (
    lambda file, name, shape, chance: None,
    lambda file, name, shape, chance: file.create_group(name),
    lambda file, name, shape, chance: file.create_dataset(name, data=np.zeros(chance.choice([0, 1, 5]))),
    lambda file, name, shape, chance: file.create_dataset(name, data=np.zeros((3, 3), dtype=np.int16)),
    lambda file, name, shape, chance: file.create_dataset(name, data="text"),
    lambda file, name, shape, chance: file.create_dataset(name, data=np.full(8, np.nan)),
    lambda file, name, shape, chance: file.create_dataset(name, shape=(2**40, 8), chunks=(1024, 8), dtype="f8"),
    lambda file, name, shape, chance: file.create_dataset(name, shape=(2**40,), dtype="f8"),
    lambda file, name, shape, chance: file.create_dataset(name, shape, "f8", external=[("secret", 0, 8 * size(shape))]),
    lambda file, name, shape, chance: file.create_virtual_dataset(name, _virtual(name, shape)),
    lambda file, name, shape, chance: file.__setitem__(name, h5py.ExternalLink("other.h5", f"/{name}")),
    lambda file, name, shape, chance: file.__setitem__(name, h5py.SoftLink("/nowhere")),
    lambda file, name, shape, chance: file.__setitem__(name, h5py.SoftLink("/")),
)


def size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape))


def _virtual(name: str, shape: tuple[int, ...]) -> h5py.VirtualLayout:
    layout = h5py.VirtualLayout(shape=shape, dtype="f8")
    layout[...] = h5py.VirtualSource("other.h5", name, shape, "f8")
    return layout


DAMAGES = {
    "flip": flip_bits, "truncate": truncate, "block": overwrite_block, "structure": change_structure,
    "checkpoint": change_checkpoint, "addition": add_by_user,
}  # fmt: skip
HAVE_CHECKPOINTS = ("cells.h5", "particles.h5", "killed_cells.h5", "killed_particles.h5", BESIDE)


def may_have(name: str, kind: str) -> bool:
    """Return whether files of this name can have a kind of damage."""
    is_hdf5 = name.endswith(".h5")
    among = {"structure": is_hdf5 or name == POINT, "addition": is_hdf5, "checkpoint": name in HAVE_CHECKPOINTS}
    return among.get(kind, True)


def damaged(folder: Path, work: Path, count: int, seed: int, each: int = 99) -> Iterator[tuple[str, Path, str]]:
    """Yield ``count`` triples (kind of damage, file, command), with a copy of each file of ``folder`` in ``work``.

    each   maximum number of commands per file
    """
    chance, pairs = random.Random(seed), 0
    while pairs < count:
        name, kind = chance.choice(sorted(COMMANDS)), chance.choice(sorted(DAMAGES))
        if not may_have(name, kind):
            continue
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(folder, work)
        path = chance.choice(sorted((work / name).iterdir())) if name == POINT else work / name
        if kind == "structure":
            _put_others(work, path, 0)
        DAMAGES[kind](path, chance)
        commands = COMMANDS[name]
        for command in commands if len(commands) <= each else chance.sample(commands, each):
            if pairs < count and (not command.startswith(COSTLY) or chance.random() < COSTLY_PART):
                pairs += 1
                yield kind, path, command


def _put_others(work: Path, path: Path, number: int) -> None:
    """Write the files to which a damaged one may be linked, beside it, with one of two sets of values."""
    sound = work.parent / "sound" / path.relative_to(work)
    (path.parent / "other.h5").write_bytes(scaled(sound, FACTORS[number]))
    (path.parent / "secret").write_bytes(SECRETS[number])


def failures(folder: Path, count: int, seed: int = 0, each: int = 99) -> Counter[str]:
    """Run ``count`` pairs, and return the failures by frequency. ``folder`` is empty, and the working folder."""
    (folder / "sound").mkdir()
    make_files(folder / "sound")
    found: Counter[str] = Counter()
    at_once = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}  # short waits for a scheduler that is absent
    with (
        mock.patch("meanfield.sweeping.driver.with_processes", sweeping.in_this_process),  # workers take seconds
        mock.patch.dict("os.environ", at_once),
        mock.patch("meanfield.runtime.progress.LOG_EVERY", MAX_SECONDS),  # the printed text depends on the file alone
    ):
        _try_all(folder, count, seed, each, found)
    return found


def _try_all(folder: Path, count: int, seed: int, each: int, found: Counter[str]) -> None:
    for kind, path, command in damaged(folder / "sound", folder / "work", count, seed, each):
        faulthandler.dump_traceback_later(MAX_SECONDS, exit=True)  # HDF5 blocks signals; the files stay
        typed = command.format(path.name)
        if wrong := _wrong(folder / "work", path, typed, kind):
            found[f"{kind} of {path.parent.name}/{path.name}, {typed}: {wrong}"] += 1
    faulthandler.cancel_dump_traceback_later()


def _wrong(work: Path, path: Path, command: str, kind: str) -> str | None:
    before = contents(work)
    wrong, seen = _outcome(work, path, command, before)
    if wrong is None and kind == "structure":
        _restore(work, before)
        _put_others(work, path, 1)
        _, again = _outcome(work, path, command, contents(work))
        if again != seen:
            wrong = "what is printed or written depends on another file"
    elif wrong is None and kind == "addition":
        wrong = _not_left_alone(work, path, command, before, seen)
    _restore(work, before)
    return wrong


def _not_left_alone(work: Path, path: Path, command: str, before: dict[str, bytes], seen: list[object]) -> str | None:
    """Return the harm that a command does to an addition: its loss, or another end than without the addition."""
    name, sound = str(path.relative_to(work)), work.parent / "sound"
    added = names_in(before[name]) - names_in((sound / name).read_bytes())
    lost = added - names_in(path.read_bytes())
    _restore(work, contents(sound))
    _, without = _outcome(work, path, command, contents(work))
    if str(seen[0]).partition("\n")[0] != str(without[0]).partition("\n")[0]:
        return f"ends otherwise because of {sorted(added)}: {str(seen[0])[:200]!r}"
    return f"{sorted(lost)} are lost" if lost else None


def _outcome(work: Path, path: Path, command: str, before: dict[str, bytes]) -> tuple[str | None, list[object]]:
    """Return the fault and all results: texts, files, and values of an index that a sweep has continued."""
    with contextlib.chdir(work):
        wrong, printed = outcome_of(command.split())
    after = contents(work)
    new = {name: _plain(data) for name, data in after.items() if name not in before and ".checkpoint-" not in name}
    seen: list[object] = [printed, new]  # without checkpoints, which hold the wall time
    if command.startswith("sweep"):  # a sweep writes the index, and merges and removes files of points
        index = work / command.split()[-2]
        own = {name for name in before if name == index.name or name.split("/")[0] == f"{index.stem}.points"}
        if after.get(index.name) != before.get(index.name):
            seen.append(sweeping.contents(index))
    elif command.startswith(("resume", "run", "transformer")) and (name := _continued(command)) in before:
        own = {name, f"{name}.checkpoint-0", f"{name}.checkpoint-1"}
        if after.get(name) != before.get(name):
            seen.append(_written(work / name))
    else:
        own = set()
    if any(after.get(name) != data for name, data in before.items() if name not in own):
        wrong = "a file was changed"
    return wrong, seen


def _continued(command: str) -> str:
    """Return the name of the file that a command writes."""
    words = command.split()
    return words[words.index("-o") + 1] if "-o" in words else words[2 if words[0] == "transformer" else 1]


def _plain(data: bytes) -> object:
    """Return the bytes of a file, or the datasets of an HDF5 file, whose bytes include the times of its groups."""
    if not data.startswith(b"\x89HDF"):
        return data
    found: dict[str, object] = {}

    def visit(name: str, node: object) -> None:
        timed = name == LOCATION  # a checkpoint holds the wall time
        found[name] = (node.dtype, node[()].tolist()) if isinstance(node, h5py.Dataset) and not timed else None

    with h5py.File(io.BytesIO(data)) as file:
        file.visititems(visit)
    return repr(found)  # in repr NaN equals NaN


def _written(path: Path) -> str:
    """Return the content of a run file as readers see it."""
    try:
        run = read(path)
        return repr((run.times, [run.snapshot(k).tolist() for k in range(run.snapshots)], run.diagnostics))
    except FileError as error:
        return str(error)


def _restore(work: Path, before: dict[str, bytes]) -> None:
    after = contents(work)
    for name in after.keys() - before.keys():
        (work / name).unlink()
    for name, data in before.items():
        if after.get(name) != data:
            (work / name).parent.mkdir(exist_ok=True)
            (work / name).write_bytes(data)
