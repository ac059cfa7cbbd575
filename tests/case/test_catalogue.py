"""The catalog: every shipped case has its topic and its time, every offered new case can be run."""

from __future__ import annotations

import pytest

from meanfield.case.catalogue import PHENOMENA, by_topic, new_case
from meanfield.case.errors import CaseError
from meanfield.case.load import parse, shipped
from meanfield.cli import options
from meanfield.cli.parser import main
from meanfield.domains.table import DOMAINS
from meanfield.simulation import validate_setup

OFFERED = [(manifold, name) for name in PHENOMENA for manifold, kind in DOMAINS.items() if name in kind.phenomena]


def test_every_shipped_case_has_one_topic_and_a_time() -> None:
    listed = [case for group in by_topic().values() for case in group]
    assert sorted(case.name for case in listed) == sorted(shipped())
    assert all(case.seconds >= 0 and case.title for case in listed)


def test_search_is_in_names_topics_and_texts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cases", "--search", "2110.11773"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["sinkhorn"]
    assert lines[0] == "Attention of other kinds:"
    assert main(["cases", "--search", "no such thing"]) == 2


@pytest.mark.parametrize(("manifold", "phenomenon"), OFFERED)
def test_new_cases_pass_their_check_and_say_what_each_key_is(manifold: str, phenomenon: str) -> None:
    text = new_case(manifold, phenomenon)
    case = parse(text)
    validate_setup(case)
    assert case.domain.manifold == manifold
    keys = [
        line for line in text.splitlines() if " = " in line and not line.startswith(("#", "title", "manifold", "kind"))
    ]
    assert all("  # " in line for line in keys)


def test_a_new_case_is_written_once(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    assert main(["new", "sphere", "--phenomenon", "merging", "-o", str(path)]) == 0
    assert path.read_text("utf-8") == new_case("sphere", "merging")
    path.write_text("mine")
    assert main(["new", "sphere", "-o", str(path)]) == 2
    assert path.read_text() == "mine"
    assert "exists already" in capsys.readouterr().err


def test_what_is_not_offered_is_named() -> None:
    with pytest.raises(CaseError, match=r"--phenomenon = \"growing\": expected one of clusters, merging"):
        new_case("sphere", "growing")
    with pytest.raises(CaseError, match='manifold = "line": expected one of circle, sphere for merging'):
        new_case("line", "merging")


def test_help_names_the_phenomena() -> None:
    assert options.PHENOMENA.split(", ") == list(PHENOMENA)
