"""Order conditions of the Runge–Kutta tableaux, by rooted trees.

A rooted tree t whose nodes are colored E or I has Φ(t) = 1/γ(t) up to the order (Butcher 1963; Araújo, Murua and
Sanz-Serna, SIAM J. Numer. Anal. 34 (1997) for several colors).
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from solvers.timestepping.runge_kutta.tableaux import TABLEAUX

MAX_CHECKED = 5  # largest checked order: the number of trees doubles with each order, times the colorings
ROUNDING = 1e-13  # of coefficients given as rational numbers of 13 digits


def violations(colors, order):
    """Yield a message for each order condition Φ(t) = 1/γ(t) of a colored rooted tree t that does not hold.

    colors   (stages, weights) of the method for each kind of terms: explicit, and implicit if there are two

    At most order 5 is checked, or 4 for two colors.
    """
    for size in range(1, min(order, MAX_CHECKED if len(colors) == 1 else 4) + 1):
        for tree in trees(size):
            for found in elementary_weights(colors, tree):
                if abs(found - 1 / density(tree)) > ROUNDING * size**3:
                    yield f"the condition of tree {tree} gives {found:.15g}"


@cache
def trees(size):
    """Return all rooted trees with ``size`` nodes; a tree is the tuple of its root's subtrees."""
    return tuple({tuple(sorted(children)) for children in forests(size - 1)})


def forests(size, largest=None):
    """Yield all multisets of rooted trees with ``size`` nodes in total, of at most ``largest`` nodes in each tree."""
    if size == 0:
        yield ()
        return
    for first in range(min(size, largest or size), 0, -1):
        for count in range(1, size // first + 1):
            for same in combinations_with_replacement(trees(first), count):
                for rest in forests(size - first * count, first - 1) if first > 1 or size == count else ():
                    yield (*same, *rest)


def size(tree):
    """Return the number of nodes of a rooted tree."""
    return 1 + sum(map(size, tree))


def density(tree):
    """Return the density γ(t) of a rooted tree t: the product of the sizes of all its subtrees, itself included."""
    found = Fraction(size(tree))
    for child in tree:
        found *= density(child)
    return found


def elementary_weights(colors, tree):
    """Return the elementary weights Φ(t) of a method for all colorings of the nodes of a rooted tree t.

    A color is explicit or implicit; ``colors`` holds the (stages, weights) of each.
    """
    return [float(weights @ stage) for _, weights in colors for stage in stages(colors, tree)]


def stages(colors, tree):
    """Return the vectors ψ (s,) of a rooted tree, one for each coloring of the nodes below the root.

    ψ_i is the product over the root's subtrees of Σⱼ a_ij ψⱼ(subtree), with the stages a of the color of its root.
    """
    each = [[a @ stage for a, _ in colors for stage in stages(colors, child)] for child in tree]
    one = np.ones(len(colors[0][1]))
    return [np.prod([one, *chosen], axis=0) for chosen in product(*each)]


def violations_of(table):
    """Return the violated conditions of a tableau, up to its order, and of its embedded method."""
    colors = [(table.stages, table.weights)]
    if table.implicit is not None:
        colors.append((table.implicit, table.implicit[-1]))
    embedded = [(stages, table.embedded) for stages, _ in colors]
    return [*violations(colors, table.order), *violations(embedded, table.embedded_order)]


@pytest.mark.parametrize("name", TABLEAUX)
def test_order_conditions_hold_to_rounding(name):
    table = TABLEAUX[name]()
    assert violations_of(table) == []
    wrong = table.stages.copy()
    wrong[-1, 0] += 1e-6
    assert violations_of(replace(table, stages=wrong))
    if table.implicit is not None:
        np.testing.assert_allclose(table.implicit.sum(axis=1), table.nodes, atol=1e-14)


def test_there_are_as_many_trees_as_there_should_be():
    assert [len(trees(size)) for size in range(1, 8)] == [1, 1, 2, 4, 9, 20, 48]  # Cayley 1857
