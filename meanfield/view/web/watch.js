/* Updates of the page of a run in progress: request its version, and reload the page for a new one. */

const ASK_EVERY = 1000; // milliseconds

/** Position to restore: the last snapshot, or a selected one. */
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
      history.replaceState(null, "", location.pathname); // without the time of the snapshot shown
      if (slider.value === slider.max) sessionStorage.removeItem("snapshot");
      else sessionStorage.setItem("snapshot", slider.value);
      return location.reload();
    }
    setTimeout(ask, ASK_EVERY);
  };
  setTimeout(ask, ASK_EVERY);
}
