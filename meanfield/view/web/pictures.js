/* Precomputed picture for each snapshot. */

class Pictures {
  constructor(host, run) {
    this.run = run;
    this.image = element(host, "img", { class: "picture", id: "picture" });
  }

  resize() {}

  show(k) {
    this.image.src = this.run.pictures[k];
    this.image.alt = `the fields at ${this.run.timeLabels[k]}`;
  }
}
