"""Missing tools: a test is skipped, and fails where all tests must run."""

import pytest
from support.needs import need, need_module

ABSENT = "no-such-tool"


@pytest.mark.parametrize("call", [lambda: need(ABSENT), lambda: need_module("no_such_module")])
def test_what_is_missing(call, monkeypatch):
    monkeypatch.delenv("MEANFIELD_TEST_ALL", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"no.such"):
        call()
    monkeypatch.setenv("MEANFIELD_TEST_ALL", "1")
    with pytest.raises(pytest.fail.Exception, match=r"no.such"):
        call()


def test_what_is_there():
    assert need("python3").endswith("python3")
    assert need_module("json").dumps([]) == "[]"
