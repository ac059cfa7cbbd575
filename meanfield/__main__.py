"""Entry point of ``python -m meanfield``, which is the same as ``meanfield``."""

import sys

from meanfield.cli.parser import command

sys.exit(command())
