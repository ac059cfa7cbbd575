"""Sizes of tables and work arrays that kernels and array code share."""

MAX_SIDES = 16  # of a cell, which the work arrays of the kernels, scratch(16), have room for
MAX_RING_SIDES = 5  # of a cell of a ring of latitude
WINDOW_NODES = 16  # along an axis, over which a nonuniform transform spreads a point: the widest, or with zeros around
