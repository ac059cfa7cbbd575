"""Sums of associated Legendre functions over rings of latitude, and of what rings have times these functions.

P̄_lm at some rings side by side stays in registers from l = m on, two degrees at a time: one even and one odd about the
equator. Nothing of it is in memory, where each of its values would be written once and read several times.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ..caching import compiled
from ..exponential import CONTRACT
from ..launching import inline
from ..product import TILE_BYTES, Code, in_all_lanes, wide_vectors

LANES = 16 if TILE_BYTES == 256 else 8  # rings at a time: two vectors, so that one need not wait for the other
HALF = LANES // 2
NUMBER = ir.DoubleType()
VECTOR, HALF_VECTOR = ir.VectorType(NUMBER, LANES), ir.VectorType(NUMBER, HALF)
COLUMNS = 6 if TILE_BYTES == 256 else 2  # sums at a time that stay in the registers with them
NEGLIGIBLE = 1e-290  # as P̄_mm: 0 instead, for numbers near the smallest slow a processor down

_kernel = compiled(fastmath={*CONTRACT, "reassoc"}, apart=True)


class _Walk(Code):
    """Code that goes over the degrees, of an intrinsic (rings, ring, steps, count, ...)."""

    def at_rings(self, place, row):
        """``row`` of an argument at the rings."""
        return self.builder.load(self.pointer(place, row, self.arguments[1], VECTOR), align=8)

    def in_all(self, place, row, column):
        """A number of an argument in all lanes."""
        return in_all_lanes(self.builder, self.builder.load(self.pointer(place, row, column, NUMBER)), LANES)

    def over_degrees(self, visit):
        """Write the loop; visit(k, parity, P̄) writes what is done with degree m + k, k = parity + 0, 2, 4, …"""
        builder, two = self.builder, ir.IntType(64)(2)
        places = [cgutils.alloca_once(builder, VECTOR) for _ in range(2)]
        cosine = self.at_rings(0, 0)
        for value, place in zip((ir.Constant(VECTOR, None), self.at_rings(0, 1)), places, strict=True):
            builder.store(value, place)
        with cgutils.for_range_slice(builder, ir.IntType(64)(0), self.arguments[3], two) as (first, _):
            before, here = (builder.load(place) for place in places)
            for parity in range(2):
                k = builder.add(first, ir.IntType(64)(parity))
                visit(k, parity, here)
                up, below = (self.in_all(2, k, column) for column in range(2))
                factor = builder.fmul(up, cosine, flags=[*CONTRACT])  # the next degree waits for one product alone
                less = builder.fmul(below, before, flags=[*CONTRACT])
                more = builder.fmul(factor, here, flags=[*CONTRACT])
                before, here = here, builder.fsub(more, less, flags=[*CONTRACT])
            for value, place in zip((before, here), places, strict=True):
                builder.store(value, place)


def _sums_at_rings(columns):
    """A function (rings, ring, steps, count, factors, column, sums) for kernels, at LANES rings from ``ring`` on.

    sums[2c + parity, ring] = Σ_k P̄_{m+k} factors[k, column + c] over even and over odd k < count, for c < columns.
    """

    @intrinsic
    def sum_up(typing, rings, ring, steps, count, factors, column, sums):
        def generate(context, builder, signature, arguments):
            walk = _Walk(context, builder, signature, arguments)
            totals = [cgutils.alloca_once_value(builder, ir.Constant(VECTOR, None)) for _ in range(2 * columns)]

            def visit(k, parity, legendre):
                for c in range(columns):
                    factor = walk.in_all(4, k, walk.plus(5, c))
                    place = totals[2 * c + parity]
                    builder.store(walk.plus_product(builder.load(place), factor, legendre), place)

            walk.over_degrees(visit)
            for row, total in enumerate(totals):
                builder.store(builder.load(total), walk.pointer(6, row, arguments[1], VECTOR), align=8)
            return context.get_dummy_value()

        return types.void(rings, types.intp, steps, types.intp, factors, types.intp, sums), generate

    return sum_up


_sums_of_few, _sums_of_one = _sums_at_rings(COLUMNS), _sums_at_rings(2)


def _products_of(rows):
    """A function (rings, ring, steps, count, modes, sums) for kernels, over LANES rings from ``ring`` on.

    sums[k, 2r + c] += Σ P̄_{m+k} modes[4r + 2 parity + c] in HALF parts, parity that of k < count, for c < 2, r < rows.
    """

    @intrinsic
    def add_products(typing, rings, ring, steps, count, modes, sums):
        def generate(context, builder, signature, arguments):
            walk = _Walk(context, builder, signature, arguments)
            modes_here = [walk.at_rings(4, row) for row in range(4 * rows)]
            lanes = ir.VectorType(ir.IntType(32), HALF)
            parts = [ir.Constant(lanes, [*range(first, first + HALF)]) for first in (0, HALF)]

            def visit(k, parity, legendre):
                for column in range(2 * rows):
                    place = walk.pointer(5, k, column * HALF, HALF_VECTOR)
                    mode = modes_here[4 * (column // 2) + 2 * parity + column % 2]
                    total = builder.load(place, align=8)
                    for part in parts:
                        one, other = (builder.shuffle_vector(whole, whole, part) for whole in (legendre, mode))
                        total = walk.plus_product(total, one, other)
                    builder.store(total, place, align=8)

            walk.over_degrees(visit)
            return context.get_dummy_value()

        return types.void(rings, types.intp, steps, types.intp, modes, sums), generate

    return add_products


_products_of_one, _products_of_two = _products_of(1), _products_of(2)


@intrinsic
def _add_lanes(typing, count, sums, row, found):
    """found[k, c] = Σ of the HALF lanes of sums[k, 2 row + c], for c < 2 and k < count, two degrees at a time."""

    def generate(context, builder, signature, arguments):
        code = Code(context, builder, signature, arguments)

        def neighbors(one, other):
            """Sums of neighboring lanes, of one vector and then of the other."""
            lanes = ir.VectorType(ir.IntType(32), one.type.count if other is not one else one.type.count // 2)
            every = [ir.Constant(lanes, [*range(first, 2 * lanes.count, 2)]) for first in (0, 1)]
            return builder.fadd(*(builder.shuffle_vector(one, other, chosen) for chosen in every))

        column = builder.mul(arguments[2], ir.IntType(64)(2 * HALF))
        with cgutils.for_range_slice(builder, ir.IntType(64)(0), arguments[0], ir.IntType(64)(2)) as (first, _):
            parts = []
            for k in (first, builder.add(first, ir.IntType(64)(1))):
                columns = (builder.add(column, ir.IntType(64)(c * HALF)) for c in range(2))
                both = [builder.load(code.pointer(1, k, each, HALF_VECTOR), align=8) for each in columns]
                parts.append(neighbors(*both))
            total = neighbors(*parts)
            while total.type.count > 4:
                total = neighbors(total, total)
            builder.store(total, code.pointer(3, first, 0, total.type), align=8)
        return context.get_dummy_value()

    return types.void(types.intp, sums, types.intp, found), generate


@inline
def _width(half):
    """So many rings, filled up to whole vectors."""
    return (half + LANES - 1) // LANES * LANES


@inline
def _rings_from_pole(cosine):
    """(2, width) cos θ of the rings, and where their P̄_mm will be, 0 beyond the last one."""
    rings = np.zeros((2, _width(len(cosine))))
    for r in range(len(cosine)):
        rings[0, r] = cosine[r]
    return rings


@inline
def _roots(degrees):
    """(4, 2 degrees + 1) √n, 1/√n, √(4n² − 1) and its inverse for n > 0."""
    roots = np.empty((4, 2 * degrees + 1))
    for n in range(1, roots.shape[1]):
        roots[0, n], roots[2, n] = np.sqrt(np.float64(n)), np.sqrt(4.0 * n * n - 1.0)
        roots[1, n], roots[3, n] = 1.0 / roots[0, n], 1.0 / roots[2, n]
    return roots


@inline
def _next_order(m, sine, rings):
    """P̄_mm of the rings, from m − 1 to m: √((2m + 1)/2m) sin θ P̄_{m−1,m−1}, from P̄_00 = 1/√4π on."""
    factor = np.sqrt((2.0 * m + 1.0) / (2.0 * m)) if m > 0 else 1.0 / np.sqrt(4.0 * np.pi)
    for r in range(len(sine)):
        value = factor * sine[r] * rings[1, r] if m > 0 else factor
        rings[1, r] = value if value > NEGLIGIBLE else 0.0


@inline
def _find_steps(m, count, roots, steps):
    """α_{l+1} and α_{l+1}/α_l of so many degrees l from m on, α_l = √(4l² − 1)/√((l − m)(l + m))."""
    for k in range(count):
        steps[k, 0] = roots[2, m + k + 1] * (roots[1, k + 1] * roots[1, 2 * m + k + 1])
    steps[0, 1] = 0.0
    for k in range(1, count):
        steps[k, 1] = steps[k, 0] * (roots[3, m + k] * (roots[0, k] * roots[0, 2 * m + k]))


@inline
def _analyze_order(m, modes, rings, roots, steps, of_modes, sums, found):
    """found[row, k] = Σ_rings P̄_{m+k} modes, re and im, of one or two rows of modes; the others are work arrays."""
    rows, degrees, half = len(modes), modes.shape[2], modes.shape[3]
    count = (degrees - m + 1) // 2 * 2
    _find_steps(m, count, roots, steps)
    for k in range(count):
        for j in range(2 * HALF * rows):
            sums[k, j] = 0.0
    for part in range(4 * rows):
        for r in range(half):
            of_modes[part, r] = modes[part // 4, part % 4, m, r]
    for ring in range(0, half, LANES):
        if rows == 2:
            _products_of_two(rings, ring, steps, count, of_modes, sums)
        else:
            _products_of_one(rings, ring, steps, count, of_modes, sums)
    for row in range(rows):
        _add_lanes(count, sums, row, found[row])


@inline
def _work_arrays(degrees, half):
    """Those of ``_analyze_order``: steps, modes, sums and what is found."""
    sums, found = np.empty((degrees + 1, 4 * HALF)), np.empty((2, degrees + 1, 2))
    return np.empty((degrees + 1, 2)), np.zeros((8, _width(half))), sums, found


@_kernel
def legendre_analysis(worker, workers, cosine, sine, modes, coefficients, squares):
    """coefficients[r, l, m] = Σ_rings P̄_lm(cos θ) modes[r, ..., m, ring], over northern rings, or their squares.

    modes          (rows, 4, L + 1, half): sums of the modes of mirrored rings, re and im, then their differences
    coefficients   (rows, L + 1, L + 1) or (0, 0, 0)
    squares        (rows, m, l) |coefficients|², of m > 0 twice that, for ±m, and 0 for l < m; or (0, 0, 0)
    """
    wide_vectors()
    rows, degrees, half = len(modes), modes.shape[2], modes.shape[3]
    rings, roots = _rings_from_pole(cosine), _roots(degrees)
    steps, of_modes, sums, found = _work_arrays(degrees, half)
    for m in range(degrees):
        _next_order(m, sine, rings)
        if m * (2 * degrees - m + 1) * workers // (degrees * (degrees + 1)) != worker:
            continue  # orders side by side are one worker's, as two must not write into the same line of the caches
        for row in range(0, rows, 2):
            _analyze_order(m, modes[row : row + 2], rings, roots, steps, of_modes, sums, found)
            for part in range(min(2, rows - row)):
                for k in range(degrees - m if len(coefficients) > 0 else 0):
                    coefficients[row + part, m + k, m] = complex(found[part, k, 0], found[part, k, 1])
                for l in range(degrees if len(squares) > 0 else 0):
                    square = found[part, l - m, 0] ** 2 + found[part, l - m, 1] ** 2 if l >= m else 0.0
                    squares[row + part, m, l] = square if m == 0 else 2.0 * square


@_kernel
def legendre_synthesis(worker, workers, cosine, sine, coefficients, mirror, modes_re, modes_im):
    """modes[s, m, ring] = Σ_l coefficients[s, l, m] P̄_lm(cos θ) for several sets s at once, on all rings.

    cosine, sine: (half) northern rings and the equator; ``mirror`` (half) is the southern ring of each.
    """
    wide_vectors()
    sets, degrees, half = coefficients.shape[0], coefficients.shape[1], len(cosine)
    rings, sums = _rings_from_pole(cosine), np.empty((4 * sets, _width(half)))
    steps, factors = np.empty((degrees + 1, 2)), np.zeros((degrees + 1, 2 * sets))
    roots = _roots(degrees)
    for m in range(degrees):
        _next_order(m, sine, rings)
        if m % workers != worker:
            continue
        count = (degrees - m + 1) // 2 * 2
        _find_steps(m, count, roots, steps)
        for s in range(sets):
            for k in range(degrees - m):
                value = coefficients[s, m + k, m]
                factors[k, 2 * s], factors[k, 2 * s + 1] = value.real, value.imag
            for k in range(degrees - m, count):
                factors[k, 2 * s], factors[k, 2 * s + 1] = 0.0, 0.0
        for ring in range(0, half, LANES):
            column = 0
            while column + COLUMNS <= 2 * sets:
                _sums_of_few(rings, ring, steps, count, factors, column, sums[2 * column :])
                column += COLUMNS
            while column < 2 * sets:
                _sums_of_one(rings, ring, steps, count, factors, column, sums[2 * column :])
                column += 2
        for s in range(sets):
            for r in range(half):
                modes_re[s, m, mirror[r]] = sums[4 * s, r] - sums[4 * s + 1, r]
                modes_im[s, m, mirror[r]] = sums[4 * s + 2, r] - sums[4 * s + 3, r]
                modes_re[s, m, r] = sums[4 * s, r] + sums[4 * s + 1, r]
                modes_im[s, m, r] = sums[4 * s + 2, r] + sums[4 * s + 3, r]
