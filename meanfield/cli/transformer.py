"""Commands `meanfield transformer ...`: each calls the function of the same name in `meanfield.transformer`."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from meanfield import transformer as functions
from meanfield.cli import options as cli_options
from meanfield.cli import transformer_options as add
from meanfield.runtime.messages import command_of, print_message

Handler = Callable[[Namespace], int]
_FILES = "[-o FILE.h5] [--figure FILE.png] [--overwrite]"
OF_COMMAND = ("handler", "command", "output", "figure", "overwrite", "quiet")  # no arguments of the function


def report_option_names(handler: Handler) -> Handler:
    """Return a command whose errors name options, not arguments of Python; warnings on texts go to standard error."""

    @wraps(handler)
    def command(options: Namespace) -> int:
        from meanfield.results.refusals import with_option_names

        with warnings.catch_warnings(), with_option_names(vars(options)):
            warnings.simplefilter("always", functions.TextWarning)
            shown = warnings.showwarning
            warnings.showwarning = lambda message, category, *where: (
                print_message(str(message)) if category is functions.TextWarning else shown(message, category, *where)
            )
            return handler(options)

    return command


@report_option_names
def read(options: Namespace) -> int:
    """Write the directions of a text's tokens after each layer of a model; return the exit status."""
    from meanfield.runtime.paths import require_writable

    path = _of_model(options, ".h5") if options.output is None else options.output
    require_writable(path, options.text or "", options.overwrite)
    functions.read(path=path, **_arguments(options), **_of_run(options))
    return 0


@report_option_names
def case(options: Namespace) -> int:
    """Write a case of a model and print its path; return the exit status."""
    folder = _of_model(options, "-case") if options.output is None else options.output
    written = functions.case(folder=folder, overwrite=options.overwrite, **_arguments(options))
    print(written)
    print_message(f"solve it: {command_of('run', written)}")
    return 0


@report_option_names
def reference(options: Namespace) -> int:
    """Run a case with the attention of PyTorch into a file; return the exit status."""
    from meanfield.cli.commands import case_of
    from meanfield.runtime.paths import output_for, require_files, require_writable

    resolved = case_of(options)
    default = output_for(options.case).removesuffix(".h5") + "-reference.h5"
    path = default if options.output is None else options.output
    require_writable(path, options.case, options.overwrite)
    require_files(resolved, path)
    functions.reference(resolved, path, **_of_run(options))
    return 0


@report_option_names
def train(options: Namespace) -> int:
    """Train a network, write its file and its figure, and print its accuracy; return the exit status."""
    from meanfield.figures.saving import save
    from meanfield.runtime.paths import output_for
    from solvers.io.repair import FileError

    continues = Path(options.training).suffix in (".h5", ".hdf5")
    default = options.training if continues else output_for(options.training)
    source = "" if continues else options.training
    path, target = _paths(options, default, source, options.overwrite or continues)
    try:
        trained = functions.train(
            path=options.output if continues else path,
            overwrite=options.overwrite,
            command=options.command,
            **_arguments(options),
            **_lines(options),
        )
    except BaseException as error:
        if hasattr(error, "result"):
            try:  # a figure of the completed epochs; its error must not replace the first one
                save(error.result.plot(), target)
            except FileError as refused:
                print_message(f"meanfield: {refused}")
        raise
    save(trained.plot(), target)
    print(f"test accuracy {trained.history.test_accuracy[-1]:.4f} after {trained.epochs} epochs")
    print(f"{path}\n{target}")
    return 0


def study(name: str, noun: str = "", source: str = "") -> Handler:
    """Return a command that calls a function, writes its outcome into a file and a figure, and prints its tables.

    noun     end of the file's default name, after the model's name; empty where the default is the experiment's name
    source   option that names an input file
    """

    @report_option_names
    def command(options: Namespace) -> int:
        from meanfield.figures.saving import save

        default = _of_model(options, f"-{noun}.h5") if noun else f"{options.name}.h5"
        path, target = _paths(options, default, getattr(options, source) if source else "", options.overwrite)
        outcome = getattr(functions, name)(**_arguments(options), **_lines(options))
        outcome.save(path, overwrite=options.overwrite, command=options.command)
        figure = outcome.plot()
        print(outcome.summary)
        print(f"{path}\n{save(figure, target)}")
        return 0

    return command


def _arguments(options: Namespace) -> dict[str, Any]:
    """Return those options of a command that have a value and are arguments of its function."""
    return {name: value for name, value in vars(options).items() if name not in OF_COMMAND and value is not None}


def _of_run(options: Namespace) -> dict[str, Any]:
    """Return the arguments ``overwrite``, ``progress``, ``command`` and ``show`` from the options of a command."""
    given = {"overwrite": options.overwrite, "progress": not options.quiet, "command": options.command}
    return given | {"show": print_message}


def _lines(options: Namespace) -> dict[str, Any]:
    """Return the argument ``show``, which prints lines of progress; {} with --quiet or without that option."""
    return {} if getattr(options, "quiet", True) else {"show": print_message}


def _of_model(options: Namespace, ending: str) -> str:
    """Return the default name of an output: the last part of the model's name, and an ending."""
    from meanfield.transformer.model import short_name

    return short_name(options.model) + ending


def _paths(options: Namespace, default: str, source: str | None, overwrite: bool) -> tuple[str, Path]:
    """Return the paths of the output file and of its figure. Raises FileError if one of them cannot be written."""
    from meanfield.figures.saving import figure_target
    from meanfield.runtime.paths import require_writable

    path = default if options.output is None else options.output
    target = figure_target(Path(options.figure or Path(path).with_suffix(".png")))
    require_writable(path, source or "", overwrite)
    return path, target


COMMANDS = {
    "read": (
        read,
        "write the directions of a text's tokens after each layer of a model, as particles",
        "MODEL [--text FILE|-] [--drop special,first] [-o FILE.h5] [--overwrite] [--quiet]",
        (add.model, add.text, add.drop("written"), *add.output("the model's name with .h5"), cli_options.quiet),
    ),
    "case": (
        case,
        "write a case of a whole model, or of its attention alone, that starts from the tokens of a text",
        "MODEL [--without PARTS] [--weights random|rotated [--seed N]] [--repeat N] [--mean-field [--layer K]] "
        "[--text FILE|-] [-o FOLDER] [--overwrite]",
        (add.model, add.text, *add.case_options),
    ),
    "ablate": (
        study("ablate", "ablation"),
        "find the parts of a model that prevent the collapse of its tokens to one direction; compare with random and "
        "rotated attention matrices",
        f"MODEL [--texts FOLDER] [--without PARTS ...] [--seeds N] [--drop special,first] {_FILES}",
        (add.model, add.texts, *add.ablate_options, add.drop("measured"), *add.of_study("ablation")),
    ),
    "histogram": (
        study("histogram", "histogram", source="text"),
        "compute the distribution of the cosines of pairs of tokens after each layer of a model with repeated layers",
        f"MODEL [--repeat N] [--text FILE|-] [--seed N] [--drop special,first] {_FILES}",
        (
            add.model, add.text, add.repeat(4), add.seed("of random and rotated attention matrices"),
            add.drop("measured"), *add.of_study("histogram"),
        ),
    ),
    "reference": (
        reference,
        "run a case of particles with discrete layers, with attention by PyTorch, as an independent reference",
        "CASE [-o FILE.h5] [--set KEY=VALUE ...] [--overwrite] [--quiet]",
        (*cli_options.case_file, *add.output("the case's name with -reference.h5"), cli_options.quiet),
    ),
    "prompts": (
        study("prompts", "prompts", source="prompts"),
        "compare prompts in a model and in its mean-field dynamics: distances, entropy, clusters, the next token",
        f"MODEL [--prompts FILE|-] [--repeat N] [--seed N] [--drop special,first] {_FILES}",
        (
            add.model, add.prompts, add.repeat(1), add.seed("of random attention matrices"), add.drop("measured"),
            *add.of_study("prompts"),
        ),
    ),
    "fit": (
        study("fit", "fit"),
        "fit nested mean-field models to each layer of a model, and test them on other texts",
        f"MODEL [--texts FOLDER] [--held N] [--rank N] [--width N] [--steps N] [--seed N] {_FILES} [--quiet]",
        (add.model, add.texts, *add.fit_options, *add.of_study("fit"), cli_options.quiet),
    ),
    "train": (
        train,
        "train the standard Transformer or the PDE network on a small data set, or continue training",
        f"TRAINING|FILE.h5 [--set KEY=VALUE ...] [--until EPOCH] {_FILES} [--quiet]",
        (
            add.training, add.overrides, add.until,
            *add.file_and_figure("the FILE.h5 that is continued, or the training file's name with .h5"),
            cli_options.quiet,
        ),
    ),
    "experiment": (
        study("experiment", source="training"),
        "run an experiment on the standard Transformer and the PDE network, over several seeds (scaling and untrained "
        "train no network): "
        + ", ".join(add.EXPERIMENTS),
        f"NAME [TRAINING] [--set KEY=VALUE ...] [--seeds N] [--jobs N] [--dask ADDRESS] "
        f"[--vary KEY=VALUE,... ...] {_FILES} [--quiet]",
        (
            *add.experiment_names, add.overrides, *add.experiment_options,
            *add.file_and_figure("the experiment's name with .h5"), cli_options.quiet,
        ),
    ),
}  # fmt: skip
