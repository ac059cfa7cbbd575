/* Map of the whole sphere in the equal-area Hammer projection, as in `meanfield plot`; a click rotates the globe. */

class SphereMap {
  constructor(host, run, globe) {
    this.run = run;
    this.globe = globe;
    this.host = element(host, "div", { class: "part" });
    this.canvas = element(this.host, "canvas", { class: "points", id: "map", role: "img" });
    this.canvas.setAttribute("aria-label", "equal-area map of the density on the whole sphere");
    element(this.host, "p", { class: "caption" }, "the whole sphere, equal-area; outlined: visible part of the globe");
    this.canvas.addEventListener("click", (event) => this.turnGlobe(event));
  }

  resize() {
    const width = pictureSize(this.host);
    this.picture = new CellPicture(this.canvas, this.run.colors, width, width / 2);
    this.width = width;
    const { width: columns, height: rows } = this.canvas, index = [], opacity = [], cells = [];
    for (let j = 0; j < rows; j++) {
      for (let i = 0; i < columns; i++) {
        const x = (2 * (i + 0.5)) / columns - 1, y = 1 - (2 * (j + 0.5)) / rows, out = Math.hypot(x, y);
        const cover = 0.5 + ((1 - out) * out) / Math.hypot((2 * x) / columns, (2 * y) / rows); // pixels inside the edge
        if (cover <= 0) continue;
        const inside = Math.max(1, out * 1.000001);
        index.push(j * columns + i);
        opacity.push(Math.round(255 * Math.min(1, cover)));
        cells.push(this.globe.rings.cellAt(...hammerInverse(x / inside, y / inside)));
      }
    }
    this.picture.setPixels(index, opacity);
    this.picture.cells.set(cells);
  }

  project(theta, phi) {
    const half = Math.atan2(Math.sin(phi), Math.cos(phi)) / 2;
    const root = Math.sqrt(1 + Math.sin(theta) * Math.cos(half));
    const x = (Math.sin(theta) * Math.sin(half)) / root, y = Math.cos(theta) / root; // both within ±1
    return [(this.width / 2) * (1 + x), (this.width / 4) * (1 - y)];
  }

  show(k, levels, marks, draw = () => {}) {
    this.picture.paint(levels);
    const { context } = this.picture;
    context.lineWidth = 0.5;
    context.strokeStyle = "#ffffff40";
    graticule((theta, phi) => this.project(theta, phi)).forEach((line) => strokeLine(context, this.cut(line)));
    context.lineWidth = 1.6;
    context.strokeStyle = "#fff";
    strokeLine(context, this.cut(this.horizon()));
    draw();
    drawMarks(context, marks.map(([theta, phi, mass]) => [...this.project(theta, phi), mass]), this.width, 5, false);
  }

  /** Points on the great circle around the visible part of the globe. */
  horizon() {
    const [e, n] = this.globe.axes();
    return Array.from({ length: 361 }, (_, i) => {
      const turn = (i * Math.PI) / 180, at = e.map((_, a) => Math.cos(turn) * e[a] + Math.sin(turn) * n[a]);
      return this.project(Math.acos(Math.max(-1, Math.min(1, at[2]))), Math.atan2(at[1], at[0]));
    });
  }

  /** Break a line where it leaves the map on one side and continues on the other. */
  cut(line) {
    const far = (a, b) => a && b && Math.abs(a[0] - b[0]) > this.width / 4;
    return line.flatMap((point, i) => (far(line[i - 1], point) ? [null, point] : [point]));
  }

  turnGlobe(event) {
    const box = this.canvas.getBoundingClientRect();
    const place = hammerInverse((2 * (event.clientX - box.left)) / box.width - 1, 1 - (2 * (event.clientY - box.top)) / box.height);
    if (place) this.globe.face(place[1], Math.PI / 2 - place[0]);
  }
}

/** [polar angle, azimuth] at x and y in ±1 of the map, or null outside its ellipse. */
function hammerInverse(x, y) {
  const squared = 1 - x * x / 2 - y * y / 2;
  if (squared < 0.5) return null;
  const z = Math.sqrt(squared), sine = y * Math.SQRT2 * z;
  return [Math.acos(Math.max(-1, Math.min(1, sine))), 2 * Math.atan2(Math.SQRT2 * x * z, 2 * squared - 1)];
}
