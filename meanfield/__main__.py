"""``python -m meanfield`` is the same as ``meanfield``."""

import sys

from meanfield.cli import main

sys.exit(main())
