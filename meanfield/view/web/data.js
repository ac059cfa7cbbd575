/* Decoding of the data of the page, which meanfield/view/packing.py encodes. */

/** (k) => levels of snapshot k, from base64 of deflated differences in time, modulo the number of levels. */
async function decodeLevels(text, cells, bytes) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const levels = bytes === 2 ? new Uint16Array(buffer) : new Uint8Array(buffer);
  for (let i = cells; i < levels.length; i++) levels[i] += levels[i - cells]; // typed arrays wrap around
  return (k) => levels.subarray(k * cells, (k + 1) * cells);
}

/** Colors of the map as 32-bit pixels (little-endian: alpha, blue, green, red) and as CSS. */
function decodeColors(text) {
  const css = text.match(/.{6}/g).map((hex) => "#" + hex);
  const pixels = Uint32Array.from(css, (c) => {
    const rgb = parseInt(c.slice(1), 16);
    return 0xff000000 + ((rgb & 255) << 16) + (rgb & 0xff00) + (rgb >> 16);
  });
  return { css, pixels };
}

/** Index of the last of increasing values that is at most x; -1 if there is none. */
function lastUpTo(values, x) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The density ρ/ρ̄, or ρ/ρ̄ − 1, of a level: the center of its rounding interval. */
function densityOf(level, run) {
  const { low, high, deviation } = run.scale;
  const part = (level + 0.5) / 256 ** run.bytes;
  return deviation ? low + part * (high - low) : low * (high / low) ** part;
}
