"""Sizes of tables and work arrays, and constants, that kernels and array code share."""

from math import pi, sqrt

MAX_SIDES = 16  # of a cell, the size of the work arrays scratch(16) of the kernels
MAX_RING_SIDES = 5  # of a cell of a ring of latitude
WINDOW_NODES = 16  # along an axis in a nonuniform transform's window: the widest; narrower ones are padded by zeros
ROOT_OF_AREA = sqrt(4.0 * pi)  # coefficient of degree 0 of the density 1 on the sphere
