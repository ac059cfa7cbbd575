"""Memory that a block's threads share, in Numba's simulator: one array for all of them.

There each thread is a thread of Python. The simulator makes the array for the first that asks for it, and looks and
makes in two steps: where another thread comes between, two threads hold two arrays, and what one writes the other does
not see.
"""

import sys
from importlib import import_module
from threading import Lock

import numpy as np

_one_by_one = Lock()


def share_one_array():
    """Have the simulator give all threads of a block one array for each line of a kernel that asks for one."""
    import_module("numba.cuda.simulator.kernelapi").FakeCUDAShared.array = _shared_array


def _shared_array(shared, shape, dtype):
    asked = sys._getframe(1)
    line = asked.f_code.co_filename, asked.f_lineno
    with _one_by_one:
        if line not in shared._allocations:
            shared._allocations[line] = np.empty(shape, dtype)
        return shared._allocations[line]
