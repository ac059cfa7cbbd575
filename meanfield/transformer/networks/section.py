"""Training files: the sections [network], [pde], [data] and [training], and their validation."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from meanfield.case.errors import CaseError, did_you_mean, refusal, refuse_unrepresentable, translate
from meanfield.case.load import read_toml
from meanfield.case.overrides import apply, without_none
from meanfield.sections.attention import Pattern
from meanfield.sections.section import Count, Key, NotNegative, Positive, Problems, Section, Seed

SIDES = {"digits": 8, "stripes": 8, "mnist": 28}  # pixels on a side of an image
FILES = ("characters", "mnist", "images", "arrays", "newsgroups")  # kinds of data with data.file
Part = Annotated[float, Meta(gt=0, lt=1)]
Fraction = Annotated[float, Meta(ge=0, lt=1)]


class Network(Section, frozen=True):
    """Section [network] of a training file: the kind, size and parts of the network.

    The ``kind`` transformer is the standard Transformer, pde the PDE network, whose layers are time steps of a PDE.
    """

    kind: Literal["transformer", "pde"] = "transformer"
    dimension: Count = 32
    heads: Count = 4
    layers: Count = 4
    width: Count = 64
    activation: Literal["relu", "gelu", "tanh"] = "gelu"
    positions: Literal["none", "sinusoidal", "learned", "rotary"] = "learned"
    layer_norm: Literal["pre", "post", "peri", "none"] = "pre"
    residual: bool = True
    attention: bool = True
    pattern: Pattern | None = None
    feed_forward: bool = True
    dropout: Fraction = 0.0
    initialization: Literal["default", "small", "scaled", "orthogonal"] = "default"

    about: ClassVar = {
        "kind": Key("the standard Transformer, or the PDE network", "pde"),
        "dimension": Key("d of a token's state in R^d", 64),
        "heads": Key("attention heads, each of dimension/heads", 4),
        "layers": Key("number of layers", 6),
        "width": Key("width of the feed-forward network", 128),
        "activation": Key("σ of the feed-forward network", "relu"),
        "positions": Key("positions of tokens: added to embeddings, or rotations of queries and keys", "sinusoidal"),
        "layer_norm": Key("before, after, or before and after each part; none", "post"),
        "residual": Key("false: a layer replaces a state instead of adding to it", False),
        "attention": Key("false: layers without attention", False),
        "pattern": Key("sparse attention of tokens in their order: a window, global and random tokens", {"local": 3}),
        "feed_forward": Key("false: layers without the feed-forward network", False),
        "dropout": Key("fraction of embeddings, and of each part's output, that training sets to 0", 0.1),
        "initialization": Key(
            "initial weights of the layers: default; small, N(0, 0.02²); scaled, output matrices by 1/√(2 layers); "
            "orthogonal",
            "scaled",
        ),
    }


class Pde(Section, frozen=True):
    """Section [pde] of a training file: coefficients of the PDE network.

    A layer is u ← N((1 − γτ)u + τ(αA(u) + F(u))), then u ← e^{τκL}u. A is attention, F the feed-forward network, N the
    layer norm, and L the Laplacian along tokens of unit spacing.
    """

    step: Positive = 0.5
    attention_weight: float = 1.0
    diffusion: NotNegative = 0.0
    gate: NotNegative = 0.0
    ends: Literal["closed", "periodic"] = "closed"
    coefficients: Literal["fixed", "learned"] = "fixed"
    shared: bool = False

    about: ClassVar = {
        "step": Key("τ, the time of a layer", 0.5, unit="time"),
        "attention_weight": Key("α, the factor of attention", 1.0),
        "diffusion": Key("κ of the diffusion from token to token", 0.1, unit="token²/time"),
        "gate": Key("γ of −γu, where layer norm leaves the length free", 0.1, unit="1/time"),
        "ends": Key("closed: no flux at the ends; periodic: the last token is a neighbor of the first", "periodic"),
        "coefficients": Key("learned: τ, α, κ and γ of each layer are trained", "learned"),
        "shared": Key("true: all layers have the same matrices, as an equation constant in depth", True),
    }


class Data(Section, frozen=True):
    """Section [data] of a training file: the data set, of whose examples the fraction ``test`` is held out."""

    kind: Literal["digits", "stripes", "mnist", "images", "arrays", "passages", "newsgroups", "characters"] = "digits"
    tokens: Literal["patches", "rows", "words"] = "patches"
    patch: Annotated[int, Meta(ge=1)] = 2
    length: Annotated[int, Meta(ge=2)] = 32
    file: str | None = None
    most: Annotated[int, Meta(ge=2)] | None = None
    test: Part = 0.25
    seed: Seed = 0

    about: ClassVar = {
        "kind": Key(
            "digits, MNIST, stripes, images or arrays of a file, the text of a passage, the newsgroup of a message, or "
            "the next character",
            "digits",
        ),
        "tokens": Key("an image as square patches or as rows; a message as characters, or as words", "rows"),
        "patch": Key("side of a patch", 2, unit="pixel"),
        "length": Key("length of a passage of text, or of a message in characters or words", 32),
        "file": Key(
            "text of characters; arrays of images, arrays or mnist (npz, IDX, JSON); folder of newsgroups", "text.txt"
        ),
        "most": Key("largest number of examples of each part, drawn by seed; not for texts (default: all)", 5000),
        "test": Key("fraction of test examples", 0.25),
        "seed": Key("seed of the choice of test examples", 1),
    }


class Training(Section, frozen=True):
    """Section [training] of a training file: settings of Adam with decoupled weight decay.

    The rate warms up over ``warm_up`` steps, or 5 % of all steps, then follows half a cosine.
    """

    epochs: Count = 20
    batch: Count = 64
    rate: Positive = 3e-3
    weight_decay: NotNegative = 0.01
    warm_up: Annotated[int, Meta(ge=0)] | None = None
    clip: Positive | None = None
    label_smoothing: Fraction = 0.0
    seed: Seed = 0
    explosion: Positive = 1e4
    precision: Literal["float32", "float64"] = "float32"
    threads: Count = 1
    device: Literal["cpu", "cuda"] = "cpu"

    about: ClassVar = {
        "epochs": Key("passes through the examples", 20),
        "batch": Key("examples in a step", 64),
        "rate": Key("largest learning rate", 3e-3),
        "weight_decay": Key("decoupled weight decay", 0.01),
        "warm_up": Key("steps over which the rate increases linearly (default: 5 % of all steps)", 100),
        "clip": Key("largest norm of the whole gradient, which is scaled down to it (default: no limit)", 1.0),
        "label_smoothing": Key("part of a label's probability that is spread evenly over all classes", 0.1),
        "seed": Key("seed of the initial weights and of the order of examples", 1),
        "explosion": Key("root mean square of a state, or gradient norm unless clipped, at which training stops", 1e4),
        "precision": Key("number format", "float64"),
        "threads": Key("threads of PyTorch: several slow down small networks, and change the last digits of sums", 2),
        "device": Key("processor that trains", "cuda"),
    }


class TrainingCase(Section, frozen=True):
    """Resolved content of a training file.

    Attributes
    ----------
    title : str
        One line for figures.
    network : Network
        Kind and size of the network.
    pde : Pde
        Coefficients of the PDE network.
    data : Data
        Data set, and the fraction of test examples.
    training : Training
        Settings of Adam.
    """

    title: str = ""
    network: Network = Network()
    pde: Pde = Pde()
    data: Data = Data()
    training: Training = Training()

    about: ClassVar = {"title": Key("one line for figures", "Digits")}

    def replace(self, overrides: Sequence[str]) -> TrainingCase:
        """Return a copy of the training case with other values of some keys.

        Parameters
        ----------
        overrides : sequence of str
            Changes such as "network.residual=false".

        Returns
        -------
        TrainingCase
            The copy.

        Raises
        ------
        CaseError
            If a key is unknown or a value is not valid.
        """
        return _parsed(without_none(msgspec.to_builtins(self)), overrides)

    @property
    def is_causal(self) -> bool:
        """Return whether attention has a causal mask, by which a token attends to itself and earlier tokens only."""
        return self.data.kind == "characters"


def load_training(source: str | Path | TrainingCase, overrides: Sequence[str] = ()) -> TrainingCase:
    """Return a training case from a file, from the name of a shipped file, or as given, with changes of some keys.

    Raises CaseError if there is no such file, a key is unknown, or a value is not valid.
    """
    if isinstance(source, TrainingCase):
        return source.replace(overrides)
    return _parsed(read_toml(_text(str(source)), str(source)), overrides)


def parse_training(text: str) -> TrainingCase:
    """Return the training case that a text in TOML describes. Raises CaseError if a key or a value is not valid."""
    return _parsed(tomllib.loads(text), ())


def to_toml(case: TrainingCase) -> str:
    """Return a training case, defaults included, as a text in TOML: ``parse_training(to_toml(case)) == case``."""
    import tomli_w

    return tomli_w.dumps(without_none(msgspec.to_builtins(case)))


def shipped_training() -> dict[str, str]:
    """Return the texts of the training files of the package, by name."""
    files = resources.files("meanfield.transformer.networks").joinpath("cases").iterdir()
    return {file.name.removesuffix(".toml"): file.read_text("utf-8") for file in files if file.name.endswith(".toml")}


def _text(name_or_path: str) -> str:
    """Return the text of a training file, given by its path or by the name of a shipped one."""
    path = Path(name_or_path)
    if path.is_file():
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CaseError(f"{name_or_path}: cannot be read as a training file: {error}") from None
    texts = shipped_training()
    if name_or_path not in texts:
        hint = did_you_mean(name_or_path, texts) or f"; expected a file, or one of {', '.join(sorted(texts))}"
        raise CaseError(f"{name_or_path}: no such training file{hint}")
    return texts[name_or_path]


def _parsed(data: dict[str, Any], overrides: Sequence[str]) -> TrainingCase:
    """Return the validated training case of TOML tables after overrides; raise CaseError if it is not valid."""
    apply(data, overrides)
    refuse_unrepresentable(data)
    try:
        case = msgspec.convert(data, TrainingCase)
    except msgspec.ValidationError as error:
        raise translate(error, data, TrainingCase) from None
    for key, value, expected in _problems(case):
        raise refusal(key, value, expected)
    return case


def _problems(case: TrainingCase) -> Problems:
    """Yield the key, the value and the expected value of each invalid setting of a training case."""
    network, pde, data = case.network, case.pde, case.data
    if network.dimension % network.heads:
        yield "network.heads", network.heads, f"a divisor of network.dimension = {network.dimension}"
    if network.positions == "rotary" and network.dimension // network.heads % 2:
        yield "network.heads", network.heads, "an even number of coordinates a head, for rotary positions"
    if network.positions == "sinusoidal" and network.dimension % 2:
        yield "network.dimension", network.dimension, "an even number, for sinusoidal positions"
    if not (network.attention or network.feed_forward):
        yield "network.feed_forward", False, "true where network.attention = false: a layer has a part"
    if network.pattern is not None and not network.attention:
        yield "network.pattern.local", network.pattern.local, "none where network.attention = false"
    if network.kind == "pde":
        yield from _pde_problems(case)
    side = SIDES.get(data.kind)
    if side is not None and data.tokens == "patches" and side % data.patch:
        yield "data.patch", data.patch, f"a divisor of {side}, the side of an image"
    if data.most is not None and data.kind in ("passages", "characters"):
        yield "data.most", data.most, f'none with data.kind = "{data.kind}"'
    if data.file is not None and data.kind not in FILES:
        yield "data.file", data.file, f"only allowed with data.kind = {', '.join(FILES)}"
    if data.file is None and data.kind in ("images", "arrays"):
        yield "data.kind", data.kind, "data.file, the file of the examples"
    if data.tokens == "words" and data.kind != "newsgroups":
        yield "data.tokens", data.tokens, 'only allowed with data.kind = "newsgroups"'
    if pde.gate and (network.layer_norm == "post" or not network.residual):
        yield "pde.gate", pde.gate, "0 where layer norm keeps the length, and without the residual"


def _pde_problems(case: TrainingCase) -> Problems:
    """Yield the key, the value and the expected value of each setting that the PDE network excludes."""
    network, pde = case.network, case.pde
    if network.positions == "rotary":
        yield "network.positions", network.positions, "another for the PDE network: its attention is that of states"
    if case.is_causal and (pde.diffusion or pde.coefficients == "learned"):
        key, value = ("diffusion", pde.diffusion) if pde.diffusion else ("coefficients", pde.coefficients)
        yield f"pde.{key}", value, "none where the next token is to be found: it would diffuse back"
