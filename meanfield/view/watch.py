"""Page of a run in progress, served to browsers on this machine only."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from meanfield.runtime.messages import command_of
from meanfield.view.page import compose, source
from solvers.io.run_file import FileError, Run, read

HOST = "127.0.0.1"
POLL_INTERVAL = 0.5  # seconds between readings of the file
PAUSE_RATIO = 4.0  # pause as a multiple of the time to make a page, which leaves the processor to the run
GRACE = 5.0  # seconds for an open browser to load the last page
IDLE = 10.0  # seconds after which an idle connection is closed
WAITING = '<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="1"><p>No snapshot yet.</p>'
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class LivePage(ThreadingHTTPServer):
    """Local server of the page of a run in progress, and of the page's version number, at a secret address.

    The address contains a random token. The answer to a request with another token, path or host name is 404.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Handler)
        self.token = secrets.token_urlsafe(24)
        self.version, self.body, self.taken = 0, WAITING.encode(), 0
        self._state: tuple[int, str] | None = None

    @property
    def address(self) -> str:
        """Return the address of a run's HTML page for the browser."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def show(self, run: Run) -> None:
        """Update the HTML page if the run has a new snapshot and the last page was loaded, or if the run has ended."""
        state = run.snapshots, run.attributes["stop_reason"]
        early = self.taken < self.version and run.writer is not None
        if state == self._state or run.snapshots == 0 or early:
            return
        page = compose(run, quiet=self._state is not None)
        self._state, version = state, self.version + 1
        page = page.replace("img-src data:", "img-src data:; connect-src 'self'", 1)
        script = f'<script>\n"use strict";\n{source("watch.js")}\nfollow({version});\n</script>\n</body>'
        head, tail = page.rsplit("</body>", 1)
        self.body, self.version = (head + script + tail).encode(errors="backslashreplace"), version

    def answer(self, host: str, path: str) -> bytes | None:
        """Return the body of the answer to a request, or None for an unknown address.

        The body is the HTML page, or for the name "version" the number of its version.
        """
        if host != f"{HOST}:{self.server_port}":  # another site's name that resolves to this address
            return None
        token, _, name = path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return None
        if name == "":
            body, self.taken = self.body, self.version
            return body
        return str(self.version).encode() if name == "version" else None


class _Handler(BaseHTTPRequestHandler):
    """Handler of one request to the server of a page."""

    server: LivePage
    timeout = IDLE

    def do_GET(self) -> None:
        """Send the answer of the server to a request, or status 404 for an unknown address."""
        body = self.server.answer(self.headers.get("Host", ""), self.path)
        self.send_response(404 if body is None else 200)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        kind = "plain" if body is None or self.path.endswith("version") else "html"
        self.send_header("Content-Type", f"text/{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def serving() -> Iterator[LivePage]:
    """Yield a server of a page that answers requests within the context."""
    with LivePage() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def watch(path: str | Path, say: Callable[[str], None]) -> str:
    """Serve the HTML page of a run to browsers on this machine until the run has ended, and return how it ended.

    The result is ``stop_reason`` of the file, or "killed". The function ``say`` is called with the address. Raises
    FileError for a file that cannot be read or shown, or is not being written.
    """
    if (run := read(path)).writer is None:
        raise FileError(f"{path}: is not being written; open it: {command_of('view', path)}")
    with serving() as server:
        say(server.address)
        while run.writer is not None:
            began = time.monotonic()
            server.show(run)
            time.sleep(max(POLL_INTERVAL, PAUSE_RATIO * (time.monotonic() - began)))
            run = read(path)
        server.show(run)
        until = time.monotonic() + GRACE
        while 0 < server.taken < server.version and time.monotonic() < until:
            time.sleep(0.1)
    reason: str = run.attributes["stop_reason"]
    return "killed" if reason == "running" else reason
