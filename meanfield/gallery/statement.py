"""Statement of the literature with the number found by this package."""

from __future__ import annotations

from dataclasses import dataclass

MAX_TOLERANCE = 0.05  # for a reproduced or refuted number, since agreement to a larger tolerance excludes little


@dataclass(frozen=True)
class Statement:
    """Number of a source, and the number found by this package.

    text        statement
    source      paper with its version, and place in the paper
    read        parts of the source that were read: "text", "abstract", "third party"; and whether the formula was
                "derived here"
    expected    the number from the formula of the source, or derived here
    found       the number of the run or runs
    tolerance   relative difference within the error of ``found``
    reason      reason for that tolerance
    holds       the number that holds instead of a wrong expected number; None if the expected number holds
    where       conditions under which the statement holds, if not always

    A number is *reproduced* if the tolerance is at most 5 %; otherwise the run is *consistent with* it. Raises
    ValueError for a refuted number within the tolerance of ``found``, or with a tolerance above 5 %.
    """

    text: str
    source: str
    read: str
    expected: float
    found: float
    tolerance: float
    reason: str
    holds: float | None = None
    where: str = ""

    def __post_init__(self) -> None:
        if self.holds is None:
            return
        if self.tolerance > MAX_TOLERANCE or _difference(self.found, self.expected) <= self.tolerance:
            given = f"expected = {self.expected}, found = {self.found}, tolerance = {self.tolerance}"
            raise ValueError(f"{given}: expected a difference above a tolerance of at most {MAX_TOLERANCE}")

    @property
    def difference(self) -> float:
        """Return |found − expected| / |expected|, or |found| if the expected number is 0.

        For a refuted number, ``holds`` is used instead of ``expected``.
        """
        return _difference(self.found, self.expected if self.holds is None else self.holds)

    @property
    def verdict(self) -> str:
        """Return the verdict as text: "reproduced", "consistent with", "refuted by" or "off by" a relative difference.

        A number is "off by" its difference if the difference exceeds the tolerance. Otherwise it is "refuted by" the
        difference from ``holds`` if ``holds`` is given, "reproduced" if the tolerance is at most 5 %, and else
        "consistent with".
        """
        if not self.difference <= self.tolerance:
            return f"off by {self.difference:.2g}"
        if self.holds is not None:
            return f"refuted by {_difference(self.expected, self.holds):.2g}" + (f" {self.where}" if self.where else "")
        kind = "reproduced" if self.tolerance <= MAX_TOLERANCE else "consistent with"
        return f"{kind} {self.where}".rstrip()

    def __str__(self) -> str:
        rows = {
            "statement": self.text,
            "source": self.source,
            "read": self.read,
            "expected": f"{self.expected:.7g}",
            "found": f"{self.found:.7g}",
            "tolerance": f"{self.tolerance:.2g}, {self.reason}",
            "verdict": self.verdict,
        }
        return "\n".join(f"{name:<11}{value}" for name, value in rows.items())


def _difference(number: float, expected: float) -> float:
    """Return the difference of two numbers relative to the expected one, absolute if that is 0."""
    return abs(number - expected) / (abs(expected) or 1.0)
