"""The commands `meanfield transformer train | experiment | fit`, of networks in PyTorch."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser
from pathlib import Path

from meanfield.cli import options as cli_options
from meanfield.runtime.messages import print_message

EXPERIMENTS = (
    "information",
    "attention",
    "bottleneck",
    "gradients",
    "sensitivity",
    "stabilizers",
    "scaling",
    "untrained",
)


def train_options(parser: ArgumentParser) -> None:
    parser.add_argument("--until", metavar="EPOCH", type=int, help="where to stop (default: the last epoch)")
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the training file's name with .h5, here")
    parser.add_argument("--figure", metavar="FILE.png", help="default: the output's name with .png")
    cli_options.overwrite(parser, "FILE.h5")


def training_file(parser: ArgumentParser) -> None:
    parser.add_argument(
        "case",
        metavar="TRAINING",
        help="a training file, a shipped one (digits, digits_pde, characters, ...), or the FILE.h5 to continue",
    )
    cli_options.overrides(parser)


def fit_options(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a folder, or a name on the hub of Hugging Face")
    parser.add_argument("--texts", metavar="FOLDER", help="its files *.txt (default: ten texts of the package)")
    for name, default, words in (
        ("held", 3, "texts held back, the last ones"),
        ("rank", 16, "of the low-rank matrices"),
        ("width", 64, "of the network"),
        ("steps", 200, "of gradient descent, for each model"),
    ):
        parser.add_argument(f"--{name}", metavar="N", type=int, default=default, help=f"{words} (default: {default})")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the first weights (default: 0)")
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the model's name with -fit.h5, here")
    parser.add_argument("--figure", metavar="FILE.png", help="default: the output's name with .png")
    cli_options.overwrite(parser, "FILE.h5")


def experiment_options(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", choices=EXPERIMENTS, help=", ".join(EXPERIMENTS))
    parser.add_argument(
        "case",
        metavar="TRAINING",
        nargs="?",
        default="digits",
        help="a training file, or a shipped one (default: digits)",
    )
    cli_options.overrides(parser)
    parser.add_argument("--seeds", metavar="N", type=int, default=3, help="networks of each kind (default: 3)")
    parser.add_argument(
        "--jobs", metavar="N", type=int, default=1, help="processes, of the experiment stabilizers (default: 1)"
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="host:port of a Dask scheduler whose workers train, for stabilizers"
    )
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the experiment's name with .h5, here")
    parser.add_argument("--figure", metavar="FILE.png", help="default: the output's name with .png")
    cli_options.overwrite(parser, "FILE.h5")


def train(options: argparse.Namespace) -> int:
    from meanfield.case.errors import CaseError
    from meanfield.figures.saving import figure_target, save
    from meanfield.runtime.paths import output_for, require_writable
    from meanfield.transformer.loading import require_torch

    require_torch()
    if options.until is not None and options.until < 1:
        raise CaseError(f"--until {options.until}: expected an integer >= 1")
    goes_on = Path(options.case).suffix in (".h5", ".hdf5")
    if goes_on and options.output is not None:
        raise CaseError(f"-o {options.output}: not allowed with a file, in which training continues")
    path = options.case if goes_on else output_for(options.case) if options.output is None else options.output
    target = figure_target(Path(options.figure or Path(path).with_suffix(".png")))
    if not goes_on:
        require_writable(path, options.case, options.overwrite)
    from matplotlib.figure import Figure

    from meanfield.running import print_nothing
    from meanfield.transformer.networks.command import prepared, train_into
    from meanfield.transformer.networks.figure import draw_training
    from solvers.io.repair import FileError

    trained = prepared(options.case, options.overrides)

    def draw() -> None:
        figure = Figure()
        draw_training(figure, trained)
        save(figure, target)

    try:
        show = print_nothing if options.quiet else print_message
        train_into(trained, path, options.until, options.command, show, continues=goes_on)
    except BaseException:
        try:  # a figure of the epochs so far, whose own error does not take the place of this one
            draw()
        except FileError as refused:
            print_message(f"meanfield: {refused}")
        raise
    draw()
    print(f"accuracy {trained.history.test_accuracy[-1]:.4f} of examples held back, after {trained.epochs} epochs")
    print(f"{path}\n{target}")
    return 0


def experiment(options: argparse.Namespace) -> int:
    from meanfield.case.errors import CaseError
    from meanfield.figures.saving import figure_target, save
    from meanfield.runtime.paths import require_writable
    from meanfield.transformer.loading import require_torch

    require_torch()
    for name in ("seeds", "jobs"):
        if getattr(options, name) < 1:
            raise CaseError(f"--{name} {getattr(options, name)}: expected an integer >= 1")
    path = f"{options.name}.h5" if options.output is None else options.output
    target = figure_target(Path(options.figure or Path(path).with_suffix(".png")))
    require_writable(path, options.case, options.overwrite)
    from matplotlib.figure import Figure

    from meanfield.running import print_nothing
    from meanfield.transformer.experiments.command import experiment_into
    from meanfield.transformer.experiments.workers import Workers
    from meanfield.transformer.networks.section import load_training

    workers = Workers(options.jobs, options.dask)
    training, show = load_training(options.case, options.overrides), print_nothing if options.quiet else print_message
    found = experiment_into(options.name, training, options.seeds, workers, path, options.command, show)
    figure = Figure()
    found.draw(figure)
    print(found.summary)
    print(f"{path}\n{save(figure, target)}")
    return 0


def fit(options: argparse.Namespace) -> int:
    from meanfield.case.errors import CaseError
    from meanfield.figures.saving import figure_target, save
    from meanfield.runtime.paths import require_writable
    from meanfield.transformer.families import family_of
    from meanfield.transformer.loading import require_torch
    from meanfield.transformer.model import load_model, read_texts, short_name

    require_torch()
    for name in ("held", "rank", "width", "steps"):
        if getattr(options, name) < 1:
            raise CaseError(f"--{name} {getattr(options, name)}: expected an integer >= 1")
    path = f"{short_name(options.model)}-fit.h5" if options.output is None else options.output
    target = figure_target(Path(options.figure or Path(path).with_suffix(".png")))
    require_writable(path, "", options.overwrite)
    texts = read_texts(options.texts)
    model = load_model(options.model, family_of)
    states = [model.read(*text) for text in texts]

    from matplotlib.figure import Figure

    from meanfield.running import print_nothing
    from meanfield.transformer.fitting.fit import Options
    from meanfield.transformer.fitting.fit import fit as fit_laws
    from meanfield.transformer.fitting.output import draw_fit, fit_table, write_fit

    chosen = Options(options.rank, options.width, options.steps, held=options.held, seed=options.seed)
    found = fit_laws(states, chosen, print_nothing if options.quiet else print_message)
    write_fit(path, found, {"model": options.model, "command": options.command})
    figure = Figure()
    draw_fit(figure, found, short_name(options.model))
    print(fit_table(found))
    print(f"{path}\n{save(figure, target)}")
    return 0


COMMANDS = {
    "fit": (
        fit,
        "how much of each layer of a model is mean-field attention: nested models, tested on other texts",
        "MODEL [--texts FOLDER] [--held N] [--rank N] [--width N] [--steps N] [--seed N] [-o FILE.h5] "
        "[--figure FILE.png] [--overwrite] [--quiet]",
        (fit_options, cli_options.quiet),
    ),
    "train": (
        train,
        "train the standard Transformer or the PDE network on a small data set, or continue training",
        "TRAINING|FILE.h5 [--set KEY=VALUE ...] [--until EPOCH] [-o FILE.h5] [--figure FILE.png] [--overwrite] "
        "[--quiet]",
        (training_file, train_options, cli_options.quiet),
    ),
    "experiment": (
        experiment,
        "both networks, untrained and trained, over several seeds, with controls: " + ", ".join(EXPERIMENTS),
        "NAME [TRAINING] [--set KEY=VALUE ...] [--seeds N] [--jobs N] [--dask ADDRESS] [-o FILE.h5] "
        "[--figure FILE.png] [--overwrite] "
        "[--quiet]",
        (experiment_options, cli_options.quiet),
    ),
}
