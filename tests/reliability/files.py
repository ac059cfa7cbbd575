"""Sound files of each kind, and the commands that read the files."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import h5py
import numpy as np

from meanfield.case.load import parse
from meanfield.domains.trained.weights import form_attributes
from meanfield.model.trained_layer import LayerForm
from meanfield.sweeping.case import load_sweep
from meanfield.sweeping.driver import sweep, work_of
from meanfield.sweeping.index import open_index
from solvers.io.checkpoint import Checkpoints
from solvers.mesh.mesh import circle
from solvers.recording.record import record
from solvers.terms.diffusion import Diffusion
from solvers.timestepping.equation import Equation
from solvers.timestepping.solve import solve
from tests.support import sweeping
from tests.support.status import run

POINT = "sharded.points"  # a file in this folder
BESIDE = "beside.h5.checkpoint-1"  # the latest checkpoint of a killed run
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
[case.reaction]  # of nothing: cases with one are solved one by one
kind = "linear"
rate = 0.0
[keys]
"attention.beta" = [1.0, 2.0, 3.0]
"""
INITIAL, BETA = 'kind = "perturbed"\namplitude = 0.1', "beta = 2.0"
USES = {  # case files that read another file
    "tokens": CELLS.replace(INITIAL, 'kind = "tokens"\nfile = "tokens.npy"'),
    "matrices": CELLS.replace(BETA, f'{BETA}\nfile = "matrices.npz"'),
    "matrices_h5": CELLS.replace(BETA, f'{BETA}\nfile = "matrices.h5"'),
    "density": CELLS.replace(INITIAL, 'kind = "array"\nfile = "density.h5"'),
    "run": CELLS.replace(INITIAL, 'kind = "file"\nfile = "source.h5"'),
    "layers": """
title = "layers"
[domain]
manifold = "transformer"
dimension = 4
file = "layers.h5"
[attention]
beta = 0.7
[initial]
kind = "tokens"
file = "layers.h5"
dataset = "start"
[time]
method = "layers"
layers = 2
[output]
snapshots = 2
samples = 2
""",
}
TRAINING = ["network.dimension=8", "network.heads=2", "network.layers=1", "network.width=8", "data.kind=stripes",
            "data.tokens=rows", "training.epochs=2"]  # fmt: skip
INDEX = ("info {0}", "info {0} --json", "info {0} --verify", "plot {0} -o figure.png", "view {0} -o page.html",
         "sweep sweep.toml -o {0} --quiet")  # fmt: skip
CELLS_READ = ("info {0}", "info {0} --json", "info {0} --verify", "export {0} --to csv", "export {0} --to netcdf",
              "export {0} --to vtkhdf", "mergers {0}", "compare {0} sound.h5", "plot {0} -o figure.png",
              "view {0} -o page.html")  # fmt: skip
PARTICLES_READ = ("info {0}", "info {0} --verify", "export {0} --to csv", "mergers {0}", "compare {0}",
                  "plot {0} -o figure.png", "view {0} -o page.html")  # fmt: skip
RECORDED_READ = ("info {0}", "info {0} --json", "info {0} --verify", "plot {0} -o figure.png",
                 "view {0} -o page.html", "movie {0} -o movie.gif --quiet")  # fmt: skip
GO_ON = "resume {0} --until 0.3 --quiet"
COMMANDS: dict[str, tuple[str, ...]] = {  # commands by kind of file; {0} is the damaged file
    "cells.h5": (*CELLS_READ, GO_ON),
    "particles.h5": (*PARTICLES_READ, GO_ON),
    "killed_cells.h5": (*CELLS_READ, GO_ON),  # a killed writer leaves no digest
    "killed_particles.h5": (*PARTICLES_READ, GO_ON),
    "index.h5": INDEX,
    "stopped.h5": INDEX,  # one point is left to solve
    BESIDE: ("info beside.h5", "info beside.h5 --verify", "resume beside.h5 --until 0.3 --quiet",
             "run case.toml -o beside.h5 --overwrite --quiet"),
    "recorded.h5": RECORDED_READ,
    POINT: ("info sharded.h5", "info sharded.h5 --verify", "sweep sweep.toml -o sharded.h5 --quiet"),
    "case.toml": ("check {0}", "stability {0}"),
    "sweep.toml": ("sweep {0} --dask 127.0.0.1:1", "info {0}"),
    "tokens.npy": ("check uses_tokens.toml", "stability uses_tokens.toml"),
    "matrices.npz": ("check uses_matrices.toml",),
    "matrices.h5": ("check uses_matrices_h5.toml", "run uses_matrices_h5.toml -o new.h5 --quiet"),
    "layers.h5": ("check uses_layers.toml", "run uses_layers.toml -o new.h5 --quiet"),
    "density.h5": ("check uses_density.toml", "run uses_density.toml -o new.h5 --quiet"),
    "source.h5": ("check uses_run.toml", "run uses_run.toml -o new.h5 --quiet"),
}  # fmt: skip
if find_spec("torch") is not None:
    COMMANDS["training.h5"] = ("info {0}", "transformer train {0} --quiet --figure figure.png")
    COMMANDS["training.toml"] = ("transformer train {0} -o new.h5 --quiet --until 1 --figure figure.png",)


def make_files(folder: Path) -> None:
    """Write one sound file of each kind."""
    run(parse(CELLS), folder / "cells.h5", quiet=True)
    shutil.copy(folder / "cells.h5", folder / "sound.h5")
    run(parse(PARTICLES), folder / "particles.h5", quiet=True)
    for name in ("cells.h5", "particles.h5"):
        mark_as_killed(folder / name)
    make_killed_run(folder / "beside.h5", folder / "killed_cells.h5")
    make_record(folder / "recorded.h5")
    (folder / "case.toml").write_text(CELLS)
    make_indexes(folder)
    make_arrays(folder)
    shutil.copy(folder / "cells.h5", folder / "source.h5")
    if "training.h5" in COMMANDS:
        make_training(folder)


def mark_as_killed(path: Path) -> None:
    """Write a copy of a run, killed_NAME, whose writer has left no digest."""
    killed = path.with_name(f"killed_{path.name}")
    shutil.copy(path, killed)
    with h5py.File(killed, "r+", locking=False) as file:
        for attribute, value in (("digest", b""), ("stop_reason", b"running")):
            file.attrs.modify(attribute, np.bytes_(value))


def make_killed_run(path: Path, killed: Path) -> None:
    """Write the files of a killed run: two checkpoints beside its file, none in it."""
    shutil.copy(killed, path)
    contents = Checkpoints(path).read()
    assert contents is not None
    with h5py.File(path, "r+", locking=False) as file:
        file["checkpoint/bytes"].resize(0, axis=0)
    for _ in range(2):
        Checkpoints(path).write(*contents)


def make_record(path: Path) -> None:
    """Record a solution of a diffusion equation."""
    mesh = circle(16)
    with record(path, mesh, every=0.25, diagnostics={"largest": np.max}) as watch:
        solve(Equation(None, [Diffusion(mesh, 0.1)]), 1.0 + np.cos(mesh.centers[:, 0]), (0.0, 1.0), callbacks=[watch])


def make_arrays(folder: Path) -> None:
    """Write arrays that cases read, and these cases."""
    random = np.random.default_rng(0)
    np.save(folder / "tokens.npy", random.standard_normal((8, 2)))
    np.savez(folder / "matrices.npz", value=np.eye(2)[None])
    with h5py.File(folder / "matrices.h5", "w") as file:
        file["value"] = np.eye(2)[None]
    with h5py.File(folder / "density.h5", "w") as file:
        file["density"] = 1.0 + random.random(32)
    shapes = {"query": (2, 2, 4), "key": (2, 2, 4), "value": (2, 2, 4), "out": (2, 4, 2), "inner": (3, 4),
              "outer": (4, 3), "out_bias": (4,), "attention_gain": (4,)}  # fmt: skip
    with h5py.File(folder / "layers.h5", "w") as file:
        file.attrs.update({**form_attributes(LayerForm(0.7)), "positions": "learned", "start_has_positions": 1.0})
        file["start"] = random.standard_normal((5, 4))
        for name, shape in shapes.items():
            file[f"layers/{name}"] = random.standard_normal((2, *shape))
    for name, text in USES.items():
        (folder / f"uses_{name}.toml").write_text(text)


def make_training(folder: Path) -> None:
    """Write a training file, and a file of a training run with one epoch left."""
    from meanfield.transformer.networks.data import task_of
    from meanfield.transformer.networks.saved import write_training
    from meanfield.transformer.networks.section import TrainingCase, to_toml
    from meanfield.transformer.networks.training import begin, train

    case = TrainingCase().replace(TRAINING)
    (folder / "training.toml").write_text(to_toml(case))
    write_training(folder / "training.h5", train(begin(case, task_of(case)), 1))


def make_indexes(folder: Path) -> None:
    """Write indexes of a sweep: whole, stopped, and in shards."""
    file = folder / "sweep.toml"
    file.write_text(SWEEP)
    sweep(file, folder / "index.h5", jobs=1, quiet=True)
    index = open_index(folder / "stopped.h5", load_sweep(file), "", overwrite=False, retry=False)
    index.start()
    solved = sweeping.in_this_process(1)(work_of(index))
    for _ in range(2):
        index.put(next(solved))
    solved.close()
    index.close("interrupted")
    for part in (1, 2):
        sweep(file, folder / "sharded.h5", jobs=1, quiet=True, part=(part, 3))
