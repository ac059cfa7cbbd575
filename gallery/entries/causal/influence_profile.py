"""
Lost in the middle: influence of each earlier token on the last
===============================================================

At β = 0 under a causal mask the last of n orthogonal tokens has the cosine ⟨x_n(t), x_s(0)⟩ = √(t/ℓ) I₁(2√(tℓ))/n with
token s, ℓ = log(n/s). The cosine is large for the first tokens (primacy), small for later ones, and of order 1 with
the token itself (recency).
"""

import numpy as np
from scipy.special import iv

import meanfield as mf
from meanfield.gallery.figure import draw
from meanfield.gallery.statement import Statement

N, END = 256, 1.0
changes = ["attention.beta=0", "attention.mask=causal", f"domain.count={N}", f"domain.dimension={N}", f"time.end={END}"]
quiet = ["output.snapshots=1", "output.samples=1", 'output.diagnostics=["mass"]']
path = np.asarray(mf.simulate(mf.load_case("tokens_equiangular", [*changes, *quiet])).position)
profile = N * path[0] @ path[-1, -1]
place = np.arange(1, N) / N


def expected(x):
    log = np.log(1 / x)
    return np.sqrt(END / log) * iv(1, 2 * np.sqrt(END * log))


STATEMENT = Statement(
    text="n⟨x_n(1), x_s(0)⟩ at s = n/4, β = 0, 256 orthogonal tokens",
    source="Duerinckx, Geshkovski, Rossi 2605.09213v1; Chowdhury 2603.10123v1",
    read="abstracts, and a proposition of 2605.09213v1 transcribed by a third party",
    expected=expected(0.25),
    found=profile[N // 4 - 1],
    tolerance=4e-2,
    reason="of order 1/n in the sums, and 1/s for the self-attention of token s",
    where="at β = 0, where the minimum is just before the last token",
)

# %%
shown = place > 0.02
curves = {"run": (place[shown], profile[:-1][shown]), "formula": (place[shown], expected(place[shown]))}
draw("relative position in the context", r"$n\langle x_n(t), x_s(0)\rangle$", **curves)
print(STATEMENT)
