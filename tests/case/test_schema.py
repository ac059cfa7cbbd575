"""Schema of a case file: every key has a description, a valid example, a default and a range."""

from __future__ import annotations

import json
import tomllib

import msgspec
import pytest

from meanfield.case.case import Case
from meanfield.case.schema import _sections, entries, schema
from meanfield.cli.parser import main
from meanfield.sections.section import Section

DEFINED = schema()["$defs"]
SECTIONS = [section for section in _sections(Section) if section.__name__ in DEFINED and section is not Case]


def test_schema_describes_every_section_and_refuses_unknown_keys() -> None:
    definitions = schema()["$defs"]
    assert set(definitions["Case"]["properties"]) == {field.name for field in msgspec.structs.fields(Case)}
    beta = definitions["Attention"]["properties"]["beta"]
    assert (beta["type"], beta["minimum"], beta["examples"]) == ("number", 0, [4.0])
    assert not any(definition["additionalProperties"] for definition in definitions.values())
    assert not any("-----" in definition["description"] for definition in definitions.values())


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_key_is_described_and_no_other(section: type[Section]) -> None:
    described = {name for base in section.__mro__ for name in vars(base).get("about", {})}
    assert described == {field.name for field in msgspec.structs.fields(section)}


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_examples_are_taken(section: type[Section]) -> None:
    fields = {field.name: field for field in msgspec.structs.fields(section)}
    for base in section.__mro__:
        for name, key in vars(base).get("about", {}).items():
            msgspec.convert(key.example, fields[name].type)
            assert not key.description.endswith(".")


def test_entries_are_those_of_the_schema_in_the_order_of_a_case() -> None:
    names = [entry.name for entry in entries()]
    assert names[:3] == ["domain.manifold", "domain.resolution", "domain.labels"]
    assert {"title", "time.end", "attention.heads[].weight", "initial.components[].center"} <= set(names)
    assert len(names) > 90


def test_examples_are_toml() -> None:
    for entry in entries():
        assert entry.description, entry.name
        tomllib.loads(f"key = {entry.example}")


def test_keys_lists_what_begins_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "stabilizers.noise"]) == 0
    assert capsys.readouterr().out == (
        "stabilizers.noise [1/time]\n    diffusion coefficient κ of κΔρ\n"
        "    a number ≥ 0; default: 0.0; for example 0.05\n"
    )
    assert main(["keys", "domain.labels"]) == 0
    assert "domain.labels (circle, sphere)\n" in capsys.readouterr().out
    assert main(["keys", "nothing"]) == 2
    assert capsys.readouterr().err == "meanfield: nothing: no key with this prefix; `meanfield keys` lists all\n"


def test_the_shipped_cases_agree_with_the_schema() -> None:
    """The check is that of an editor; a key with a single value selects the kind of a union."""
    from jsonschema import Draft202012Validator

    from meanfield.case.load import read_text, shipped

    validator = Draft202012Validator(json.loads(json.dumps(schema())))
    for name in shipped():
        errors = [error.message for error in validator.iter_errors(tomllib.loads(read_text(name)))]
        assert errors == [], name
    assert not validator.is_valid({"domain": {"manifold": "circle"}})


def test_editors_know_the_other_words_for_manifolds() -> None:
    definitions = schema()["$defs"]
    assert definitions["Sphere"]["properties"]["manifold"]["enum"] == ["sphere", "S2"]
    assert definitions["Circle"]["properties"]["manifold"]["enum"] == ["circle", "S1"]
