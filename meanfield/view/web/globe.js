/* Globe: an orthographic view of the sphere, north up, which the user rotates. */

const TURN = Math.PI / 36; // rotation of an arrow key

class Globe {
  constructor(host, run, redraw) {
    this.run = run;
    this.rings = new Rings(run.rings);
    this.redraw = redraw;
    const part = element(host, "div", { class: "part" });
    this.host = part;
    this.canvas = element(part, "canvas", { class: "turns", tabindex: 0, role: "application", id: "globe" });
    this.caption = element(part, "p", { class: "caption" });
    this.face(0, Math.PI / 12);
    this.listen();
  }

  /** Rotate the globe so that azimuth and latitude (radians) are at its center. */
  face(azimuth, latitude) {
    this.azimuth = Math.atan2(Math.sin(azimuth), Math.cos(azimuth));
    this.latitude = Math.min(Math.PI / 2, Math.max(-Math.PI / 2, latitude));
    this.located = false;
    this.canvas.dataset.azimuth = this.azimuth.toFixed(6);
    this.canvas.dataset.latitude = this.latitude.toFixed(6);
    const degrees = (angle) => Math.round((angle * 180) / Math.PI);
    const seen = `azimuth ${degrees(this.azimuth)}°, latitude ${degrees(this.latitude)}°`;
    this.canvas.setAttribute("aria-label", `density on the sphere, seen from ${seen}; rotate by arrow keys`);
    this.redraw();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
      if (!canvas.hasPointerCapture(event.pointerId)) return this.tell(event);
      this.face(this.azimuth - event.movementX / this.radius, this.latitude + event.movementY / this.radius);
    });
    canvas.addEventListener("pointerleave", () => this.tell(null));
    canvas.addEventListener("dblclick", () => this.face(0, Math.PI / 12));
    canvas.addEventListener("keydown", (event) => {
      const turn = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!turn) return;
      this.face(this.azimuth + TURN * turn[0], this.latitude + TURN * turn[1]);
      event.preventDefault();
      event.stopPropagation();
    });
  }

  resize() {
    const size = pictureSize(this.host);
    this.picture = new CellPicture(this.canvas, this.run.colors, size, size);
    this.radius = size / 2 - 2;
    const pixels = this.canvas.width, middle = pixels / 2, radius = this.radius * this.picture.ratio;
    const index = [], opacity = [], right = [], up = [], near = [];
    for (let j = 0; j < pixels; j++) {
      for (let i = 0; i < pixels; i++) {
        const u = (i + 0.5 - middle) / radius, v = (middle - j - 0.5) / radius, length = Math.hypot(u, v);
        const cover = radius * (1 - length) + 0.5;
        if (cover <= 0) continue;
        const inside = Math.max(1, length);
        index.push(j * pixels + i);
        opacity.push(Math.round(255 * Math.min(1, cover)));
        right.push(u / inside), up.push(v / inside), near.push(Math.sqrt(Math.max(0, 1 - (length / inside) ** 2)));
      }
    }
    this.picture.setPixels(index, opacity);
    [this.right, this.up, this.near] = [right, up, near].map((list) => Float32Array.from(list));
    this.located = false;
  }

  /** Axes of the view in space: to the right, up, and towards the eye. */
  axes() {
    const [ca, sa, cl, sl] = [Math.cos(this.azimuth), Math.sin(this.azimuth), Math.cos(this.latitude), Math.sin(this.latitude)];
    return [[-sa, ca, 0], [-sl * ca, -sl * sa, cl], [cl * ca, cl * sa, sl]];
  }

  /** Find the cell at each pixel. */
  locate() {
    const [e, n, c] = this.axes(), { cells } = this.picture;
    for (let p = 0; p < cells.length; p++) {
      const u = this.right[p], v = this.up[p], w = this.near[p];
      const x = u * e[0] + v * n[0] + w * c[0], y = u * e[1] + v * n[1] + w * c[1], z = v * n[2] + w * c[2];
      cells[p] = this.rings.cellAt(Math.acos(Math.max(-1, Math.min(1, z))), Math.atan2(y, x));
    }
    this.located = true;
  }

  /** [x, y] on the canvas of a point of the sphere, or null where it is on the far side. */
  project(theta, phi) {
    const s = Math.sin(theta), at = [s * Math.cos(phi), s * Math.sin(phi), Math.cos(theta)];
    const [u, v, w] = this.axes().map((axis) => axis[0] * at[0] + axis[1] * at[1] + axis[2] * at[2]);
    const middle = this.radius + 2;
    return w < 0 ? null : [middle + this.radius * u, middle - this.radius * v];
  }

  /** Draw the picture; `draw` adds to it below the marks. */
  show(k, levels, marks, draw = () => {}) {
    if (!this.located) this.locate();
    this.levels = levels;
    this.picture.paint(levels);
    const { context } = this.picture;
    context.lineWidth = 0.7;
    context.strokeStyle = "#ffffff59";
    graticule((theta, phi) => this.project(theta, phi)).forEach((line) => strokeLine(context, line));
    draw();
    const seen = marks.map(([theta, phi, mass]) => [this.project(theta, phi), mass]).filter(([place]) => place);
    drawMarks(context, seen.map(([place, mass]) => [...place, mass]), 2 * this.radius, 8, true);
    this.tell(null);
  }

  /** Show position and density under the pointer. */
  tell(event) {
    const box = this.canvas.getBoundingClientRect();
    const u = event ? (event.clientX - box.left - box.width / 2) / this.radius : 2;
    const v = event ? (box.top + box.height / 2 - event.clientY) / this.radius : 2;
    if (u * u + v * v >= 1) {
      this.caption.textContent = "drag to rotate; meridians and parallels every 30°";
      return;
    }
    const w = Math.sqrt(1 - u * u - v * v), [e, n, c] = this.axes();
    const [x, y, z] = [0, 1, 2].map((i) => u * e[i] + v * n[i] + w * c[i]);
    const theta = Math.acos(Math.max(-1, Math.min(1, z))), phi = Math.atan2(y, x);
    const place = `polar angle ${theta.toFixed(2)}, azimuth ${((phi + 2 * Math.PI) % (2 * Math.PI)).toFixed(2)} rad`;
    if (!this.run.scale) return (this.caption.textContent = place); // tokens
    const value = formatNumber(densityOf(this.levels[this.rings.cellAt(theta, phi)], this.run), 2);
    this.caption.textContent = `${place}: ${this.run.scale.symbol} ≈ ${value}`;
  }
}

/** Width of a picture for which globe, scale and map fit below each other on most screens. */
function pictureSize(host) {
  return Math.floor(Math.min(host.clientWidth - 8, 560, Math.max(320, 0.44 * window.innerHeight)) / 2) * 2;
}

/** Lines of [x, y] or null: meridians and parallels every 30°. */
function graticule(project) {
  const line = (at) => Array.from({ length: 91 }, (_, i) => at(i / 90));
  const lines = [];
  for (let n = 0; n < 12; n++) lines.push(line((s) => project(Math.PI * s, (n * Math.PI) / 6)));
  for (let n = 1; n < 6; n++) lines.push(line((s) => project((n * Math.PI) / 6, Math.PI * (2 * s - 1) * 0.999999)));
  return lines;
}
