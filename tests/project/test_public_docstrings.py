"""Docstrings of public names: sections by numpydoc's rules, and examples that run."""

import doctest
import inspect

import pytest
from numpydoc.validate import validate

import meanfield
import solvers

PACKAGES = {"solvers": solvers, "meanfield": meanfield, "meanfield.transformer": meanfield.transformer}
NAMES = [f"{package}.{name}" for package, module in PACKAGES.items() for name in sorted(module.__all__)]
RULES = {
    *("GL03", "GL05", "GL06", "GL07", "GL08", "GL10"),  # sections known and in order
    *("SS02", "SS03", "SS04", "SS06"),  # a summary of one line, a sentence
    *("PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR08", "PR09", "PR10"),  # every parameter and its type
    *("RT01", "RT03", "RT04", "RT05", "YD01"),
}

PROTOCOL = {"prepare", "prepare_with", "rate", "step", "jacobian", "begin", "observe_if_due"}  # Term, Observer document


def documented(name):
    """Return the object of a dotted name, or None where the name is a module or a plain value."""
    package, _, attribute = name.rpartition(".")
    found = getattr(PACKAGES[package], attribute)
    return found if inspect.isclass(found) or inspect.isroutine(found) else None


def members(name):
    """Return the dotted names of the public methods and properties that a class defines."""
    found = documented(name)
    if not inspect.isclass(found):
        return []
    kinds = (property, classmethod, staticmethod)
    shown = (
        n for n, m in vars(found).items() if not n.startswith("_") and (inspect.isfunction(m) or isinstance(m, kinds))
    )
    return [f"{name}.{member}" for member in shown]


def faults(name, rules):
    """Return the faults of one docstring; methods of a protocol need no sections."""
    rules = rules - {"PR01", "RT01"} if name.rpartition(".")[2] in PROTOCOL else rules
    return [f"{name}: {code} {text}" for code, text in validate(name)["errors"] if code in rules]


OBJECTS = [name for name in NAMES if documented(name) is not None]


@pytest.mark.parametrize("name", OBJECTS)
def test_docstrings_follow_numpydoc(name):
    found = faults(name, RULES | {"EX01"}) + [fault for member in members(name) for fault in faults(member, RULES)]
    assert found == []


@pytest.mark.parametrize("name", OBJECTS)
def test_examples_of_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    tests = [test for test in doctest.DocTestFinder().find(documented(name), name, globs={}) if test.examples]
    assert tests, f"{name} has no example"
    report = []
    for test in tests:
        runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
