// The inbox: one key a decision, and no click of the last item reaches the next one. What a key presses says
// data-inbox-key; while rows are selected, the keys are those of the bulk bar (keys.js).
(() => {
  "use strict";
  const REST = 400; // milliseconds after a swap in which the decisions do not answer
  let restUntil = 0;
  const resting = () => performance.now() < restUntil;
  const typing = (element) => element.closest("textarea, select, input:not([type=checkbox])") !== null;
  const selected = () => document.querySelector("#inbox-queue [data-bulk]:not([hidden])") !== null;

  document.addEventListener(
    "click",
    (event) => {
      if (!resting() || !event.target.closest || !event.target.closest(".inbox-do, .inbox-bulk")) return;
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      const open = document.querySelector(".inbox-queue .is-open");
      const box = event.key === "x" && open ? open.querySelector("[data-pick]") : null;
      const button = /^[a-z1-3]$/.test(event.key) ? document.querySelector(`#inbox [data-inbox-key="${event.key}"]`) : null;
      if (!box && (!button || (selected() && button.closest(".inbox-do")))) return;
      event.preventDefault();
      event.stopPropagation();
      if (!event.repeat && !resting()) (box || button).click();
    },
    true,
  );
  // A text of one's own: opened, its field has the focus.
  document.addEventListener(
    "toggle",
    (event) => {
      if (event.target.matches(".inbox-edit[open]")) event.target.querySelector("textarea").focus();
    },
    true,
  );
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.closest(".inbox-nearest")) return; // the item itself stays
    const inbox = document.getElementById("inbox");
    if (!inbox) return;
    restUntil = performance.now() + REST;
    const link = document.querySelector('.side-nav a[href="/inbox"]');
    let count = link && link.querySelector(".side-count");
    if (link && !count) {
      count = document.createElement("span");
      count.className = "side-count";
      link.append(" ", count);
    }
    if (count) count.textContent = inbox.dataset.total;
    if (count && !inbox.dataset.total) count.remove();
  });
})();
