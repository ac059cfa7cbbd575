/* Player of snapshots: slider, clock, play and pause, keys. */

const LINK_AFTER = 200; // milliseconds

class Player {
  constructor(run, changed) {
    this.run = run;
    this.changed = changed;
    this.k = 0;
    this.timer = null;
    for (const id of ["play", "slider", "clock", "clusters", "speed"]) this[id] = document.getElementById(id);
    this.slider.addEventListener("input", () => this.select(Number(this.slider.value)));
    this.play.addEventListener("click", () => this.toggle());
    this.speed.addEventListener("change", () => this.timer !== null && this.start());
    document.addEventListener("keydown", (event) => this.key(event));
    addEventListener("hashchange", () => this.open());
    this.open();
  }

  /** Show the time of the address, as in #t=12.5, else the snapshot at which there is something to see. */
  open() {
    const time = Number(/^#t=(.+)$/.exec(location.hash)?.[1]);
    if (Number.isFinite(time)) this.seek(time);
    else this.select(this.run.opens);
    clearTimeout(this.linking);
  }

  /** Write the time into the address, once the snapshot stays. A page inside another one has no own address. */
  link() {
    clearTimeout(this.linking);
    if (location.protocol === "about:" || this.timer !== null) return;
    this.linking = setTimeout(() => history.replaceState(null, "", `#t=${this.run.times[this.k]}`), LINK_AFTER);
  }

  select(k) {
    this.k = Math.min(this.run.times.length - 1, Math.max(0, k));
    const time = this.run.timeLabels[this.k], clusters = this.run.clusters[this.k];
    this.slider.value = this.k;
    this.clock.textContent = time;
    this.clusters.textContent = clusters;
    this.slider.setAttribute("aria-valuetext", `${time}, ${this.clusters.textContent}`);
    this.changed();
    this.link();
  }

  /** Go to the snapshot nearest to a time, by distance on the time axis. */
  seek(time) {
    const at = (t) => (t > 0 || !this.run.timeScale.log ? this.run.timeScale.at(t) : -Infinity);
    const off = this.run.times.map((t) => Math.abs(at(t) - at(time)));
    this.select(off.indexOf(Math.min(...off)));
  }

  toggle() {
    if (this.timer !== null) return this.stop();
    if (this.k === this.run.times.length - 1) this.select(0);
    this.start();
  }

  start() {
    this.stop();
    this.play.textContent = "Pause";
    this.timer = setInterval(() => {
      this.select(this.k + 1);
      if (this.k === this.run.times.length - 1) this.stop();
    }, 1000 / Number(this.speed.value));
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = "Play";
    this.link();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { target } = event, own = target.closest("button, select, summary");
    if (event.key === " " && !own) {
      this.toggle();
      event.preventDefault();
    }
    if (own || target === this.slider) return; // these elements use the arrow keys
    const step = { ArrowLeft: this.k - 1, ArrowRight: this.k + 1, Home: 0, End: this.run.times.length - 1 }[event.key];
    if (step === undefined) return;
    this.select(step);
    event.preventDefault();
  }
}
