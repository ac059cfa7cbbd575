/* Merger tree: each cluster is a line over time of width ∝ mass, each merger a button that selects its time. */

const THICKEST = 16, THINNEST = 1; // pixels: width for the total mass, and smallest width

class MergerTree {
  constructor(host, run, seek) {
    Object.assign(this, { run, seek });
    const figure = element(host, "figure", { class: "panel wide", id: "tree" });
    const head = element(figure, "div", { class: "panel-head" });
    element(head, "h2", {}, "mergers: line width ∝ mass of the cluster");
    this.svg = element(figure, "svg", { class: "plot seeks", role: "group", "aria-label": "tree of mergers" });
    this.caption = element(figure, "p", { class: "caption" });
    followPointer(this.svg, () => this.area, (part) => seek(run.timeScale.from(part)));
  }

  resize() {
    const { run, svg } = this, { tree } = run, [low, high] = tree.limits;
    const y = { scale: makeScale(low, high), label: tree.label, ticks: tree.ticks };
    this.area = drawFrame(svg, svg.clientWidth, 240, { scale: run.timeScale, label: run.timeName }, y);
    tree.lines.forEach((line) => this.draw(line));
    this.cursor = element(svg, "line", { class: "cursor", y1: this.area.top, y2: this.area.bottom });
    this.buttons = tree.mergers.map((merger) => this.button(merger));
    this.caption.textContent = "press a ring to go to the merger";
  }

  /** A line in pieces of constant width; on the circle broken at π. */
  draw(line) {
    const { area, run } = this, { times, places, masses, color } = line;
    let path = "", thick = null;
    const end = () => {
      if (path.includes("L")) {
        const style = `--ink-of: ${color}; stroke-width: ${thick}px`;
        element(area.group, "path", { class: "curve branch", d: path, style });
      }
      path = "";
    };
    for (let i = 0; i < times.length; i++) {
      if (run.timeScale.log && times[i] <= 0) continue;
      const wide = Math.max(THINNEST, Math.round(2 * THICKEST * masses[i]) / 2), jumps = run.tree.circle && i && Math.abs(places[i] - places[i - 1]) > Math.PI;
      const at = `${area.x(times[i]).toFixed(1)} ${area.y(places[i]).toFixed(1)}`;
      if (path && !jumps) path += `L${at}`;
      if (!path || jumps || wide !== thick) {
        end();
        thick = wide;
        path = `M${at}`;
      }
    }
    end();
  }

  button({ time, place, text }) {
    const { run, area } = this, x = area.x(Math.max(time, run.timeScale.low)), y = area.y(place);
    const ring = element(this.svg, "circle", { class: "merger", cx: x, cy: y, r: 6, tabindex: 0, role: "button", "aria-label": text });
    element(ring, "title", {}, text);
    const go = (event) => {
      event.stopPropagation();
      event.preventDefault();
      this.seek(time);
      this.caption.textContent = text;
    };
    ring.addEventListener("pointerdown", go);
    ring.addEventListener("keydown", (event) => event.key === "Enter" && go(event));
    ring.addEventListener("pointerenter", () => (this.caption.textContent = text));
    return ring;
  }

  show(time) {
    const { low, high } = this.run.timeScale, x = this.area.x(Math.min(Math.max(time, low), high));
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
  }
}
