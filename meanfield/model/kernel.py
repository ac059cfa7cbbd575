"""Kernels of attention k(x, y), as records used by heads, sums, sections and captions.

    exponential   e^{β⟨Qx,Ky⟩}
    gaussian      e^{−β|Qx−Ky|²/2} = e^{β⟨Qx,Ky⟩} f(Qx) f(Ky) ,   f(x) = e^{−β|x|²/2}
    windowed      e^{β⟨x,y⟩} for tokens within an angle of each other, with a smooth cutoff

A new kernel is an entry of the table at the foot: either a factor f beside the exponential, or any function of ⟨x,y⟩.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.model.errors import ArgumentError, check_number, one_of

if TYPE_CHECKING:
    from solvers.mesh.mesh import Floats

MAX_LOSS = 8.0  # largest log(max Z / Z of a token) for which harmonics keep enough digits: rounding is 1e-16 of max Z


def _any_beta(window: float) -> float:
    """Return −∞: the kernel allows every β."""
    return -np.inf


@dataclass(frozen=True)
class Kernel:
    """Attention kernel k(x, y): an entry of the table KERNELS, with the angle of its window where it has one.

    log_factor     (β, |x|²) → log f(x) of k = e^{β⟨Qx,Ky⟩} f(Qx) f(Ky), which has to be at most 1; None for f = 1
    zonal          (z, β, window) → k e^{−|β|} for cosines z = ⟨x,y⟩ of unit vectors; None for a kernel with the form
                   above
    log_zonal      (z, β, window) → log of ``zonal`` on the host, where k is out of range; None to take the logarithm of
                   k
    takes_window   whether the kernel has a window
    least_beta     window → the smallest product of β and the scales of Q and K that the transforms resolve
    window         angle (radians) at which the cutoff of the kernel is 1/2; None for a kernel without a window
    """

    name: str
    log_factor: Callable[[float, Any], Any] | None = None
    zonal: Callable[[Floats, float, float], Floats] | None = None
    takes_window: bool = False
    log_zonal: Callable[[Floats, float, float], Floats] | None = None
    least_beta: Callable[[float], float] = _any_beta
    window: float | None = None

    @property
    def folds_scales(self) -> bool:
        """Return whether the kernel depends on scales of Q and K only by their product, so that β may include them."""
        return self.log_factor is None

    @property
    def text(self) -> str | None:
        """Return the description of the kernel in captions; None for the exponential kernel, which captions omit."""
        if self.takes_window:
            return f"window {self.window:g} rad"
        return None if self == KERNELS["exponential"] else f"{self.name} kernel"

    def values(self, cosines: Floats, beta: float) -> Floats:
        """Return the values k e^{−|β|} (...) of a zonal kernel k(⟨x,y⟩) at ``cosines`` ⟨x,y⟩ (...)."""
        assert self.zonal is not None
        return self.zonal(cosines, beta, 0.0 if self.window is None else self.window)

    def log_values(self, cosines: Floats, beta: float) -> Floats:
        """Return the logarithms log k − |β| (...) of a zonal kernel k(⟨x,y⟩) at ``cosines`` ⟨x,y⟩ (...), on the host.

        The logarithm is −∞ where k is 0.
        """
        if self.log_zonal is not None:
            return self.log_zonal(cosines, beta, 0.0 if self.window is None else self.window)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.values(cosines, beta)))


def kernel_of(kernel: str | Kernel, window: float | None = None) -> Kernel:
    """Return the attention kernel of a name, or the given kernel, with the angle of its window.

    Raises ArgumentError for an unknown name, for a missing or superfluous window, and for an angle that is not in (0,
    π].
    """
    entry = kernel if isinstance(kernel, Kernel) else one_of("kernel", kernel, KERNELS)
    window = entry.window if window is None else window
    if entry.takes_window != (window is not None):
        raise ArgumentError("window", window, "an angle with kernel = 'windowed', else None")
    if window is None:
        return entry
    check_number("window", window)
    if not 0 < window <= np.pi:
        raise ArgumentError("window", window, "an angle > 0 and <= pi")
    return replace(entry, window=window)


def windowed_kernel(cosines: Floats, beta: float, window: float) -> Floats:
    """Return the windowed kernel e^{βz − |β|} ½ erfc((cos w − z)/δ), δ = (1 − cos w)/4, at cosines z (...).

    w is the angle ``window``. The kernel is smooth, and half the exponential at z = cos w. The edge has the width w/8,
    so that about 100/w degrees resolve it to rounding, however few the cells are: with fewer degrees, tokens beyond the
    window would attend by ripples of the edge.
    """
    from solvers.backends import backend_for

    edge = float(np.cos(window))
    share = backend_for(cosines).erfc((edge - cosines) * (4 / (1 - edge))) / 2
    return np.exp(beta * cosines - abs(beta)) * share


def log_windowed_kernel(cosines: Floats, beta: float, window: float) -> Floats:
    """Return the logarithm (...) of :func:`windowed_kernel`, which is finite at all cosines (...)."""
    from scipy.special import log_ndtr

    edge = float(np.cos(window))
    return np.asarray(log_ndtr((cosines - edge) * (4 * np.sqrt(2) / (1 - edge))) + (beta * cosines - abs(beta)))


def _gaussian_factor(beta: float, squares: Any) -> Any:
    """Return the log-weights −β|y|²/2 that turn the exponential kernel into the Gaussian one."""
    return -beta / 2 * squares


def _least_beta_of_window(window: float) -> float:
    """Return the least β of a windowed kernel, at which sums still have sufficient digits."""
    return -MAX_LOSS / (1 - float(np.cos(window)))


KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Kernel("exponential"),
        Kernel("gaussian", log_factor=_gaussian_factor),
        Kernel(
            "windowed",
            zonal=windowed_kernel,
            log_zonal=log_windowed_kernel,
            takes_window=True,
            least_beta=_least_beta_of_window,
        ),
    )
}
