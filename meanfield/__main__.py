"""``python -m meanfield`` is the same as ``meanfield``."""

import sys

from meanfield.cli.parser import command

sys.exit(command())
