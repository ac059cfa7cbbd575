"""The commands `meanfield transformer ...`: their arguments, what each does, and the table of them; see cli.py."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser
from pathlib import Path

from meanfield.cli import options as cli_options
from meanfield.cli.dropped_tokens import drop_option, dropped_tokens, names_of
from meanfield.cli.networks import COMMANDS as NETWORK_COMMANDS
from meanfield.cli.prompts import COMMANDS as PROMPTS_COMMANDS
from meanfield.runtime.messages import print_message


def model(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a folder, or a name on the hub of Hugging Face")
    parser.add_argument(
        "--text", metavar="FILE|-", help="input text, - for the standard input (default: a bundled sample)"
    )


def read_options(parser: ArgumentParser) -> None:
    drop_option(parser, "written")
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the model's name with .h5, here")
    cli_options.overwrite(parser, "FILE.h5")


def case_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--mean-field", action="store_true", help="its attention alone, as mean-field dynamics on a sphere"
    )
    parser.add_argument(
        "--layer", metavar="K", type=int, help="with --mean-field: its attention in all layers (default: each its own)"
    )
    parser.add_argument("--repeat", metavar="N", type=int, default=1, help="its layers N times (default: 1)")
    _variant(parser)
    parser.add_argument("-o", "--output", metavar="FOLDER", help="default: the model's name with -case, here")
    cli_options.overwrite(parser, "the case in FOLDER")


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
    drop_option(parser, "measured")
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the model's name with -ablation.h5, here")
    parser.add_argument("--figure", metavar="FILE.png", help="default: the output's name with .png")
    cli_options.overwrite(parser, "FILE.h5")


def histogram_options(parser: ArgumentParser) -> None:
    parser.add_argument("--repeat", metavar="N", type=int, default=4, help="its layers N times (default: 4)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of random and rotated weights (default: 0)")
    drop_option(parser, "measured")
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the model's name with -histogram.h5, here")
    parser.add_argument("--figure", metavar="FILE.png", help="default: the output's name with .png")
    cli_options.overwrite(parser, "FILE.h5")


def reference_options(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the case's name with -reference.h5, here")
    cli_options.overwrite(parser, "FILE.h5")


def read(options: argparse.Namespace) -> int:
    from meanfield.runtime.paths import require_writable
    from meanfield.transformer.ablation import kept_tokens
    from meanfield.transformer.model import short_name, states_of

    path = f"{short_name(options.model)}.h5" if options.output is None else options.output
    require_writable(path, options.text or "", options.overwrite)
    from meanfield.transformer.reading import read_transformer

    drop, states = dropped_tokens(options), states_of(options.model, options.text)
    states = states.only(kept_tokens(states, drop))
    given = {"overwrite": options.overwrite, "quiet": options.quiet, "command": options.command, "drop": drop}
    read_transformer(states, path, **given, show=print_message)
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
    chosen = CaseOptions(names_of(options.without), options.weights, options.seed, options.repeat)
    require_new(folder, FILES, options.overwrite)
    return write_case(states_of(options.model, options.text, family_of), folder, chosen)


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
    from meanfield.transformer.head_figures import head_figures, table_by_layer
    from meanfield.transformer.model import load_model, read_texts, short_name

    path = f"{short_name(options.model)}-ablation.h5" if options.output is None else options.output
    target = figure_target(Path(options.figure or Path(path).with_suffix(".png")))
    require_writable(path, "", options.overwrite)
    if options.seeds < 1:
        raise CaseError(f"--seeds {options.seeds}: expected an integer >= 1")
    parts = [names_of(text) for text in options.without or EACH_PART]
    variants, drop, texts = variants_of(parts, options.seeds), dropped_tokens(options), read_texts(options.texts)
    model = load_model(options.model, family_of)
    states = [model.read(*text) for text in texts]
    ablation = ablate(states, variants, drop)

    from matplotlib.figure import Figure

    from meanfield.transformer.ablation_output import draw_ablation, write_ablation

    facts = {"model": options.model, "drop": options.drop, "command": options.command}
    heads = [head_figures(one) for one in states]
    write_ablation(path, ablation, heads, facts)
    figure = Figure()
    draw_ablation(figure, ablation, f"{short_name(options.model)}, {len(states)} texts")
    print(f"{last_layer_table(ablation)}\n\n{table_by_layer(heads)}")
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
    chosen, drop = CaseOptions(seed=options.seed, repeat=options.repeat), dropped_tokens(options)
    states = states_of(options.model, options.text, require_attention)

    from matplotlib.figure import Figure

    from meanfield.transformer.stacking import draw_stacking, peaks, stack, write_stacking

    stacking = stack(states, chosen.repeat, chosen.seed, drop)
    facts = {"model": options.model, "text": states.source, "drop": options.drop, "command": options.command}
    write_stacking(path, stacking, facts)
    figure = Figure()
    title = f"{states.short_name}, its layers {options.repeat} times, {states.source}"
    draw_stacking(figure, stacking, title, options.repeat)
    for name, distances, means in zip(stacking.variants, stacking.distances, stacking.means, strict=True):
        print(
            f"{name:16} mean {means[-1]:.3f} after the last layer, "
            f"W₁ to the model {distances[-1]:.3f}, at most {distances.max():.3f}"
        )
    print("peaks of the model's distribution:", ", ".join(f"{place:.3f}" for place in peaks(stacking.densities[0, -1])))
    for name, (found, gap) in stacking.recovered.items():
        masses = ", ".join(f"{mass:.2f}" for mass in found.masses)
        cosines = ", ".join(f"{found.gram[a, b]:.2f}" for a in range(len(found.masses)) for b in range(a))
        print(
            f"recovered from the cosines of the {name}: masses {masses}; cosines {cosines or 'none'}; "
            f"W₁ {found.distance:.3f}; Gromov–Wasserstein distance to the tokens {gap:.3f}"
        )
    print(f"{path}\n{save(figure, target)}")
    return 0


def reference(options: argparse.Namespace) -> int:
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
    run_reference(resolved, path, **given, show=print_message)
    return 0


EACH_PART = ("network", "biases", "gains", "attention", "network,biases,gains")
COMMANDS = {
    "read": (
        read,
        "write the directions of a text's tokens after each layer of a model, as particles",
        "MODEL [--text FILE|-] [--drop special,first] [-o FILE.h5] [--overwrite] [--quiet]",
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
    "reference": (
        reference,
        "run a case of particles in layers by PyTorch's attention",
        "CASE [-o FILE.h5] [--set KEY=VALUE ...] [--overwrite] [--quiet]",
        (cli_options.case_file, reference_options, cli_options.quiet),
    ),
    **PROMPTS_COMMANDS,
    **NETWORK_COMMANDS,
}
