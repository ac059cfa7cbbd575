"""Functions that train networks and fit laws of motion. They import PyTorch when they are called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.case.errors import CaseError
from meanfield.case.overrides import Overrides, overrides_of
from meanfield.results.refusals import with_python_names
from meanfield.running import Printer, print_nothing
from meanfield.runtime.paths import require_free
from meanfield.transformer.arguments import require_integers
from meanfield.transformer.families import family_of
from meanfield.transformer.labelled import Outcome
from meanfield.transformer.loading import require_torch
from meanfield.transformer.model import read_with, short_name
from meanfield.transformer.sources import Texts, read_texts

if TYPE_CHECKING:
    from meanfield.transformer.networks.section import TrainingCase
    from meanfield.transformer.networks.training import Fit

SUFFIXES = (".h5", ".hdf5")  # suffixes of files from which training continues


def fit(
    model: str | Path,
    texts: Texts = None,
    *,
    held: int = 3,
    rank: int = 4,
    width: int = 64,
    steps: int = 200,
    seed: int = 0,
    show: Printer = print_nothing,
) -> Outcome:
    """Fit laws of motion of growing size to the layers of a trained Transformer, and test them on other texts.

    The laws grow: a shift; a gain and a shift; with identity attention (Q = K = I) added; with attention of low rank in
    each head added; with a network added, with and without attention. The part of the motion that only attention
    explains is the difference between the errors of two laws, without attention and with both kinds of attention.

    Parameters
    ----------
    model : str or Path
        Folder of a model, or name on the hub of Hugging Face.
    texts : str, Path or mapping, optional
        Folder with files ``*.txt``, or texts by name. None: ten texts of the package.
    held : int
        Number of texts held out at a time. Each text is held out once.
    rank, width : int
        Rank of the matrices of each attention head, and width of the network.
    steps : int
        Steps of a descent. Descents of each law are repeated until the error no longer decreases.
    seed : int
        Seed of the first weights.
    show : function (line)
        Function such as ``print`` that is called with a line on each law.

    Returns
    -------
    Outcome
        Named arrays. ``error`` (law, set, layer): squared error relative to tokens that stand still, for the fitted and
        for the held-out texts. ``error_of_text`` (law, text, layer): this error of each held-out text.
        ``attention_part`` and ``attention_interval`` (beside, layer): mean over the texts of the part that only
        attention explains, without and beside a network, and half width of its 95 % interval. ``beta`` and ``value``
        (fold, layer): β and v of the identity attention.

    Raises
    ------
    CaseError
        If the model or a text cannot be read, PyTorch is missing, too many texts are held out, or an argument is not
        valid.

    Warns
    -----
    TextWarning
        If a text is cut because it is longer than the context of the model, or has tokens that are not in the
        vocabulary of the model.

    References
    ----------
    Geshkovski et al., arXiv:2312.10794, equation (2.4), for the smallest law.

    Examples
    --------
    Errors of eight laws on fitted and held-out texts, and the part that only attention explains, in six layers.

    >>> import meanfield as mf
    >>> found = mf.transformer.fit("sentence-transformers/all-MiniLM-L6-v2", show=print)  # doctest: +SKIP
    >>> found["error"].shape, found["attention_part"].shape  # doctest: +SKIP
    ((8, 2, 6), (2, 6))
    """
    require_torch()
    require_integers(1, held=held, rank=rank, width=width, steps=steps)
    states = read_with(model, read_texts(texts), family_of)
    from meanfield.transformer.fitting import Options, draw, fit_laws, summary

    arrays = fit_laws(states, Options(rank, width, steps, held=held, seed=seed), show)
    title = short_name(model)
    return Outcome(arrays, summary, draw, title, {"title": title, "experiment": "fit", "model": str(model)})


def train(
    training: str | Path | TrainingCase,
    path: str | Path | None = None,
    *,
    overrides: Overrides = (),
    until: int | None = None,
    overwrite: bool = False,
    show: Printer = print_nothing,
    command: str = "",
) -> Fit:
    """Train the standard Transformer or the PDE network on a small data set, or continue training.

    Parameters
    ----------
    training : str, Path or TrainingCase
        Training file or the name of a shipped one: "digits", "digits_pde", "mnist", "characters" or
        "characters_sparse". Or the file "….h5" of an earlier training, which continues.
    path : str or Path, optional
        File that is written after each epoch. None: the file of the training that continues, else no file.
    overrides : mapping or sequence of str
        Keys of the training file, like {"network.kind": "pde"} or ["network.kind=pde"].
    until : int, optional
        Epoch after which training pauses. None: the last one.
    overwrite : bool
        Whether an existing file is replaced.
    show : function (line)
        Function such as ``print`` that is called with a line after each epoch.
    command : str
        Attribute ``command`` of the file: how the file was made. Only with a file.

    Returns
    -------
    Fit
        The trained ``network``, its ``history`` and ``epochs``; ``plot()`` draws them.

    Raises
    ------
    CaseError
        If PyTorch or data are missing, if a key or an argument is not valid, or if ``path`` or ``overrides`` is given
        for a training that continues.
    FileError
        If the file exists and ``overwrite`` is false, is damaged, or cannot be written.
    NonFinite
        If training explodes. The attribute ``result`` of any error during training is the Fit up to then.

    References
    ----------
    Vaswani et al., arXiv:1706.03762, and Zhang and Zhou, arXiv:2408.09523, for the two networks.

    Examples
    --------
    Two of 20 epochs; one of ten answers would be correct by chance.

    >>> import meanfield as mf
    >>> changes = {"network.kind": "pde", "training.epochs": 2}
    >>> trained = mf.transformer.train("digits", overrides=changes)  # doctest: +SKIP
    >>> trained.epochs, trained.history.test_accuracy[-1] > 0.5  # doctest: +SKIP
    (2, True)
    """
    require_torch()
    if until is not None:
        require_integers(1, until=until)
    changes, continues = overrides_of(overrides), isinstance(training, str | Path) and Path(training).suffix in SUFFIXES
    if continues and path is not None:
        raise CaseError(f"path = {path}: not allowed with a file: training continues in this file")
    if continues and changes:
        raise CaseError(f"overrides = {changes[0]}: not allowed with a file, whose settings are kept")
    if command and path is None and not continues:
        raise CaseError(f"command = {command}: only allowed with path")
    if path is not None:
        with with_python_names():
            require_free(Path(path), overwrite)
    from meanfield.transformer.networks.saved import prepare_training, train_into

    target = str(training) if continues else path
    return train_into(prepare_training(training, changes, continues), target, until, command, show, continues=continues)


def experiment(
    name: str,
    training: str | Path | TrainingCase = "digits",
    *,
    overrides: Overrides = (),
    seeds: int = 5,
    jobs: int = 1,
    dask: str | None = None,
    vary: Sequence[str] = (),
    show: Printer = print_nothing,
) -> Outcome:
    """Measure the Transformer and the PDE network, untrained and trained, over several seeds, with controls.

    Parameters
    ----------
    name : str
        Experiment: information, attention, bottleneck, gradients, sensitivity, depth, positions, robustness,
        stabilizers, scaling or untrained.
    training : str, Path or TrainingCase
        Training file, or the name of a shipped one.
    overrides : mapping or sequence of str
        Keys of the training file, like {"training.epochs": 5} or ["training.epochs=5"].
    seeds : int
        Number of networks of each kind. Intervals of the tables are those of a mean over seeds.
    jobs : int
        Processes that train the networks of the experiments positions, robustness and stabilizers, which alone accept
        more than 1. Not with ``dask``.
    dask : str, optional
        Address host:port of a Dask scheduler, whose workers train the networks of the same experiments.
    vary : sequence of str
        Axes of the grid of stabilizers, like ["training.rate=0.001,0.01", "network.dropout=0,0.1"]. An axis replaces
        that of the same key (residual, layer norm, layers, rate) or is added.
    show : function (line)
        Function such as ``print`` that is called with a line on each network. The experiments scaling and untrained
        train none.

    Returns
    -------
    Outcome
        Arrays by network, state, seed and layer, which depend on the experiment.

    Raises
    ------
    CaseError
        If the experiment is unknown, PyTorch or data are missing, a process is lost, or a key or an argument is not
        valid.

    References
    ----------
    Zhang and Zhou, arXiv:2408.09523, for the PDE network.

    Examples
    --------
    Entropy of attention to 256 keys of dimension 1024, with the factor 1/√d and without: at most log 256 = 5.55.

    >>> import meanfield as mf
    >>> found = mf.transformer.experiment("scaling", seeds=1)  # doctest: +SKIP
    >>> found.arrays["entropy"].dims  # doctest: +SKIP
    ('scaling', 'dimension', 'seed')
    >>> found["entropy"][:, -1, 0].round(2)  # doctest: +SKIP
    array([5.05, 0.14])
    """
    require_torch()
    require_integers(1, seeds=seeds, jobs=jobs)
    from meanfield.transformer.experiments.table import run_experiment
    from meanfield.transformer.experiments.workers import Workers
    from meanfield.transformer.networks.section import load_training

    return run_experiment(
        name, load_training(training, overrides_of(overrides)), seeds, Workers(jobs, dask), show, vary
    )
