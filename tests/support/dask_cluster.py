"""A Dask scheduler and its workers as separate processes, for tests that kill them."""

from __future__ import annotations

import subprocess
import sys
import time as clock
from pathlib import Path

ONE = ("--nthreads", "1", "--no-dashboard")
PATIENCE = 60.0  # seconds for a scheduler or a worker to start; an idle machine takes one


class Cluster:
    """A scheduler and workers in separate processes, started by `dask scheduler` and `dask worker` as users do."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder, self.workers = folder, list[subprocess.Popen[bytes]]()
        file = folder / "scheduler.json"
        options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        self.scheduler = self._start("scheduler", *options)
        deadline = clock.monotonic() + PATIENCE
        while not (file.exists() and '"address"' in file.read_text()):
            assert self.scheduler.poll() is None
            assert clock.monotonic() < deadline
            clock.sleep(0.02)
        self.address = file.read_text().partition('"address": "')[2].partition('"')[0]
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        """Add a worker without a nanny, which would start another worker after a kill."""
        options = ("--no-nanny", "--local-directory", str(self.folder))
        self.workers.append(self._start("worker", self.address, "--host", "127.0.0.1", *ONE, *options))

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *options]
        with open(self.folder / f"{what}.log", "ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
