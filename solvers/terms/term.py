"""Protocols of terms: the methods that an equation calls."""

from __future__ import annotations

from copy import copy
from typing import Protocol

from ..mesh.checks import takes
from ..mesh.mesh import Floats

Step = float | Floats  # a number on the state's device: a read on the host may block until the device has finished


class Term(Protocol):  # numpydoc ignore=PR01
    """Explicit term of an equation: an object with the methods ``prepare`` and ``rate``.

    No base class is needed. Each solve works on a copy of the term, ``copy.copy(term)``, so that several threads may
    solve one equation. A term that holds other terms, or arrays that it fills in place, replaces them in
    ``__getstate__``.

    Notes
    -----
    An equation also reads the following attributes of a term, if present.

    - ``mesh``: the mesh of the term, which must be that of the other terms.
    - ``nonnegative``: whether u is a density ≥ 0. The initial values are then checked, and ``method="auto"`` chooses a
      method that keeps u ≥ 0.
    - ``is_stiff``: whether ``method="auto"`` chooses an implicit method for this explicit term.
    - ``is_autonomous``: whether the rate depends on u alone; then no rates at later times are evaluated.
    - ``boundary_data(time, fields)``: a list of the data of the boundary, if nothing else in the rate depends on the
      time. Where the data are smooth, no rates at later times are evaluated.
    - ``is_complex``: whether the term has complex coefficients; real initial values then become complex.
    - ``only_real``: whether complex fields are refused, as by terms with limiters.
    - ``numerical_diffusion()``: the rate of change by numerical diffusion at the prepared state. If all terms
      have this method, the allowed error of a step contains the change by numerical diffusion.
    - ``jacobian(fields)``: the sparse matrices (cells, cells) of the rates of each field at the prepared state, as a
      list. Implicit methods use the matrices as preconditioners.

    Examples
    --------
    A term for ∂ₜu = −5(u − 1), and u(1) = 1 + e^{−5} from u(0) = 2:

    >>> import numpy as np
    >>> from solvers import Equation, solve
    >>> class Relaxation:
    ...     def prepare(self, time, values):
    ...         self.excess = values - 1
    ...         return 1 / 5  # no value crosses 1 in such a step
    ...
    ...     def rate(self, dt, rate):
    ...         rate -= 5 * self.excess
    >>> solution = solve(Equation(None, [Relaxation()]), [2.0], (0, 1), rtol=1e-6)
    >>> bool(abs(solution.u[-1, 0] - (1 + np.exp(-5))) < 1e-6)
    True
    """

    def prepare(self, time: float, values: Floats) -> Step:
        """Evaluate the term at a time and a state, and store the result for ``rate``.

        Parameters
        ----------
        time : float
            Time.
        values : (cells,) or (fields, cells) array
            State u, which must not be changed.

        Returns
        -------
        float
            Largest stable time step of an explicit Euler step; ∞ for no limit, NaN for a non-finite state. On a
            device, an array of one number.
        """
        ...

    def rate(self, dt: float, rate: Floats) -> None:
        """Add the rate of change at the prepared state to ``rate``, in place.

        Parameters
        ----------
        dt : float
            Time step, for terms whose limiters keep the state admissible after a step of dt. Other terms ignore it.
        rate : (cells,) or (fields, cells) array
            Sum of the rates of several terms, to which this rate is added.
        """
        ...


class StiffTerm(Protocol):  # numpydoc ignore=PR01
    """Stiff term of an equation: an object with the methods ``longest_step`` and ``step``, stable for any time step.

    Both methods may omit the parameter ``time``. Each solve copies the term, and attributes are read, as described at
    :class:`~solvers.Term`.

    Notes
    -----
    Methods other than "euler", "ssprk2" and "ssprk3" have no splitting. They need the rate of change of the term,
    affine in u: by the methods ``prepare`` and ``rate`` of :class:`~solvers.Term`. With
    ``jacobian(fields)``, linear systems are solved with its matrices.

    Examples
    --------
    A term for ∂ₜu = −1000 u with its exact step, beside the source 1000; the steady state is 1.

    >>> import numpy as np
    >>> from solvers import Equation, solve
    >>> class Decay:
    ...     def longest_step(self, values):
    ...         return np.inf
    ...
    ...     def step(self, dt, values, limited=True):
    ...         values *= np.exp(-1000 * dt)
    ...         return np.inf  # no value is limited
    ...
    ...     def prepare(self, time, values):
    ...         self.values = values
    ...         return np.inf
    ...
    ...     def rate(self, dt, rate):
    ...         rate -= 1000 * self.values
    >>> equation = Equation(None, [lambda t, u: 0 * u + 1000, Decay()])
    >>> solution = solve(equation, [0.0], (0, 1), method="ark4")
    >>> bool(abs(solution.u[-1, 0] - 1) < 1e-4) and solution.steps < 100
    True
    """

    def longest_step(self, values: Floats, time: float = 0.0) -> Step:
        """Return the longest step for which splitting from the other terms is accurate.

        Parameters
        ----------
        values : (cells,) or (fields, cells) array
            State u.
        time : float
            Time.

        Returns
        -------
        float
            Time step; ∞ for no limit. On a device, an array of one number.
        """
        ...

    def step(self, dt: float, values: Floats, limited: bool = True, time: float = 0.0) -> Step:
        """Advance ``values`` in place from ``time`` to time + dt by the stiff term alone.

        Parameters
        ----------
        dt : float
            Time step.
        values : (cells,) or (fields, cells) array
            State u.
        limited : bool
            Whether negative values of a density are removed. Otherwise they stay, so that no result has to be read
            from the device.
        time : float
            Time at the beginning of the step.

        Returns
        -------
        float
            Least value before negative values are removed; ∞ for fields of any sign. On a device, an array of one
            number.
        """
        ...


class TimeArgumentAdapter:
    """Adapter that calls the methods of a stiff term with the time only if their signatures accept it."""

    def __init__(self, term: StiffTerm) -> None:
        self._term = term
        self._longest_takes_time, self._step_takes_time = takes(term.longest_step, 2), takes(term.step, 4)

    def of(self, term: StiffTerm) -> TimeArgumentAdapter:
        """Return an adapter of a copy of the term, whose methods have the same signatures."""
        adapter = copy(self)
        adapter._term = term
        return adapter

    def longest_step(self, time: float, values: Floats) -> Step:
        """Return the longest step that the stiff term allows for ``values`` at a time, by its ``longest_step``."""
        return self._term.longest_step(values, *((time,) if self._longest_takes_time else ()))

    def step(self, time: float, dt: float, values: Floats, limited: bool) -> Step:
        """Advance ``values`` in place from ``time`` by dt; return the least value before negative ones are removed.

        ``limited``: whether the term removes negative values of a density.
        """
        return self._term.step(dt, values, limited, *((time,) if self._step_takes_time else ()))
