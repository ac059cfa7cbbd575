"""Changes of a case by short names of keys, as in ``mf.simulate("uniform", beta=4)``."""

import pytest

import meanfield as mf
from meanfield.case.schema import entries
from meanfield.case.short_names import full_names

SMALL = {"resolution": 16, "end": 0.1, "samples": 2}


def test_short_names_stand_for_keys():
    section = {"kind": "uniform"}
    short = {"beta": 4, "end": 2, "noise": 0.1, "radius": 3.0, "title": "x", "initial": section, "time.stop": 1}
    full = ["attention.beta", "time.end", "stabilizers.noise", "initial.radius", "title", "initial", "time.stop"]
    assert full_names(short) == dict(zip(full, short.values(), strict=True))
    assert full_names({}) == {}


def test_each_short_name_is_the_last_part_of_its_key_or_is_refused():
    names, refused = {entry.name.rpartition(".")[2] for entry in entries() if "[]" not in entry.name}, []
    for name in names:
        try:
            (key,) = full_names({name: 1})
        except mf.CaseError as error:
            refused.append(str(error))
        else:
            assert key.rpartition(".")[2] == name
    assert 0 < len(refused) < len(names) / 4
    assert [text for text in refused if ": expected one of " not in text] == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("seed", r"seed = 1: expected one of domain\.seed, initial\.seed, feed_forward\.seed$"),
        (
            "bta",
            r'bta = 1: expected a parameter, or the last part of a key of `meanfield keys`; did you mean "beta"\?$',
        ),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda name: mf.load_case("uniform", **{name: 1}),
        lambda name: mf.simulate("uniform", {name: 1}),
        lambda name: mf.load_case("uniform").replace({name: 1}),
        lambda name: mf.load_case("uniform").replace(**{name: 1}),
        lambda name: mf.sweep("uniform", {name: [1]}),
    ],
)
def test_names_of_several_keys_or_of_none_are_refused(call, name, message):
    with pytest.raises(mf.CaseError, match=f"^{message.replace('= 1', '= .*1.*')}"):
        call(name)


def test_calls_take_changes_by_short_names_and_by_keys(tmp_path):
    case = mf.load_case("uniform", {"attention.beta": 3, "domain.resolution": 16, "time.end": 0.1, "output.samples": 2})
    assert mf.load_case("uniform", {"attention.beta": 5}, beta=3, **SMALL) == case  # the later one holds
    assert mf.load_case(mf.load_case("uniform"), beta=3, **SMALL) == case
    assert mf.simulate("uniform", beta=3, **SMALL).case == case
    assert mf.simulate("uniform", {"attention.beta": 3}, **SMALL).case == case
    assert mf.simulate("uniform", {"beta": 3, **SMALL}).case == case
    assert mf.load_case("uniform").replace({"beta": 3, **SMALL}) == case
    assert mf.load_case("uniform").replace({"attention.beta": 5}, beta=3, **SMALL) == case
    assert mf.run("uniform", tmp_path / "a.h5", beta=3, **SMALL).case == case
    assert mf.resume(tmp_path / "a.h5", until=0.2, changes={"beta": 4}).time[-1] == 0.2


def test_a_key_that_is_given_twice_is_refused():
    with pytest.raises(mf.CaseError, match=r"^attention\.beta = 5: expected once, not also as beta$"):
        mf.load_case("uniform", {"beta": 4, "attention.beta": 5})


def test_a_text_for_a_section_is_its_kind():
    case = mf.load_case("metastable_circle", {"initial.kind": "uniform"})
    assert mf.load_case("metastable_circle", initial="uniform") == case != mf.load_case("metastable_circle")
    assert mf.load_case("metastable_circle").replace(initial="uniform") == case


def test_a_section_that_is_replaced_removes_what_contradicts_it():
    """The shipped case has output.first = 1, and tokens have their number from the points."""
    assert mf.load_case("metastable_circle", {"time": {"end": 1}}) == mf.load_case("metastable_circle", end=1)
    points = {"kind": "points", "points": [[1, 0, 0, 0, 0, 0, 0, 0]] * 3}
    assert mf.load_case("tokens_ladder", initial=points).domain.count == 3
