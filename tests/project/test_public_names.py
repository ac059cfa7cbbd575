"""Completeness of the reference: public names of both packages, typed and described, keys, commands, options."""

import ast
import importlib.util
import inspect
import re
import tomllib
from pathlib import Path

import pytest

import meanfield
import solvers
from meanfield.case.schema import schema
from meanfield.cli.parser import main
from solvers.terms.term import StiffTerm, Term
from solvers.timestepping.schedules import Schedule

ROOT = Path(__file__).parents[2]
NAMED = [meanfield, meanfield.transformer, solvers]
PACKAGES = pytest.mark.parametrize("package", NAMED, ids=lambda package: package.__name__)


def typed(package):
    """Return the names that type checkers see: those imported under TYPE_CHECKING."""
    body = ast.parse(Path(package.__file__).read_text("utf-8")).body
    blocks = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return {name.asname or name.name for block in blocks for node in block.body for name in node.names}


def reference(page="python"):
    """Return a page of the reference, as built for the site: python, keys, commands or cases."""
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "reference" / "pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    return getattr(pages, page)()


PROTOCOLS = Term, StiffTerm, Schedule  # the docstrings of protocols describe the methods of all implementing classes
DESCRIBED = {name for protocol in PROTOCOLS for name, method in vars(protocol).items() if inspect.getdoc(method)}


def undescribed(name, member):
    """Return names of a class or function and of its public methods without a docstring; dataclasses generate one."""
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
    assert set(names) == set(package._MODULES) | set(getattr(package, "_PACKAGES", ())) == typed(package)
    assert set(names) <= set(dir(package))
    assert all(getattr(package, name) is not None for name in names)


def test_every_public_name_is_in_the_reference():
    """Names of ``meanfield`` that ``solvers`` defines are in the section of ``solvers`` alone."""
    sections = sections_of(reference())
    for package in NAMED:
        public = {name: getattr(package, name) for name in package.__all__}
        listed = re.findall(r"^(?:   |\.\. data:: )(\w+)$", sections[package.__name__], re.MULTILINE)
        expected = [
            name
            for name, value in public.items()
            if getattr(value, "__module__", package.__name__).startswith(package.__name__)
            and not inspect.ismodule(value)
        ]
        assert sorted(listed) == sorted(expected)


def test_the_methods_are_described_in_the_reference():
    description = sections_of(reference())["solvers"].partition("\n.. data:: METHODS\n")[2]
    assert [name for name in solvers.METHODS if f'``"{name}"``' not in description] == []


@PACKAGES
def test_every_public_class_and_function_is_described(package):
    assert [n for name in package.__all__ for n in undescribed(name, getattr(package, name))] == []


def sections_of(page):
    """Return the texts of a page's sections by the name in their heading."""
    return dict(re.findall(r"^## `([^`]+)`\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))


def keys_of(table, name=""):
    """Yield the dotted names of the keys of a case; keys in lists of tables have no index."""
    for key, value in table.items():
        rows = value if isinstance(value, list) else [value]
        tables = [row for row in rows if isinstance(row, dict)]
        if not tables or name:  # a section is not a key
            yield f"{name}.{key}".lstrip(".")
        for row in tables:
            yield from keys_of(row, f"{name}.{key}{'[]' if isinstance(value, list) else ''}".lstrip("."))


def test_every_key_of_the_schema_is_in_the_reference():
    """The names are the properties of the definition of every section that a case can have."""
    page, definitions = reference("keys"), schema()["$defs"]
    names = set(re.findall(r"^\| `([^`]+)`", page, re.MULTILINE))
    last = {name.split(".")[-1] for name in names}
    sections = sections_of(page)
    assert [key for key in definitions["Case"]["properties"] if key not in sections] == []
    keys = [key for name, found in definitions.items() if name != "Case" for key in found.get("properties", {})]
    assert len(keys) > 100
    assert [key for key in keys if key not in last] == []


@pytest.mark.parametrize("path", sorted((ROOT / "cases").glob("*.toml")), ids=lambda path: path.stem)
def test_every_key_of_the_shipped_cases_is_in_the_reference(path):
    sections = sections_of(reference("keys"))
    for key in keys_of(tomllib.loads(path.read_text("utf-8"))):
        section, _, name = key.partition(".")
        assert f"| `{name or section}`" in sections[section], key


def help_of(capsys, *words):
    """Return the names of commands and options in the help that a command prints."""
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    text = capsys.readouterr().out
    commands = re.findall(r"^    ([a-z]+)(?:  |$)", text.partition("\ncommands:\n")[2], re.MULTILINE)
    return commands, re.findall(r"^  (?:-\w[^,]*, )?(--[a-z-]+)", text, re.MULTILINE)


def test_every_command_and_option_is_in_the_reference(capsys):
    sections, waiting = sections_of(reference("commands")), [()]
    for words in waiting:  # the list grows by the commands of each command
        commands, options = help_of(capsys, *words)
        text = sections[" ".join(("meanfield", *words))]
        assert [option for option in options if option not in text] == []
        waiting += [(*words, command) for command in commands]
    assert len(waiting) == len(sections)
    assert ("transformer", "read") in waiting


def test_every_shipped_case_is_in_the_reference():
    assert sorted(sections_of(reference("cases"))) == sorted(path.stem for path in (ROOT / "cases").glob("*.toml"))
