/* Tokens as points: around the circle, on the globe and its map; the angle of each on the circle over time. */

const NEAREST = 0.01; // fraction of a picture: closer dots are merged
const WHOLE_DOT = 900, LEAST_DOT = 7; // square pixels: area of a dot with all mass, and smallest area

/** Coordinates of tokens along the axes of the page, from levels of −1 … 1, axis after axis. */
class Tokens {
  constructor(run) {
    Object.assign(this, run.tokens);
    this.count = this.weights.length;
  }

  at(levels, axis, token) {
    return ((levels[axis * this.count + token] + 0.5) / 65536) * 2 - 1;
  }

  /** Draw a dot for each position [x, y] of a token, null if hidden; coinciding tokens are one dot. */
  draw(context, size, place) {
    const step = NEAREST * size, groups = new Map();
    for (let i = 0; i < this.count; i++) {
      const at = place(i);
      if (!at) continue;
      const key = `${Math.round(at[0] / step)} ${Math.round(at[1] / step)}`, mass = this.weights[i];
      const group = groups.get(key) ?? groups.set(key, [0, 0, 0]).get(key);
      group[0] += mass * at[0], group[1] += mass * at[1], group[2] += mass;
    }
    for (const [x, y, mass] of groups.values()) {
      context.beginPath();
      context.arc(x / mass, y / mass, Math.sqrt(Math.max(WHOLE_DOT * mass, LEAST_DOT) / Math.PI), 0, 2 * Math.PI);
      context.fill();
    }
  }
}

/** A picture of the sphere with tokens as dots; `picture` draws the empty sphere. */
class DotsOn {
  constructor(picture, run, tokens) {
    Object.assign(this, { picture, tokens });
    this.ground = new Uint8Array(run.rings.reduce((sum, count) => sum + count, 0));
    this.color = run.colors.css[242];
  }

  resize() {
    this.picture.resize();
  }

  show(k, levels, marks) {
    const { picture, tokens } = this;
    picture.show(k, this.ground, marks, () => {
      const { context } = picture.picture;
      context.fillStyle = this.color;
      context.globalAlpha = 0.8;
      tokens.draw(context, picture.radius ? 2 * picture.radius : picture.width, (i) => {
        const [x, y, z] = [0, 1, 2].map((axis) => tokens.at(levels, axis, i));
        return picture.project(Math.acos(Math.max(-1, Math.min(1, z))), Math.atan2(y, x));
      });
      context.globalAlpha = 1;
    });
  }
}

/** The circle with its tokens. */
class TokenCircle {
  constructor(host, run, tokens) {
    Object.assign(this, { run, tokens });
    const figure = element(host, "figure", { class: "part" });
    this.host = figure;
    this.canvas = element(figure, "canvas", { id: "circle", role: "img", "aria-label": "tokens on the circle" });
    element(figure, "figcaption", { class: "caption" }, "angle φ from the right; area of a dot: mass");
  }

  resize() {
    this.size = Math.min(pictureSize(this.host), 420);
    this.context = sharpCanvas(this.canvas, this.size, this.size);
  }

  show(k, levels, marks) {
    const { context, size, tokens } = this, radius = 0.36 * size, style = getComputedStyle(this.canvas);
    context.clearRect(0, 0, size, size);
    context.strokeStyle = style.getPropertyValue("--line");
    context.lineWidth = 1.5;
    context.beginPath();
    context.arc(size / 2, size / 2, radius, 0, 2 * Math.PI);
    context.stroke();
    const around = (angle, r) => [size / 2 + r * Math.cos(angle), size / 2 - r * Math.sin(angle)];
    context.fillStyle = style.color;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = "12px system-ui, sans-serif";
    ["0", "π/2", "π", "3π/2"].forEach((text, i) => context.fillText(text, ...around((i * Math.PI) / 2, 0.27 * size)));
    context.font = "600 13px system-ui, sans-serif";
    context.strokeStyle = style.getPropertyValue("--cursor");
    for (const [angle, mass] of marks) {
      context.beginPath();
      context.arc(...around(angle, radius), Math.sqrt((WHOLE_DOT * mass) / Math.PI) + 5, 0, 2 * Math.PI);
      context.stroke();
      context.fillText(mass.toFixed(2), ...around(angle, 0.455 * size));
    }
    context.fillStyle = style.getPropertyValue("--accent");
    context.globalAlpha = 0.8;
    tokens.draw(context, size, (i) => [
      size / 2 + radius * tokens.at(levels, 0, i), size / 2 - radius * tokens.at(levels, 1, i),
    ]);
    context.globalAlpha = 1;
  }
}

/** The angle of each token over time, a line each; a line that leaves at 0 continues at 2π. */
class AngleLines extends History {
  constructor(host, run, seek, tokens) {
    const quarters = ["0", "π/2", "π", "3π/2", "2π"].map((text, i) => [(i * Math.PI) / 2, text]);
    const axis = { edges: [0, 2 * Math.PI], label: "angle φ (rad)", ticks: quarters };
    super(host, { ...run, axis, title: "tokens over time", id: "angles" }, seek);
    this.tokens = tokens;
  }

  paint() {
    const { run, canvas, tokens } = this, { width, height } = canvas, context = canvas.getContext("2d");
    const x = this.shown.map((k) => run.timeScale.at(run.times[k]) * width);
    context.strokeStyle = getComputedStyle(canvas).getPropertyValue("--accent");
    context.globalAlpha = 0.75;
    const last = (window.devicePixelRatio || 1) * Math.sqrt(tokens.count);
    for (let i = 0; i < tokens.count; i++) {
      context.lineWidth = Math.min(4, Math.max(0.6, last * Math.sqrt(tokens.weights[i])));
      context.beginPath();
      let turned = null;
      this.shown.forEach((k, n) => {
        const levels = run.levels(k), angle = Math.atan2(tokens.at(levels, 1, i), tokens.at(levels, 0, i));
        const place = (at) => height * (1 - at / (2 * Math.PI));
        const before = turned;
        turned = before === null ? (angle + 2 * Math.PI) % (2 * Math.PI) : before + nearest(angle - before);
        if (before === null) return context.moveTo(x[n], place(turned));
        context.lineTo(x[n], place(turned));
        const off = Math.floor(turned / (2 * Math.PI)) * 2 * Math.PI;
        if (off === 0) return;
        turned -= off; // continue on the other side
        context.moveTo(x[n - 1], place(before - off));
        context.lineTo(x[n], place(turned));
      });
      context.stroke();
    }
    context.globalAlpha = 1;
  }
}

/** An angle reduced to −π … π. */
function nearest(angle) {
  return angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));
}

/** The context of a canvas of this size in CSS pixels, with the resolution of the screen. */
function sharpCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1, context = canvas.getContext("2d");
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
