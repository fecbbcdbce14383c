// The sidebar costs two Tab stops instead of one for each link: in a group (data-arrows) one link takes Tab, the current
// page's, and the arrow keys, Home and End move to the others. Screen readers read all of them as a list of links, since
// their own cursor does not need Tab; without JavaScript each link is a stop.
(() => {
  "use strict";
  const STEPS = { ArrowDown: 1, ArrowUp: -1, ArrowRight: 1, ArrowLeft: -1 };
  const stops = (group) => [...group.querySelectorAll("a[href], button")];
  const only = (group, stop) => stops(group).forEach((one) => (one.tabIndex = one === stop ? 0 : -1));

  for (const group of document.querySelectorAll("[data-arrows]")) {
    only(group, group.querySelector("[aria-current]") || stops(group)[0]);
    group.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      const all = stops(group);
      const here = all.indexOf(document.activeElement);
      const there =
        event.key === "Home" ? 0 : event.key === "End" ? all.length - 1 : here + (STEPS[event.key] || 0);
      if (here < 0 || (there === here && event.key !== "Home" && event.key !== "End")) return;
      event.preventDefault();
      const stop = all[(there + all.length) % all.length];
      only(group, stop);
      stop.focus();
    });
  }
})();
