"""Diffusion by cell, by field and by direction, with boundary conditions; Δφ(u): exact solutions and orders."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support import exact
from support.meshes import MESHES, smooth, square

from solvers import Equation, solve, solve_steady
from solvers.mesh.boundaries import Flux, Outflow, Periodic, Robin, Value, Wall
from solvers.mesh.icosphere import icosphere
from solvers.mesh.interval import interval
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.product import box
from solvers.mesh.simplices.triangles import triangles
from solvers.terms.diffusion import Diffusion, NonlinearDiffusion
from solvers.terms.operators import TensorOperator


def rate_of(term, values, time=0.0):
    rate = np.zeros_like(values)
    term.prepare(time, values)
    term.rate(0.0, rate)
    return rate


def advanced(term, values, end):
    """Advance by SciPy's stiff method, to a tolerance below the mesh's error."""
    shape = values.shape
    rate = lambda t, u: rate_of(term, u.reshape(shape), t).reshape(-1)  # noqa: E731
    return solve_ivp(rate, (0, end), values.reshape(-1), "LSODA", rtol=1e-7, atol=1e-9).y[:, -1].reshape(shape)


LINEAR = {
    "value": {"left": Value(1.0), "right": Value(7.0)},
    "flux": {"left": Value(lambda t, x: 1.0 + 0 * x[:, 0]), "right": Flux(0.5 * 2.0)},
    "robin": {"left": Robin(2.0, 3.0, 2.0 - 6.0), "right": Robin(1.0, 0.5, 7.0 + 1.0)},
}


@pytest.mark.parametrize("conditions", LINEAR)
@pytest.mark.parametrize("stretch", [None, smooth])
@pytest.mark.parametrize("dimension", [1, 2])
def test_a_linear_profile_is_steady(conditions, stretch, dimension):
    """u = 1 + 2x in [0, 3], D = ½, satisfies its values, its flux D ∂ₙu = 1, and a u + b ∂ₙu at both ends."""
    mesh = box((16, 5)[:dimension], (3.0, 1.0)[:dimension], stretch=(stretch, None)[:dimension])
    term = Diffusion(mesh, 0.5, boundaries=LINEAR[conditions])
    values = 1 + 2 * mesh.centers[:, 0]
    assert np.abs(rate_of(term, values)).max() < 1e-11  # rounding over h²
    kept = values.copy()
    term.step(0.3, kept)
    assert np.abs(kept - values).max() < 1e-12


def test_values_on_the_boundary_of_triangles_are_second_order():
    """sin x sin y e^{−2t} in [0, π]² is 0 on the boundary, where centers of cells lie."""
    sizes, errors = (8, 16, 32), []
    for size in sizes:
        mesh = triangles(*square(size))
        shape = np.sin(mesh.centers[:, 0]) * np.sin(mesh.centers[:, 1])
        term = Diffusion(mesh, 1.0, boundaries={"boundary": Value(0.0)})
        found = solve(Equation(mesh, [term]), shape, (0.0, 0.5), rtol=1e-6).u[-1]
        errors.append(np.abs(found - shape * np.exp(-1.0)) @ mesh.volumes)
    assert exact.orders(errors, sizes)[-1] > 1.9, errors


def test_data_on_the_boundary_of_triangles_are_second_order_in_each_cell():
    """x + 2y is steady for its values on the boundary, where the centers of faces are not those of cells."""
    sizes, errors = (16, 32), []
    for size in sizes:
        mesh = triangles(*square(size))
        linear = mesh.centers @ [1.0, 2.0]
        term = Diffusion(mesh, 1.0, boundaries={"boundary": Value(lambda t, x: x @ [1.0, 2.0])})
        errors.append(np.abs(solve_steady(Equation(mesh, [term]), np.zeros(mesh.cells)) - linear).max())
    assert exact.orders(errors, sizes)[-1] > 1.8, errors


def test_a_step_with_boundaries_is_second_order_in_time():
    """The solution from 0 approaches 1 + x; the reference is the matrix exponential (SciPy's tolerance)."""
    mesh = interval(0.0, 1.0, 16)
    term = Diffusion(mesh, 1.0, boundaries={"left": Value(1.0), "right": Value(2.0)})
    start, errors, counts = np.sin(3 * mesh.centers[:, 0]), [], (8, 16, 32)
    reference = advanced(term, start, 0.2)
    for count in counts:
        values = start.copy()
        for _ in range(count):
            term.step(0.2 / count, values)
        errors.append(np.abs(values - reference).max())
    assert exact.orders(errors, counts)[-1] > 1.8, errors


@pytest.mark.parametrize("name", ["interval", "stretched", "box", "box 3", "triangles"])
def test_values_on_the_boundary_that_change_in_time(name):
    """u = e^{−t} cos x … from its values on all walls is of second order, and of first where centers lie on the
    boundary."""
    sizes, errors = (8, 16), []
    for size in sizes:
        mesh, _, _ = MESHES[name](size)
        wave = lambda x: np.cos(x[:, 0] + 0.4)  # noqa: E731
        data = Value(lambda t, x: np.exp(-t) * wave(x))  # noqa: B023
        term = Diffusion(mesh, 1.0, boundaries={t: data for t, f in mesh.boundary_faces.items() if len(f)})
        found = advanced(term, wave(mesh.centers), 0.5)
        errors.append(np.sqrt((found - np.exp(-0.5) * wave(mesh.centers)) ** 2 @ mesh.volumes))
    expected = 0.9 if name == "triangles" else 1.8
    assert exact.orders(errors, sizes)[-1] > expected, errors


def test_what_comes_in_is_what_the_flux_says():
    for mesh in (interval(0.0, 2.0, 9), box((5, 6), (1.0, 2.0)), triangles(*square(5))):
        tag = "left" if "left" in mesh.boundary_faces else "boundary"
        term = Diffusion(mesh, 0.7, boundaries={tag: Flux(0.3)})
        area = mesh.face_areas[mesh.boundary_faces[tag]].sum()
        values = np.random.default_rng(0).random(mesh.cells)
        before = values @ mesh.volumes
        assert rate_of(term, values) @ mesh.volumes == pytest.approx(0.3 * area, rel=1e-10)
        term.step(0.1, values)
        assert values @ mesh.volumes - before == pytest.approx(0.03 * area, rel=1e-10)


def test_layers_carry_the_same_flux():
    """D = 1 and 4 in two halves: the slope of the profile jumps at their common face, its flux does not; exact."""
    ends = np.append(np.linspace(0.0, 1.0, 11), np.linspace(1.0, 2.0, 4)[1:])  # a cell of 0.1 beside one of 1/3
    for stretch in (None, lambda s: np.interp(s, np.linspace(0.0, 1.0, len(ends)), ends / 2)):
        mesh = interval(0.0, 2.0, 10 if stretch is None else len(ends) - 1, stretch=stretch)
        x = mesh.centers[:, 0]
        term = Diffusion(mesh, np.where(x < 1, 1.0, 4.0), boundaries={"left": Value(0.0), "right": Value(1.25)})
        assert np.abs(rate_of(term, np.where(x < 1, x, 1 + (x - 1) / 4))).max() < 1e-11


def test_d_in_each_cell_is_second_order():
    """(D u′)′ of u = cos πx, D = 1 + x/2: the error of the solution of the steady problem is of second order."""
    sizes, errors = (16, 32, 64), []
    for size in sizes:
        mesh = interval(0.0, 1.0, size)
        x = mesh.centers[:, 0]
        term = Diffusion(mesh, 1 + x / 2, boundaries={"left": Value(1.0), "right": Value(-1.0)})
        matrix = np.stack([rate_of(term, row) - rate_of(term, np.zeros(size)) for row in np.eye(size)], axis=1)
        f = -np.pi * np.sin(np.pi * x) / 2 - (1 + x / 2) * np.pi**2 * np.cos(np.pi * x)
        errors.append(np.abs(np.linalg.solve(matrix, f - rate_of(term, np.zeros(size))) - np.cos(np.pi * x)).max())
    assert exact.orders(errors, sizes)[-1] > 1.9, errors


TENSOR = np.array([[2.0, 0.6], [0.6, 1.0]])


def test_a_tensor_diffuses_waves_by_their_direction():
    """The factor of cos k·x on a periodic box is e^{−t k·D k}, also for oblique waves, to second order."""
    sizes, errors = (16, 32, 64), []
    for size in sizes:
        mesh = box((size, size), (2 * np.pi, 2 * np.pi), periodic=True)
        wave = np.array([1.0, 2.0])
        values = np.cos(mesh.centers @ wave)
        rate = rate_of(Diffusion(mesh, TENSOR), values)
        errors.append(np.abs(rate + wave @ TENSOR @ wave * values).max())
    assert exact.orders(errors, sizes)[-1] > 1.9, errors


def test_the_unit_tensor_is_a_number():
    mesh = box((6, 7), (1.0, 2.0), stretch=(smooth, None))
    values = np.random.default_rng(0).random(mesh.cells)
    found = rate_of(Diffusion(mesh, 0.3 * np.eye(2)), values)
    assert np.abs(found - rate_of(Diffusion(mesh, 0.3 * np.ones(mesh.cells)), values)).max() < 1e-11
    assert np.abs(found @ mesh.volumes) < 1e-13


def test_a_tensor_that_depends_on_the_cell_keeps_mass_on_the_sphere():
    """Diffusion along meridians alone, D = θ̂θ̂ᵀ, has the same Δz = (1/sin θ) ∂(sin θ ∂ cos θ) as full diffusion."""
    sizes, errors = (16, 32, 64), []
    for size in sizes:
        mesh = sphere(size)
        x, z = mesh.centers, mesh.centers[:, 2]
        south = np.column_stack([x[:, 0] * z, x[:, 1] * z, z**2 - 1])
        south /= np.linalg.norm(south, axis=1, keepdims=True)
        term = Diffusion(mesh, south[:, :, None] * south[:, None, :])
        rate = rate_of(term, z.copy())
        assert abs(rate @ mesh.volumes) < 1e-11
        errors.append(abs((rate * z * mesh.volumes).sum() / (z * z * mesh.volumes).sum() + 2))
    assert exact.orders(errors, sizes)[-1] > 1.5, errors  # the tensor is not smooth at the poles


def test_each_field_has_its_own_coefficient():
    mesh = circle(64)
    u = np.stack([mesh.centers[:, 0], mesh.centers[:, 1]])
    term = Diffusion(mesh, [1.0, 3.0])
    rate = rate_of(term, u)
    assert np.abs(rate[0] + u[0]).max() < 1e-4
    assert np.abs(rate[1] + 3 * u[1]).max() < 3e-4
    both = u.copy()
    term.step(0.1, both)
    for k, coefficient in enumerate((1.0, 3.0)):
        alone = u[k].copy()
        Diffusion(mesh, coefficient).step(0.1, alone)
        assert (alone == both[k]).all()
    with pytest.raises(ValueError, match=r"values of shape \(3, 64\): expected \(2, 64\)"):
        term.prepare(0.0, np.ones((3, 64)))


def barenblatt(x, t):
    """Return u = t^{−1/3} (C − x²/12 t^{−2/3})⁺ of ∂ₜu = Δu², with edge √(12 C) t^{1/3} and mass 1."""
    edge = 9 ** (1 / 3) * t ** (1 / 3)  # mass (4/3) C √(12 C) = 1: C = edge²/12 at t = 1
    return np.maximum(edge**2 - x**2, 0.0) / (12 * t)


def test_the_porous_medium_spreads_at_its_speed():
    """The edge is 2.0800838 t^{1/3}, and the L¹ error at least of first order."""
    assert barenblatt(np.zeros(1), 1.0)[0] == pytest.approx(2.0800838**2 / 12, rel=1e-7)
    sizes, errors = (50, 100, 200), []
    for size in sizes:
        mesh = interval(-4.0, 4.0, size)
        x = mesh.centers[:, 0]
        term, u, t = NonlinearDiffusion(mesh, lambda u: u**2), barenblatt(x, 0.5), 0.5
        while t < 4.0:
            dt = min(0.9 * float(term.prepare(t, u)), 4.0 - t)
            rate = np.zeros_like(u)
            term.rate(dt, rate)
            u, t = u + dt * rate, t + dt
        assert u.min() >= 0.0
        assert u @ mesh.volumes == pytest.approx(barenblatt(x, 0.5) @ mesh.volumes, rel=1e-12)
        errors.append(np.abs(u - barenblatt(x, 4.0)) @ mesh.volumes)
    assert exact.orders(errors, sizes)[-1] > 1.0, errors
    assert errors[-1] < 2e-3


@pytest.mark.parametrize(("phi", "odd"), [(lambda u: u**2, lambda u: u * np.abs(u)), (lambda u: u**3, lambda u: u**3)])
def test_phi_is_continued_below_zero_only_where_it_would_decrease(phi, odd):
    mesh = interval(0.0, 1.0, 16)
    u = np.linspace(-1.0, 2.0, 16)
    assert np.array_equal(*(rate_of(NonlinearDiffusion(mesh, one), u) for one in (phi, odd)))


def test_a_front_by_implicit_steps_may_undershoot():
    """Porous medium: implicit steps fall below 0 by 6e-6 ahead of the front."""
    mesh = interval(-2.5, 2.5, 100)
    x = mesh.centers[:, 0]
    equation = Equation(mesh, [NonlinearDiffusion(mesh, lambda u: u**2)])
    u = solve(equation, np.maximum(0, 1 - x**2) / 12, (1, 8), method="implicit").u
    assert u.min() < 0.0
    assert np.abs(u[-1] - np.maximum(0, 1 - (x / 2) ** 2) / 24).max() < 3e-4


LINE = interval(0.0, 1.0, 8)


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (lambda: Diffusion(LINE, 1.0, boundaries={"lft": Wall()}), ValueError, "'lft'.: expected .*'left', 'right'"),
        (lambda: Diffusion(circle(8), 1.0, boundaries={"left": Wall()}), ValueError, "none, the mesh is closed"),
        (lambda: Diffusion(LINE, 1.0, boundaries={"left": 1.0}), TypeError, "expected one of Wall, Periodic, Outflow"),
        (lambda: Diffusion(LINE, 1.0, boundaries={"left": Periodic()}), ValueError, "make the mesh with periodic=T"),
        (
            lambda: Diffusion(interval(0, 1, 8, periodic=True), 1.0, boundaries={"left": Outflow()}),
            ValueError, "expected Periodic.., as the mesh is",
        ),
        (lambda: Robin(-1.0, 0.0, 1.0), ValueError, "a of Robin = -1.0: expected a number >= 0, finite"),
        (lambda: Robin(0.0, 0.0, 1.0), ValueError, "Robin a, b = 0.0, 0.0: expected finite numbers >= 0, not both 0"),
        (lambda: Diffusion(LINE, np.array([[-1.0]])), ValueError, "without negative eigenvalues"),
        (
            lambda: rate_of(Diffusion(LINE, 1.0, boundaries={"left": Value(np.nan)}), np.ones(8)),
            ValueError, "boundaries.'left'. at time 0: expected finite numbers",
        ),
        (
            lambda: rate_of(Diffusion(LINE, 1.0, boundaries={"left": Value(np.ones(3))}), np.ones(8)),
            ValueError, "expected a number",
        ),
    ],
)  # fmt: skip
def test_wrong_input_is_refused(build, kind, message):
    with pytest.raises(kind, match=message):
        build()


SIDES = ("left", "right", "bottom", "top")


@pytest.mark.parametrize("per_cell", [False, True])
def test_a_tensor_keeps_the_value_of_its_boundary_in_the_corners_too(per_cell):
    """u = 1 with u = 1 on all sides is steady, though n·D n is 10 on two sides of a corner's cell and 1 on others."""
    mesh, D = box((6, 6), (1.0, 1.0)), np.diag([10.0, 1.0])
    tensor = np.broadcast_to(D, (36, 2, 2)).copy() if per_cell else D
    term = Diffusion(mesh, tensor, boundaries=dict.fromkeys(SIDES, Value(1.0)))
    assert np.abs(rate_of(term, np.ones(36))).max() < 1e-11  # rounding over h²


@pytest.mark.parametrize("per_cell", [False, True])
@pytest.mark.parametrize("a", [None, 0.0, 1.0])
def test_a_linear_profile_is_steady_for_a_tensor(per_cell, a):
    """x + 2y with its own values of u, ∂ₙu or u + ∂ₙu on all sides, where the flux has a part along the boundary."""
    mesh, D, slope = box((6, 5), (1.0, 1.0)), np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, 2.0])
    normals = dict(zip(SIDES, ((-1, 0), (1, 0), (0, -1), (0, 1)), strict=True))
    ends = {
        side: Value(lambda t, x: x @ slope) if a is None else Robin(a, 1.0, lambda t, x, n=n: a * x @ slope + slope @ n)
        for side, n in normals.items()
    }
    term = Diffusion(mesh, np.broadcast_to(D, (30, 2, 2)).copy() if per_cell else D, boundaries=ends)
    assert np.abs(rate_of(term, mesh.centers @ slope)).max() < 1e-11  # rounding over h²
    assert np.linalg.eigvals(term.jacobian(1)[0].toarray()).real.max() < 1e-11


@pytest.mark.parametrize(
    "ends", [(Value(0.0), Robin(2.0, 3.0, 2 * np.log(2) + 1.5)), (Robin(0.0, 1.0, -1.0), Value(np.log(2)))]
)
@pytest.mark.parametrize("kind", ["numbers", "tensors"])
def test_a_coefficient_that_varies_is_taken_at_the_boundary(ends, kind):
    """log(1 + x) is steady for D = 1 + x: of second order, with D at the face in a u + b ∂ₙu = g."""
    sizes, errors = (20, 40), []
    for size in sizes:
        mesh = interval(0.0, 1.0, size)
        D = 1 + mesh.centers[:, 0]
        term = Diffusion(
            mesh,
            D if kind == "numbers" else D[:, None, None],
            boundaries=dict(zip(("left", "right"), ends, strict=True)),
        )
        errors.append(np.abs(solve_steady(Equation(mesh, [term]), np.zeros(size)) - np.log(D)).max())
    assert exact.orders(errors, sizes)[0] > 1.9, errors


def test_a_jump_of_the_coefficient_next_to_the_boundary_is_kept():
    """∂ₙu = 1 gives the flux 1 of the thin layer D = 1, whatever D lies behind."""
    mesh, D = interval(0.0, 1.0, 8), np.full(8, 100.0)
    D[0] = 1.0
    term = Diffusion(mesh, D, boundaries={"left": Robin(0.0, 1.0, 1.0)})
    assert rate_of(term, np.zeros(8)) @ mesh.volumes == 1.0


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("end", [Value(1.0), Flux(1.0)])
def test_splitting_starts_from_an_empty_field(nonnegative, end):
    """u = 0 is heated from the left as by a method without splitting; no step was long enough for a mass of 0."""
    mesh = interval(0.0, 1.0, 20)
    equation = Equation(mesh, [Diffusion(mesh, 1.0, boundaries={"left": end}, nonnegative=nonnegative)])
    split, other = (
        solve(equation, np.zeros(20), (0.0, 0.5), times=[0.5], method=method, rtol=1e-5).u[-1]
        for method in ("ssprk3", "implicit")
    )
    np.testing.assert_allclose(split, other, rtol=1e-4)


def test_what_comes_in_without_diffusion_is_added():
    """∫u grows by g t for D = 0."""
    mesh, values = interval(0.0, 1.0, 16), np.ones(16)
    Diffusion(mesh, 0.0, boundaries={"left": Flux(2.0)}).step(0.1, values)
    assert values @ mesh.volumes == pytest.approx(1.2, rel=1e-15)
    np.testing.assert_array_equal(values[1:], 1.0)


def test_a_porous_medium_has_outflow_and_data_for_each_field():
    """A uniform field is steady for ∂ₙu = 0, and for its own value, in each field."""
    mesh, phi = interval(0.0, 1.0, 16), lambda u: u**2
    assert np.abs(rate_of(NonlinearDiffusion(mesh, phi, boundaries={"left": Outflow()}), np.ones(16))).max() == 0.0
    levels = np.array([1.0, 2.0])
    both = NonlinearDiffusion(mesh, phi, boundaries={"left": Value(levels), "right": Outflow()})
    rates = rate_of(both, np.outer(levels, np.ones(16)))
    assert np.abs(rates).max() < 1e-11  # rounding over h²
    alone = NonlinearDiffusion(mesh, phi, boundaries={"left": Value(3.0)})
    rows = rate_of(NonlinearDiffusion(mesh, phi, boundaries={"left": Value(np.array([3.0, 3.0]))}), np.ones((2, 16)))
    np.testing.assert_array_equal(rows, np.tile(rate_of(alone, np.ones(16)), (2, 1)))


@pytest.mark.parametrize("mesh", [interval(0.0, 1.0, 20), circle(24), box((6, 5), (1.0, 1.0)), sphere(8), icosphere(1)])
@pytest.mark.parametrize("kind", ["number", "tensor"])
def test_the_explicit_step_of_a_tensor_is_stable_and_no_shorter_than_it_has_to_be(mesh, kind):
    """Forward Euler's limit is 2/|λ|; half the sum of a row's |weights| bounds |λ|/2 from above, within 1.5."""
    operator = TensorOperator(mesh, 0.7 if kind == "number" else 0.7 * np.eye(mesh.centers.shape[1]))
    fastest = operator.coefficient * np.abs(np.linalg.eigvals(operator.matrix().toarray())).max()
    assert 1.3 < operator.explicit_dt * fastest < 2 * (1 + 1e-12)
