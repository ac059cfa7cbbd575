"""The device of these tests, chosen before a test file imports numba.cuda."""

import support.device  # noqa: F401
