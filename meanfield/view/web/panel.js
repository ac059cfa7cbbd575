/* A diagnostic over time: curves, and a cursor with the value at the current time. */

class Panel {
  constructor(host, spec, run, seek) {
    this.spec = spec;
    this.run = run;
    const figure = element(host, "figure", { class: spec.curves.length > 1 ? "panel wide" : "panel" });
    const head = element(figure, "div", { class: "panel-head" });
    element(head, "h2", {}, spec.title);
    this.now = element(head, "span", { class: "now" });
    if (spec.curves.length > 1) this.addLegend(figure);
    this.svg = element(figure, "svg", { class: "plot seeks", role: "img", "aria-label": `${spec.title} over time` });
    followPointer(this.svg, () => this.area, (part) => seek(run.timeScale.from(part)));
  }

  addLegend(figure) {
    const legend = element(figure, "ul", { class: "legend" });
    for (const curve of this.spec.curves) {
      const item = element(legend, "li");
      const key = element(item, "svg", { width: 14, height: 4, "aria-hidden": "true" });
      element(key, "path", { class: "key", d: "M0 2H14", style: `--ink-of: ${curve.color}`, ...dash(curve) });
      item.append(curve.label);
    }
  }

  resize() {
    const { spec, run, svg } = this;
    const scale = makeScale(spec.low, spec.high, spec.log);
    const x = { scale: run.timeScale, label: run.timeName };
    this.area = drawFrame(svg, svg.clientWidth, 172, x, { scale, label: "", ticks: spec.ticks });
    for (const curve of spec.curves) {
      const path = this.path(curve.times ?? run.sampleTimes, curve.values);
      element(this.area.group, "path", { class: "curve", d: path, style: `--ink-of: ${curve.color}`, ...dash(curve) });
    }
    this.cursor = element(svg, "line", { class: "cursor", y1: this.area.top, y2: this.area.bottom });
    this.dots = spec.curves.map((curve) => {
      return curve.dashed ? null : element(svg, "circle", { class: "dot", r: 4, style: `--ink-of: ${curve.color}` });
    });
  }

  /** The curve as an SVG path: with steps for piecewise constant values, and gaps for missing ones. */
  path(times, values) {
    let path = "", pen = "M";
    values.forEach((value, i) => {
      if (value === null || (this.run.timeScale.log && times[i] <= 0)) {
        if (value === null) pen = "M";
        return;
      }
      const x = this.area.x(times[i]).toFixed(1), y = this.area.y(value).toFixed(1);
      path += pen === "L" && this.spec.step ? `H${x}V${y}` : `${pen}${x} ${y}`;
      pen = "L";
    });
    return path;
  }

  show(time) {
    const { run, spec, area } = this;
    const x = area.x(Math.min(Math.max(time, run.timeScale.low), run.timeScale.high));
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    const valueAt = ({ times, values }) => {
      const sample = lastUpTo(times ?? run.sampleTimes, time + 1e-9 * Math.abs(time));
      return sample >= 0 ? values[sample] : null;
    };
    this.dots.forEach((dot, i) => {
      const value = dot ? valueAt(spec.curves[i]) : null;
      if (!dot) return;
      const shown = value !== null && value >= spec.low && value <= spec.high;
      dot.setAttribute("visibility", shown ? "visible" : "hidden");
      if (shown) dot.setAttribute("cx", x), dot.setAttribute("cy", area.y(value));
    });
    const alone = spec.curves.length === 1 ? valueAt(spec.curves[0]) : null;
    this.now.textContent = alone === null ? "" : formatNumber(alone, 4);
  }
}

function dash(curve) {
  return curve.dashed ? { "stroke-dasharray": "5 4" } : {};
}
