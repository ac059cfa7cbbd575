"""Memory of freed arrays of a run is used again."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

SIZE, TIMES = 1 << 21, 20  # bytes of an array, and number of times that a new one is filled
COUNT = f"""
import resource
import sys
import numpy as np
from meanfield import running
if sys.argv[1] == "kept":
    running._keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({TIMES}):
    arrays = [np.ones({SIZE} // 8) for _ in range(4)]
    del arrays
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's malloc; others keep memory as they like")
def test_freed_arrays_are_used_again_without_page_faults() -> None:
    """Four arrays at a time, in pages of 4 KiB: all except the first four cause no page fault."""

    free = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}  # as dask sets them

    def faults(how: str) -> int:
        shown = subprocess.run([sys.executable, "-c", COUNT, how], capture_output=True, text=True, check=True, env=free)
        return int(shown.stdout)

    assert faults("kept") < faults("given back") / 4
