"""Functions of numbers that replace NumPy's in kernels on the GPU."""

from math import acos as arccos
from math import atan2 as arctan2
from math import floor, hypot, inf, nan, pi, sqrt

from numba import uint64
from numba.cuda.libdevice import rint

__all__ = ["arccos", "arctan2", "floor", "hypot", "inf", "nan", "pi", "rint", "sqrt", "uint64"]
