"""Short texts beside the lines that they name, where there is room: in the panel, on no line and on no other text."""

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

GAP = 3.0  # points between a text and the end of its line, and its edge
MARGIN = 1.0  # points around a text that stay free


@dataclass(frozen=True, eq=False)
class LabeledLine:
    """A line (n, 2) in units of the data, and what is to be written beside one of its points; its width in points."""

    points: Floats
    width: float
    text: str = ""
    at: tuple[float, float] = (0.0, 0.0)


def write_beside(axes: Axes, lines: Sequence[LabeledLine]) -> list[Annotation]:
    """Write the texts of the first of ``lines`` first; one without room is left out. Returns what was written.

    Each stands above or below the end of its line, to the left of it or else to the right. The page must have its
    final layout.
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
    """Above to the left of the end first."""
    away = GAP + line.width / 2
    sides = [(side, -away if side == "right" else away) for side in ("right", "left")]
    heights = [("bottom", away), ("top", -away)]
    return [{"xytext": (x, y), "ha": side, "va": height} for side, x in sides for height, y in heights]


def _is_free(axes: Axes, box: Bbox, boxes: Sequence[Bbox], taken: Sequence[tuple[Path, float]]) -> bool:
    frame = axes.bbox
    if box.x0 < frame.x0 or box.x1 > frame.x1 or box.y0 < frame.y0 or box.y1 > frame.y1:
        return False
    if any(box.overlaps(other) for other in boxes):
        return False
    return not any(path.intersects_bbox(box.padded(half), filled=False) for path, half in taken)


def _path(axes: Axes, line: LabeledLine) -> Path:
    from matplotlib.path import Path

    return Path(axes.transData.transform(line.points))


def _pixels(axes: Axes, points: float) -> float:
    return points * axes.get_figure(root=True).dpi / 72  # type: ignore[union-attr]
