/* A sweep: points over two keys, colored by a scalar, and the selected point with its diagnostics over time. */

class Diagram {
  constructor(run, choose) {
    Object.assign(this, { run, choose, pressed: null });
    this.svg = document.getElementById("diagram");
    for (const id of ["x", "y", "value"]) {
      this[id] = document.getElementById(id);
      this[id].addEventListener("change", () => this.resize());
    }
    for (const key of Object.keys(run.keys)) for (const id of ["x", "y"]) element(this[id], "option", { value: key }, key);
    element(this.y, "option", { value: "" }, "value");
    for (const [name, { name: text }] of Object.entries(run.scalars)) element(this.value, "option", { value: name }, text);
    for (const id of ["x", "y", "value"]) this[id].value = run[id];
  }

  resize() {
    const { run, svg } = this, scalar = run.scalars[this.value.value];
    this.values = scalar.values;
    this.colors = colorScale(this.values);
    const x = this.axis(this.x.value), y = this.y.value ? this.axis(this.y.value) : this.axisOfValue(scalar);
    this.area = drawFrame(svg, svg.clientWidth, Math.min(460, Math.max(260, 0.8 * svg.clientWidth)), x, y);
    const dots = run.random || !this.y.value;
    this.shapes = dots ? this.dots(x, y) : this.cells(x, y);
    this.theory();
    this.bar(scalar.name);
    this.mark();
  }

  /** Positions of the points along a key, with the edges of cells around them. */
  axis(key) {
    const { places, log, ticks } = this.run.keys[key], bend = log ? Math.log : (v) => v, back = log ? Math.exp : (v) => v;
    const centers = [...new Set(places)].sort((a, b) => a - b), bent = centers.map(bend);
    const between = bent.slice(1).map((v, i) => (v + bent[i]) / 2), half = between.length ? between[0] - bent[0] : log ? 0.1 : 0.5;
    const last = between.length ? bent.at(-1) - between.at(-1) : half;
    const edges = [bent[0] - half, ...between, bent.at(-1) + last].map(back);
    return { scale: makeScale(edges[0], edges.at(-1), log), label: key, ticks: ticks ?? undefined, places, centers, edges };
  }

  axisOfValue({ name, values }) {
    const finite = values.filter((v) => v !== null), low = Math.min(...finite), high = Math.max(...finite);
    const room = 0.08 * (high - low) || 0.5;
    return { scale: makeScale(low - room, high + room), label: name, places: values };
  }

  /** A cell for each pair of values, shared by the points with both values. */
  cells(x, y) {
    const { area } = this, shared = new Map(), index = (axis, n) => axis.centers.indexOf(axis.places[n]);
    this.run.points.forEach((_, n) => {
      const key = `${index(x, n)} ${index(y, n)}`;
      (shared.get(key) ?? shared.set(key, []).get(key)).push(n);
    });
    const shapes = [];
    for (const [key, numbers] of shared) {
      const [i, j] = key.split(" ").map(Number), left = area.x(x.edges[i]), top = area.y(y.edges[j + 1]);
      const width = (area.x(x.edges[i + 1]) - left) / numbers.length, height = area.y(y.edges[j]) - top;
      numbers.forEach((n, part) => {
        shapes[n] = this.shape("rect", n, { x: left + part * width, y: top, width: Math.max(width, 1), height });
      });
    }
    return shapes;
  }

  dots(x, y) {
    const { area } = this;
    return this.run.points.map((_, n) => {
      const value = y.places[n];
      return value === null ? null : this.shape("circle", n, { cx: area.x(x.places[n]), cy: area.y(value), r: 6 });
    });
  }

  shape(kind, n, place) {
    const value = this.values[n], text = `${describePoint(this.run, n)}: ${value === null ? this.run.points[n].status : formatNumber(value, 4)}`;
    const fill = value === null ? "none" : this.run.css[this.colors.index(value)];
    const made = element(this.svg, kind, { class: "sweep-point", fill, tabindex: 0, role: "button", "aria-label": text, "data-point": n, ...place });
    element(made, "title", {}, text);
    made.addEventListener("click", () => this.press(n));
    made.addEventListener("keydown", (event) => event.key === "Enter" && this.press(n));
    return made;
  }

  press(n) {
    this.pressed = n;
    this.mark();
    this.choose(n);
  }

  mark() {
    this.shapes.forEach((shape, n) => shape?.classList.toggle("pressed", n === this.pressed));
    const pressed = this.shapes[this.pressed];
    if (pressed) this.svg.append(pressed); // above its neighbors
  }

  theory() {
    const { theory } = this.run;
    if (!theory || theory.x !== this.x.value || theory.y !== this.y.value) return;
    const inside = theory.points.filter(([, y]) => y !== null);
    const path = inside.map(([x, y], i) => `${i ? "L" : "M"}${this.area.x(x).toFixed(1)} ${this.area.y(y).toFixed(1)}`).join("");
    element(this.area.group, "path", { class: "theory", d: path });
    this.svg.append(this.area.group); // above the cells, transparent to clicks
    element(this.svg, "text", { x: this.area.right, y: 12, "text-anchor": "end" }, `dashed: ${theory.name}`);
  }

  bar(label) {
    const svg = document.getElementById("colorbar"), width = svg.clientWidth, left = 22, right = width - 22;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} 52`);
    svg.setAttribute("height", 52);
    this.run.css.forEach((fill, i) => {
      element(svg, "rect", { x: left + ((right - left) * i) / 256, y: 2, width: (right - left) / 256 + 0.5, height: 12, fill });
    });
    const { ticks, factor } = ticksOf(this.colors.scale, Math.max(2, Math.floor((right - left) / 60)));
    for (const [value, text] of ticks) {
      element(svg, "text", { x: left + this.colors.scale.at(value) * (right - left), y: 30, "text-anchor": "middle" }, text);
    }
    element(svg, "text", { x: width / 2, y: 47, "text-anchor": "middle" }, label + (factor && `  (${factor})`));
  }
}

/** Colors of a scalar, as in the figure of a sweep. */
function colorScale(values) {
  const finite = values.filter((v) => v !== null), low = Math.min(...finite), high = Math.max(...finite);
  const scale = high > low ? makeScale(low, high) : makeScale(low - 0.5, low + 0.5);
  return { scale, index: (value) => Math.min(255, Math.max(0, Math.floor(256 * scale.at(value)))) };
}

function describePoint(run, n) {
  return Object.entries(run.keys).map(([key, { texts }]) => (texts[n].includes("=") ? texts[n] : `${key} = ${texts[n]}`)).join(", ");
}

/** Details of a point: keys, scalars, a link to the run, and diagnostics over time. */
function showPoint(run, n) {
  const host = document.getElementById("point"), point = run.points[n], below = document.getElementById("panels");
  host.replaceChildren();
  below.replaceChildren();
  element(host, "h2", {}, `point ${n}: ${describePoint(run, n)}`);
  const seconds = point.seconds > 0 ? `, ${formatNumber(point.seconds)} s` : "";
  element(host, "p", { class: "caption" }, point.status + seconds + (point.reason ? `: ${point.reason}` : ""));
  if (point.page) element(element(host, "p"), "a", { href: point.page, id: "open" }, "open the run");
  const table = element(host, "table");
  for (const { name, values } of Object.values(run.scalars)) {
    if (values[n] === null) continue;
    const row = element(table, "tr");
    element(row, "td", {}, name);
    element(row, "td", {}, formatNumber(values[n], 5));
  }
  if (!point.series) return [];
  const { times, panels } = point.series, timeScale = makeScale(times[0], times.at(-1));
  const own = { sampleTimes: times, timeScale, timeName: "time t" };
  return panels.map((spec) => new Panel(below, spec, own, () => {}));
}

function main() {
  const run = JSON.parse(document.getElementById("run").textContent);
  run.css = decodeColors(run.colors).css;
  let panels = [];
  const layOut = () => panels.forEach((panel) => {
    panel.resize();
    panel.show(panel.run.timeScale.high);
  });
  const diagram = new Diagram(run, (n) => {
    panels = showPoint(run, n);
    layOut();
  });
  new ResizeObserver(() => {
    diagram.resize();
    layOut();
  }).observe(document.querySelector("main"));
  diagram.resize();
  diagram.press(Math.max(0, run.points.findIndex((point) => point.status === "done")));
  document.body.dataset.shown = 0; // for tests
}

main();
