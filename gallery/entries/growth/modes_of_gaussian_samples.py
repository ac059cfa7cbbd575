"""
Number of modes of Gaussian samples
===================================

The kernel density of bandwidth 1/√β of n samples of N(0, 1) on the line has Θ(√(β log β)) modes on average while n^c
≲ β ≲ n^{2−c}. Here n = β, and the constant is 1/π √(3/2) to leading order: the noise of the samples, with √(3β/2)/2π
modes per unit of length (Rice), dominates the slope of the mean where x² < log β.
"""

import numpy as np

from meanfield.gallery.figure import draw
from meanfield.gallery.size import size
from meanfield.gallery.statement import Statement

BETAS = np.geomspace(1e2, 1e5, 7)


def modes(beta, seed):
    """Return the number of local maxima of Σ_i e^{−β(x − x_i)²/2} for β random samples x_i of N(0, 1).

    The sum is a convolution on a grid of 16 points per bandwidth.
    """
    samples = np.random.default_rng(seed).standard_normal(round(beta))
    step = 1 / (16 * np.sqrt(beta))
    cells = np.floor((samples + 8) / step).astype(int)
    count = 2 ** int(np.ceil(np.log2(16 / step)))
    spectrum = np.fft.rfft(np.bincount(cells, minlength=count))
    angles = 2 * np.pi * np.arange(len(spectrum)) / (count * step)
    density = np.fft.irfft(spectrum * np.exp(-(angles**2) / (2 * beta)), count)
    significant = density > 1e-9 * density.max()  # exclude rounding of the transform beyond all samples
    rises = np.diff(density) > 0
    return int((rises[:-1] & ~rises[1:] & significant[1:-1]).sum())


counts = np.array([np.mean([modes(beta, seed) for seed in range(size(8, 200))]) for beta in BETAS])
scale = np.sqrt(BETAS * np.log(BETAS))

STATEMENT = Statement(
    text="power of √(β log β) in the mean number of modes of n = β Gaussian samples, β = 10² to 10⁵",
    source="Geshkovski, Rigollet, Sun 2412.09080v3, main theorem, point 1",
    read="abstract and introduction",
    expected=1.0,
    found=np.polyfit(np.log(scale), np.log(counts), 1)[0],
    tolerance=5e-2,
    reason="isolated samples in the tails are modes, too: 1/log β of all; eight samples a size",
)

# %%
leading = np.sqrt(1.5) / np.pi * scale
draw("β", "modes", logx=True, logy=True, counted=(BETAS, counts), formula_to_leading_order=(BETAS, leading))
print(STATEMENT)
