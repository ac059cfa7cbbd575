"""Labels beside lines, if there is room: within the panel, not on a line or on another text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from meanfield.figures.axes import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

GAP = 3.0  # points between a text and the end or the edge of the line
MARGIN = 1.0  # points of free space around a text


@dataclass(frozen=True, eq=False)
class LabeledLine:
    """Line (n, 2) in data coordinates, its width in points, and a text for a label beside one of its points."""

    points: Floats
    width: float
    text: str = ""
    at: tuple[float, float] = (0.0, 0.0)


def write_beside(axes: Axes, lines: Sequence[LabeledLine]) -> list[Annotation]:
    """Write the text of each line beside it in order, omitting those without room, and return the annotations.

    Each text is above or below the end of its line, to the left if possible, else to the right. The layout of the page
    has to be final.
    """
    written, taken = [], [(_path(axes, line), _pixels(axes, line.width) / 2) for line in lines]
    boxes: list[Bbox] = []
    for line in lines:
        for place in _places(line) if line.text else ():
            label = axes.annotate(line.text, line.at, textcoords="offset points", fontsize="small", **place)
            label.set_in_layout(False)
            box = label.get_window_extent().padded(_pixels(axes, MARGIN))
            if _is_free(axes, box, boxes, taken):
                boxes.append(box)
                written.append(label)
                break
            label.remove()
    return written


def _places(line: LabeledLine) -> list[dict[str, Any]]:
    """Return the candidate positions of the text of a line: above and to the left of its end comes first."""
    away = GAP + line.width / 2
    sides = [(side, -away if side == "right" else away) for side in ("right", "left")]
    heights = [("bottom", away), ("top", -away)]
    return [{"xytext": (x, y), "ha": side, "va": height} for side, x in sides for height, y in heights]


def _is_free(axes: Axes, box: Bbox, boxes: Sequence[Bbox], taken: Sequence[tuple[Path, float]]) -> bool:
    """Return whether a box is within the panel and overlaps no other box and no line."""
    frame = axes.bbox
    if box.x0 < frame.x0 or box.x1 > frame.x1 or box.y0 < frame.y0 or box.y1 > frame.y1:
        return False
    if any(box.overlaps(other) for other in boxes):
        return False
    return not any(path.intersects_bbox(box.padded(half), filled=False) for path, half in taken)


def _path(axes: Axes, line: LabeledLine) -> Path:
    """Return a line that is given in data coordinates as a path in pixels."""
    from matplotlib.path import Path

    return Path(axes.transData.transform(line.points))


def _pixels(axes: Axes, points: float) -> float:
    """Return a length in points as pixels."""
    return points * axes.get_figure(root=True).dpi / 72  # type: ignore[union-attr]
