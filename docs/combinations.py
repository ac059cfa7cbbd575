"""Page combinations.md, from the table of options and the records of the domains: python docs/combinations.py"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from meanfield.case.combinations import BY_DOMAIN, EXCLUSIONS
from meanfield.domains.domain import Domain
from meanfield.domains.table import DOMAINS
from meanfield.sections.section import tag_of

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Compatibility of options

Each column is a kind of domain, which supports the options marked `yes`. `meanfield check` rejects all other options
with a message of one line. *Matrices* are Q, K or V that are no multiples of the identity, *heads* several attention
heads, *file* matrices from `attention.file`, *kernels* all kernels except the exponential one, *pattern* a sparse
pattern of attending tokens, *scale* the key `stabilizers.scale`, *layers* and *adaptive* values of `time.method`.
*Spherical norms* are layer norms that keep tokens on the sphere, *radial norms* let the radius of a token vary,
*rescaled* is the key `attention.rescaled`, and *labels* are the positions in the sequence under a causal mask on
densities. This page is made by `python docs/combinations.py` from `meanfield/case/combinations.py` and the domains'
records; a test compares the page with these sources:
"""


def page(domains: Mapping[str, type[Domain]] = DOMAINS) -> str:
    """Return the whole page in Markdown."""
    kinds = list(domains.values())
    norms = dict.fromkeys(norm for kind in kinds for norm in kind.layer_norms)
    starts = dict.fromkeys(start for kind in kinds for start in kind.initial)
    rows = [
        *([name, *(name in kind.features for kind in kinds)] for name in BY_DOMAIN),
        *([f"layer norm `{norm}`", *(norm in kind.layer_norms for kind in kinds)] for norm in norms),
        *([f"initial `{tag_of(start)}`", *(start in kind.initial for kind in kinds)] for start in starts),
    ]
    words = [[cell if isinstance(cell, str) else "yes" if cell else "–" for cell in row] for row in rows]
    options = table(["", *(f"`{name}`" for name in domains)], words)
    exclusions = table(["option", "not together with", "expected value of the key of the first option"], EXCLUSIONS)
    between = "Where a domain supports both options of a row, the first excludes the second:"
    return f"{HEAD}\n{options}\n\n{between}\n\n{exclusions}\n"


def table(head: list[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
