/* Space-time picture of one-dimensional densities: a column for each snapshot. */

class History {
  constructor(host, run, seek) {
    this.run = run;
    const figure = element(host, "figure", { class: "part wide" });
    this.box = element(figure, "div", { class: "overlay" });
    this.canvas = element(this.box, "canvas", { id: partId(run, "history") });
    this.svg = element(this.box, "svg", { class: "plot seeks", role: "img", "aria-label": "density over time" });
    followPointer(this.svg, () => this.area, (part) => seek(run.timeScale.from(part)));
    this.shown = run.times.map((_, k) => k).filter((k) => run.times[k] > 0 || !run.timeScale.log);
  }

  resize() {
    const { run, svg, canvas } = this, { axis } = run;
    const y = { scale: makeScale(axis.edges[0], axis.edges.at(-1)), label: `${run.title ?? "density over time"}: ${axis.label}`, ticks: axis.ticks };
    const area = drawFrame(svg, svg.clientWidth, 230, { scale: run.timeScale, label: run.timeName }, y);
    this.area = area;
    const ratio = window.devicePixelRatio || 1, [width, height] = [area.right - area.left, area.bottom - area.top];
    Object.assign(canvas.style, { left: `${area.left}px`, top: `${area.top}px`, width: `${width}px`, height: `${height}px` });
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    this.paint();
    svg.style.position = "relative"; // above the picture
    svg.querySelectorAll(".grid").forEach((line) => line.remove());
    this.cursor = element(svg, "line", { class: "cursor", y1: area.top, y2: area.bottom });
  }

  /** Paint the canvas. The column of a snapshot ends midway to the next one on the axis. */
  paint() {
    const { run, canvas } = this, { width, height } = canvas, context = canvas.getContext("2d");
    const image = context.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
    const places = this.shown.map((k) => run.timeScale.at(run.times[k]) * width);
    this.shown.forEach((k, i) => {
      const from = i ? Math.round((places[i - 1] + places[i]) / 2) : 0;
      const to = i + 1 < places.length ? Math.round((places[i] + places[i + 1]) / 2) : width;
      if (to > from) this.column(k, height).forEach((color, row) => pixels.fill(color, row * width + from, row * width + to));
    });
    context.putImageData(image, 0, 0);
  }

  /** Colors of snapshot k from top to bottom: of the densest cell in each row, since a cluster may be one cell wide. */
  column(k, rows) {
    const { run } = this, levels = run.levels(k), shift = 8 * (run.bytes - 1);
    return this.cellsOf(rows).map(([first, end]) => run.colors.pixels[Math.max(...levels.subarray(first, end)) >> shift]);
  }

  /** The cells [first, end) of each row, from top to bottom. */
  cellsOf(rows) {
    if (this.ranges?.length === rows) return this.ranges;
    const { edges } = this.run.axis, low = edges[0], span = edges.at(-1) - low, cells = edges.length - 1;
    this.ranges = Array.from({ length: rows }, (_, row) => {
      const from = low + ((rows - 1 - row) / rows) * span, to = low + ((rows - row) / rows) * span, near = 1e-9 * span;
      const first = Math.min(cells - 1, Math.max(0, lastUpTo(edges, from + near)));
      return [first, Math.min(cells, Math.max(first, lastUpTo(edges, to - near)) + 1)];
    });
    return this.ranges;
  }

  show(k) {
    const { low, high } = this.run.timeScale;
    const x = this.area.x(Math.min(high, Math.max(low, this.run.times[k])));
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
  }
}
