/* Density in one dimension over the coordinate run.axis. */

class Profile {
  constructor(host, run) {
    this.run = run;
    const figure = element(host, "figure", { class: "part wide" });
    this.svg = element(figure, "svg", { class: "plot", id: partId(run, "profile"), role: "img", "aria-label": "profile of the density" });
  }

  resize() {
    const { axis, scale } = this.run;
    const x = { scale: makeScale(axis.edges[0], axis.edges.at(-1)), label: axis.label, ticks: axis.ticks };
    const y = { scale: makeScale(scale.low, scale.high, !scale.deviation), label: this.run.id ? scale.symbol : `profile ${scale.symbol}` };
    const area = drawFrame(this.svg, this.svg.clientWidth, 230, x, y);
    const { uniform } = this.run;
    const across = uniform?.length === 1 ? [area.left, area.right] : axis.edges.map((edge) => area.x(edge));
    if (uniform) element(area.group, "path", { class: "reference", d: stairs(across, uniform.map((value) => area.y(value))) });
    this.line = element(area.group, "path", { class: "profile" });
    this.marks = element(this.svg, "g");
    this.area = area;
    this.across = axis.edges.map((edge) => area.x(edge));
  }

  show(k, levels, marks) {
    const { area, across, run } = this, most = 256 ** run.bytes;
    const heights = Array.from(levels, (level) => {
      // On a truncated scale, the lowest level includes all lower densities: the line leaves the picture.
      return level === 0 && run.scale.cut ? area.bottom + 9 : area.bottom - ((level + 0.5) / most) * (area.bottom - area.top);
    });
    this.line.setAttribute("d", stairs(across, heights));
    this.marks.replaceChildren();
    for (const [x] of marks) {
      element(this.marks, "path", { class: "mark", fill: "var(--cursor)", d: `M${area.x(x)} ${area.top - 1}l4 -7h-8z` });
    }
  }
}

/** SVG path with a height y for each cell between the edges x. */
function stairs(x, y) {
  return `M${x[0].toFixed(1)} ` + y.map((height, i) => `${i ? "V" : ""}${height.toFixed(1)}H${x[i + 1].toFixed(1)}`).join("");
}

/** The circle in color, with outward bars for the logarithm of the density. */
class Ring {
  constructor(host, run) {
    this.run = run;
    const figure = element(host, "figure", { class: "part" });
    this.host = figure;
    this.canvas = element(figure, "canvas", { id: "ring", role: "img", "aria-label": "density around the circle" });
    const bars = run.scale.deviation ? "bars: ρ/ρ̄ − 1" : "bars: ρ/ρ̄, logarithmic";
    element(figure, "figcaption", { class: "caption" }, `${bars}, dotted: uniform density; angle φ from the right`);
  }

  resize() {
    const size = Math.min(pictureSize(this.host), 420), ratio = window.devicePixelRatio || 1;
    this.canvas.width = this.canvas.height = Math.round(size * ratio);
    this.canvas.style.width = this.canvas.style.height = `${size}px`;
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.size = size;
    this.inner = size * 0.2;
    this.base = size * 0.26;
    this.outer = size * 0.41;
  }

  radius(part) {
    return this.base + part * (this.outer - this.base);
  }

  show(k, levels, marks) {
    const { context, size, run } = this, most = 256 ** run.bytes, shift = 8 * (run.bytes - 1);
    context.clearRect(0, 0, size, size);
    context.save();
    context.translate(size / 2, size / 2);
    levels.forEach((level, cell) => {
      context.fillStyle = run.colors.css[level >> shift];
      const last = cell === levels.length - 1;
      this.fillArc(cell, this.inner, this.base, last ? 0 : 2 / this.inner); // the next cell covers the excess
      if (!level) return;
      const shared = last ? 0 : Math.min(level, levels[cell + 1]); // no gap up to the smaller height
      this.fillArc(cell, this.base - 1, this.radius(level / most), 0);
      this.fillArc(cell, this.base - 1, this.radius(shared / most), last ? 0 : 2 / this.inner);
    });
    this.drawUniform();
    this.drawMarks(marks);
    context.restore();
  }

  fillArc(cell, inner, outer, longer) {
    const { context, run } = this;
    const from = -run.axis.edges[cell + 1] - longer, to = -run.axis.edges[cell]; // canvas angles run clockwise
    context.beginPath();
    context.arc(0, 0, outer, from, to);
    context.arc(0, 0, inner, to, from, true);
    context.fill();
  }

  drawUniform() {
    const { context, run } = this;
    const scale = makeScale(run.scale.low, run.scale.high, !run.scale.deviation);
    context.setLineDash([2, 4]);
    context.strokeStyle = getComputedStyle(this.canvas).color;
    context.globalAlpha = 0.6;
    context.beginPath();
    context.arc(0, 0, this.radius(scale.at(run.scale.deviation ? 0 : 1)), 0, 2 * Math.PI);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  drawMarks(marks) {
    const { context, run } = this;
    context.fillStyle = getComputedStyle(this.canvas).color;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = "12px system-ui, sans-serif";
    for (const [value, label] of run.axis.ticks.slice(0, -1)) {
      context.fillText(label, 0.14 * this.size * Math.cos(value), -0.14 * this.size * Math.sin(value));
    }
    context.font = "600 13px system-ui, sans-serif";
    for (const [angle, mass] of marks) {
      context.fillText(mass.toFixed(2), 0.455 * this.size * Math.cos(angle), -0.455 * this.size * Math.sin(angle));
    }
  }
}
