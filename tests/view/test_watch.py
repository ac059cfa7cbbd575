"""The page of a running simulation: only the page is served, until the run has ended."""

from __future__ import annotations

import http.client
import threading
from pathlib import Path

import pytest
from support.browser import chromium
from view.test_view import CASE, blobs, run_file

from meanfield.cli.parser import main
from meanfield.view import watch as watching
from meanfield.view.watch import HOST, LivePage, serving, watch
from solvers.io.run_file import RunFile, read
from solvers.mesh.mesh import sphere

TEXT = CASE.format(title='"live"', manifold="sphere", resolution=16)


def ask(server: LivePage, path: str, host: str = "") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=10)
    connection.request("GET", path, headers={"Host": host} if host else {})
    reply = connection.getresponse()
    return reply.status, reply.read()


def test_only_the_page_is_served_and_only_by_its_address(tmp_path: Path) -> None:
    run_file(tmp_path / "run.h5")
    with serving() as server:
        own = f"/{server.token}/"
        assert server.address == f"http://127.0.0.1:{server.server_port}{own}"
        assert ask(server, own)[1].endswith(b"No snapshot yet.</p>")
        server.show(read(tmp_path / "run.h5"))
        assert ask(server, own + "version") == (200, b"1")
        assert b"follow(1)" in ask(server, own)[1]
        others = ("/", "/version", f"/{server.token[:-1]}/", f"{own}../", f"{own}run.h5", "/etc/passwd", f"/x{own}")
        assert [ask(server, path) for path in others] == [(404, b"")] * len(others)
        # A site whose name resolves to this machine reads nothing, even if the site knows the token.
        assert ask(server, own, host=f"evil.example:{server.server_port}") == (404, b"")


def test_a_page_that_nobody_takes_is_not_made_again(tmp_path: Path) -> None:
    with LivePage() as server, RunFile.create(tmp_path / "run.h5", sphere(16), (), {"case": TEXT}) as file:
        for k in range(3):
            file.write_snapshot(float(k), blobs(sphere(16), k))
            server.show(read(file.path))
        assert server.version == 1
        server.answer(f"{HOST}:{server.server_port}", f"/{server.token}/")
        server.show(read(file.path))
        assert server.version == 2
        file.close(stop_reason="finished")
        server.show(read(file.path))
        assert server.version == 3


def test_tokens_differ() -> None:
    with LivePage() as one, LivePage() as other:
        assert one.token != other.token
        assert len(one.token) >= 32
        assert one.server_address[0] == "127.0.0.1"


def test_it_ends_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "POLL_INTERVAL", 0.01)
    begun, ended = threading.Event(), []
    with RunFile.create(tmp_path / "run.h5", sphere(16), (), {"case": TEXT}) as file:
        thread = threading.Thread(target=lambda: ended.append(watch(tmp_path / "run.h5", lambda address: begun.set())))
        thread.start()
        assert begun.wait(30)
        file.write_snapshot(0.0, blobs(sphere(16), 0))
        file.close(stop_reason="finished")
    thread.join(30)
    assert ended == ["finished"]


def test_a_run_that_has_ended_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_file(tmp_path / "run.h5")
    assert main(["watch", str(run)]) == 2
    assert capsys.readouterr().err.endswith(f"{run}: is not being written; open it: meanfield view {run}\n")


def test_a_browser_sees_the_run_grow(tmp_path: Path) -> None:
    """The page stays at the last snapshot, or at the selected one."""
    (tmp_path / "profile").mkdir()
    path, mesh = tmp_path / "run.h5", sphere(16)
    with chromium(tmp_path / "profile") as browser, serving() as server:
        with RunFile.create(path, mesh, (), {"case": TEXT}) as file:
            for k in range(3):
                file.write_snapshot(float(k), blobs(mesh, 0.5 * k))
                file.flush()
                server.show(read(path))
                if k == 0:
                    browser.driver.get(server.address)
                browser.wait(f"document.getElementById('slider').max === '{k}'")
                browser.wait_for_snapshot(k)
            browser.run("slider.value = 1; slider.dispatchEvent(new Event('input'))")
            file.write_snapshot(3.0, blobs(mesh, 2.0))
            file.close(stop_reason="finished")
        server.show(read(path))
        browser.wait("document.getElementById('slider').max === '3'")
        browser.wait_for_snapshot(1)
        assert browser.complaints() == []
        assert server.taken == server.version
