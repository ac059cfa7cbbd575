"""A statement of the literature beside what this package finds."""

from __future__ import annotations

from dataclasses import dataclass

MAX_TOLERANCE = 0.05  # of a reproduced or refuted number; agreement to more excludes little


@dataclass(frozen=True)
class Statement:
    """A number that a source gives, and the one that is found here.

    text        what is stated
    source      paper with its version, and place
    read        what was read of it: "text", "abstract", "third party", and whether the formula was "derived here"
    published   the number, from the formula of the source
    found       the number of the run or runs
    tolerance   relative difference that is within the error of ``found``
    reason      of that tolerance
    holds       the number that holds instead, where the published one does not; None where it does
    where       under which conditions it holds, if not always

    A number is *reproduced* where the tolerance is at most 5 %, else the run is *consistent with* it. Raises ValueError
    for a number said to be refuted that is within the tolerance of ``found``, or at a tolerance above 5 %.
    """

    text: str
    source: str
    read: str
    published: float
    found: float
    tolerance: float
    reason: str
    holds: float | None = None
    where: str = ""

    def __post_init__(self) -> None:
        if self.holds is None:
            return
        if self.tolerance > MAX_TOLERANCE or _difference(self.found, self.published) <= self.tolerance:
            given = f"published = {self.published}, found = {self.found}, tolerance = {self.tolerance}"
            raise ValueError(f"{given}: expected a difference above the tolerance, and that at most {MAX_TOLERANCE}")

    @property
    def difference(self) -> float:
        """|found − expected| / |expected|, absolute where zero is expected: the published number, or what holds."""
        return _difference(self.found, self.published if self.holds is None else self.holds)

    @property
    def verdict(self) -> str:
        """Reproduced to at most 5 %, consistent with a larger tolerance, refuted by how much, or off by how much."""
        if not self.difference <= self.tolerance:
            return f"off by {self.difference:.2g}"
        if self.holds is not None:
            return f"refuted by {_difference(self.published, self.holds):.2g}" + (
                f" {self.where}" if self.where else ""
            )
        kind = "reproduced" if self.tolerance <= MAX_TOLERANCE else "consistent with"
        return f"{kind} {self.where}".rstrip()

    def __str__(self) -> str:
        rows = {
            "statement": self.text,
            "source": self.source,
            "read": self.read,
            "published": f"{self.published:.7g}",
            "found": f"{self.found:.7g}",
            "tolerance": f"{self.tolerance:.2g}, {self.reason}",
            "verdict": self.verdict,
        }
        return "\n".join(f"{name:<11}{value}" for name, value in rows.items())


def _difference(number: float, expected: float) -> float:
    return abs(number - expected) / (abs(expected) or 1.0)
