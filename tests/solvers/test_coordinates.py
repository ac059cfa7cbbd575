import numpy as np

from solvers.mesh.coordinates import unit_vectors


def test_directions_are_in_double_precision_and_a_vector_0_stays() -> None:
    vectors = np.array([[[3.0, 4.0], [0.0, 0.0]], [[-1e-200, 0.0], [1.0, 1.0]]], dtype=np.float32)
    found = unit_vectors(vectors)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, [[[0.6, 0.8], [0, 0]], [[0, 0], [0.5**0.5, 0.5**0.5]]], rtol=1e-15)
    assert unit_vectors([0, -2]).tolist() == [0.0, -1.0]
