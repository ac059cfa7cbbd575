"""The command `meanfield transformer prompts`: many prompts through a model."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser
from pathlib import Path

from meanfield.cli import options as cli_options
from meanfield.cli.dropped_tokens import drop_option, dropped_tokens


def prompts_options(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a folder, or a name on the hub of Hugging Face")
    parser.add_argument(
        "--prompts", metavar="FILE|-", help="a prompt a line (default: sentences of ten texts of the package)"
    )
    parser.add_argument("--repeat", metavar="N", type=int, default=1, help="its layers N times (default: 1)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of random weights (default: 0)")
    drop_option(parser, "measured")
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the model's name with -prompts.h5, here")
    parser.add_argument("--figure", metavar="FILE.png", help="default: the output's name with .png")
    cli_options.overwrite(parser, "FILE.h5")


def prompts(options: argparse.Namespace) -> int:
    from meanfield.figures.saving import figure_target, save
    from meanfield.runtime.paths import require_writable
    from meanfield.transformer.case import CaseOptions
    from meanfield.transformer.families import family_of
    from meanfield.transformer.model import load_model, short_name
    from meanfield.transformer.prompts import compress, prompts_of, read_prompts

    path = f"{short_name(options.model)}-prompts.h5" if options.output is None else options.output
    target = figure_target(Path(options.figure or Path(path).with_suffix(".png")))
    require_writable(path, options.prompts or "", options.overwrite)
    drop, texts = dropped_tokens(options), prompts_of(options.prompts)
    chosen = CaseOptions(seed=options.seed, repeat=options.repeat)
    model = load_model(options.model, family_of)
    states = read_prompts(model, texts)

    from matplotlib.figure import Figure

    from meanfield.transformer.next_token import next_token, output_head
    from meanfield.transformer.prompts_output import draw_prompts, table_of, table_of_next, write_prompts

    found, head = compress(states, chosen.repeat, chosen.seed, drop), output_head(options.model)
    after = None if head is None else next_token(states, head)
    facts = {"model": options.model, "drop": options.drop, "command": options.command}
    write_prompts(path, found, texts, after, facts, model.tokenizer.decode)
    figure = Figure()
    repeated = f", its layers {options.repeat} times" if options.repeat > 1 else ""
    draw_prompts(figure, found, after, f"{short_name(options.model)}{repeated}, {len(texts)} prompts")
    print(table_of(found))
    print("no next token: the model has no causal output head" if after is None else f"\n{table_of_next(after)}")
    print(f"{path}\n{save(figure, target)}")
    return 0


COMMANDS = {
    "prompts": (
        prompts,
        "many prompts through a model and its mean-field dynamics: distances, entropy, cluster states, the next token",
        "MODEL [--prompts FILE|-] [--repeat N] [--seed N] [--drop special,first] [-o FILE.h5] [--figure FILE.png] "
        "[--overwrite]",
        (prompts_options,),
    ),
}
