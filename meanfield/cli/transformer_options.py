"""Arguments of the commands `meanfield transformer ...`, as functions that add them to a parser."""

from __future__ import annotations

from meanfield.cli.options import Argument, flag, option, overwrite

EXPERIMENTS = (  # as in meanfield.transformer.experiments.table, repeated here so that the help loads nothing
    "information", "attention", "bottleneck", "gradients", "sensitivity", "depth", "positions", "robustness",
    "stabilizers", "scaling", "untrained",
)  # fmt: skip
_DROP = "tokens that the model reads but that are not {}: special, first or special,first (default: none)"


def number(name: str, default: int, words: str) -> Argument:
    """Return the option ``--name N`` for a whole number, with the help text ``words``."""
    return option(f"--{name}", "N", f"{words} (default: {default})", type=int, default=default)


def repeat(default: int) -> Argument:
    """Return the option ``--repeat N``."""
    return number("repeat", default, "number of repetitions of the layers")


def seed(words: str) -> Argument:
    """Return the option ``--seed N``; ``words`` name the random numbers."""
    return number("seed", 0, f"seed {words}")


def drop(participle: str) -> Argument:
    """Return the option ``--drop``, which excludes special tokens or the first token from the output or the measures.

    The help reads "tokens that the model reads but that are not ``participle``", for example "measured".
    """
    return option("--drop", "TOKENS", _DROP.format(participle), default="")


def output(default: str) -> tuple[Argument, ...]:
    """Return the options for the output file and for its replacement."""
    return option("-o/--output", "FILE.h5", f"file to write (default: {default}, in this folder)"), overwrite("FILE.h5")


def file_and_figure(default: str) -> tuple[Argument, ...]:
    """Return the options for the output file, for its figure and for the replacement of both."""
    file, replace = output(default)
    return file, option("--figure", "FILE.png", "figure to write (default: the output's name with .png)"), replace


def of_study(noun: str) -> tuple[Argument, ...]:
    """Return the options for the output file and the figure of a study; ``noun`` ends the default name of the file."""
    return file_and_figure(f"the model's name with -{noun}.h5")


overrides = option(
    "--set", "KEY=VALUE", "override keys of the training file, for example training.epochs=5 (default: none)",
    nargs="+", action="extend", default=[], dest="overrides",
)  # fmt: skip
model = option("model", "MODEL", "a folder, or a name on the hub of Hugging Face")
text = option("--text", "FILE|-", "input text, - for the standard input (default: a bundled sample)")
texts = option("--texts", "FOLDER", "folder of texts *.txt (default: ten texts of the package)")
prompts = option(
    "--prompts", "FILE|-", "file with a prompt in each line (default: sentences of ten texts of the package)"
)
training = option(
    "training", "TRAINING",
    "a training file, a shipped one (digits, digits_pde, characters, ...), or the FILE.h5 to continue",
)  # fmt: skip
until = option("--until", "EPOCH", "epoch after which training stops (default: the last epoch)", type=int)
_WEIGHTS = (
    "attention matrices: trained, random with the same norms, or rotated with the same singular values"
    " (default: trained)"
)
_PARTS = (
    "parts to leave out together, such as network,biases (network: the feed-forward network); repeatable (default:"
    " network, biases, gains and attention, each by itself, and network,biases,gains)"
)
case_options = (
    flag(
        "--mean-field",
        "write only the attention of the model, as mean-field dynamics (on a sphere if layer norm follows attention)",
    ),
    option(
        "--layer",
        "K",
        "with --mean-field: layer whose attention all layers use (default: each layer its own)",
        type=int,
    ),
    repeat(1),
    option(
        "--without",
        "PARTS",
        "parts to leave out, such as network (the feed-forward network) or network,biases (default: none)",
        default="",
    ),
    option("--weights", None, _WEIGHTS, choices=("trained", "random", "rotated"), default="trained"),
    seed("of random or rotated attention matrices"),
    option("-o/--output", "FOLDER", "folder to write (default: the model's name with -case, in this folder)"),
    overwrite("the case in FOLDER"),
)
ablate_options = (
    option("--without", "PARTS", _PARTS, action="append"),
    number("seeds", 3, "number of models with random attention matrices, and of models with rotated ones"),
)
fit_options = (
    number("held", 3, "number of texts held out at a time; each text is held out once"),
    number("rank", 4, "rank of the matrices of each attention head"),
    number("width", 64, "width of the feed-forward network"),
    number("steps", 200, "number of steps of a descent; descents are repeated until the error no longer decreases"),
    seed("of the initial weights"),
)
experiment_names = (
    option("name", "NAME", ", ".join(EXPERIMENTS), choices=EXPERIMENTS),
    option("training", "TRAINING", "a training file, or a shipped one (default: digits)", nargs="?", default="digits"),
)
experiment_options = (
    number("seeds", 5, "number of seeds: networks of each kind, or draws of scaling"),
    number("jobs", 1, "number of processes, for positions, robustness and stabilizers only"),
    option("--dask", "ADDRESS", "host:port of a Dask scheduler, instead of --jobs: its workers train the networks"),
    option(
        "--vary",
        "KEY=VALUE,...",
        "for the experiment stabilizers: axis of its grid, such as training.rate=0.001,0.01; repeatable (default:"
        " residual, layer norm, layers and rate)",
        action="append",
        default=[],
    ),
)
