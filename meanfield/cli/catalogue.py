"""Commands that list shipped cases, keys and the schema, write a new case, and test the installation."""

from __future__ import annotations

import argparse
from pathlib import Path


def cases(options: argparse.Namespace) -> int:
    """Print the shipped cases by topic; return the exit status."""
    from meanfield.case.catalogue import by_topic
    from meanfield.case.errors import CaseError

    found = by_topic(options.search)
    if not found:
        raise CaseError(f"--search {options.search}: no shipped case contains this word in its topic, name or text")
    width = max(len(case.name) for group in found.values() for case in group)
    for topic, group in found.items():
        print(f"{topic}:")
        for case in group:
            print(f"  {case.name:{width}}  {case.seconds:5.1f} s  {case.title}")
    return 0


def new(options: argparse.Namespace) -> int:
    """Print or write a new case; return the exit status."""
    from meanfield.case.catalogue import new_case
    from meanfield.runtime.paths import require_writable

    text = new_case(options.manifold, options.phenomenon)
    if options.output is None:
        print(text, end="")
        return 0
    require_writable(options.output, "", options.overwrite)
    Path(options.output).write_text(text, "utf-8")
    print(f"{options.output}: check it with `meanfield check`, run it with `meanfield run`")
    return 0


def schema(options: argparse.Namespace) -> int:
    """Print the JSON Schema of a case file; return the exit status."""
    import json

    from meanfield.case.schema import schema as json_schema

    print(json.dumps(json_schema(), indent=2))
    return 0


def keys(options: argparse.Namespace) -> int:
    """Print the keys of a case file that begin with a prefix; return the exit status."""
    from meanfield.case.errors import CaseError
    from meanfield.case.schema import entries

    found = entries(options.prefix)
    if not found:
        raise CaseError(f"{options.prefix}: no key with this prefix; `meanfield keys` lists all")
    for entry in found:
        unit = f" [{entry.unit}]" if entry.unit else ""
        only = f" ({entry.variant})" if entry.variant else ""
        print(f"{entry.name}{unit}{only}\n    {entry.description}")
        print(f"    {entry.expected}; default: {entry.default}; for example {entry.example}")
    return 0


def selftest(options: argparse.Namespace) -> int:
    """Run the self-tests and print their errors; return the exit status, 1 if a test failed."""
    from time import perf_counter

    from meanfield.results.selftest import selftest as outcomes

    start, failed = perf_counter(), []
    for outcome in outcomes():
        word = "ok    " if outcome.passed else "FAILED"
        print(f"{word} {outcome.name}: error {outcome.error:.1e}, at most {outcome.limit:g}", flush=True)
        failed += [] if outcome.passed else [outcome.name]
    print(
        f"{len(failed)} failed: {', '.join(failed)}" if failed else f"all checks passed, {perf_counter() - start:.0f} s"
    )
    return 1 if failed else 0
