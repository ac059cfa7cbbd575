"""User-defined component: a function with a name, of one of the kinds in KINDS, and the table of loaded components."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Component:
    """Function that a case names like a built-in option, as made by the decorator :func:`~meanfield.component`.

    A component is called like its function.

    Parameters
    ----------
    kind : str
        Kind of option: "kernel", "layer_norm", "reaction", "feed_forward", "initial", "tokens" or "diagnostic".
    name : str
        Name by which a case selects the component.
    function : function
        Function with the arguments and the value of the kind, see :func:`~meanfield.component`.
    parameters : mapping
        Keys of the component's section in a case, and their defaults.
    long_name : str
        Description of a diagnostic in files.
    dimensions : mapping of str to int
        Names and lengths of the axes of a diagnostic that is an array.
    source : str
        File or entry point from which the component was loaded; empty before.
    sha256 : str
        Digest of the file's text, of the function's text, or of the package's version and files; empty before loading.

    Examples
    --------
    >>> import meanfield as mf
    >>> @mf.component("diagnostic", long_name="mass on the right")
    ... def right(x, mass):
    ...     return mass[x[:, 0] > 0].sum()
    >>> isinstance(right, mf.Component), right.kind, right.name
    (True, 'diagnostic', 'right')
    """

    kind: str
    name: str
    function: Callable[..., Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    long_name: str = ""
    dimensions: Mapping[str, int] = field(default_factory=dict)
    source: str = ""
    sha256: str = ""

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return the parts of a pickle: the name under which a module has the component, else its fields."""
        module, name = self.function.__module__, self.function.__qualname__
        if getattr(sys.modules.get(module), name, None) is self:
            return _of_module, (module, name)
        return super().__reduce_ex__(protocol)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.function(*arguments, **options)


def _of_module(module: str, name: str) -> Any:
    """Return the object ``name`` of a module, which is imported."""
    return getattr(import_module(module), name)


def component(
    kind: str, *, long_name: str = "", dimensions: Mapping[str, int] | None = None, **parameters: Any
) -> Callable[[Callable[..., Any]], Component]:
    """Return a decorator that makes a component of a function.

    A case can name the component once :func:`~meanfield.load_components` has loaded it. The arguments and the value of
    the function depend on the kind::

        kernel         (z, beta) → k at cosines z = ⟨x,y⟩, at most e^{|β|}
        layer_norm     (time, size) → s of ẋ = Pₓ A / s, size = |A|
        reaction       (x, density, **parameters) → g (n,) of R = ρ g
        feed_forward   (x, **parameters) → F (n, d) at x (n, d)
        initial        (x, **parameters) → density (n,) up to its mass
        tokens         (rng, count, dimension, **parameters) → positions (count, dimension)
        diagnostic     (x, mass) → number or array, for points x (n, d) with masses (n,)

    Parameters
    ----------
    kind : str
        Kind of option, one of the names above.
    long_name : str
        Description of a diagnostic, for files. The name of the function by default.
    dimensions : mapping of str to int, optional
        Names and lengths of the axes of a diagnostic that is an array, such as ``{"sector": 8}`` for (8,).
    **parameters : object
        Keys of the section in a case and their defaults, for the kinds "reaction", "feed_forward", "initial" and
        "tokens". The type of a default is the type of the key.

    Returns
    -------
    function
        Decorator that replaces a function by a :class:`~meanfield.Component`.

    Raises
    ------
    ValueError
        For another kind, for a dimension whose name is no identifier or whose length is below 1, and for a parameter
        "radius" of the kinds "initial" and "tokens".
    TypeError
        For parameters or dimensions of a kind without them, and for objects that are not defined by ``def``, such as
        NumPy functions.

    Examples
    --------
    >>> import numpy as np
    >>> import meanfield as mf
    >>> @mf.component("reaction", rate=1.0)
    ... def decay(x, density, rate):
    ...     return -rate
    >>> decay.kind, decay.parameters
    ('reaction', {'rate': 1.0})
    >>> decay(np.zeros((4, 2)), np.ones(4), rate=0.5)
    -0.5
    """
    if kind not in KINDS:
        raise ValueError(f"kind = {kind!r}: expected one of {', '.join(KINDS)}")
    if parameters and not KINDS[kind].has_section:
        raise TypeError(f"a {kind} takes no parameters: {', '.join(parameters)}")
    if "radius" in parameters and kind in ("initial", "tokens"):
        raise ValueError(f"a {kind} density has the key radius already: choose another name for the parameter")
    dimensions = dimensions or {}
    if dimensions and kind != "diagnostic":
        raise TypeError(f"a {kind} has no dimensions: {', '.join(dimensions)}")
    for name, length in dimensions.items():
        if not (isinstance(length, int) and length >= 1 and name.isidentifier()):
            raise ValueError(f"dimensions = {{{name!r}: {length!r}}}: expected a name and a whole number >= 1")

    def made(function: Callable[..., Any]) -> Component:
        if not (hasattr(function, "__code__") and hasattr(function, "__name__")):
            raise TypeError(f"a {kind} is a {type(function).__name__}: expected a function that is defined by def")
        return Component(kind, function.__name__, function, parameters, long_name, dimensions)

    return made


@dataclass(frozen=True)
class Kind:
    """Kind of component: the key of a case that names components of this kind.

    section, key   of the case
    has_section    whether the component defines the section, with its parameters
    """

    section: str
    key: str
    has_section: bool = True


KINDS: dict[str, Kind] = {  # with the arguments and the value of each function
    # (z, beta) → k at cosines z = ⟨x,y⟩, at most e^{|β|}
    "kernel": Kind("attention", "kernel", has_section=False),
    # (time, size) → s of ẋ = Pₓ A / s, size = |A| (...)
    "layer_norm": Kind("stabilizers", "layer_norm", has_section=False),
    # (x, density, **parameters) → g (n,) of R = ρ g
    "reaction": Kind("reaction", "kind"),
    # (x, **parameters) → F (n, d) at x (n, d)
    "feed_forward": Kind("feed_forward", "field"),
    # (x, **parameters) → density (n,) up to its mass
    "initial": Kind("initial", "kind"),
    # (rng, count, dimension, **parameters) → positions (count, dimension)
    "tokens": Kind("initial", "kind"),
    # (x, mass) → number or array, for points x (n, d) with masses (n,)
    "diagnostic": Kind("output", "diagnostics", has_section=False),
}
LOADED: dict[tuple[str, str], Component] = {}  # by kind and name
