"""Loading of components from files and entry points named by the user; a case never loads code."""

from __future__ import annotations

import hashlib
import inspect
import marshal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from meanfield.case.errors import CaseError
from meanfield.components.component import LOADED, Component
from meanfield.components.installing import INSTALL, is_built_in
from meanfield.components.loaded import SOURCES, Source

GROUP = "meanfield.components"


def load_components(*sources: str | Path | Component) -> list[Component]:
    """Load components, so that cases can name them: from Python files, installed packages, or as functions.

    The code of files is executed. A component of the same kind and name is replaced.

    Parameters
    ----------
    *sources : str, Path or Component
        Files that end in ``.py``, names of entry points in the group ``meanfield.components``, or functions with the
        decorator :func:`~meanfield.component`. Functions exist in this process only: sweeps in other processes need
        files.

    Returns
    -------
    list of Component
        The components, with their sources and digests.

    Raises
    ------
    CaseError
        For a file that cannot be read or executed, an unknown entry point, a source without components, the name of a
        built-in option, and a dimension that other diagnostics use.

    Examples
    --------
    >>> import numpy as np
    >>> import meanfield as mf
    >>> @mf.component("feed_forward", strength=1.0)
    ... def to_the_right(x, strength):
    ...     return np.full(x.shape, [strength, 0.0])
    >>> loaded = mf.load_components(to_the_right)
    >>> case = mf.load_case("growth_circle", {"feed_forward": {"field": "to_the_right", "strength": 0.5}})
    >>> case.feed_forward.strength
    0.5
    """
    found = []
    for source in sources:
        if isinstance(source, Component):
            code = source.function.__code__
            component = replace(source, source=code.co_filename, sha256=_digest_of(source.function))
            _install(component)
            found.append(component)
        else:
            found += load_sources([_source(str(source))])
    return found


def load_sources(sources: Iterable[Source]) -> list[Component]:
    """Load user-defined components from sources, such as those of another process; other components stay loaded.

    A source is the path and text of a file, or an entry point and an empty text.
    """
    found = []
    for path, text in sources:
        values = vars(_module(path, text)) if text else _entry_point(path)
        made = [value for value in values.values() if isinstance(value, Component)]
        if not made:
            raise CaseError(f"{path}: expected functions with @component, found none")
        digest = hashlib.sha256((text or _content(path, made)).encode()).hexdigest()
        components = [replace(one, source=path, sha256=digest) for one in made]
        for one in components:
            _install(one)
        SOURCES[path] = text
        found += components
    return found


def _install(one: Component) -> None:
    """Register a user-defined component; raise CaseError if its name is that of a built-in one."""
    if is_built_in(one):
        raise CaseError(f"{one.source}: the {one.kind} {one.name} is built in; choose another name")
    INSTALL[one.kind](one)
    LOADED[one.kind, one.name] = one


def _digest_of(function: Callable[..., Any]) -> str:
    """Return the SHA-256 digest of a function's source text, or of its code if the text is unavailable."""
    try:
        content = inspect.getsource(function).encode()
    except (OSError, TypeError):
        content = marshal.dumps(function.__code__)
    return hashlib.sha256(content).hexdigest()


def _source(name: str) -> Source:
    """Return the absolute path and the text of a file of components, or the name of an entry point and no text."""
    if not name.endswith(".py"):
        return name, ""
    try:
        return str(Path(name).absolute()), Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"component {name}: cannot be read: {getattr(error, 'strerror', 'not UTF-8 text')}") from None


def _module(path: str, text: str) -> ModuleType:
    """Return a new module in which the text has been executed."""
    module = ModuleType(Path(path).stem)
    module.__file__ = path
    try:
        exec(compile(text, path, "exec"), vars(module))
    except Exception as error:
        line = " ".join(f"{type(error).__name__}: {error}".split())
        raise CaseError(f"component {path}: cannot be run: {line}") from error
    return module


def _entry_point(name: str) -> dict[str, Any]:
    """Return the component to which an entry point refers, or the attributes of the module, by name."""
    points = entry_points(group=GROUP)
    if name not in points.names:
        known = ", ".join(sorted(points.names)) or "no installed package has any"
        raise CaseError(f"component {name}: expected a file that ends in .py, or an entry point of {GROUP}: {known}")
    value = points[name].load()
    return {name: value} if isinstance(value, Component) else vars(value)


def _content(name: str, made: Sequence[Component]) -> str:
    """Return the text whose digest identifies the content of the entry point ``name``.

    The text contains the object reference, the version of the package, and the files that define the components
    ``made``.
    """
    point = entry_points(group=GROUP)[name]
    version = f"{point.dist.name} {point.dist.version}" if point.dist else ""
    files = sorted({Path(one.function.__code__.co_filename) for one in made})
    return "\n".join([point.value, version, *(file.read_text(encoding="utf-8") for file in files if file.is_file())])
