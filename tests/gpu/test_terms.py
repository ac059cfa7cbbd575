"""Terms of other equations than attention's on the device against the CPU: a short time of each."""

import numpy as np
import pytest
from support.device import gpu

from solvers.backends import host_backend
from solvers.mesh.boundaries import Flux, Outflow, Robin, Value
from solvers.mesh.interval import from_edges
from solvers.mesh.mesh import sphere
from solvers.terms.advection import Advection
from solvers.terms.conservation_law import ConservationLaw
from solvers.terms.diffusion import Diffusion, NonlinearDiffusion
from solvers.terms.drift.scharfetter_gummel import DriftDiffusion
from solvers.terms.laws.euler import Euler
from solvers.terms.laws.shallow_water import ShallowWater
from solvers.terms.source import Source
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS
from solvers.transforms.interaction import Convolution, DenseKernel

EQUAL = 1e-12  # relative to the largest number: the order of sums differs
MESH = from_edges(np.linspace(0.0, 1.0, 12), "line")
FIELD = 1.0 + 0.3 * np.sin(6.0 * MESH.centers[:, 0])
FIELDS = np.stack([FIELD, 2.0 * FIELD])
EULER = Euler()
GAS = EULER.conserved(FIELD, 0.0 * FIELD[None], FIELD)
WATER = ShallowWater()
ENDS = {"left": Value(1.0), "right": Robin(1.0, 2.0, 0.5)}


def to_the_right(mesh):
    return lambda time, u: mesh.backend.xp.ones_like(mesh.centers)


def burgers(mesh):
    parts = {"left": Flux(0.1), "right": Outflow()}
    return ConservationLaw(mesh, lambda u: u**2 / 2, lambda u: np.abs(u), boundaries=parts)


def diffusion_by_cells(mesh):
    return Diffusion(mesh, mesh.backend.to_device(np.linspace(0.1, 1.0, MESH.cells)), boundaries={"left": Value(1.0)})


def gas_by(reconstruction):
    return lambda mesh: ConservationLaw(
        mesh, EULER.flux, EULER.speed, riemann=EULER.hllc, mirror=EULER.mirror, reconstruction=reconstruction
    )


def water_over_a_bottom(mesh):
    source = WATER.over(mesh, 0.5 * np.sin(6.0 * MESH.centers[:, 0]))
    return ConservationLaw(mesh, WATER.flux, WATER.speed, riemann=WATER.roe, mirror=WATER.mirror, source=source)


TERMS = {
    "advection": (FIELD, lambda mesh: Advection(mesh, to_the_right(mesh), boundaries={"left": Value(1.0)})),
    "advection of fields": (FIELDS, lambda mesh: Advection(mesh, to_the_right(mesh))),
    "diffusion": (FIELD, lambda mesh: Diffusion(mesh, 0.3, boundaries=ENDS)),
    "diffusion by cells": (FIELD, diffusion_by_cells),
    "diffusion of fields": (FIELDS, lambda mesh: Diffusion(mesh, 0.3)),
    "nonlinear diffusion": (FIELD, lambda mesh: NonlinearDiffusion(mesh, np.square, boundaries={"left": Value(1.0)})),
    "source": (FIELD, lambda mesh: Source(lambda time, u: 0.5, fastest=1.0)),
    "burgers": (FIELD, burgers),
    "water over a bottom": (np.stack([FIELD, 0.1 * FIELD]), water_over_a_bottom),
    **{f"gas, {name}": (GAS, gas_by(name)) for name in ("muscl", "weno5", "constant")},
}


def evolved(backend, start, term):
    state = State(0.0, backend.to_device(start.copy()))
    evolve(state, Equation(None, [term(MESH.on(backend))]), STEPPERS["ssprk3"], 0.01, rtol=None)
    return backend.to_host(state.values)


@pytest.mark.parametrize("name", TERMS)
def test_terms_are_the_cpu_s(name):
    start, term = TERMS[name]
    expected, found = (evolved(backend, start, term) for backend in (host_backend(), gpu))
    assert not np.array_equal(expected, start)
    assert np.abs(found - expected).max() < EQUAL * np.abs(expected).max()


def test_water_on_a_sphere_is_the_cpu_s():
    mesh = sphere(4)
    u = np.vstack([2.0 + mesh.centers[:, :1].T, np.cross([0.0, 0.0, 1.0], mesh.centers).T])
    rates = []
    for backend in (host_backend(), gpu):
        law = ConservationLaw(mesh.on(backend), WATER.flux, WATER.speed, riemann=WATER.hllc, tangent=(1, 4))
        rate = backend.zeros(u.shape)
        law.prepare(0.0, backend.to_device(np.ascontiguousarray(u)))
        law.rate(0.0, rate)
        rates.append(backend.to_host(rate))
    assert np.abs(rates[1] - rates[0]).max() < EQUAL * np.abs(rates[0]).max()


def test_a_dense_kernel_is_the_cpu_s():
    expected, found = (
        backend.to_host(DenseKernel(MESH.on(backend), lambda x, y: (x * y).sum(axis=-1))(backend.to_device(FIELD)))
        for backend in (host_backend(), gpu)
    )
    assert np.abs(found - expected).max() < EQUAL * np.abs(expected).max()


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("DriftDiffusion", lambda mesh: DriftDiffusion(mesh, 1.0, np.zeros(mesh.cells))),
        ("Convolution", lambda mesh: Convolution(mesh, lambda r: r[:, 0])),
    ],
)
def test_what_has_no_kernels_of_the_device_refuses_its_meshes(name, make):
    with pytest.raises(ValueError, match=f"^{name} on a mesh of the gpu: expected a mesh of the cpu$"):
        make(MESH.on(gpu))
