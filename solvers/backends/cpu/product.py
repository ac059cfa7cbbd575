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


def vector_pointer(context, builder, kind, array_type, array, row, column):
    """The address of ``array[row, column]``, by its strides, as that of a vector or number ``kind``; for intrinsics."""
    found = context.make_array(array_type)(context, builder, array)
    strides = cgutils.unpack_tuple(builder, found.strides, 2)
    offset = builder.add(builder.mul(row, strides[0]), builder.mul(column, strides[1]))
    start = builder.bitcast(found.data, ir.IntType(8).as_pointer())
    return builder.bitcast(builder.gep(start, [offset]), kind.as_pointer())


def in_all_lanes(builder, value, lanes):
    """A vector of so many equal numbers."""
    none = ir.Constant(ir.VectorType(value.type, lanes), None)
    first = builder.insert_element(none, value, ir.IntType(32)(0))
    return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(ir.IntType(32), lanes), None))


def row_products(rows, row_bytes, accumulate):
    """A function (left, first, right, depth, result, row) for kernels, ``rows`` rows of a product of small matrices.

    result[row + r, :] = Σ_k left[first + r, k] right[k, :] for r < rows, k < depth, or += with ``accumulate``, in the
    order of k. ``right`` and ``result`` are taken ``row_bytes`` to a row, whatever their shapes. The arrays are read by
    their strides, and no index is checked.
    """

    @intrinsic
    def product(typing, left, first, right, depth, result, row):
        align = left.dtype.bitwidth // 8
        lanes = row_bytes // align
        number = ir.IntType(64)

        def generate(context, builder, signature, arguments):
            scalar = context.get_value_type(left.dtype)
            vector = ir.VectorType(scalar, lanes)
            zero = ir.Constant(vector, None)

            def pointer(place, down, along, kind):
                array_type, array = signature.args[place], arguments[place]
                return vector_pointer(context, builder, kind, array_type, array, down, along)

            def rows_from(start):
                return [builder.add(start, number(r)) for r in range(rows)]

            sums = [cgutils.alloca_once(builder, vector) for _ in range(rows)]
            for here, total in zip(rows_from(arguments[5]), sums, strict=True):
                before = builder.load(pointer(4, here, number(0), vector), align=align) if accumulate else zero
                builder.store(before, total)
            with cgutils.for_range(builder, arguments[3]) as loop:
                along = builder.load(pointer(2, loop.index, number(0), vector), align=align)
                for here, total in zip(rows_from(arguments[1]), sums, strict=True):
                    factor = in_all_lanes(builder, builder.load(pointer(0, here, loop.index, scalar)), lanes)
                    added = builder.fmul(factor, along, flags=[*CONTRACT])
                    builder.store(builder.fadd(builder.load(total), added, flags=[*CONTRACT]), total)
            for here, total in zip(rows_from(arguments[5]), sums, strict=True):
                builder.store(builder.load(total), pointer(4, here, number(0), vector), align=align)
            return context.get_dummy_value()

        return types.void(left, types.intp, right, types.intp, result, types.intp), generate

    return product


_row_products = row_products(TILE_ROWS, TILE_BYTES, accumulate=False)


@inline
def tile_product(left, first, right, depth, result, rows):
    """result[r, :] = Σ_k left[first + r, k] right[k, :] for r < rows (a multiple of TILE_ROWS), k < depth."""
    for row in range(0, rows, TILE_ROWS):
        _row_products(left, first + row, right, depth, result, row)
