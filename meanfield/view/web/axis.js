/* Scales, ticks, numbers, and the axes of every plot. */

const SVG = "http://www.w3.org/2000/svg";

function element(parent, name, attributes = {}, text = null) {
  const made = document.createElementNS(parent instanceof SVGElement || name === "svg" ? SVG : document.documentElement.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  parent.append(made);
  return made;
}

/** Id of a part that may occur several times: unprefixed for the density, else prefixed by the quantity. */
function partId(run, name) {
  return run.id ? `${run.id}-${name}` : name;
}

/** Map from [low, high] to [0, 1], linear or logarithmic, with its inverse. */
function makeScale(low, high, log = false) {
  const bend = log ? Math.log10 : (x) => x;
  const start = bend(low), span = bend(high) - start || 1;
  const back = log ? (y) => 10 ** y : (y) => y;
  return { low, high, log, at: (x) => (bend(x) - start) / span, from: (part) => back(start + part * span) };
}

function superscript(n) {
  return [...String(n)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");
}

/** A number with three digits, such as 0.125, 12.5, 1.2×10⁶. */
function formatNumber(x, figures = 3) {
  const size = Math.abs(x);
  if (x === 0 || (size >= 1e-3 && size < 1e5)) return String(Number(x.toPrecision(figures))).replace("-", "−");
  const [digits, power] = x.toExponential(figures - 1).split("e");
  const short = String(Number(digits)).replace("-", "−");
  return (short === "1" ? "" : short + "×") + "10" + superscript(Number(power));
}

/** About so many ticks as [value, label], with a common power of ten in `factor`. */
function ticksOf(scale, most) {
  return scale.log ? ticksLog(scale, most) : ticksLinear(scale, most);
}

function ticksLinear({ low, high }, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((n) => n * power >= rough * 0.999);
  if (high - low < 1e-12 * Math.max(Math.abs(low), Math.abs(high))) return { ticks: [[low, formatNumber(low)]], factor: "" };
  const size = Math.floor(Math.log10(Math.max(Math.abs(low), Math.abs(high))));
  const shared = size >= 5 || size <= -3 ? size : 0;
  const decimals = Math.max(0, shared - Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; n++) {
    ticks.push([n * step, ((n * step) / 10 ** shared).toFixed(decimals).replace(/^-(?=0\.?0*$)/, "").replace("-", "−")]);
  }
  return { ticks, factor: shared ? "×10" + superscript(shared) : "" };
}

function ticksLog({ low, high }, most) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const wide = high / low > 100;
  const stride = Math.max(1, Math.ceil((last - first + 1) / most));
  const ticks = [];
  for (let n = first - 1; n <= last; n++) {
    for (const digit of wide ? [1] : [1, 2, 5]) {
      const value = digit * 10 ** n;
      if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9) || (wide && (((n % stride) + stride) % stride))) continue;
      ticks.push([value, formatNumber(value, 1)]);
    }
  }
  return { ticks, factor: "" };
}

/**
 * Axes in an empty <svg>: x and y are { scale, label, ticks? }. Returns the plotting area with x(value), y(value)
 * in pixels, and a clipped group to draw in.
 */
function drawFrame(svg, width, height, x, y) {
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  const area = { left: 48, right: width - 20, top: 22, bottom: height - 36 };
  area.x = (value) => area.left + x.scale.at(value) * (area.right - area.left);
  area.y = (value) => area.bottom - y.scale.at(value) * (area.bottom - area.top);
  const most = Math.max(2, Math.floor((area.right - area.left) / 58));
  const across = x.ticks ? { ticks: x.ticks, factor: "" } : ticksOf(x.scale, most);
  const up = y.ticks ? { ticks: y.ticks, factor: "" } : ticksOf(y.scale, Math.floor((area.bottom - area.top) / 26));
  for (const [value, label] of across.ticks) {
    element(svg, "line", { class: "grid", x1: area.x(value), x2: area.x(value), y1: area.top, y2: area.bottom });
    element(svg, "text", { x: area.x(value), y: area.bottom + 15, "text-anchor": "middle" }, label);
  }
  for (const [value, label] of up.ticks) {
    element(svg, "line", { class: "grid", x1: area.left, x2: area.right, y1: area.y(value), y2: area.y(value) });
    element(svg, "text", { x: area.left - 6, y: area.y(value) + 4, "text-anchor": "end" }, label);
  }
  element(svg, "path", { class: "axis", d: `M${area.left} ${area.top}V${area.bottom}H${area.right}` });
  const factor = across.factor ? `  (${across.factor})` : "";
  element(svg, "text", { x: (area.left + area.right) / 2, y: height - 5, "text-anchor": "middle" }, x.label + factor);
  const above = [y.label, up.factor].filter(Boolean).join("  ");
  if (above) element(svg, "text", { x: 2, y: 10 }, above);
  area.group = clippedGroup(svg, area);
  return area;
}

let clips = 0;

function clippedGroup(svg, area) {
  const id = `clip${clips++}`;
  const clip = element(element(svg, "defs"), "clipPath", { id });
  const size = { x: area.left, y: area.top - 2, width: area.right - area.left, height: area.bottom - area.top + 4 };
  element(clip, "rect", size);
  return element(svg, "g", { "clip-path": `url(#${id})` });
}

/** Call `seek` with the x of a click or drag, as a fraction from 0 to 1 of the width of the area. */
function followPointer(target, areaOf, seek) {
  const tell = (event) => {
    const area = areaOf(), box = target.getBoundingClientRect();
    const part = (event.clientX - box.left - area.left) / (area.right - area.left);
    seek(Math.min(1, Math.max(0, part)));
  };
  target.addEventListener("pointerdown", (event) => {
    target.setPointerCapture(event.pointerId);
    tell(event);
  });
  target.addEventListener("pointermove", (event) => {
    if (target.hasPointerCapture(event.pointerId)) tell(event);
  });
}
