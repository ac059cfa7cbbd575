"""Public names of both packages: all of them are listed, typed, importable and described in the reference."""

import ast
import importlib.util
import inspect
from pathlib import Path

import pytest

import meanfield
import solvers
from solvers.terms.term import StiffTerm, Term
from solvers.timestepping.schedules import Schedule

ROOT = Path(__file__).parents[2]
PACKAGES = pytest.mark.parametrize("package", [meanfield, solvers], ids=lambda package: package.__name__)


def typed(package):
    """Names that type checkers see: those that are imported where TYPE_CHECKING holds."""
    body = ast.parse(Path(package.__file__).read_text("utf-8")).body
    blocks = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return {name.asname or name.name for block in blocks for node in block.body for name in node.names}


def reference():
    """The page of names in Python, as the site is built with it."""
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "reference" / "pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    return pages.python()


PROTOCOLS = Term, StiffTerm, Schedule  # describe their methods once, for all classes that have them
DESCRIBED = {name for protocol in PROTOCOLS for name, method in vars(protocol).items() if inspect.getdoc(method)}


def undescribed(name, member):
    """Names of a class or function and of its public methods that lack a docstring; a dataclass makes itself one."""
    own = [(name, member)] if inspect.isclass(member) or inspect.isfunction(member) else []
    methods = vars(member).items() if inspect.isclass(member) else ()
    own += [
        (f"{name}.{n}", m) for n, m in methods if n not in DESCRIBED and not n.startswith("_") and inspect.isfunction(m)
    ]
    return [n for n, m in own if not inspect.getdoc(m) or inspect.getdoc(m).startswith(f"{name}(")]


@PACKAGES
def test_every_public_name_is_listed_typed_and_loads(package):
    names = package.__all__
    assert len(set(names)) == len(names)
    assert set(names) == set(package._MODULES) | ({"solvers"} if package is meanfield else set()) == typed(package)
    assert set(names) <= set(dir(package))
    assert all(getattr(package, name) is not None for name in names)


def test_every_public_name_is_in_the_reference():
    page = reference()
    for package in (meanfield, solvers):
        section = page.partition(f"\n## `{package.__name__}`\n")[2].partition("\n## ")[0]
        assert [name for name in package.__all__ if f"### `{name}`\n" not in section] == []


@PACKAGES
def test_every_public_class_and_function_is_described(package):
    assert [n for name in package.__all__ for n in undescribed(name, getattr(package, name))] == []
