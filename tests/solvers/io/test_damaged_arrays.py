"""Arrays in damaged files: refused by ValueError, whatever NumPy raises for their headers."""

import numpy as np
import pytest

from solvers.io.arrays import read_array


@pytest.mark.parametrize("header", [b"{'descr': '<f8', ('", b'{"""', b"{'descr': \\", b"(" * 40, b"\xff\xfe"])
def test_headers_that_are_no_python(header, tmp_path):
    path = tmp_path / "tokens.npy"
    np.save(path, np.eye(3))
    data = bytearray(path.read_bytes())
    data[10 : 10 + len(header)] = header
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"\w"):
        read_array(path, "x")
