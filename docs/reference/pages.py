"""Pages of the reference, made from the code: keys of a case file, commands, names in Python."""

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
    """Each key of a case file: what it is, unit, range, default, example."""
    parts = ["# Keys of a case file\n\nFrom the schema that checks case files (`meanfield schema`, `meanfield keys`)."]
    head = "| key | what | value |\n|---|---|---|"
    for section, found in groupby(entries(), lambda entry: entry.name.partition(".")[0]):
        rows = (row(entry) for entry in found)
        parts.append(f"## `{section}`\n\n{head}\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def row(entry: Entry) -> str:
    """A key as a row of a Markdown table."""
    name = f"`{entry.name.partition('.')[2] or entry.name}`" + (f" ({plain(entry.variant)})" if entry.variant else "")
    unit = f", in {entry.unit}" if entry.unit else ""
    default = "required" if entry.default == "required" else f"default {entry.default}"
    cells = [name, plain(entry.description) + unit, f"{plain(entry.expected)}; {default}; such as `{entry.example}`"]
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def commands() -> str:
    """Each command with its help text."""
    parts = ["# Commands\n\nThe help texts of the commands, `meanfield COMMAND --help`."]
    parts += [f"## `{typed}`\n\n```text\n{text.rstrip()}\n```" for typed, text in help_texts().items()]
    return "\n\n".join(parts) + "\n"


def python() -> str:
    """Each public name of both packages: signature, docstring, and those of its public methods."""
    parts = ["# Names in Python\n"]
    for package, module in PACKAGES.items():
        parts.append(f"## `{package}`\n")
        parts += [documented(name, getattr(module, name)) for name in sorted(module.__all__)]
    return "\n".join(parts)


def documented(name: str, member: object) -> str:
    """A public name: docstrings are plain text, whose formulas would not survive as markup."""
    text = [described(name, member)]
    if inspect.isclass(member) and not issubclass(member, Exception):
        methods = ((n, m) for n, m in vars(member).items() if not n.startswith("_") and inspect.isfunction(m))
        text += [textwrap.indent(described(f".{n}", m), "    ") for n, m in methods]
    return f"### `{name}`\n\n```text\n" + "\n\n".join(text) + "\n```\n"


def described(name: str, member: object) -> str:
    """Signature and docstring; of what is neither class nor function, its value's type."""
    if inspect.isclass(member) and issubclass(member, Exception):
        return f"{name}\n\n{inspect.getdoc(member) or ''}".rstrip()
    if not (inspect.isclass(member) or inspect.isfunction(member)):
        return f"{name}: {type(member).__name__}"
    annotated = re.sub(r"<factory>|<function .*? at 0x\w+>", "...", str(inspect.signature(member)))
    annotated = re.sub(r"(: |-> )'([^']*)'", r"\1\2", annotated)  # annotations are texts
    return f"{name}{annotated}\n\n{inspect.getdoc(member) or ''}".rstrip()


def cases() -> str:
    """Each shipped case with the comment at its head."""
    parts = ["# Shipped cases\n\n`meanfield run NAME` runs them; each file's comment says what to expect."]
    root = Path(__file__).parents[2] / "cases"
    for name, title in shipped().items():
        comment = re.match(r"(?:#.*\n)*", (root / f"{name}.toml").read_text("utf-8"))[0]
        text = "\n".join(line.lstrip("# ") for line in comment.splitlines())
        parts.append(f"## `{name}`\n\n{title}.\n\n```text\n{text or title}\n```")
    return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    """A description without the marks of docstrings, and without its last full stop."""
    return text.replace("``", "").rstrip(".").replace("*", r"\*").replace("_", r"\_")
