"""Pages of the reference, made from the code: keys of a case file, commands, Python API, shipped cases."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from itertools import groupby, pairwise
from pathlib import Path
from textwrap import indent
from types import ModuleType

import meanfield
import solvers
from meanfield.case.load import shipped
from meanfield.case.schema import Entry, entries
from meanfield.cli.parser import root_parser

PACKAGES = {"meanfield": meanfield, "meanfield.transformer": meanfield.transformer, "solvers": solvers}
HEADINGS = {"io": "Input and output"}  # of folders whose name is an abbreviation


def write_pages(folder: Path) -> None:
    """Write every page that has changed."""
    for name, page in {"keys": keys, "commands": commands, "python": python, "cases": cases}.items():
        path, text = folder / f"{name}.md", page()
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def keys() -> str:
    """Return the page of all keys of a case file: description, unit, range, default, example."""
    parts = ["# Keys of a case file\n\nMade from the schema of case files (`meanfield schema`, `meanfield keys`)."]
    head = "| key | what | value |\n|---|---|---|"
    for section, found in groupby(entries(), lambda entry: entry.name.partition(".")[0]):
        rows = (row(entry) for entry in found)
        parts.append(f"## `{section}`\n\n{head}\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def row(entry: Entry) -> str:
    """Return a key as a row of a Markdown table."""
    name = f"`{entry.name.partition('.')[2] or entry.name}`" + (f" ({plain(entry.variant)})" if entry.variant else "")
    unit = f", in {entry.unit}" if entry.unit else ""
    default = "required" if entry.default == "required" else f"default {entry.default}"
    cells = [name, plain(entry.description) + unit, f"{plain(entry.expected)}; {default}; such as `{entry.example}`"]
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def commands() -> str:
    """Return the page of all commands with their help texts."""
    parts = ["# Commands\n\nHelp texts of the commands, as printed by `meanfield COMMAND --help`."]
    parsers = [root_parser()]
    for parser in parsers:  # the loop appends the subcommands of each parser
        parts.append(f"## `{parser.prog}`\n\n```text\n{parser.format_help().rstrip()}\n```")
        parsers.extend(parser.commands.values())
    return "\n\n".join(parts) + "\n"


def python() -> str:
    """Return the page of all public names of both packages: tables of links to a page for each, and values."""
    parts = ["# Python API"]
    for package, module in PACKAGES.items():
        parts.append(f"## `{package}`\n\n" + "\n\n".join(tables_of(package, module) + values_of(package, module)))
    return "\n\n".join(parts) + "\n"


def tables_of(package: str, module: ModuleType) -> list[str]:
    """Return a table of a package's own classes and functions for each folder, with the folder as its heading."""
    places = {name: getattr(getattr(module, name), "__module__", "") for name in module.__all__}
    own = {name: place.removeprefix(f"{package}.") for name, place in places.items() if place.startswith(package)}
    folders = {name: place.partition(".")[0].replace("_", " ") for name, place in own.items()}
    names = sorted(folders, key=lambda name: (folders[name], name))
    return [
        f"### {HEADINGS.get(title, title.capitalize())}\n\n```{{eval-rst}}\n.. currentmodule:: {package}\n\n"
        + ".. autosummary::\n   :toctree: api\n\n"
        + "".join(f"   {name}\n" for name in found)
        + "```"
        for title, found in groupby(names, key=folders.__getitem__)
    ]


def values_of(package: str, module: ModuleType) -> list[str]:
    """Return the descriptions of a package's public values, such as tables of names, under one heading."""
    values = [name for name in module.__all__ if not hasattr(getattr(module, name), "__module__")]
    homes = {name: module._MODULES[name] for name in values if not isinstance(getattr(module, name), ModuleType)}
    entries = [
        f".. data:: {name}\n\n" + indent(description(import_module(home, package), name), "   ")
        for name, home in homes.items()
    ]
    head = f"### Tables\n\n```{{eval-rst}}\n.. currentmodule:: {package}\n\n"
    return [head + "\n\n".join(entries) + "\n```"] if entries else []


def description(module: ModuleType, name: str) -> str:
    """Return the string after the assignment of a name in a module."""
    pairs = pairwise(ast.parse(inspect.getsource(module)).body)
    return next(
        ast.literal_eval(after.value).strip()
        for node, after in pairs
        if isinstance(after, ast.Expr) and isinstance(node, ast.Assign | ast.AnnAssign) and name in targets(node)
    )


def targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """Return the names that an assignment sets."""
    return [ast.unparse(each) for each in (node.targets if isinstance(node, ast.Assign) else [node.target])]


def cases() -> str:
    """Return the page of all shipped cases with their initial comments."""
    parts = ["# Shipped cases\n\n`meanfield run NAME` runs a case; the comment in its file states the expected result."]
    root = Path(__file__).parents[2] / "cases"
    for name, title in shipped().items():
        comment = re.match(r"(?:#.*\n)*", (root / f"{name}.toml").read_text("utf-8"))[0]
        text = "\n".join(line.lstrip("# ") for line in comment.splitlines())
        parts.append(f"## `{name}`\n\n{title}.\n\n```text\n{text or title}\n```")
    return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    """Return a description without the markup of docstrings and without the final full stop."""
    return text.replace("``", "").rstrip(".").replace("*", r"\*").replace("_", r"\_")
