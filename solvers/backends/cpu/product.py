"""Products of small matrices that stay in a core's caches, in either number format, without BLAS and its threads.

The right factor is a tile of ``TILE_BYTES`` a row: one long vector, which the compiler cuts into the machine's. A block
of ``TILE_ROWS`` rows of the result is held in registers while the sum runs (Goto and van de Geijn, Anatomy of
high-performance matrix multiplication, 2008).
"""

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .exponential import CONTRACT
from .launching import inline

TILE_ROWS = 6
# Six rows fill 24 of the 32 registers of AVX-512, or 12 of the 16 of AVX2.
TILE_BYTES = 256 if llvmlite.binding.get_host_cpu_features().get("avx512f") else 64


@intrinsic
def wide_vectors(typing):
    """Let the loops of the kernel that calls this use the machine's widest vectors; the compiler's default is half."""

    def generate(context, builder, signature, arguments):
        # llvmlite refuses attributes that it does not know
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


class Code:
    """What an intrinsic writes: access to the arrays and numbers among its arguments, by their places."""

    def __init__(self, context, builder, signature, arguments):
        self._context, self.builder, self._types, self.arguments = context, builder, signature.args, arguments

    def pointer(self, place, row, column, kind):
        """The address of ``[row, column]`` of an array, by its strides, as that of a vector or number ``kind``."""
        builder = self.builder
        row, column = (ir.IntType(64)(k) if isinstance(k, int) else k for k in (row, column))
        found = self._context.make_array(self._types[place])(self._context, builder, self.arguments[place])
        strides = cgutils.unpack_tuple(builder, found.strides, 2)
        offset = builder.add(builder.mul(row, strides[0]), builder.mul(column, strides[1]))
        start = builder.bitcast(found.data, ir.IntType(8).as_pointer())
        return builder.bitcast(builder.gep(start, [offset]), kind.as_pointer())

    def plus(self, place, r):
        """A number among the arguments, plus r."""
        return self.builder.add(self.arguments[place], ir.IntType(64)(r))

    def plus_product(self, total, one, other):
        product = self.builder.fmul(one, other, flags=[*CONTRACT])
        return self.builder.fadd(total, product, flags=[*CONTRACT])


def in_all_lanes(builder, value, lanes):
    """A vector of so many equal numbers."""
    none = ir.Constant(ir.VectorType(value.type, lanes), None)
    first = builder.insert_element(none, value, ir.IntType(32)(0))
    return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(ir.IntType(32), lanes), None))


def sum_of_lanes(builder, vector, lanes):
    """The sum of the numbers of a vector, a power of two, half and half."""
    while lanes > 1:
        lanes //= 2
        low, high = (
            builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [*some]))
            for some in (range(lanes), range(lanes, 2 * lanes))
        )
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, ir.IntType(32)(0))


def row_products(rows, row_bytes, accumulate):
    """A function (left, first, right, depth, result, row) for kernels, ``rows`` rows of a product of small matrices.

    result[row + r, :] = Σ_k left[first + r, k] right[k, :] for r < rows, k < depth, or += with ``accumulate``, in the
    order of k. ``right`` and ``result`` are taken ``row_bytes`` to a row, whatever their shapes. The arrays are read by
    their strides, and no index is checked.
    """

    @intrinsic
    def product(typing, left, first, right, depth, result, row):
        def generate(context, builder, signature, arguments):
            block = _Block(context, builder, signature, arguments, row_bytes)
            before = [block.row(4, block.plus(5, r)) if accumulate else block.zero for r in range(rows)]
            for r, total in enumerate(block.products(before)):
                block.store(total, 4, block.plus(5, r), block.kind)
            return context.get_dummy_value()

        return types.void(left, types.intp, right, types.intp, result, types.intp), generate

    return product


def row_dots(rows, row_bytes):
    """A function (left, first, right, depth, others, result) for kernels, sums over such a product without keeping it.

    result[first + r, 0] = Σ_j others[first + r, j] Σ_k left[first + r, k] right[k, j] for r < rows.
    """

    @intrinsic
    def dots(typing, left, first, right, depth, others, result):
        def generate(context, builder, signature, arguments):
            block = _Block(context, builder, signature, arguments, row_bytes)
            for r, total in enumerate(block.products([block.zero] * rows)):
                here = block.plus(1, r)
                product = builder.fmul(block.row(4, here), total, flags=[*CONTRACT])
                block.store(sum_of_lanes(builder, product, block.lanes), 5, here, block.scalar)
            return context.get_dummy_value()

        return types.void(left, types.intp, right, types.intp, others, result), generate

    return dots


class _Block(Code):
    """Rows of a product of matrices in registers, for an intrinsic (left, first, right, depth, ...)."""

    def __init__(self, context, builder, signature, arguments, row_bytes):
        super().__init__(context, builder, signature, arguments)
        dtype = signature.args[0].dtype
        self.align = dtype.bitwidth // 8
        self.lanes = row_bytes // self.align
        self.scalar = context.get_value_type(dtype)
        self.kind = ir.VectorType(self.scalar, self.lanes)
        self.zero = ir.Constant(self.kind, None)

    def row(self, place, row):
        return self.builder.load(self.pointer(place, row, 0, self.kind), align=self.align)

    def store(self, value, place, row, kind):
        self.builder.store(value, self.pointer(place, row, 0, kind), align=self.align)

    def products(self, before):
        """Σ_k left[first + r, k] right[k, :] of each row, added to what was before."""
        builder, sums = self.builder, [cgutils.alloca_once(self.builder, self.kind) for _ in before]
        for value, total in zip(before, sums, strict=True):
            builder.store(value, total)
        with cgutils.for_range(builder, self.arguments[3]) as loop:
            along = self.row(2, loop.index)
            for r, total in enumerate(sums):
                factor = builder.load(self.pointer(0, self.plus(1, r), loop.index, self.scalar))
                found = self.plus_product(builder.load(total), in_all_lanes(builder, factor, self.lanes), along)
                builder.store(found, total)
        return [builder.load(total) for total in sums]


_row_products = row_products(TILE_ROWS, TILE_BYTES, accumulate=False)


@inline
def tile_product(left, first, right, depth, result, rows):
    """result[r, :] = Σ_k left[first + r, k] right[k, :] for r < rows (a multiple of TILE_ROWS), k < depth."""
    for row in range(0, rows, TILE_ROWS):
        _row_products(left, first + row, right, depth, result, row)
