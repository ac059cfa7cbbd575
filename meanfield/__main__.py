"""``python -m meanfield`` is the same as ``meanfield``."""

import sys

from meanfield.cli import command

sys.exit(command())
