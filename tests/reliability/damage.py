"""Damaged files of every kind through every command that reads them: bit flips, truncation, changes of structure.

A command may refuse a file in one line, or not notice; it leaves no traceback and no file, changes none, and gives no
byte of another file. The figure of merit is the number of file × command pairs in which something else happened.
"""

from __future__ import annotations

import contextlib
import faulthandler
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np

from meanfield.case.load import parse
from meanfield.sweeping.driver import sweep
from tests.support.status import run

from .commands import contents, failure_of

MAX_SECONDS = 300  # of a command, all of which take less than one on these files
SECRET = b"the bytes of somebody else's file, which nobody may get " * 40
CELLS = """
title = "damaged"
[domain]
manifold = "circle"
resolution = 32
[attention]
beta = 2.0
[initial]
kind = "perturbed"
amplitude = 0.1
[time]
end = 0.2
[output]
snapshots = 4
samples = 8
"""
PARTICLES = CELLS.replace('"circle"\nresolution = 32', '"particles"\ndimension = 3\ncount = 8').replace(
    'kind = "perturbed"\namplitude = 0.1', 'kind = "uniform"'
)
SWEEP = """
title = "s"
[case.domain]
manifold = "circle"
resolution = 16
[case.attention]
beta = 1.0
[case.initial]
kind = "uniform"
[case.time]
end = 0.01
[keys]
"attention.beta" = [1.0, 2.0]
"""
COMMANDS = {  # of each kind of file; {0} is the damaged one, {1} a sound one of a run
    "cells.h5": ("info {0}", "info {0} --json", "info {0} --verify", "export {0} --to csv", "export {0} --to netcdf",
                 "export {0} --to vtkhdf", "mergers {0}", "compare {0} {1}"),
    "particles.h5": ("info {0}", "info {0} --verify", "export {0} --to csv", "mergers {0}", "compare {0}"),
    "index.h5": ("info {0}", "info {0} --json", "info {0} --verify", "sweep sweep.toml -o {0} --quiet"),
    "case.toml": ("check {0}", "stability {0}"),
    "sweep.toml": ("sweep {0} --dask 127.0.0.1:1", "info {0}"),
    "tokens.npy": ("check uses_tokens.toml", "stability uses_tokens.toml"),
    "matrices.npz": ("check uses_matrices.toml",),
}  # fmt: skip


def make_files(folder: Path) -> None:
    """One sound file of each kind."""
    run(parse(CELLS), folder / "cells.h5", quiet=True)
    run(parse(PARTICLES), folder / "particles.h5", quiet=True)
    (folder / "case.toml").write_text(CELLS)
    (folder / "sweep.toml").write_text(SWEEP)
    sweep(folder / "sweep.toml", folder / "index.h5", jobs=1, quiet=True)
    np.save(folder / "tokens.npy", np.random.default_rng(0).standard_normal((8, 2)))
    np.savez(folder / "matrices.npz", value=np.eye(2)[None])
    tokens = CELLS.replace('kind = "perturbed"\namplitude = 0.1', 'kind = "tokens"\nfile = "tokens.npy"')
    (folder / "uses_tokens.toml").write_text(tokens)
    (folder / "uses_matrices.toml").write_text(CELLS.replace("beta = 2.0", 'beta = 2.0\nfile = "matrices.npz"'))
    (folder / "secret").write_bytes(SECRET)


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
    """Remove, retype, reshape or relink one thing of an HDF5 file, or one attribute."""
    with h5py.File(path, "r+", locking=False) as file:
        names: list[str] = []
        file.visit(names.append)
        owner = file if chance.random() < 0.3 else file[chance.choice(names)]
        if chance.random() < 0.4 and len(owner.attrs):
            _change_attribute(owner, chance)
        else:
            name = chance.choice(names)
            attributes = dict(file[name].attrs) if chance.random() < 0.5 else {}
            del file[name]
            chance.choice(REPLACED)(file, name, chance)
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


REPLACED: tuple[Callable[[h5py.File, str, random.Random], object], ...] = (
    lambda file, name, chance: None,
    lambda file, name, chance: file.create_group(name),
    lambda file, name, chance: file.create_dataset(name, data=np.zeros(chance.choice([0, 1, 5]))),
    lambda file, name, chance: file.create_dataset(name, data=np.zeros((3, 3), dtype=np.int16)),
    lambda file, name, chance: file.create_dataset(name, data="text"),
    lambda file, name, chance: file.create_dataset(name, data=np.full(8, np.nan)),
    lambda file, name, chance: file.create_dataset(name, shape=(2**40, 8), chunks=(1024, 8), dtype="f8"),
    lambda file, name, chance: file.create_dataset(name, shape=(2**40,), dtype="f8"),
    lambda file, name, chance: file.create_dataset(name, shape=(8,), dtype="f8", external=[("secret", 0, 64)]),
    lambda file, name, chance: file.create_dataset(name, shape=(5, 32), dtype="f8", external=[("secret", 0, 1280)]),
    lambda file, name, chance: file.create_virtual_dataset(name, _virtual()),
    lambda file, name, chance: file.__setitem__(name, h5py.ExternalLink("other.h5", "/density")),
    lambda file, name, chance: file.__setitem__(name, h5py.SoftLink("/nowhere")),
    lambda file, name, chance: file.__setitem__(name, h5py.SoftLink("/")),
)


def _virtual() -> h5py.VirtualLayout:
    layout = h5py.VirtualLayout(shape=(5, 32), dtype="f8")
    layout[:] = h5py.VirtualSource("other.h5", "density", (5, 32), "f8")
    return layout


DAMAGES = {"flip": flip_bits, "truncate": truncate, "block": overwrite_block, "structure": change_structure}


def damaged(folder: Path, work: Path, count: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """So many pairs (kind of damage, name of the file, command), each file made anew in ``work`` from ``folder``."""
    chance, pairs = random.Random(seed), 0
    while pairs < count:
        name, kind = chance.choice(sorted(COMMANDS)), chance.choice(sorted(DAMAGES))
        if kind == "structure" and not name.endswith(".h5"):
            continue
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(folder, work)
        shutil.copy(work / "cells.h5", work / "other.h5")
        DAMAGES[kind](work / name, chance)
        for command in COMMANDS[name]:
            pairs += 1
            yield kind, name, command


def failures(folder: Path, count: int, seed: int = 0) -> Counter[str]:
    """Run so many pairs; returns what went wrong, by how often. ``folder`` is empty, and the working folder."""
    (folder / "sound").mkdir()
    make_files(folder / "sound")
    found: Counter[str] = Counter()
    for kind, name, command in damaged(folder / "sound", folder / "work", count, seed):
        faulthandler.dump_traceback_later(MAX_SECONDS, exit=True)  # in HDF5 no signal is seen; the files stay
        if wrong := _outcome(folder / "work", name, command):
            found[f"{kind} of {name}, {command.format(name, 'other.h5')}: {wrong}"] += 1
    faulthandler.cancel_dump_traceback_later()
    return found


def _outcome(work: Path, name: str, command: str) -> str | None:
    before = contents(work)
    with contextlib.chdir(work):
        wrong = failure_of(command.format(name, "other.h5").split())
    after = contents(work)
    exported = {path: data for path, data in after.items() if path not in before}
    if any(SECRET[:16] in data or SECRET[:16].decode() in data.decode(errors="ignore") for data in exported.values()):
        wrong = "bytes of another file were written"
    if any(after.get(path) != data for path, data in before.items() if path != name or not command.startswith("sweep")):
        wrong = "a file was changed"
    for path in exported:
        (work / path).unlink()
    return wrong
