/* Color bar of the scale common to all snapshots. */

class ColorBar {
  constructor(host, run) {
    this.run = run;
    const figure = element(host, "figure", { class: "part wide" });
    this.svg = element(figure, "svg", { class: "plot", id: partId(run, "colorbar"), role: "img", "aria-label": `color scale: ${run.scale.label}` });
    const strip = document.createElement("canvas");
    strip.width = 256;
    strip.height = 1;
    const context = strip.getContext("2d");
    run.colors.css.forEach((color, i) => {
      context.fillStyle = color;
      context.fillRect(i, 0, 1, 1);
    });
    this.strip = strip.toDataURL();
  }

  resize() {
    const { svg, run } = this, { low, high, deviation, cut, label } = run.scale;
    const width = svg.clientWidth, left = 22, right = width - 22, scale = makeScale(low, high, !deviation);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} 52`);
    svg.setAttribute("height", 52);
    const place = { x: left, y: 2, width: right - left, height: 12, preserveAspectRatio: "none" };
    element(svg, "image", { ...place, href: this.strip });
    // Cells below the scale have its first color.
    if (cut) element(svg, "path", { fill: run.colors.css[0], d: `M${left + 0.5} 2v12l-11 -6z` });
    const { ticks, factor } = ticksOf(scale, Math.max(2, Math.floor((right - left) / 60)));
    for (const [value, text] of ticks) {
      const x = left + scale.at(value) * (right - left);
      element(svg, "line", { class: "axis", x1: x, x2: x, y1: 14, y2: 18 });
      element(svg, "text", { x, y: 30, "text-anchor": "middle" }, text);
    }
    element(svg, "text", { x: width / 2, y: 47, "text-anchor": "middle" }, label + (factor && `  (${factor})`));
  }

  show() {}
}
