"""The commands `meanfield transformer ...`: their arguments, what each does, and the table of them; see cli.py."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser
from pathlib import Path

from meanfield.cli import options as cli_options
from meanfield.runtime.messages import print_message


def model(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a folder, or a name on the hub of Hugging Face")
    parser.add_argument(
        "--text", metavar="FILE|-", help="input text, - for the standard input (default: a bundled sample)"
    )


def read_options(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the model's name with .h5, here")
    _overwrite(parser, "FILE.h5")


def case_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--mean-field", action="store_true", help="its attention alone, as the mean-field law on a sphere"
    )
    parser.add_argument(
        "--layer", metavar="K", type=int, help="with --mean-field: its attention in all layers (default: each its own)"
    )
    parser.add_argument("--repeat", metavar="N", type=int, default=1, help="its layers N times (default: 1)")
    _variant(parser)
    parser.add_argument("-o", "--output", metavar="FOLDER", help="default: the model's name with -case, here")
    _overwrite(parser, "the case in FOLDER")


def _variant(parser: ArgumentParser) -> None:
    """Which parts and weights of a model are used."""
    parser.add_argument("--without", metavar="PARTS", default="", help="parts left out, such as network,biases")
    parser.add_argument(
        "--weights", choices=("trained", "random", "rotated"), default="trained",
        help="of the attention matrices: random of the same norms, or rotated, of the same singular values",
    )  # fmt: skip
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of random or rotated weights (default: 0)")


def ablate_options(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a folder, or a name on the hub of Hugging Face")
    parser.add_argument("--texts", metavar="FOLDER", help="its files *.txt (default: ten texts of the package)")
    parser.add_argument(
        "--without", metavar="PARTS", action="append",
        help="parts left out together, such as network,biases; may be given again (default: each part by itself)",
    )  # fmt: skip
    parser.add_argument(
        "--seeds", metavar="N", type=int, default=3, help="of random and of rotated weights (default: 3)"
    )
    parser.add_argument("--drop", metavar="TOKENS", default="", help="not measured: special, first or both")
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the model's name with -ablation.h5, here")
    parser.add_argument("--figure", metavar="FILE.png", help="default: the output's name with .png")
    _overwrite(parser, "FILE.h5")


def histogram_options(parser: ArgumentParser) -> None:
    parser.add_argument("--repeat", metavar="N", type=int, default=4, help="its layers N times (default: 4)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of random and rotated weights (default: 0)")
    parser.add_argument("--drop", metavar="TOKENS", default="", help="not measured: special, first or both")
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the model's name with -histogram.h5, here")
    parser.add_argument("--figure", metavar="FILE.png", help="default: the output's name with .png")
    _overwrite(parser, "FILE.h5")


def reference_options(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the case's name with -reference.h5, here")
    _overwrite(parser, "FILE.h5")


def train_options(parser: ArgumentParser) -> None:
    parser.add_argument("--until", metavar="EPOCH", type=int, help="where to stop (default: the last epoch)")
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the training file's name with .h5, here")
    parser.add_argument("--figure", metavar="FILE.png", help="default: the output's name with .png")
    _overwrite(parser, "FILE.h5")


def training_file(parser: ArgumentParser) -> None:
    parser.add_argument(
        "case", metavar="TRAINING", help="a training file, a shipped one (digits, characters), or the FILE.h5 to go on"
    )
    cli_options.overrides(parser)


def fit_options(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a folder, or a name on the hub of Hugging Face")
    parser.add_argument("--texts", metavar="FOLDER", help="its files *.txt (default: ten texts of the package)")
    for name, default, words in (
        ("held", 3, "texts held back, the last ones"),
        ("rank", 16, "of the low-rank matrices"),
        ("width", 64, "of the network"),
        ("steps", 200, "of the descent, for each law"),
    ):
        parser.add_argument(f"--{name}", metavar="N", type=int, default=default, help=f"{words} (default: {default})")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the first weights (default: 0)")
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the model's name with -fit.h5, here")
    parser.add_argument("--figure", metavar="FILE.png", help="default: the output's name with .png")
    _overwrite(parser, "FILE.h5")


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
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the experiment's name with .h5, here")
    parser.add_argument("--figure", metavar="FILE.png", help="default: the output's name with .png")
    _overwrite(parser, "FILE.h5")


def _overwrite(parser: ArgumentParser, what: str) -> None:
    parser.add_argument("--overwrite", action="store_true", help=f"replace {what} (default: refuse)")


def read(options: argparse.Namespace) -> int:
    from meanfield.runtime.paths import require_writable
    from meanfield.transformer.model import short_name, states_of

    path = f"{short_name(options.model)}.h5" if options.output is None else options.output
    require_writable(path, options.text or "", options.overwrite)
    from meanfield.transformer.reading import read_transformer

    states = states_of(options.model, options.text)
    given = {"overwrite": options.overwrite, "quiet": options.quiet, "command": options.command}
    read_transformer(states, path, **given, say=print_message)
    return 0


def case(options: argparse.Namespace) -> int:

    from meanfield.transformer.model import short_name

    folder = f"{short_name(options.model)}-case" if options.output is None else options.output
    written = (_mean_field if options.mean_field else _whole_model)(options, folder)
    print(written)
    print_message(f"solve it: meanfield run {written}")
    return 0


def _whole_model(options: argparse.Namespace, folder: str) -> Path:
    from meanfield.case.errors import CaseError
    from meanfield.transformer.case import FILES, CaseOptions, write_case
    from meanfield.transformer.families import family_of
    from meanfield.transformer.model import states_of
    from meanfield.transformer.writing import require_new

    if options.layer is not None:
        raise CaseError(f"--layer {options.layer}: only allowed with --mean-field")
    chosen = CaseOptions(_parts(options.without), options.weights, options.seed, options.repeat)
    require_new(folder, FILES, options.overwrite)
    return write_case(states_of(options.model, options.text, family_of), folder, chosen)


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _mean_field(options: argparse.Namespace, folder: str) -> Path:
    from meanfield.case.errors import CaseError
    from meanfield.transformer.mean_field import FILES, require_attention, write_mean_field
    from meanfield.transformer.model import states_of
    from meanfield.transformer.writing import require_new

    for name, usual in (("without", ""), ("weights", "trained"), ("repeat", 1)):
        if getattr(options, name) != usual:
            raise CaseError(f"--{name} {getattr(options, name)}: not allowed with --mean-field")
    require_new(folder, FILES, options.overwrite)
    states = states_of(options.model, options.text, lambda name, config: require_attention(name, config, options.layer))
    return write_mean_field(states, folder, options.layer)


def ablate(options: argparse.Namespace) -> int:
    from meanfield.case.errors import CaseError
    from meanfield.figures.saving import figure_target, save
    from meanfield.runtime.paths import require_writable
    from meanfield.transformer.ablation import ablate, last_layer_table, variants_of
    from meanfield.transformer.families import family_of
    from meanfield.transformer.head_figures import head_figures
    from meanfield.transformer.model import load_model, read_texts, short_name

    path = f"{short_name(options.model)}-ablation.h5" if options.output is None else options.output
    target = figure_target(Path(options.figure or Path(path).with_suffix(".png")))
    require_writable(path, "", options.overwrite)
    if options.seeds < 1:
        raise CaseError(f"--seeds {options.seeds}: expected an integer >= 1")
    parts = [_parts(text) for text in options.without or EACH_PART]
    variants, drop, texts = variants_of(parts, options.seeds), _parts(options.drop), read_texts(options.texts)
    model = load_model(options.model, family_of)
    states = [model.read(*text) for text in texts]
    ablation = ablate(iter(states), variants, drop)

    from matplotlib.figure import Figure

    from meanfield.transformer.ablation_output import draw_ablation, write_ablation

    facts = {"model": options.model, "drop": options.drop, "command": options.command}
    write_ablation(path, ablation, [head_figures(one) for one in states], facts)
    figure = Figure()
    draw_ablation(figure, ablation, f"{short_name(options.model)}, {len(states)} texts")
    print(last_layer_table(ablation))
    print(f"{path}\n{save(figure, target)}")
    return 0


def histogram(options: argparse.Namespace) -> int:
    from meanfield.figures.saving import figure_target, save
    from meanfield.runtime.paths import require_writable
    from meanfield.transformer.case import CaseOptions
    from meanfield.transformer.mean_field import require_attention
    from meanfield.transformer.model import short_name, states_of

    path = f"{short_name(options.model)}-histogram.h5" if options.output is None else options.output
    target = figure_target(Path(options.figure or Path(path).with_suffix(".png")))
    require_writable(path, options.text or "", options.overwrite)
    chosen = CaseOptions(seed=options.seed, repeat=options.repeat)
    states = states_of(options.model, options.text, require_attention)

    from matplotlib.figure import Figure

    from meanfield.transformer.stacking import draw_stacking, peaks, stack, write_stacking

    stacking = stack(states, chosen.repeat, chosen.seed, _parts(options.drop))
    facts = {"model": options.model, "text": states.source, "drop": options.drop, "command": options.command}
    write_stacking(path, stacking, facts)
    figure = Figure()
    draw_stacking(figure, stacking, f"{states.short_name}, its layers {options.repeat} times, {states.source}")
    for name, distances, means in zip(stacking.variants, stacking.distances, stacking.means, strict=True):
        print(
            f"{name:16} mean {means[-1]:.3f} after the last layer, "
            f"W₁ to the model {distances[-1]:.3f}, at most {distances.max():.3f}"
        )
    print("peaks of the model's distribution:", ", ".join(f"{place:.3f}" for place in peaks(stacking.densities[0, -1])))
    print(f"{path}\n{save(figure, target)}")
    return 0


def reference(options: argparse.Namespace) -> int:
    from pathlib import Path

    from meanfield.case.load import load
    from meanfield.cli.kinds import require_kind
    from meanfield.runtime.paths import require_files, require_writable

    require_kind(options.case, "case")
    resolved = load(options.case, options.overrides)
    name = Path(options.case).name.removesuffix(".toml")
    path = f"{name}-reference.h5" if options.output is None else options.output
    require_writable(path, options.case, options.overwrite)
    require_files(resolved, path)
    from meanfield.transformer.reference import run_reference

    given = {"overwrite": options.overwrite, "quiet": options.quiet, "command": options.command}
    run_reference(resolved, path, **given, say=print_message)
    return 0


def _require_torch() -> None:
    """Raises CaseError where PyTorch is missing."""
    from importlib.util import find_spec

    from meanfield.case.errors import CaseError
    from meanfield.transformer.loading import INSTALL

    if find_spec("torch") is None:
        raise CaseError(f"torch is not installed: {INSTALL}")


def train(options: argparse.Namespace) -> int:
    from meanfield.case.errors import CaseError
    from meanfield.figures.saving import figure_target, save
    from meanfield.runtime.paths import output_for, require_writable

    _require_torch()
    if options.until is not None and options.until < 1:
        raise CaseError(f"--until {options.until}: expected an integer >= 1")
    goes_on = Path(options.case).suffix in (".h5", ".hdf5")
    if goes_on and options.output is not None:
        raise CaseError(f"-o {options.output}: not allowed with a file, in which training goes on")
    path = options.case if goes_on else output_for(options.case) if options.output is None else options.output
    target = figure_target(Path(options.figure or Path(path).with_suffix(".png")))
    if not goes_on:
        require_writable(path, options.case, options.overwrite)
    from matplotlib.figure import Figure

    from meanfield.running import silent
    from meanfield.transformer.networks.command import prepared, train_into
    from meanfield.transformer.networks.figure import draw_training

    fit = prepared(options.case, options.overrides)
    try:
        train_into(fit, path, options.until, options.command, silent if options.quiet else print_message)
    finally:
        figure = Figure()
        draw_training(figure, fit)
        save(figure, target)
    print(f"accuracy {fit.history.test_accuracy[-1]:.4f} of examples held back, after {fit.epochs} epochs")
    print(f"{path}\n{target}")
    return 0


def experiment(options: argparse.Namespace) -> int:
    from meanfield.case.errors import CaseError
    from meanfield.figures.saving import figure_target, save
    from meanfield.runtime.paths import require_writable

    _require_torch()
    for name in ("seeds", "jobs"):
        if getattr(options, name) < 1:
            raise CaseError(f"--{name} {getattr(options, name)}: expected an integer >= 1")
    path = f"{options.name}.h5" if options.output is None else options.output
    target = figure_target(Path(options.figure or Path(path).with_suffix(".png")))
    require_writable(path, options.case, options.overwrite)
    from matplotlib.figure import Figure

    from meanfield.running import silent
    from meanfield.transformer.experiments.command import experiment_into
    from meanfield.transformer.networks.section import load_training

    training, say = load_training(options.case, options.overrides), silent if options.quiet else print_message
    found = experiment_into(options.name, training, options.seeds, options.jobs, path, options.command, say)
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
    from meanfield.transformer.model import load_model, read_texts, short_name

    _require_torch()
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

    from meanfield.running import silent
    from meanfield.transformer.fitting.fit import Options
    from meanfield.transformer.fitting.fit import fit as fit_laws
    from meanfield.transformer.fitting.output import draw_fit, fit_table, write_fit

    chosen = Options(options.rank, options.width, options.steps, held=options.held, seed=options.seed)
    found = fit_laws(states, chosen, silent if options.quiet else print_message)
    write_fit(path, found, {"model": options.model, "command": options.command})
    figure = Figure()
    draw_fit(figure, found, short_name(options.model))
    print(fit_table(found))
    print(f"{path}\n{save(figure, target)}")
    return 0


EXPERIMENTS = ("information", "attention", "bottleneck", "gradients", "sensitivity", "stabilizers", "scaling")
EACH_PART = ("network", "biases", "gains", "attention", "network,biases,gains")
COMMANDS = {
    "read": (
        read,
        "write the directions of a text's tokens after each layer of a model, as particles",
        "MODEL [--text FILE|-] [-o FILE.h5] [--overwrite] [--quiet]",
        (model, read_options, cli_options.quiet),
    ),
    "case": (
        case,
        "write a case that is a model, or has its attention alone, from the same tokens",
        "MODEL [--without PARTS] [--weights random|rotated [--seed N]] [--repeat N] [--mean-field [--layer K]] "
        "[--text FILE|-] [-o FOLDER] [--overwrite]",
        (model, case_options),
    ),
    "ablate": (
        ablate,
        "which parts of a model hold tokens apart, beside random and rotated weights",
        "MODEL [--texts FOLDER] [--without PARTS ...] [--seeds N] [--drop special,first] [-o FILE.h5] "
        "[--figure FILE.png] [--overwrite]",
        (ablate_options,),
    ),
    "histogram": (
        histogram,
        "distributions of pairwise cosines by layer, the layers of a model repeated",
        "MODEL [--repeat N] [--text FILE|-] [--seed N] [--drop special,first] [-o FILE.h5] [--figure FILE.png] "
        "[--overwrite]",
        (model, histogram_options),
    ),
    "fit": (
        fit,
        "how much of each layer of a model is mean-field attention: laws of growing size, judged on other texts",
        "MODEL [--texts FOLDER] [--held N] [--rank N] [--width N] [--steps N] [--seed N] [-o FILE.h5] "
        "[--figure FILE.png] [--overwrite] [--quiet]",
        (fit_options, cli_options.quiet),
    ),
    "train": (
        train,
        "train the standard Transformer or the PDE network on a small data set, or go on training",
        "TRAINING|FILE.h5 [--set KEY=VALUE ...] [--until EPOCH] [-o FILE.h5] [--figure FILE.png] [--overwrite] "
        "[--quiet]",
        (training_file, train_options, cli_options.quiet),
    ),
    "experiment": (
        experiment,
        "both networks, untrained and trained, over several seeds, with controls: " + ", ".join(EXPERIMENTS),
        "NAME [TRAINING] [--set KEY=VALUE ...] [--seeds N] [--jobs N] [-o FILE.h5] [--figure FILE.png] [--overwrite] "
        "[--quiet]",
        (experiment_options, cli_options.quiet),
    ),
    "reference": (
        reference,
        "run a case of particles in layers by PyTorch's attention",
        "CASE [-o FILE.h5] [--set KEY=VALUE ...] [--overwrite] [--quiet]",
        (cli_options.case_file, reference_options, cli_options.quiet),
    ),
}
