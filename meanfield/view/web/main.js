/* Assembly of the page: parts with resize() and show(k, levels, marks), and a player that selects the snapshot. */

/** Parts of the picture by kind of manifold. */
const STAGES = {
  globe(host, run, seek, redraw) {
    const globe = new Globe(host, run, redraw);
    return [globe, new SphereMap(host, run, globe), new ColorBar(host, run)];
  },
  ring(host, run, seek) {
    return [new Ring(host, run), new ColorBar(host, run), new Profile(host, run), new History(host, run, seek)];
  },
  tokenCircle(host, run, seek) {
    const tokens = new Tokens(run);
    return [new TokenCircle(host, run, tokens), new AngleLines(host, run, seek, tokens)];
  },
  tokenGlobe(host, run, seek, redraw) {
    const tokens = new Tokens(run), globe = new Globe(host, run, redraw), map = new SphereMap(host, run, globe);
    return [new DotsOn(globe, run, tokens), new DotsOn(map, run, tokens)];
  },
  tokenPlane(host, run, seek, redraw) {
    return [new Projection(host, run, new Tokens(run), redraw)];
  },
  pictures(host, run) {
    return [new Pictures(host, run)];
  },
  profile(host, run, seek) {
    return [new Profile(host, run), new ColorBar(host, run), new History(host, run, seek)];
  },
};

async function readRun() {
  const run = JSON.parse(document.getElementById("run").textContent);
  run.colors = decodeColors(run.colors);
  const levels = document.getElementById("levels").textContent;
  run.levels = levels ? await decodeLevels(levels, run.cells, run.bytes) : () => null;
  run.timeScale = makeScale(run.timeRange[0], run.timeRange[1], run.logTime);
  run.bands = await Promise.all((run.bands ?? []).map((band) => readBand(run, band)));
  run.pairs &&= await readBand(run, run.pairs);
  return run;
}

/** A quantity along a coordinate over time, in the form required by the parts for a density in one dimension. */
async function readBand(run, band) {
  const colors = band.colors ? decodeColors(band.colors) : run.colors;
  return { ...run, ...band, colors, levels: await decodeLevels(band.levels, band.cells, band.bytes) };
}

/** Call `act` at most once a frame. */
function onceAFrame(act) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      act();
    });
  };
}

async function main() {
  const run = await readRun();
  let parts = [], player = null, resized = true;
  const draw = onceAFrame(() => {
    if (resized) for (const part of [...parts, ...panels]) part.resize();
    resized = false;
    const levels = run.levels(player.k);
    for (const part of parts) part.show(player.k, levels, run.marks[player.k]);
    for (const panel of panels) panel.show(run.times[player.k]);
    document.body.dataset.shown = player.k; // the snapshot shown, for tests
  });
  const layOut = () => {
    resized = true;
    draw();
  };
  const seek = (time) => player.seek(time);
  const stage = document.getElementById("stage");
  document.querySelector("details").hidden = !document.querySelector("details pre").textContent;
  const below = document.getElementById("panels");
  const tree = run.tree ? [new MergerTree(below, run, seek)] : [];
  const panels = [...tree, ...run.panels.map((spec) => new Panel(below, spec, run, seek))];
  const redraw = (all) => player && (all ? layOut : draw)();
  parts = run.bands.flatMap((band) => bandParts(stage, band, seek));
  parts.push(...STAGES[run.stage](stage, run, seek, redraw));
  if (run.pairs) parts.push(...bandParts(stage, run.pairs, seek));
  player = new Player(run, draw);
  new ResizeObserver(layOut).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", layOut);
}

main().catch((error) => {
  const failure = document.getElementById("failure");
  failure.hidden = false;
  failure.textContent = `This browser cannot draw the run (${error.message}); one of 2023 or later can.`;
  throw error;
});
