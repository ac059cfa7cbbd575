/* Follow a run that continues: ask for the version of its page, and load the page anew when there is another. */

const ASK_EVERY = 1000; // milliseconds

/** Where the visitor was: at the last snapshot, whichever it is, or at one of them. */
function follow(version) {
  const slider = document.getElementById("slider"), play = document.getElementById("play");
  const kept = sessionStorage.getItem("snapshot");
  const begin = () => {
    if (document.body.dataset.shown === undefined) return requestAnimationFrame(begin);
    slider.value = kept === null ? slider.max : kept;
    slider.dispatchEvent(new Event("input"));
  };
  begin();
  const ask = async () => {
    const reply = await fetch("version", { cache: "no-store" }).catch(() => null); // the run has ended
    if (reply === null || !reply.ok) return;
    if (Number(await reply.text()) !== version && play.textContent === "Play") {
      if (slider.value === slider.max) sessionStorage.removeItem("snapshot");
      else sessionStorage.setItem("snapshot", slider.value);
      return location.reload();
    }
    setTimeout(ask, ASK_EVERY);
  };
  setTimeout(ask, ASK_EVERY);
}
