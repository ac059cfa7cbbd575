"""Sparse patterns of attention among tokens in their order: which tokens each one attends to.

    S(i) = {j : |i − j| ≤ local} ∪ {j < global_tokens} ∪ a few at random ,    S(i) = all tokens for i < global_tokens

Beltagy, Peters, Cohan, "Longformer" (2004.05150): a window and global tokens. Zaheer and others, "Big Bird"
(2007.14062): random tokens besides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.mesh.mesh import Integers


@dataclass(frozen=True)
class TokenPattern:
    """Whom tokens attend to.

    local           distance in the sequence up to which tokens see each other
    global_tokens   how many of the first tokens see all, and are seen by all
    random_tokens   how many others each token draws, by ``seed``; one that it sees already counts once
    periodic        whether the window continues from the last token to the first
    causal          whether token i sees tokens j ≤ i only
    """

    local: int = 0
    global_tokens: int = 0
    random_tokens: int = 0
    seed: int = 0
    periodic: bool = False
    causal: bool = False

    def lists(self, n: int) -> Integers:
        """(n − global, k) the tokens that each token from ``global_tokens`` on sees, of n; −1 fills rows up.

        k is at most 2 local + 1 + global_tokens + random_tokens, whatever n is.
        """
        queries = np.arange(min(self.global_tokens, n), n, dtype=np.int32)[:, None]
        reach = min(self.local, n - 1)
        local = queries + np.arange(-reach, reach + 1, dtype=np.int32)
        local = local % n if self.periodic else np.where((local < 0) | (local >= n), -1, local)
        first = np.broadcast_to(np.arange(min(self.global_tokens, n), dtype=np.int32), (len(queries), n - len(queries)))
        drawn = np.random.default_rng(self.seed).integers(0, n, (n, self.random_tokens), dtype=np.int32)
        drawn = drawn[n - len(queries) :]
        seen = np.sort(np.concatenate([local, first, drawn], axis=1), axis=1)
        again = np.zeros(seen.shape, bool)
        again[:, 1:] = seen[:, 1:] == seen[:, :-1]
        return np.where(again | (seen > queries if self.causal else False), -1, seen).astype(np.int32)

    def mask(self, n: int) -> NDArray[np.bool_]:
        """(n, n) whether token i sees token j: for pictures and tests, since it is as large as dense attention."""
        seen = np.zeros((n, n), bool)
        first, lists = min(self.global_tokens, n), self.lists(n)
        rows, places = np.nonzero(lists >= 0)
        seen[first + rows, lists[rows, places]] = True
        seen[:first] = True
        return np.tril(seen) if self.causal else seen
