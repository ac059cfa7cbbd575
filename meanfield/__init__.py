"""Mean-field theory of Transformers: tokens as a probability density moved by self-attention.

    import meanfield as mf

    result = mf.simulate(mf.load_case("metastable_sphere", ["attention.beta=4"]))
    result.time, result.density, result.diagnostics["energy"], result.plot()

``meanfield.solvers`` has the names of the package `solvers`, of finite volumes for PDEs of your own;
``meanfield.transformer`` reads trained Transformers. Names load their module on first use, so that ``import meanfield``
costs nothing.
"""

from importlib import import_module

from meanfield.shadowing import secure_imports

TYPE_CHECKING = False  # as in typing, which a file of the user may replace until secure_imports has run
if TYPE_CHECKING:
    from meanfield import solvers as solvers
    from meanfield import transformer as transformer
    from meanfield.case.case import Case as Case
    from meanfield.case.errors import CaseError as CaseError
    from meanfield.components.component import Component as Component
    from meanfield.components.component import component as component
    from meanfield.components.loading import load_components as load_components
    from meanfield.model.attention import Attention as Attention
    from meanfield.model.feed_forward import FeedForward as FeedForward
    from meanfield.model.heads import Head as Head
    from meanfield.model.layer_norm import LayerNorm as LayerNorm
    from meanfield.model.reactions import Reaction as Reaction
    from meanfield.results.escapes import escape as escape
    from meanfield.results.live_plot import LivePlot as LivePlot
    from meanfield.results.live_plot import live as live
    from meanfield.results.overlay import plot as plot
    from meanfield.results.result import Result as Result
    from meanfield.results.runs import load_case as load_case
    from meanfield.results.runs import open_run as open_run
    from meanfield.results.runs import resume as resume
    from meanfield.results.runs import run as run
    from meanfield.results.runs import simulate as simulate
    from meanfield.results.sweeps import open_sweep as open_sweep
    from meanfield.results.sweeps import sweep as sweep
    from meanfield.results.theory import branch as branch
    from meanfield.results.theory import compare as compare
    from meanfield.results.theory import stability as stability
    from meanfield.results.token_numbers import limit as limit
    from solvers.io.repair import FileError as FileError
    from solvers.timestepping.state import NonFinite as NonFinite

__version__ = "0.1.0"

_HOME = {
    "meanfield.results.runs": ("load_case", "open_run", "resume", "run", "simulate"),
    "meanfield.results.escapes": ("escape",),
    "meanfield.results.live_plot": ("LivePlot", "live"),
    "meanfield.results.overlay": ("plot",),
    "meanfield.results.result": ("Result",),
    "meanfield.results.sweeps": ("open_sweep", "sweep"),
    "meanfield.results.theory": ("branch", "compare", "stability"),
    "meanfield.results.token_numbers": ("limit",),
    "meanfield.case.case": ("Case",),
    "meanfield.case.errors": ("CaseError",),
    "meanfield.components.component": ("Component", "component"),
    "meanfield.components.loading": ("load_components",),
    "meanfield.model.attention": ("Attention",),
    "meanfield.model.heads": ("Head",),
    "meanfield.model.layer_norm": ("LayerNorm",),
    "meanfield.model.feed_forward": ("FeedForward",),
    "meanfield.model.reactions": ("Reaction",),
    "solvers.io.repair": ("FileError",),
    "solvers.timestepping.state": ("NonFinite",),
}
_PACKAGES = ("solvers", "transformer")
_MODULES = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted([*_MODULES, *_PACKAGES])

secure_imports()


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return import_module(f"meanfield.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
