"""Sparse patterns of attention among ordered tokens: the set S(i) of tokens to which token i attends.

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
    """Sparsity pattern of attention: for each token, the tokens to which it attends.

    local           distance in the sequence up to which tokens attend to each other
    global_tokens   number of the first tokens, which attend to all tokens and are attended to by all
    random_tokens   number of random tokens that each token attends to, drawn by ``seed``; duplicates count once
    periodic        whether the window continues from the last token to the first
    causal          whether token i attends to tokens j ≤ i only
    """

    local: int = 0
    global_tokens: int = 0
    random_tokens: int = 0
    seed: int = 0
    periodic: bool = False
    causal: bool = False

    def lists(self, n: int) -> Integers:
        """Return the indices of the tokens that each of n tokens attends to, (n − global_tokens, k), padded with −1.

        The first ``global_tokens`` tokens have no row, since they attend to all tokens. k is at most 2 local + 1 +
        global_tokens + random_tokens, independent of n.
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
        """Return the matrix (n, n) of booleans that is true where token i attends to token j.

        The matrix serves figures and tests, since it is as large as dense attention.
        """
        seen = np.zeros((n, n), bool)
        first, lists = min(self.global_tokens, n), self.lists(n)
        rows, places = np.nonzero(lists >= 0)
        seen[first + rows, lists[rows, places]] = True
        seen[:first] = True
        return np.tril(seen) if self.causal else seen
