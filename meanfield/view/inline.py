"""Page of a run in a notebook: the whole page in a frame of the cell, without a server."""

from __future__ import annotations

import html
from dataclasses import dataclass

HEIGHT = 720  # pixels


@dataclass(frozen=True, repr=False)
class InlinePage:
    """Page of a run, which a notebook shows in the cell, also in a static export of the notebook.

    Parameters
    ----------
    page : str
        HTML text of the page.
    height : int
        Height of the frame in pixels.
    """

    page: str
    height: int = HEIGHT

    def __repr__(self) -> str:
        return f"<page of {len(self.page)} characters; a notebook shows it, view(path) writes it>"

    def _repr_html_(self) -> str:
        """Return the page as a frame."""
        style = f"width: 100%; height: {self.height}px; border: 0"
        return f'<iframe style="{style}" srcdoc="{html.escape(self.page)}"></iframe>'
