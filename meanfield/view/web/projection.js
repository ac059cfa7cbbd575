/* Tokens in many dimensions: directions along two selectable axes, and the angles between tokens. */

class Projection {
  constructor(host, run, tokens, redraw) {
    Object.assign(this, { run, tokens });
    const figure = element(host, "figure", { class: "part" });
    this.box = element(figure, "div", { class: "overlay" });
    this.svg = element(this.box, "svg", { class: "plot", id: "projection", role: "img", "aria-label": "tokens along two axes" });
    this.canvas = element(this.box, "canvas", { class: "above", id: "dots" });
    const choice = element(figure, "div", { class: "choice" });
    this.axes = ["across", "up"].map((name, i) => {
      const label = element(choice, "label", {}, `${name} `), select = element(label, "select", { id: name });
      tokens.axes.forEach((axis, n) => element(select, "option", { value: n }, axis));
      select.value = Math.min(i, tokens.axes.length - 1);
      select.addEventListener("change", () => redraw(true));
      return select;
    });
    element(figure, "figcaption", { class: "caption" }, tokens.note);
  }

  /** Limits common to both axes, for all tokens at all times. */
  resize() {
    const { run, svg, canvas, tokens } = this, [across, up] = this.chosen();
    let reach = 1e-3;
    run.times.forEach((_, k) => {
      const levels = run.levels(k);
      for (let i = 0; i < tokens.count; i++) {
        reach = Math.max(reach, Math.abs(tokens.at(levels, across, i)), Math.abs(tokens.at(levels, up, i)));
      }
    });
    const scale = makeScale(-1.1 * reach, 1.1 * reach), names = [across, up].map((axis) => tokens.axes[axis]);
    const width = svg.clientWidth, height = width - 10; // equal lengths of both axes
    this.area = drawFrame(svg, width, height, { scale, label: names[0] }, { scale, label: names[1] });
    const { left, top, right, bottom } = this.area;
    Object.assign(canvas.style, { left: `${left}px`, top: `${top}px` });
    this.context = sharpCanvas(canvas, right - left, bottom - top);
    this.size = [right - left, bottom - top];
  }

  chosen() {
    return this.axes.map((select) => Number(select.value));
  }

  show(k, levels, marks) {
    const { context, tokens, area } = this, [across, up] = this.chosen(), style = getComputedStyle(this.canvas);
    const place = (x, y) => [area.x(x) - area.left, area.y(y) - area.top];
    context.clearRect(0, 0, ...this.size);
    context.fillStyle = style.getPropertyValue("--accent");
    context.globalAlpha = 0.7;
    tokens.draw(context, this.size[0], (i) => place(tokens.at(levels, across, i), tokens.at(levels, up, i)));
    context.globalAlpha = 1;
    context.strokeStyle = style.getPropertyValue("--cursor");
    context.lineWidth = 1.5;
    const single = 1.001 * Math.max(...tokens.weights);
    for (const mark of marks.filter((one) => one.at(-1) > single)) { // single tokens get no ring
      context.beginPath();
      context.arc(...place(mark[across], mark[up]), Math.sqrt((WHOLE_DOT * mark.at(-1)) / Math.PI) + 4, 0, 2 * Math.PI);
      context.stroke();
    }
  }
}

/** Parts for a quantity along a coordinate, beside the tokens: a scale, a profile, and the quantity over time. */
function bandParts(host, band, seek) {
  return [new Profile(host, band), new ColorBar(host, band), new History(host, band, seek)].map((part) => ({
    resize: () => part.resize(),
    show: (k) => part.show(k, band.levels(k), []),
  }));
}
