"""Movies: a frame for each snapshot of a run that differs from the previous one, as a GIF or, with ffmpeg, an MP4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.figure import STYLE, load
from meanfield.movie.fields import FieldFrames
from meanfield.movie.frames import Frames
from meanfield.movie.page import DPI, palette
from meanfield.movie.shown import frame_numbers
from meanfield.runtime.paths import require_target
from solvers.io.reading import path_of
from solvers.io.replacing import replacement
from solvers.io.run_file import FileError, Run, read
from solvers.io.writing import disk_errors

if TYPE_CHECKING:
    from matplotlib.animation import AbstractMovieWriter
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from meanfield.figures.run_data import RunData

SUFFIXES = (".gif", ".mp4")
FPS = 12
MAX_FPS = 50  # a GIF counts hundredths of a second, and players slow down frames shorter than two


def movie(
    path: str | Path | Run, target: str | Path, *, fps: int = FPS, overwrite: bool = False, quiet: bool = False
) -> Path:
    """Animate the run file ``path``, ``fps`` snapshots a second, to ``target`` (.gif or .mp4) and return ``target``.

    Of a run with logarithmic times, snapshots without visible change are left out. A run in progress is animated up to
    the last snapshot written. A terminal shows a progress bar unless ``quiet``.
    Raises solvers.io.run_file.FileError if the run file cannot be read or has no snapshot, if the suffix is unknown, if
    ``target`` exists and ``overwrite`` is false or cannot be written, and if ffmpeg is missing or fails; ValueError
    unless 1 ≤ fps ≤ 50. ``target`` is written atomically.
    """
    if not 1 <= fps <= MAX_FPS:
        raise ValueError(f"fps: {fps}; expected a whole number from 1 to {MAX_FPS}")
    target = Path(target)
    require_target(target, path_of(path), overwrite, "movie", SUFFIXES)
    writer = _writer(target, fps)
    run = read(path)
    run_data: RunData | Run = run if run.is_solution else load(run)
    with disk_errors(target, "cannot write it"), replacement(target, overwrite=overwrite, suffix=target.suffix) as new:
        _animate(run_data, writer, new, quiet)
    return target


def _animate(run_data: RunData | Run, writer: AbstractMovieWriter, target: Path, quiet: bool) -> None:
    """Write a movie of the run to ``target``, with a frame for each of ``frame_numbers``.

    Raises FileError if ffmpeg fails.
    """
    from subprocess import CalledProcessError

    from tqdm import tqdm

    title = run_data.path.name if isinstance(run_data, Run) else run_data.title
    shown = frame_numbers(run_data)
    bar = tqdm(desc=title, total=len(shown), unit=" frames", disable=True if quiet else None)
    with bar, prepared(run_data) as (figure, frames):
        try:
            writer.setup(figure, str(target), dpi=DPI)
            for k in shown:
                frames.show(k)
                if not _grab(writer):
                    break
                bar.update()
            writer.finish()
        except CalledProcessError as error:
            said = (error.stderr or "").strip().splitlines()[-1:] or ["no message"]
            raise FileError(f"ffmpeg failed with status {error.returncode}: {said[0]}; .gif needs no ffmpeg") from None


@contextmanager
def prepared(run_data: RunData | Run) -> Iterator[tuple[Figure, Frames | FieldFrames]]:
    """Yield a figure and the frames of a movie on it, with the style of movies active in the context.

    Each frame is drawn by calling ``show`` with the number of a snapshot.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    fixed = {"figure.constrained_layout.use": False, "savefig.bbox": None}
    with matplotlib.rc_context(STYLE | fixed):
        figure = Figure(dpi=DPI)
        FigureCanvasAgg(figure)
        yield figure, FieldFrames(run_data, figure) if isinstance(run_data, Run) else Frames(run_data, figure)


def drawn_frames(run_data: RunData | Run, shown: Iterable[int]) -> Iterator[NDArray[np.uint8]]:
    """Yield the pixels (height, width, 3) of the movie frames of the snapshots ``shown``."""
    with prepared(run_data) as (figure, frames):
        for k in shown:
            frames.show(k)
            figure.canvas.draw()
            yield np.asarray(figure.canvas.buffer_rgba())[:, :, :3]  # type: ignore[attr-defined]


def _grab(writer: AbstractMovieWriter) -> bool:
    """Write the figure as a frame of the movie; return False if ffmpeg has stopped.

    The method ``finish`` then raises the cause.
    """
    try:
        writer.grab_frame()
    except BrokenPipeError:
        return False
    return True


def _writer(target: Path, fps: int) -> AbstractMovieWriter:
    """Return the writer of movies for the suffix of ``target``."""
    return {".gif": _gif_writer, ".mp4": _mp4_writer}[target.suffix.lower()](target, fps)


def _mp4_writer(target: Path, fps: int) -> AbstractMovieWriter:
    """Return a writer of MP4 movies. Raises FileError if ffmpeg is missing."""
    from matplotlib.animation import FFMpegWriter

    if not FFMpegWriter.isAvailable():
        raise FileError(f"{target}: .mp4 needs ffmpeg, which is not on the PATH; .gif works without it")
    # Players require 4:2:0; the quality suits flat colors and thin lines.
    return FFMpegWriter(fps=fps, codec="libx264", extra_args=["-pix_fmt", "yuv420p", "-crf", "18"])


def _gif_writer(target: Path, fps: int) -> AbstractMovieWriter:
    """Return a writer of GIF movies whose frames share one palette."""
    from matplotlib.animation import PillowWriter
    from PIL import Image

    colors = Image.new("P", (1, 1))
    colors.putpalette(palette().tobytes())

    class GifWriter(PillowWriter):
        """GIF writer with one palette for all frames: a color has the same meaning in each, and memory is a third."""

        _frames: list[Image.Image]

        def grab_frame(self, **options: object) -> None:
            super().grab_frame(**options)
            self._frames[-1] = self._frames[-1].quantize(palette=colors, dither=Image.Dither.NONE)

    return GifWriter(fps=fps)
