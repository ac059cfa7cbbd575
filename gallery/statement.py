"""A statement of the literature beside what this package finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """A number that a source gives, and the one that is found here.

    text        what is stated
    source      paper and place
    read        what was read of it: "text", "abstract", or "formula derived again"
    published   the number, from the formula of the source
    found       the number of the run or runs
    tolerance   relative difference that is within the error of ``found``
    reason      of that tolerance
    """

    text: str
    source: str
    read: str
    published: float
    found: float
    tolerance: float
    reason: str

    @property
    def difference(self) -> float:
        """|found − published| / |published|."""
        return abs(self.found - self.published) / abs(self.published)

    @property
    def verdict(self) -> str:
        """Reproduced within the tolerance, or by how much it is not."""
        return "reproduced" if self.difference <= self.tolerance else f"off by {self.difference:.2g}"
