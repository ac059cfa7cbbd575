/* Pictures of the sphere, with each pixel in the color of its cell. */

/** The mesh: rings of latitude from the north pole, each of equal cells east from azimuth 0. */
class Rings {
  constructor(counts) {
    this.counts = Int32Array.from(counts);
    this.starts = new Int32Array(counts.length);
    for (let i = 1; i < counts.length; i++) this.starts[i] = this.starts[i - 1] + counts[i - 1];
  }

  /** Index of the cell at polar angle theta and azimuth phi. */
  cellAt(theta, phi) {
    const rings = this.counts.length;
    const ring = Math.min(rings - 1, Math.floor((theta * rings) / Math.PI));
    const count = this.counts[ring], turn = phi / (2 * Math.PI);
    return this.starts[ring] + Math.min(count - 1, Math.floor((turn - Math.floor(turn)) * count));
  }
}

/** A canvas with pixels that show cells: their indices and opacities, and the cell of each. */
class CellPicture {
  constructor(canvas, colors, width, height) {
    this.canvas = canvas;
    this.ratio = Math.min(window.devicePixelRatio || 1, 1400 / (width + height)); // bounds the work of a frame
    canvas.width = Math.round(width * this.ratio);
    canvas.height = Math.round(height * this.ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    this.context = canvas.getContext("2d");
    this.image = this.context.createImageData(canvas.width, canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.colors = colors.pixels;
  }

  setPixels(index, opacity) {
    this.index = Uint32Array.from(index);
    this.opacity = Uint8Array.from(opacity);
    this.cells = new Int32Array(this.index.length);
  }

  /** Color the pixels by the levels of their cells; lines drawn afterwards are in CSS pixels. */
  paint(levels) {
    const shift = levels.BYTES_PER_ELEMENT === 2 ? 8 : 0;
    for (let n = 0; n < this.index.length; n++) {
      const color = this.colors[levels[this.cells[n]] >> shift];
      this.pixels[this.index[n]] = (color & 0xffffff) | (this.opacity[n] << 24);
    }
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.putImageData(this.image, 0, 0);
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
  }
}

/** Stroke a line of [x, y] points; null breaks the line. */
function strokeLine(context, points) {
  let down = false;
  context.beginPath();
  for (const point of points) {
    if (point) down ? context.lineTo(...point) : context.moveTo(...point);
    down = point !== null;
  }
  context.stroke();
}

/** Draw rings at marks [x, y, mass] with their masses beside them, heaviest first, if there is room. */
function drawMarks(context, marks, width, radius, labelled) {
  const taken = marks.map(([x, y]) => [x - radius, y - radius, x + radius, y + radius]);
  for (const [x, y] of marks) {
    for (const [line, color] of [[4, "#000b"], [2, "#fff"]]) {
      context.lineWidth = line;
      context.strokeStyle = color;
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.stroke();
    }
  }
  if (!labelled) return;
  context.font = "600 13px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const [x, y, mass] of marks) {
    const text = mass.toFixed(2), length = context.measureText(text).width;
    const sides = x > width / 2 ? [-1, 1] : [1, -1];
    for (const side of sides) {
      const left = side > 0 ? x + radius + 4 : x - radius - 4 - length;
      const box = [left - 1, y - 8, left + length + 1, y + 8];
      if (mass < 0.005 || taken.some((b) => b[0] < box[2] && box[0] < b[2] && b[1] < box[3] && box[1] < b[3])) continue;
      taken.push(box);
      writeHaloed(context, text, left, y);
      break;
    }
  }
}

function writeHaloed(context, text, x, y) {
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeStyle = "#000c";
  context.strokeText(text, x, y);
  context.fillStyle = "#fff";
  context.fillText(text, x, y);
}
