"""Complex fields: Schrödinger, Ginzburg–Landau and Stuart–Landau equations against exact solutions."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse import identity
from scipy.sparse.linalg import spsolve
from scipy.spatial import Delaunay

from solvers import (
    Advection,
    ConservationLaw,
    Diffusion,
    DriftDiffusion,
    Equation,
    Flux,
    Laplacian,
    Noise,
    NonlinearDiffusion,
    Robin,
    Source,
    SteadyState,
    Threshold,
    Value,
    axisymmetric,
    box,
    circle,
    disk,
    from_text,
    icosphere,
    interval,
    limit_positivity,
    product,
    radial,
    solve,
    solve_steady,
    sphere,
    torus,
    triangles,
)
from solvers.terms.linear_solver import ShiftedSolver

METHODS = ("auto", "dopri5", "dop853", "ssp3", "ark3", "exponential", "implicit")
GRID = np.stack(np.meshgrid(np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 5)), axis=-1).reshape(-1, 2)
MESHES = {
    "interval": lambda: interval(0.0, 1.0, 16),
    "circle": lambda: circle(24),
    "box": lambda: box((6, 5), (1.0, 1.0)),
    "cube": lambda: box((4, 4, 4), (1.0, 1.0, 1.0)),
    "torus": lambda: torus((8, 8)),
    "sphere": lambda: sphere(8),
    "icosphere": lambda: icosphere(1),
    "radial": lambda: radial(3, 0.0, 1.0, 12),
    "axisymmetric": lambda: axisymmetric(3, 12),
    "product": lambda: product(circle(8), interval(0.0, 1.0, 4)),
    "triangles": lambda: triangles(GRID, Delaunay(GRID).simplices),
}
LINE = interval(0.0, 1.0, 16)
DISPERSIVE = Equation(LINE, [Diffusion(LINE, 0.01 + 0.05j)])


def random_field(mesh):
    parts = np.random.default_rng(0).standard_normal((2, mesh.cells))
    return parts[0] + 1j * parts[1]


def packet(x, t):
    """Return the free packet of ∂ₜψ = ½ i Δψ that is e^{−x²/2}/π^{1/4} at t = 0."""
    return np.exp(-(x**2) / (2 * (1 + 1j * t))) / np.sqrt(1 + 1j * t) / np.pi**0.25


@pytest.mark.parametrize("name", MESHES)
def test_complex_fields_diffuse_by_the_exponential_of_the_matrix(name):
    mesh, each = MESHES[name](), (0.02 + 0.05j, 0.05)
    u0, matrix = random_field(mesh), Diffusion(mesh, 1.0).jacobian(1)[0].toarray()
    u = solve(Equation(mesh, [Diffusion(mesh, each)]), np.stack([u0, u0]), (0.0, 0.2), times=[0.2]).u[-1]
    np.testing.assert_allclose(u, [expm(0.2 * D * matrix) @ u0 for D in each], atol=1e-3)  # ten times rtol


@pytest.mark.parametrize("method", METHODS)
def test_every_method_for_complex_fields_has_the_free_packet(method):
    """The error of the mesh, of fourth order, is 7e-3 on 64 cells; that of time is below a tenth of it."""
    mesh = interval(-20.0, 20.0, 64, periodic=True)
    x = mesh.centers[:, 0]
    u = solve(Equation(mesh, [Diffusion(mesh, 0.5j)]), packet(x, 0.0), (0.0, 2.0), times=[2.0], method=method).u[-1]
    assert np.abs(u - packet(x, 2.0)).max() < 8e-3
    assert abs(mesh.integrate(np.abs(u) ** 2) - 1) < 1e-4  # rtol


def test_the_free_packet_has_the_exact_width_and_phase_and_its_error_the_order_four():
    errors = []
    for cells in (64, 128):
        mesh = interval(-20.0, 20.0, cells, periodic=True)
        x = mesh.centers[:, 0]
        u = solve(from_text("dt(psi) = 0.5j*laplace(psi)", mesh), packet(x, 0.0), (0.0, 2.0), times=[2.0], rtol=1e-6).u[
            -1
        ]
        errors.append(np.abs(u - packet(x, 2.0)).max())
    assert np.log2(errors[0] / errors[1]) > 3.7
    assert mesh.integrate(np.abs(u) ** 2 * x**2) == pytest.approx((1 + 2.0**2) / 2, rel=3e-3)  # of the mesh
    middle = np.abs(x) < 0.2
    np.testing.assert_allclose(np.angle(u[middle]), np.angle(packet(x[middle], 2.0)), atol=1e-3)
    assert abs(mesh.integrate(np.abs(u) ** 2) - 1) < 1e-7


def test_the_soliton_of_the_cubic_equation_has_the_order_four():
    errors, speed = [], np.pi / 4
    for cells in (64, 128):
        mesh = interval(-16.0, 16.0, cells, periodic=True)
        x = mesh.centers[:, 0]

        def soliton(t, x=x):
            return np.exp(1j * (speed * x + (1 - speed**2) * t / 2)) / np.cosh(x - speed * t)

        equation = Equation(mesh, [Diffusion(mesh, 0.5j), Source(lambda t, u: 1j * np.abs(u) ** 2 * u)])
        errors.append(np.abs(solve(equation, soliton(0), (0, 2), times=[2.0], rtol=1e-6).u[-1] - soliton(2)).max())
    assert np.log2(errors[0] / errors[1]) > 3.7
    assert errors[1] < 2e-3


def test_a_plane_wave_of_ginzburg_and_landau_has_its_amplitude_and_frequency():
    """A = R e^{i(qx − ωt)} with R² = 1 − q² and ω = b q² + c R² is stable here (b c > −1)."""
    b, c, q = 0.5, -1.0, 0.5
    mesh = interval(0.0, 8 * np.pi, 64, periodic=True)
    text = "dt(A) = A + (1 + b*1j)*laplace(A) - (1 + c*1j)*abs(A)**2*A"
    start = 0.5 * np.exp(1j * q * mesh.centers[:, 0])
    before, after = solve(from_text(text, mesh, {"b": b, "c": c}), start, (0.0, 21.0), times=[20.0, 21.0]).u
    np.testing.assert_allclose(np.abs(after), np.sqrt(1 - q**2), atol=2e-4)
    np.testing.assert_allclose(np.angle(before / after), b * q**2 + c * (1 - q**2), atol=2e-4)


def test_oscillators_of_stuart_and_landau_have_their_frequencies_and_limit_cycles():
    """The limit cycle of ∂ₜz = (1 + iω)z − (1 + iβ)|z|²z is |z| = 1 at the frequency ω − β."""
    omega, beta = np.array([0.5, 1.0, 2.0]), 0.3
    lattice = Equation(None, [lambda t, z: (1 + 1j * omega) * z - (1 + 1j * beta) * np.abs(z) ** 2 * z])
    before, after = solve(lattice, np.full(3, 0.1 + 0j), (0.0, 20.0), times=[19.0, 20.0], rtol=1e-6).u
    np.testing.assert_allclose(np.abs(after), 1.0, atol=1e-5)
    np.testing.assert_allclose(np.angle(after / before), omega - beta, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_errors_are_those_of_the_modulus(method):
    """The steps of a rotating field depend on its phase if errors of the real part or of both parts are compared."""
    equation = Equation(LINE, [Diffusion(LINE, 0.1j), lambda t, u: -1j * np.abs(u) ** 2 * u])
    starts, end, rtol = (
        (np.ones(16), np.exp(0.7j) * np.ones(16)),
        *((10.0, 1e-6) if method == "dop853" else (1.0, 1e-4)),
    )
    one, turned = (solve(equation, start, (0.0, end), times=[end], method=method, rtol=rtol) for start in starts)
    assert one.steps == turned.steps
    assert one.rejected == turned.rejected
    np.testing.assert_allclose(turned.u[-1], np.exp(0.7j) * one.u[-1], atol=1e-7)  # of Newton's iteration
    np.testing.assert_allclose(one.u[-1], np.exp(-1j * end), atol=1e-3)


def test_boundary_data_and_coefficients_for_each_field():
    """1 − x + e^{−D π² t} sin πx solves ∂ₜu = D Δu between the values 1 and 0."""
    mesh = interval(0.0, 1.0, 64)
    x, ends = mesh.centers[:, 0], {"left": Value(1.0), "right": Value(0.0)}
    equation = Equation(mesh, [Diffusion(mesh, [0.1j, 0.1], boundaries=ends)])
    found = solve(equation, np.stack([1 - x + np.sin(np.pi * x)] * 2), (0.0, 1.0), times=[1.0], rtol=1e-6).u[-1]
    exact = [1 - x + np.exp(-D * np.pi**2) * np.sin(np.pi * x) for D in (0.1j, 0.1)]
    np.testing.assert_allclose(found, exact, atol=1e-3)
    assert np.abs(found[1].imag).max() == 0


@pytest.mark.parametrize("right", ["flux", "robin"])
def test_complex_conditions_on_the_boundary_let_a_wave_pass(right):
    """e^{i(kx − k²t/2)} solves ∂ₜψ = ½ i ∂ₓ²ψ with ∂ₓψ = ikψ; the error of the mesh is of second order."""
    k, errors = 4.0, []

    def wave(t, x):
        return np.exp(1j * (k * x - k**2 / 2 * t))

    flux, slope = Flux(lambda t, x: 0.5j * 1j * k * wave(t, 1.0)), "dn(psi) = 4j*exp(1j*(4 - 8*t))"
    condition, text = (flux, slope) if right == "flux" else (Robin(-1j * k, 1.0, 0.0), "dn(psi) - 4j*psi = 0")
    ends, texts = (
        {"left": Value(lambda t, x: wave(t, 0.0)), "right": condition},
        {"left": "psi = exp(-8j*t)", "right": text},
    )
    for cells in (12, 24):
        mesh = interval(0.0, 1.0, cells)
        x = mesh.centers[:, 0]
        equation = Equation(mesh, [Diffusion(mesh, 0.5j, boundaries=ends)])
        text = from_text("dt(psi) = 0.5j*laplace(psi)", mesh, boundaries=texts)
        np.testing.assert_allclose(text.rate(0.3, wave(0.2, x)), equation.rate(0.3, wave(0.2, x)), rtol=1e-12)
        psi = solve(equation, wave(0.0, x), (0.0, 0.2), times=[0.2]).u[-1]
        errors.append(np.abs(psi - wave(0.2, x)).max())
    assert np.log2(errors[0] / errors[1]) > 1.8, errors
    assert errors[1] < 0.02


def test_a_wave_of_the_discrete_equation_takes_few_steps():
    """The wave is v e^{−iωt} with −iωv = Lv + b; from the exact wave, fast modes that do not decay take 860 steps."""
    k, omega, mesh = 2.0, 2.0, interval(0.0, 1.0, 64)
    wave = Value(lambda t, x: np.exp(1j * (k * x[:, 0] - omega * t)))
    term = Diffusion(mesh, 0.5j, boundaries={"left": wave, "right": wave})
    equation = Equation(mesh, [term])
    v = spsolve((-1j * omega * identity(64) - term.jacobian(1)[0]).tocsc(), equation.rate(0.0, np.zeros(64, complex)))
    solution = solve(equation, v, (0.0, 1.0), times=[1.0])
    assert solution.steps < 30
    np.testing.assert_allclose(solution.u[-1], v * np.exp(-1j * omega), atol=1e-4)  # rtol


@pytest.mark.parametrize("mesh", [disk(1.0, 3), box((4, 3), (1.0, 1.0))])
def test_rates_by_complex_conditions_are_those_of_the_matrix(mesh):
    """The matrix is complex symmetric in the inner product with the volumes, and its imaginary part diagonal."""
    ends = dict.fromkeys(mesh.boundary_faces, Robin(1 - 2j, 0.5, 0.0))
    for D in (1.0, 1 + 0.3j, 1 + mesh.centers[:, 0] ** 2):
        term = Diffusion(mesh, D, boundaries=ends)
        u = np.random.default_rng(0).standard_normal((2, mesh.cells)).T @ [1, 1j]
        np.testing.assert_allclose(Equation(mesh, [term]).rate(0.0, u), term.jacobian(1)[0] @ u, rtol=1e-12)


def test_complex_numbers_as_data_make_real_fields_complex():
    """Steady states are i(1 − x) + 2x for Δu, and i(1 − e^{−x})/(1 − 1/e) for Δu + ∂ₓu between 0 and i."""
    x, ends = LINE.centers[:, 0], {"left": Value(1j), "right": Robin(1.0, 0.0, 2.0)}
    heat = Equation(LINE, [Diffusion(LINE, 1.0, boundaries=ends)])
    np.testing.assert_allclose(heat.rate(0.0, 1j * (1 - x) + 2 * x), 0.0, atol=1e-11)
    assert solve(heat, x, (0.0, 0.01)).u.dtype == np.complex128
    wind = from_text("dt(u) = laplace(u) + dx(u)", LINE, boundaries={"left": "u = 0", "right": "u = 1j"})
    u = solve(wind, 0 * x, (0.0, 2.0), times=[2.0], rtol=1e-3).u[-1]
    np.testing.assert_allclose(u, 1j * (1 - np.exp(-x)) / (1 - np.exp(-1)), atol=1 / 16**2)


def test_a_complex_wave_takes_symplectic_steps():
    """e^{i(x − ωt)} with ω² = 2 solves ∂ₜₜu = Δu − u."""
    mesh = interval(0.0, 2 * np.pi, 32, periodic=True)
    u0, omega = np.exp(1j * mesh.centers[:, 0]), np.sqrt(2)
    solution = solve(from_text("dt(dt(u)) = laplace(u) - u", mesh), [u0, -1j * omega * u0], (0.0, 3.0), rtol=1e-6)
    assert "symplectic" in solution.message
    np.testing.assert_allclose(solution.u[-1, 0], u0 * np.exp(-3j * omega), atol=5e-5)  # of the mesh: 2e-5


def test_functions_of_texts():
    mesh = interval(0.0, 2 * np.pi, 32, periodic=True)
    u, v = random_field(mesh), random_field(mesh)[::-1]
    first = "dt(u) = laplace(v)*1j + conj(u)*real(v)/2"
    text = first + "; dt(v) = dx(u) + a*imag(u) - sqrt(abs(v))*integral(u) + convolve(r, u)"
    equation = from_text(text, mesh, {"a": 2 - 1j})
    plain = {
        name: from_text(f"dt(u) = {part}", mesh)
        for name, part in (("Δ", "laplace(u)"), ("∂", "dx(u)"), ("*", "convolve(r, u)"))
    }
    of = {name: lambda f, one=one: one.rate(0, f.real) + 1j * one.rate(0, f.imag) for name, one in plain.items()}
    expected = of["Δ"](v) * 1j + np.conj(u) * v.real / 2
    other = of["∂"](u) + (2 - 1j) * u.imag - np.sqrt(np.abs(v)) * (u @ mesh.volumes) + of["*"](u)
    np.testing.assert_allclose(equation.rate(0.0, np.stack([u, v])), [expected, other], atol=1e-11)
    assert equation.rate(0.0, np.ones((2, 32))).dtype == complex
    varying = {"a": 1 + np.abs(v)}
    real = from_text("dt(u) = div(a*grad(u))", mesh, varying)
    found = from_text("dt(u) = div(c*grad(u))", mesh, {"c": 0.5j * varying["a"]}).rate(0.0, u)
    np.testing.assert_allclose(found, 0.5j * (real.rate(0, u.real) + 1j * real.rate(0, u.imag)), atol=1e-11)


@pytest.mark.parametrize("shift", [0.0, 2 - 3j])
def test_shifted_systems_with_complex_matrices(shift):
    """The matrix D Δ + e on a box has the modes of Δ, also with real right sides; a varying e needs sparse factors."""
    mesh = box((5, 4), (1.0, 2.0))
    laplacian, right = Diffusion(mesh, 1.0).jacobian(1)[0].toarray(), random_field(mesh)
    for e, exact in ((shift * np.ones(20), True), (shift * np.arange(20), shift == 0)):
        matrix = (0.3 + 1j) * laplacian + np.diag(e)
        solver = ShiftedSolver(mesh, matrix)
        assert (solver._axes is not None) == exact
        np.testing.assert_allclose(
            solver.solve(right, 0.1), np.linalg.solve(np.eye(20) - 0.1 * matrix, right), atol=1e-12
        )


def test_real_fields_with_complex_coefficients_become_complex():
    found = solve(DISPERSIVE, LINE.centers[:, 0], (0.0, 0.1))
    assert found.u.dtype == complex
    np.testing.assert_array_equal(found.u, solve(DISPERSIVE, LINE.centers[:, 0] + 0j, (0.0, 0.1)).u)
    assert found(0.05).dtype == complex
    with pytest.raises(TypeError, match=r"^<lambda> returns complex numbers for real u: expected a complex u0"):
        solve(Equation(None, [Source(lambda t, u: 1j * u)]), [1.0], (0.0, 1.0))


def test_derivatives_and_integrals_of_complex_fields():
    u, point = random_field(LINE), [[0.4]]
    for of in (
        LINE.gradient,
        LINE.integrate,
        lambda f: LINE.divergence(f[:, None]),
        lambda f: LINE.interpolate(f, point),
    ):
        np.testing.assert_allclose(of(u), of(u.real) + 1j * of(u.imag), rtol=1e-12, atol=1e-12)


def test_events_see_the_modulus():
    growth = Equation(None, [lambda t, u: (1 + 5j) * u])
    assert solve(growth, [1j], (0, 3), events=Threshold(2.0), rtol=1e-8).t[-1] == pytest.approx(np.log(2), abs=1e-7)
    decay = Equation(None, [lambda t, u: 1j - u])
    assert solve(decay, [0j], (0, 50), events=SteadyState(1e-3)).event == 0


COMPLEX = np.ones(16) * 1j
REFUSED = {
    "Advection": lambda: solve(Equation(LINE, [Advection(LINE, lambda t, u: np.ones((16, 1)))]), COMPLEX, (0, 1)),
    "ConservationLaw": lambda: Equation(LINE, [ConservationLaw(LINE, lambda u: u**2, lambda u, v: abs(u + v))]).rate(
        0, COMPLEX
    ),
    "NonlinearDiffusion": lambda: solve(Equation(LINE, [NonlinearDiffusion(LINE, lambda u: u**3)]), COMPLEX, (0, 1)),
    "DriftDiffusion": lambda: solve(Equation(LINE, [DriftDiffusion(LINE, 1.0, np.zeros(16))]), COMPLEX, (0, 1)),
    "Diffusion": lambda: solve(Equation(LINE, [Diffusion(LINE, 1.0, nonnegative=True)]), COMPLEX, (0, 1)),
    "the methods euler, ssprk2 and ssprk3": lambda: solve(DISPERSIVE, COMPLEX, (0, 1), method="ssprk2"),
    "the method rkl2": lambda: solve(DISPERSIVE, COMPLEX, (0, 1), method="rkl2"),
    "Noise": lambda: solve(DISPERSIVE, COMPLEX, (0, 1), method=Noise(LINE, 0.1, step=0.1)),
    "limit_positivity": lambda: limit_positivity(COMPLEX.copy()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_real_numbers_is_named_in_a_line(name):
    with pytest.raises(TypeError, match=rf"^u0? of complex128: expected real numbers for {name}$"):
        REFUSED[name]()


def test_other_refusals():
    with pytest.raises(
        ValueError, match=r"^diffusion coefficient = \(-1\+1j\): expected a finite number of a real part"
    ):
        Diffusion(LINE, -1 + 1j)
    with pytest.raises(ValueError, match=r"^boundaries\['left'\] with a D = \(-2\+0j\): expected a real part >= 0"):
        Diffusion(LINE, 1j, boundaries={"left": Robin(2j, 1.0, 0.0)})
    with pytest.raises(TypeError, match=r"^boundaries\['left'\] = 1j: expected real numbers$"):
        Laplacian(LINE, {"left": Robin(1j, 1.0, 0.0)})
    with pytest.raises(ValueError, match=r"^nonnegative = True: expected a real diffusion coefficient$"):
        Diffusion(LINE, 1j, nonnegative=True)
    changing, fixed = {"left": Value(lambda t, x: 1j * t)}, {"left": Value(1j)}
    with pytest.raises(TypeError, match=r"^boundaries\['left'\] returns complex numbers for a real field: expected"):
        solve(Equation(LINE, [Diffusion(LINE, 1.0, boundaries=changing)]), np.ones(16), (0, 1))
    for term in (NonlinearDiffusion, Advection):
        with pytest.raises(TypeError, match=r"^boundaries\['left'\] = 1j: expected real numbers$"):
            term(LINE, lambda *arguments: None, boundaries=fixed)
    with pytest.raises(TypeError, match=r"^boundaries\['left'\] = 1j: expected real numbers$"):
        Laplacian(LINE, fixed)
    with pytest.raises(TypeError, match=r"^guess of dtype complex128: expected real numbers$"):
        solve_steady(DISPERSIVE, COMPLEX)
    with pytest.raises(TypeError, match=r"^u is complex: expected real fields, such as its real and imaginary parts$"):
        DISPERSIVE.jacobian(0.0, np.ones(16))
