"""The package on a system without POSIX: modules and names that Windows lacks are hidden from the package's code.

Python and other packages see the system unchanged, since they have other code on Windows. Each process, also a
worker of a sweep, installs the hook at its start.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.sweeping import CASE, SIX, statuses

from solvers.io.run_file import read

HOOK = '''
import builtins, os, signal, types

HIDDEN = {
    "os": """fork forkpty register_at_fork kill killpg wait wait3 wait4 waitid waitstatus WNOHANG WIFSIGNALED setpgid
        getpgid getpgrp setpgrp setsid getsid sched_yield sched_getaffinity sched_setaffinity sched_setscheduler uname
        getuid geteuid getgid getegid setuid sysconf pathconf confstr mkfifo mknod fchmod fchown chown lchown chroot
        fchdir getloadavg statvfs fstatvfs pread pwrite preadv pwritev readv writev sendfile lockf posix_fallocate
        posix_fadvise posix_spawn openpty ttyname nice getpriority sync fdatasync pipe2 copy_file_range memfd_create
        getxattr setxattr get_blocking set_blocking O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_DIRECTORY O_SYNC O_DSYNC O_PATH
        O_TMPFILE SCHED_OTHER""".split(),
    "signal": """SIGKILL SIGHUP SIGQUIT SIGUSR1 SIGUSR2 SIGALRM SIGPIPE SIGCHLD SIGSTOP SIGCONT SIGTSTP SIGXFSZ SIGXCPU
        SIGWINCH pthread_kill pthread_sigmask setitimer alarm pause sigwait sigpending SIG_BLOCK""".split(),
    "time": "CLOCK_MONOTONIC clock_gettime clock_nanosleep tzset".split(),
}
ABSENT = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog")
PACKAGES = ("meanfield", "solvers")
original, seen = builtins.__import__, []


class Windows(types.ModuleType):
    def __init__(self, module):
        super().__init__(module.__name__)
        self.__dict__["original"] = module

    def __getattr__(self, name):
        if name in HIDDEN[self.__name__]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self.__dict__["original"], name)


def open_file(path, *arguments, **options):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return os.open(path, *arguments, **options)


MODULES = {name: Windows(original(name)) for name in HIDDEN}
MODULES["os"].open = open_file


def hiding(name, globals=None, locals=None, fromlist=(), level=0):
    top = name.partition(".")[0]
    if level == 0 and (globals or {}).get("__name__", "").partition(".")[0] in PACKAGES:
        if not seen:
            seen.append(top)
            with open(os.environ["PROCESSES"], "a") as processes:
                processes.write(f"{os.getpid()}\\n")
        if top in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if top in MODULES:
            return MODULES[top]
    return original(name, globals, locals, fromlist, level)


builtins.__import__ = hiding
'''
COMMANDS = """
from meanfield.cli.parser import main

if __name__ == "__main__":
    for command in (
        "run growth_circle -o run.h5 --quiet --set domain.resolution=48 time.end=0.1 output.samples=4",
        "info run.h5 --verify",
        "resume run.h5 --until 0.2 --quiet",
        "sweep six.toml -o six.h5 --jobs 2 --quiet",
    ):
        assert main(command.split()) == 0, command
"""


def test_a_case_and_a_sweep_without_posix(tmp_path: Path) -> None:
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HOOK)
    (tmp_path / "commands.py").write_text(COMMANDS)
    (tmp_path / "six.toml").write_text(SIX + CASE)
    paths = [str(tmp_path / "hook"), *(path for path in sys.path if path)]
    variables = {"PYTHONPATH": os.pathsep.join(paths), "PROCESSES": str(tmp_path / "processes")}
    command, environment = [sys.executable, "commands.py"], os.environ | variables
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    assert "and their checksums are right" in done.stdout
    assert read(tmp_path / "run.h5").times[-1] == 0.2
    assert statuses(tmp_path / "six.h5") == ["done"] * 6
    assert len(set((tmp_path / "processes").read_text().split())) == 3  # including the workers
    assert sorted(path.name for path in tmp_path.glob("*.h5*")) == ["run.h5", "six.h5"]  # no lock file
