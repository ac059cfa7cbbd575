"""The page combinations.md, from the table of options and the records of the domains: python docs/combinations.py"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from meanfield.case.combinations import BY_DOMAIN, EXCLUSIONS
from meanfield.domains.domain import Domain
from meanfield.domains.table import DOMAINS
from meanfield.sections.section import tag_of

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# What combines with what

Each kind of domain, a column, has the options marked `yes`; `meanfield check` refuses the others in one line. This page
is made by `python docs/combinations.py` from `meanfield/case/combinations.py` and the domains' records; a test compares
them with it:
"""


def page(domains: Mapping[str, type[Domain]] = DOMAINS) -> str:
    """The whole page, Markdown."""
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
    exclusions = table(["option", "not beside", "expected"], EXCLUSIONS)
    return f"{HEAD}\n{options}\n\nWhere a domain has both, the first of a row excludes the second:\n\n{exclusions}\n"


def table(head: list[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
