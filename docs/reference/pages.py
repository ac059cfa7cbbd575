"""Pages of the reference, made from the code: keys of a case file, commands, Python API, shipped cases."""

from __future__ import annotations

import inspect
import re
import textwrap
from itertools import groupby
from pathlib import Path

import meanfield
import solvers
from meanfield.case.load import shipped
from meanfield.case.schema import Entry, entries
from meanfield.cli.parser import help_texts

PACKAGES = {"meanfield": meanfield, "meanfield.transformer": meanfield.transformer, "solvers": solvers}


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
    parts += [f"## `{typed}`\n\n```text\n{text.rstrip()}\n```" for typed, text in help_texts().items()]
    return "\n\n".join(parts) + "\n"


def python() -> str:
    """Return the page of all public names of both packages: signature, docstring, and public methods."""
    parts = ["# Python API\n"]
    for package, module in PACKAGES.items():
        parts.append(f"## `{package}`\n")
        parts += [documented(name, getattr(module, name)) for name in sorted(module.__all__)]
    return "\n".join(parts)


def documented(name: str, member: object) -> str:
    """Return a public name with its methods as plain text, since formulas in docstrings are not valid markup."""
    text = [described(name, member)]
    if inspect.isclass(member) and not issubclass(member, Exception):
        methods = ((n, m) for n, m in vars(member).items() if not n.startswith("_") and inspect.isfunction(m))
        text += [textwrap.indent(described(f".{n}", m), "    ") for n, m in methods]
    return f"### `{name}`\n\n```text\n" + "\n\n".join(text) + "\n```\n"


def described(name: str, member: object) -> str:
    """Return signature and docstring of a class or function; the type of any other value."""
    if inspect.isclass(member) and issubclass(member, Exception):
        return f"{name}\n\n{inspect.getdoc(member) or ''}".rstrip()
    if not (inspect.isclass(member) or inspect.isfunction(member)):
        return f"{name}: {type(member).__name__}"
    annotated = re.sub(r"<factory>|<function .*? at 0x\w+>", "...", str(inspect.signature(member)))
    annotated = re.sub(r"(: |-> )'([^']*)'", r"\1\2", annotated)  # annotations are strings
    return f"{name}{annotated}\n\n{inspect.getdoc(member) or ''}".rstrip()


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
