"""Equations as text against exact solutions, orders of convergence, and difference quotients."""

import pickle

import numpy as np
import pytest
from scipy.special import erf

from solvers import (
    NonFinite,
    Outflow,
    Robin,
    Value,
    Wall,
    box,
    circle,
    from_text,
    icosphere,
    interval,
    radial,
    solve,
    solve_steady,
    sphere,
    triangles,
)
from solvers.text.equation import condition_from_text
from solvers.text.grammar import POINTWISE, parse_expression
from solvers.text.operators import Operators
from solvers.text.terms import derivative, is_linear
from solvers.text.values import Evaluator
from solvers.timestepping.methods import choose

LINE, PLANE = interval(0.0, 1.0, 40), box((12, 10), ((0.0, 1.0), (0.0, 2.0)))


def square(n):
    """Return a triangulation of the unit square by 2n² triangles."""
    x, y = np.meshgrid(np.linspace(0, 1, n + 1), np.linspace(0, 1, n + 1), indexing="ij")
    number = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
    a, b, c, d = (part.ravel() for part in (number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]))
    corners = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return triangles(np.stack([x.ravel(), y.ravel()], axis=1), corners)


MESHES = {
    "line": lambda n: interval(0.0, 1.0, n, periodic=True),
    "graded": lambda n: interval(0.0, 1.0, n, stretch=lambda s: s + 0.1 * np.sin(2 * np.pi * s) / (2 * np.pi)),
    "box": lambda n: box((n, n), ((0.0, 1.0), (0.0, 1.0)), periodic=True),
    "circle": circle,
    "sphere": sphere,
}


def rate(text, mesh, u, t=0.0, **options):
    return from_text(text, mesh, **options).rate(t, u)


def test_heat_with_given_values_is_exact_to_second_order():
    errors = []
    for cells in (16, 32):
        mesh = interval(0.0, 1.0, cells)
        x = mesh.centers[:, 0]
        equation = from_text("dt(u) = laplace(u)", mesh, boundaries={"left": "u = 0", "right": "u = 0"})
        found = solve(equation, np.sin(np.pi * x), (0.0, 0.1), rtol=1e-7).u[-1]
        errors.append(abs(found - np.exp(-0.1 * np.pi**2) * np.sin(np.pi * x)).max())
    assert errors[1] < 4e-4
    assert errors[0] / errors[1] > 3.5


def test_a_velocity_has_the_rates_of_the_conditions_of_its_field():
    """The wave sin πx with the damping dΔ of its velocity has the frequency ω and the decay rate dπ²/2."""
    x, d, decay = LINE.centers[:, 0], 0.1, 0.1 * np.pi**2 / 2
    text, omega = "dt(dt(u)) = laplace(u) + d*laplace(dt(u))", np.sqrt(np.pi**2 - decay**2)
    exact = np.exp(-decay) * (np.cos(omega) + decay / omega * np.sin(omega)) * np.sin(np.pi * x)
    ends = {"left": "u = 0", "right": "u = 0"}
    solution = solve(from_text(text, LINE, {"d": d}, ends), [np.sin(np.pi * x), 0 * x], (0.0, 1.0))
    np.testing.assert_allclose(solution.u[-1][0], exact, atol=5e-4)
    assert solution.steps < 60
    with pytest.raises(
        ValueError, match=r"^boundaries\['u_t'\]: expected conditions, as data of u depend on the time$"
    ):
        from_text(text, LINE, {"d": d}, {"left": "u = sin(t)"})
    from_text("dt(dt(u)) = laplace(u) - d*dt(u)", LINE, {"d": d}, {"left": "u = sin(t)"})


def test_data_of_the_boundary_follow_the_time():
    """u = (1 + x) e^{−t} with ∂ₙu + 2u given on the left and u on the right."""
    x = LINE.centers[:, 0]
    conditions = {"left": "dn(u) + 2*u = exp(-t)*(2 - 1)", "right": "u = 2*exp(-t)"}
    equation = from_text("dt(u) = laplace(u) - u", LINE, boundaries=conditions)
    found = solve(equation, 1 + x, (0.0, 1.0), rtol=1e-6).u[-1]
    np.testing.assert_allclose(found, (1 + x) * np.exp(-1.0), rtol=1e-5)


def test_porous_diffusion_between_given_values_is_steady_at_its_exact_profile():
    """(1 + u) u' is constant for u = √(1 + 3x) − 1."""
    x = LINE.centers[:, 0]
    equation = from_text("dt(u) = div((1 + u)*grad(u))", LINE, boundaries={"left": "u = 0", "right": "u = 1"})
    solution = solve(equation, x, (0.0, 4.0))
    assert "implicit" in solution.message
    np.testing.assert_allclose(solution.u[-1], np.sqrt(1 + 3 * x) - 1, atol=2e-4)


def test_an_infinite_slope_does_not_end_the_run():
    """The slope of √u at u = 0 is infinite, in cells that the mass has not reached."""
    x = LINE.centers[:, 0]
    start = np.maximum(0.3 - abs(x - 0.5), 0.0)
    found = solve(from_text("dt(u) = div(sqrt(abs(u))*grad(u))", LINE), start, (0.0, 0.1)).u[-1]
    np.testing.assert_allclose(found @ LINE.volumes, start @ LINE.volumes, rtol=1e-10)
    assert found.max() < start.max()


def barenblatt(x, t):
    """Return the solution of ∂ₜu = ∂ₓ(√u ∂ₓu) = ⅔ ∂ₓ² u^{3/2} that spreads from a point, 0 beyond its front."""
    time = 2 * t / 3
    return time**-0.4 * np.maximum(1 - x**2 / (15 * time**0.8), 0.0) ** 2


@pytest.mark.parametrize("root", ["sqrt(u)", "u**0.5", "u**(2 - 1.5)"])
def test_a_root_spreads_mass_into_empty_cells(root):
    """Trial states below 0 by the error of an iteration have the root 0, so that the steps do not shrink."""
    errors = []
    for cells in (50, 100):
        mesh = interval(-10.0, 10.0, cells)
        x = mesh.centers[:, 0]
        solution = solve(from_text(f"dt(u) = div({root}*grad(u))", mesh), barenblatt(x, 1.5), (1.5, 6.0))
        errors.append(abs(solution.u[-1] - barenblatt(x, 6.0)).max())
        assert solution.steps < 200
    assert errors[1] < 2e-3
    assert errors[0] / errors[1] > 3


def test_the_root_of_a_negative_number_is_refused():
    with pytest.raises(NonFinite, match=r"^at time 0: sqrt\(u - 2\): root of -2$"):
        solve(from_text("dt(u) = laplace(u) + sqrt(u - 2)", LINE), np.zeros(40), (0.0, 1.0))


def test_a_run_into_negative_roots_ends():
    """The sink removes mass from empty cells, whose root is then not real."""
    start = np.maximum(0.3 - abs(LINE.centers[:, 0] - 0.5), 0.0)
    with pytest.raises(NonFinite):
        solve(from_text("dt(u) = div(sqrt(u)*grad(u)) - 1", LINE), start, (0.0, 1.0))


@pytest.mark.parametrize("kind", MESHES)
@pytest.mark.parametrize("text", ["div((2 + b)*grad(a))", "div(a*grad(b)/2)", "laplace(a*b)"])
def test_second_derivatives_are_of_second_order_and_conserve(kind, text):
    """Exact values: with x the last coordinate of the space, Δx = −dx on a circle (d = 1) or a sphere (d = 2)."""
    errors = []
    for n in (16, 32):
        mesh = MESHES[kind](n)
        x = mesh.centers[:, -1]
        if mesh.dimension < mesh.ambient_dimension:  # a = b = x, |∇x|² = 1 − x², Δx = −d x
            d, a, b = mesh.dimension, x, x
            exact = {
                "div((2 + b)*grad(a))": 1 - x**2 - d * x * (2 + x),
                "div(a*grad(b)/2)": 0.5 * (1 - x**2 - d * x * x),
                "laplace(a*b)": 2 * (1 - x**2) - 2 * d * x * x,
            }[text]
        else:
            k = 2 * np.pi
            a, b = np.cos(k * x), np.cos(k * x)  # no slope at walls
            slopes, bends = (k * np.sin(k * x)) ** 2, -(k**2) * a
            exact = {
                "div((2 + b)*grad(a))": slopes + (2 + b) * bends,
                "div(a*grad(b)/2)": 0.5 * (slopes + a * bends),
                "laplace(a*b)": 2 * (slopes + a * bends),
            }[text]
        found = rate(f"dt(a) = {text}; dt(b) = 0", mesh, np.stack([a, b]))[0]
        errors.append(np.sqrt((found - exact) ** 2 @ mesh.volumes))
        assert abs(found @ mesh.volumes) < 1e-12 * (abs(found) @ mesh.volumes)
    assert errors[0] / errors[1] > (3.4 if kind != "sphere" else 3.0), errors


@pytest.mark.parametrize("kind", MESHES)
def test_first_derivatives_are_of_second_order_and_the_divergence_conserves(kind):
    errors, divergences = [], []
    for n in (16, 32):
        mesh = MESHES[kind](n)
        x, name = mesh.centers[:, -1], "xyz"[mesh.ambient_dimension - 1]
        if mesh.dimension < mesh.ambient_dimension:
            u, square = x**2, 4 * x**2 * (1 - x**2)
        else:
            u, square = np.cos(2 * np.pi * x), (2 * np.pi * np.sin(2 * np.pi * x)) ** 2
        errors.append(np.sqrt((rate("dt(u) = dot(grad(u), grad(u))", mesh, u) - square) ** 2 @ mesh.volumes))
        along = rate(f"dt(u) = d{name}(u)", mesh, u)
        np.testing.assert_allclose(
            along,
            rate("dt(u) = dot(grad(u), [" + ", ".join(["0"] * (mesh.ambient_dimension - 1) + ["1"]) + "])", mesh, u),
        )
        found = rate("dt(u) = div(u*grad(u)*u)", mesh, u)  # by differences of two cells
        wide = rate("dt(u) = div(dot(grad(u), grad(u))*[" + ", ".join(["1"] * mesh.ambient_dimension) + "])", mesh, u)
        divergences.append(abs(wide @ mesh.volumes) / (abs(wide) @ mesh.volumes))
        assert abs(found @ mesh.volumes) < 1e-12 * (abs(found) @ mesh.volumes)
    assert max(divergences) < 1e-13
    assert errors[0] / errors[1] > {"graded": 1.9, "sphere": 2.9}.get(kind, 3.4), errors


@pytest.mark.parametrize("mesh", [radial(3, 0.0, 1.0, 20), interval(0.0, 1.0, 20, stretch=lambda s: s**2)])
def test_the_divergence_of_a_linear_vector_is_exact(mesh):
    """div x is the dimension, in all cells but the last one, which has a wall; also next to the center of a ball."""
    d = 3 if "outer" in mesh.boundary_faces else 1
    np.testing.assert_allclose(rate("dt(u) = div([x])", mesh, np.zeros(20))[:-1], d, rtol=1e-12)


@pytest.mark.parametrize("surface", [sphere, icosphere])
def test_gradients_on_spheres_are_of_second_order_in_each_cell(surface):
    """∂ₓ(xy) is y − 2x²y on the sphere, also where the numbers of cells of rings differ."""
    errors = []
    for n in (16, 32) if surface is sphere else (2, 3):
        mesh = surface(n)
        x, y, _ = mesh.centers.T
        errors.append(abs(rate("dt(u) = dx(u)", mesh, x * y) - (y - 2 * x * x * y)).max())
    assert errors[0] / errors[1] > 3.3, errors


def test_gradients_take_the_conditions_on_the_boundary():
    """u = x has the slope 1 up to the ends with its values or slopes given there, and half of it beside walls."""
    x, inner = LINE.centers[:, 0], slice(1, -1)
    for conditions in ({"left": "u = 0", "right": "dn(u) = 1"}, {"left": "dn(u) + u = -1", "right": "u = t"}):
        slopes = rate("dt(u) = dx(u)", LINE, x, t=1.0, boundaries=conditions)
        np.testing.assert_allclose(slopes, 1.0, rtol=1e-12)
    walls = rate("dt(u) = dx(u)", LINE, x)
    np.testing.assert_allclose(walls[inner], 1.0, rtol=1e-12)
    np.testing.assert_allclose(walls[[0, -1]], 0.5, rtol=1e-12)


def test_triangles_have_the_operators_too():
    mesh = square(12)
    x, y = mesh.centers.T
    inner = (abs(x - 0.5) < 0.4) & (abs(y - 0.5) < 0.4)
    gradient = rate("dt(u) = dot(grad(u), [1, 2])", mesh, x + 3 * y)
    np.testing.assert_allclose(gradient[inner], 7.0, rtol=1e-10)


def test_convolutions():
    """∫cos 2π(x − y) cos 2πy dy = ½ cos 2πx; on the circle ∫c y dy ⊗ density: K = c gives the mean of x."""
    mesh = interval(0.0, 1.0, 64, periodic=True)
    wave = np.cos(2 * np.pi * mesh.centers[:, 0])
    np.testing.assert_allclose(rate("dt(u) = convolve(cos(2*pi*r), u)", mesh, wave), wave / 2, atol=1e-3)
    ring = circle(64)
    x = ring.centers[:, 0]
    found = rate("dt(u) = convolve(k*c, u)", ring, 1 + x, parameters={"k": 2.0})
    np.testing.assert_allclose(found, 2 * np.pi * x, atol=1e-9)
    graded = MESHES["graded"](64)
    weights = graded.volumes * np.cos(3 * graded.centers[:, 0])
    exact = np.exp(-abs(graded.centers - graded.centers.T)) @ weights
    np.testing.assert_allclose(rate("dt(u) = convolve(exp(-r), cos(3*x))", graded, wave), exact, rtol=1e-10)
    around = interval(0.0, 1.0, 64, periodic=True, stretch=lambda s: s + 0.1 * np.sin(2 * np.pi * s) / (2 * np.pi))
    nearby = rate("dt(u) = convolve(exp(-20*r**2), 1)", around, wave)  # distances to the nearest image
    np.testing.assert_allclose(nearby, np.sqrt(np.pi / 20) * erf(np.sqrt(5)), rtol=1e-3)


def test_a_system_follows_the_exponential_of_its_matrix():
    """∂ₜ(u, v) = (Δu − v, ½Δv + u) on the wave cos kx."""
    from scipy.linalg import expm

    mesh = interval(0.0, 2 * np.pi, 256, periodic=True)
    wave = np.cos(mesh.centers[:, 0])
    equation = from_text("dt(u) = laplace(u) - v\n# a comment\ndt(v) = D*laplace(v) + u", mesh, {"D": 0.5})
    found = solve(equation, np.stack([wave, 0 * wave]), (0.0, 1.0), rtol=1e-7).u[-1]
    exact = expm(np.array([[-1.0, -1.0], [1.0, -0.5]]))[:, 0]
    np.testing.assert_allclose(found, exact[:, None] * wave, atol=1e-5)


def test_every_method_solves_the_same_linear_equation():
    mesh = interval(0.0, 1.0, 32, periodic=True)
    wave = np.cos(2 * np.pi * mesh.centers[:, 0])
    equation = from_text("dt(u) = -0.001*laplace(laplace(u)) + 0.3*u", mesh)
    exact = solve(equation, wave, (0.0, 1.0), method="exponential").u[-1]
    for method in ("ark4", "implicit", "ssprk3"):
        found = solve(equation, wave, (0.0, 1.0), method=method, rtol=1e-5).u[-1]
        np.testing.assert_allclose(found, exact, atol=2e-4 * abs(exact).max())


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("dt(dt(u)) = laplace(u) - 0.6*dt(u)", "dopri5"), ("dt(u) = -div([u**2/2])", "dopri5"),
        ("dt(u) = div(u*grad(u))", "implicit"), ("dt(u) = laplace(u) - div(u*grad(v)); dt(v) = u - v", "implicit"),
        ("dt(dt(u)) = laplace(u) - sin(u)", "symplectic"), ("dt(dt(u)) = laplace(u) - t**2*u", "dopri5"),
        ("dt(u) = laplace(u) + laplace(v); dt(v) = -v", "ark4"),
    ],
)  # fmt: skip
def test_only_second_derivatives_of_a_field_in_its_own_rate_are_implicit(text, method):
    """A damped wave has no stiff matrix of one field: implicit steps of such a wave took 20 times as long."""
    assert choose(from_text(text, LINE)) == method


EXPRESSIONS = [
    "u*v + u**3/v - 2", "2**u + u**v", "1/(2 + u*u)", "laplace(u*u)", "div(u*grad(u*v))", "dot(grad(u), grad(v))*u",
    "max(u, v) + min(2*u, 0.3)", "-(+u) - dx(u)*dy(u)", *(f"{name}(0.4*u)" for name in POINTWISE if name != "arctan"),
    "arctan(u/v)", "laplace(u)",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_derivatives_are_difference_quotients(text):
    evaluator = Evaluator(Operators(PLANE, {"u": {"left": Value(0.5)}}), {})
    random = np.random.default_rng(1)
    values = {"u": random.uniform(0.5, 1.5, PLANE.cells), "v": random.uniform(0.5, 1.5, PLANE.cells)}
    along, step, tree = random.standard_normal(PLANE.cells), 1e-5, parse_expression(text)
    up, down = (evaluator.value(tree, 0.0, {**values, "u": values["u"] + s * step * along}) for s in (1, -1))
    exact = derivative(evaluator, tree, 0.0, values, "u") @ along
    np.testing.assert_allclose(exact, (up - down) / (2 * step), atol=1e-6 * max(abs(exact).max(), 1.0))


@pytest.mark.parametrize(
    ("text", "linear"),
    [
        ("3*laplace(u)/k", True), ("x*u", True), ("div((1 + x)*grad(u))", True), ("laplace(2*u - laplace(u))", True),
        ("u**1", True), ("t*u", False), ("v*u", False), ("u**2", False), ("laplace(u + v)", False), ("v", False),
        ("max(u, -100)", False), ("abs(u)", False), ("integral(u)", False), ("convolve(exp(-r), u)", False),
        ("div(u*grad(v))", False), ("1.0", False), ("cos(4*pi*t)*laplace(u)", False),
        ("(1 + heaviside(t - 1))*laplace(u)", False),
    ],
)  # fmt: skip
def test_linear_summands_are_recognized(text, linear):
    evaluator = Evaluator(Operators(LINE, {"u": {"left": Value(1.0)}}), {"k": 2.0})
    assert is_linear(evaluator, parse_expression(text), "u", ("u", "v")) is linear


REFUSED = {
    "u = 1": "expected an equation such as",
    "dt(u) + 1": "expected an equation such as",
    "": "expected an equation such as",
    "dt(u) = 1; dt(u) = 2": "a second equation of u",
    "dt(u) = lapace(u)": "lapace: no function; did you mean laplace?",
    "dt(u) = w": "w: unknown name; there are",
    "dt(u) = z": "z: unknown name",
    "dt(u) = exp": "exp: unknown name",
    "dt(u) = r": "r: unknown name",
    "dt(u) = convolve(c, u)": "c: expected a kernel of the distance r",
    "dt(u) = convolve(exp(-x), u)": "x: expected a kernel of the distance r",
    "dt(u) = u.real": "expected numbers, names",
    "dt(u) = __import__('os')": "no function",
    "dt(u) = (lambda: 1)()": "no function",
    "dt(u) = u[0]": "expected numbers, names",
    "dt(u) = 'a'": "expected a number",
    "dt(u) = True": "expected a number",
    "dt(u) = exp(u, u)": "expected 1 argument(s) of exp",
    "dt(u) = 1 +": "expected an expression such as",
    f"dt(u) = {'(' * 500}u{')' * 500}": "expected an expression such as",
    f"dt(u) = {'1+' * 3000}u": "expected at most 5000 characters",
    f"dt(u) = {'1+' * 2000}u": "expected at most 200 operations",
    f"dt(u) = {'-' * 400}u": "expected",
    "dt(u) = grad(u)": "is a vector",
    "dt(u) = exp(grad(u))": "is a vector",
    "dt(u) = div(u)": "expected a vector of 1 component(s)",
    "dt(u) = dy(u)": "the mesh has 1 coordinate(s)",
    "dt(u) = grad(u)*grad(u)": "products dot(a, b)",
    "dt(u) = 1/grad(u)": "expected a number or a field",
    "dt(t) = 1": "expected a name that is neither",
    "dt(exp) = 1": "expected a name that is neither",
}


@pytest.mark.parametrize("text", REFUSED)
def test_texts_that_are_refused(text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        from_text(text, LINE)
    assert REFUSED[text] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"parameters": {"u": 1.0}}, "parameter 'u'"),
        ({"parameters": {"k": np.ones(3)}}, "of shape (3,): expected a number or (40,)"),
        ({"boundaries": {"left": "u = w"}}, "w: unknown name"),
        ({"boundaries": {"left": "v = 1"}}, "expected 'wall', 'u = 1'"),
        *(({"boundaries": {"left": text}}, "expected 'wall', 'u = 1'") for text in ("u", "= 1", "dn(u)u = 1")),
        ({"boundaries": {"left": "dn(u) 3*u = 1"}}, "'dn(u) 3': expected a number or a parameter"),
        ({"boundaries": {"left": "dn(u) + a*u = 1"}}, "'a': expected a number or a parameter"),
        ({"boundaries": {"top": "u = 1"}}, "expected a part of the boundary"),
        ({"boundaries": {"left": "u = laplace(x)"}}, "expected an expression of t, x, y, z and parameters"),
    ],
)
def test_options_that_are_refused(options, said):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        from_text("dt(u) = laplace(u)", LINE, **options)
    assert said in str(caught.value)


def test_conditions_from_texts():
    def of(text):
        return condition_from_text(text, "u", LINE, {"k": 3.0})

    x = np.zeros((1, 1))
    assert of(" wall ") == Wall()
    assert isinstance(of("u = 2*t"), Value)
    assert of("u = 2*t").g(4.0, x) == 8.0
    for text, a, b in (("dn(u) = 1", 0.0, 1.0), ("dn(u) + k*u = 1", 3.0, 1.0), ("dn(u)+u = 1", 1.0, 1.0)):
        condition = of(text)
        assert isinstance(condition, Robin)
        assert (condition.a, condition.b) == (a, b)


def test_fields_have_conditions_of_their_own():
    ends = {"u": {"left": "u = 1"}, "v": {"left": "v = 2", "right": Value(3.0)}}
    equation = from_text("dt(u) = laplace(u); dt(v) = laplace(v)", LINE, boundaries=ends)
    found = solve(equation, np.zeros((2, 40)), (0.0, 50.0)).u[-1]
    np.testing.assert_allclose(found[0], 1.0, rtol=1e-3)
    np.testing.assert_allclose(found[1], 2 + LINE.centers[:, 0], rtol=1e-3)
    with pytest.raises(ValueError, match=r"boundaries\['left'\]: expected a dict of conditions for each field, u, v"):
        from_text("dt(u) = laplace(u); dt(v) = laplace(v)", LINE, boundaries={"left": "u = 1"})


@pytest.mark.parametrize(
    ("text", "condition", "constant"),
    [
        ("laplace(u) + u**2", "u = 1", True),
        ("laplace(u) + t*u", "u = 1", False),
        ("laplace(u) + u", "u = t", False),
        ("laplace(u) + u", Value(lambda t, x: t), False),
    ],
)
def test_the_time_is_looked_for(text, condition, constant):
    """Terms without the time are autonomous: rates at later times are not evaluated."""
    equation = from_text(f"dt(u) = {text}", LINE, boundaries={"left": condition})
    assert all(term.is_autonomous for term in (*equation.terms, equation.stiff)) is constant


def test_a_coefficient_that_jumps_in_time_is_followed():
    """The diffusivity rises from 1 to 10 at t = 1, where neither t = 0 nor a wave's period shows that."""
    mesh = interval(0.0, 2 * np.pi, 32, periodic=True)
    wave = np.sin(mesh.centers[:, 0])
    equation = from_text("dt(u) = (1 + 9*heaviside(t - 1))*laplace(u)", mesh)
    found = solve(equation, wave, (0.0, 1.2), times=[1.2], rtol=1e-7).u[-1]
    np.testing.assert_allclose(found, np.exp(-1 - 2) * wave, rtol=1e-3)


@pytest.mark.parametrize(
    "condition", ["u = heaviside(t - 1)", Value(lambda t, x: float(t > 1))], ids=["text", "function"]
)
def test_data_of_the_boundary_that_begin_late_are_taken(condition):
    equation = from_text("dt(u) = laplace(u)", LINE, boundaries=dict.fromkeys(("left", "right"), condition))
    np.testing.assert_allclose(solve(equation, np.zeros(40), (0.0, 4.0)).u[-1], 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    "text",
    ["-div(-a*grad(u))", "-div(-grad(u)*a)", "div(a*(-(-grad(u))))", "div((2*grad(u) - grad(u))*a)",
     "div(a/2*(grad(u) + u*[0]) + grad(u)/(2/a))"],
)  # fmt: skip
def test_the_place_of_a_sign_does_not_change_fluxes(text):
    """All of these are div(a grad(u)), with the same flux through the boundary."""
    given = {"parameters": {"a": 1 + LINE.centers[:, 0]}, "boundaries": {"left": "u = 1", "right": "dn(u) = 2"}}
    u = np.cos(LINE.centers[:, 0])
    exact = rate("dt(u) = div(a*grad(u))", LINE, u, **given)
    np.testing.assert_allclose(rate(f"dt(u) = {text}", LINE, u, **given), exact, rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("end", ["dn(u) = 0.5", "dn(u) + u = 0.5 + log(2)"])
def test_coefficients_are_taken_at_the_boundary(end):
    """log(1 + x) is steady under div((1 + x) grad(u)), to second order."""
    errors = []
    for cells in (20, 40):
        mesh = interval(0.0, 1.0, cells)
        equation = from_text("dt(u) = div((1 + x)*grad(u))", mesh, boundaries={"left": "u = 0", "right": end})
        errors.append(abs(solve_steady(equation, np.zeros(cells)) - np.log(1 + mesh.centers[:, 0])).max())
    assert errors[0] / errors[1] > 3.7, errors


def test_a_field_has_no_slope_at_outflow():
    """−∂ₓu of a wave that leaves on the right, where a wall has the same slope."""
    u = np.exp(LINE.centers[:, 0])
    out, wall = (
        rate("dt(u) = -dx(u)", LINE, u, boundaries={"left": "u = 1", "right": end}) for end in (Outflow(), Wall())
    )
    np.testing.assert_array_equal(out, wall)


def test_splitting_starts_from_a_uniform_field():
    """u = 0 is heated from the left, and u = 1 decays: neither has a deviation from its mean."""
    heated = from_text("dt(u) = laplace(u)", LINE, boundaries={"left": "u = 1"})
    np.testing.assert_allclose(solve(heated, np.zeros(40), (0.0, 8.0), method="ssprk3").u[-1], 1.0, rtol=1e-3)
    decay = solve(from_text("dt(u) = laplace(u) - u", LINE), np.ones(40), (0.0, 0.01), method="ssprk3", rtol=1e-6)
    np.testing.assert_allclose(decay.u[-1], np.exp(-0.01), rtol=1e-7)  # 700 steps, an eighth of a stable one each


def test_a_pulse_in_a_text_is_not_missed():
    equation = from_text("dt(u) = laplace(u) + exp(-((t - 0.7)/0.002)**2)", LINE)
    found = solve(equation, np.zeros(40), (0.0, 1.0)).u[-1]
    np.testing.assert_allclose(found, 0.002 * np.sqrt(np.pi), rtol=1e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("text", ["1/ρ", "log(ρ) + 1/0*ρ", "1e400*ρ"])
def test_rates_that_are_not_finite_end_the_run(text):
    with pytest.raises(NonFinite, match="at time 0"):
        solve(from_text(f"dt(ρ) = {text}", LINE), np.zeros(40), (0.0, 1.0))


def test_equations_can_be_pickled():
    equation = from_text("dt(u) = laplace(u) + u - u**3 + integral(u)", LINE, boundaries={"left": "u = t"})
    u = np.linspace(0, 1, 40)
    solve(equation, u, (0.0, 0.01), method="ssprk3")  # factorizes matrices, which the equation must not keep
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(equation)).rate(0.5, u), equation.rate(0.5, u))
