"""Trained Transformers from Hugging Face, as runs, cases and studies, and networks trained in PyTorch.

    import meanfield as mf
    mf.transformer.read("sentence-transformers/all-MiniLM-L6-v2").diagnostics["cosine"]

Each command `meanfield transformer NAME` calls the function of the same name. Names load their module on first use.
"""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from meanfield.transformer.labelled import Labelled as Labelled
    from meanfield.transformer.labelled import Outcome as Outcome
    from meanfield.transformer.learning import experiment as experiment
    from meanfield.transformer.learning import fit as fit
    from meanfield.transformer.learning import train as train
    from meanfield.transformer.model import TextWarning as TextWarning
    from meanfield.transformer.reading import read as read
    from meanfield.transformer.studies.ablation import ablate as ablate
    from meanfield.transformer.studies.prompting import prompts as prompts
    from meanfield.transformer.studies.stacking import histogram as histogram
    from meanfield.transformer.torch_layers import reference as reference
    from meanfield.transformer.whole_model import case as case

_MODULES = {
    "Labelled": "labelled",
    "Outcome": "labelled",
    "TextWarning": "model",
    "ablate": "studies.ablation",
    "case": "whole_model",
    "experiment": "learning",
    "fit": "learning",
    "histogram": "studies.stacking",
    "prompts": "studies.prompting",
    "read": "reading",
    "reference": "torch_layers",
    "train": "learning",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
