"""Wrong arguments of physics objects: refused in one line, by the names of the arguments."""

import pickle

import numpy as np
import pytest

import meanfield as mf
import solvers
from meanfield.model.errors import ArgumentError

CIRCLE = solvers.circle(16)
SPHERE = solvers.sphere(8)
EYE = np.eye(2)

REFUSED = {
    "mesh = 'interval': expected a circle or a sphere": lambda: mf.Attention(solvers.interval(0.0, 1.0, 8), 2.0),
    "mesh = 'icosphere': expected": lambda: mf.Attention(solvers.icosphere(2), 2.0),
    "mesh = 'm': expected": lambda: mf.Attention("m", 2.0),
    "beta = nan: expected a finite number": lambda: mf.Attention(CIRCLE, np.nan),
    "beta = '2': expected a finite number": lambda: mf.Attention(CIRCLE, "2"),
    "beta = True: expected a finite number": lambda: mf.Attention(CIRCLE, True),
    "normalization = 'x': expected one of softmax": lambda: mf.Attention(CIRCLE, 2.0, "x"),
    "kernel = 'x': expected one of exponential": lambda: mf.Attention(CIRCLE, 2.0, kernel="x"),
    "heads = (): expected a list of one or more Head": lambda: mf.Attention(CIRCLE, 2.0, heads=()),
    "heads = Head(query=1.0": lambda: mf.Attention(CIRCLE, 2.0, heads=mf.Head()),
    "query = '3 × 3': expected a number, or a matrix of k × 2": lambda: mf.Attention(
        CIRCLE, 2.0, heads=[mf.Head(np.eye(3))]
    ),
    "value = '1 × 2': expected a number, or a matrix of 2 × 2": lambda: mf.Attention(
        CIRCLE, 2.0, heads=[mf.Head(value=EYE[:1])]
    ),
    "key = '2 rows': expected 1, as the query has": lambda: mf.Attention(CIRCLE, 2.0, heads=[mf.Head(EYE[:1])]),
    "query = 'not finite'": lambda: mf.Head(np.nan * EYE),
    "key = nan: expected a finite number": lambda: mf.Head(key=np.nan),
    "value = 'float64 of shape (2,)': expected": lambda: mf.Head(value=np.ones(2)),
    "out = 2.0: expected a matrix, or None": lambda: mf.Head(out=2.0),
    "out = '2 × 1': expected a number, or a matrix of 2 × 2": lambda: mf.Attention(
        CIRCLE, 2.0, heads=[mf.Head(out=EYE[:, :1])]
    ),
    "weight = 'a': expected a finite number": lambda: mf.Head(weight="a"),
    "name = 'x': expected one of post, pre": lambda: mf.LayerNorm("x"),
    "alpha = 0.0: expected a number > 0": lambda: mf.LayerNorm("ngpt", alpha=0.0),
    "alpha = 'x': expected a finite number": lambda: mf.LayerNorm("ngpt", alpha="x"),
    "switch = -1.0: expected a number >= 0": lambda: mf.LayerNorm("mix", switch=-1.0),
    "activation = 'sin': expected one of relu": lambda: mf.FeedForward(EYE, EYE[0], EYE, "sin"),
    "bias = (3,): expected shape (2,)": lambda: mf.FeedForward(EYE, np.ones(3), EYE),
    "outer = 'not finite'": lambda: mf.FeedForward(EYE, EYE[0], np.nan * EYE),
    "growth = 3.0: expected a function of the density": lambda: mf.Reaction(3.0),
    "fastest = inf: expected a finite number": lambda: mf.Reaction(lambda density: 1.0, fastest=np.inf),
    "normalization = ['softmax']: expected one of": lambda: mf.Attention(CIRCLE, 2.0, normalization=["softmax"]),
    "heads = 3: expected a list of one or more Head": lambda: mf.Attention(CIRCLE, 2.0, heads=3),
    "name = ['post']: expected one of post, pre": lambda: mf.LayerNorm(["post"]),
    "density = (5,): expected shape (16,)": lambda: mf.Attention(CIRCLE, 2.0).output(np.ones(5)),
    "density = 'x': expected an array of 1 axes": lambda: mf.Attention(CIRCLE, 2.0).output("x"),
    "density = 'complex128': expected real numbers": lambda: mf.Attention(CIRCLE, 2.0).output(np.ones(16) * 1j),
    "density = 'not finite': expected finite numbers": lambda: mf.Attention(CIRCLE, 2.0).output(np.full(16, np.nan)),
    "density = (16, 1): expected shape (16,)": lambda: mf.Attention(CIRCLE, 2.0).normalizer_and_output(
        np.ones((16, 1))
    ),
    "densities = (2, 5): expected shape (rows, 16)": lambda: mf.Attention(CIRCLE, 2.0).of_rows(
        np.ones((2, 5)), empty="bounded"
    ),
    "density = (5,): expected shape (88,)": lambda: mf.Attention(SPHERE, 2.0).along_rings(np.ones(5), empty="bounded"),
    "normalizer = (3,): expected shape (88,)": lambda: mf.Attention(SPHERE, 2.0).along_rings(
        np.ones(88), np.ones(3), empty="bounded"
    ),
    "time = (2,): expected one number with the layer norm mix": lambda: mf.LayerNorm("mix").velocity(
        np.array([0.5, 1.5]), np.ones(2), EYE, EYE
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_wrong_argument_is_named(message):
    with pytest.raises(ArgumentError) as error:
        REFUSED[message]()
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_copied_error_keeps_its_fields():
    error = pickle.loads(pickle.dumps(ArgumentError("beta", "2", "a finite number")))
    assert (error.argument, error.value, error.expected) == ("beta", "2", "a finite number")
    assert str(error) == "beta = '2': expected a finite number"


def test_lists_are_taken_as_arrays():
    density = np.linspace(0.1, 0.2, 16)
    rotated = [[0.0, -1.0], [1.0, 0.0]]
    of_list, of_array = (mf.Attention(CIRCLE, 2.0, heads=[mf.Head(value=v)]) for v in (rotated, np.array(rotated)))
    assert np.array_equal(of_list.output(density.tolist()), of_array.output(density))
    found, expected = (of_list.normalizer_and_output(ones) for ones in ([1] * 16, np.ones(16)))
    assert all(np.array_equal(*pair) for pair in zip(found, expected, strict=True))
    network = mf.FeedForward([[1.0, 0.0]], [0.5], [[1.0], [2.0]])
    assert np.array_equal(network(np.array([[3.0, 4.0]])), [[3.5, 7.0]])
