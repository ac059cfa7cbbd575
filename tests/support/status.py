"""`run` and `resume` as in the shell: their exit status, with the reason of an early end on stderr."""

import sys

from meanfield import running
from meanfield.runtime.signals import Terminated
from solvers.timestepping.state import NonFinite

DONE, NON_FINITE, INTERRUPTED = 0, 3, 130


def run(*arguments, quiet=False, **options):
    return _status(running.run, *arguments, quiet=quiet, **options)


def resume(*arguments, quiet=False, **options):
    return _status(running.resume, *arguments, quiet=quiet, **options)


def _status(function, *arguments, **options):
    try:
        function(*arguments, show=lambda text: print(text, file=sys.stderr), **options)
    except (NonFinite, KeyboardInterrupt, Terminated) as error:
        print(f"meanfield: {error}", file=sys.stderr)
        return NON_FINITE if isinstance(error, NonFinite) else INTERRUPTED
    return DONE
