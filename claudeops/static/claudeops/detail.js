// A page that shows one record: a link or button with data-copy copies its address or its value; what needs the server
// (data-needs-server) is off, with the reason, while the server cannot be reached, and the state (data-state) says since when.
(() => {
  "use strict";
  const WHY = "Off: the server cannot be reached.";
  let seen = new Date();
  let offline = false;

  const clock = () => {
    const timeZone = document.documentElement.dataset.zone || "UTC";
    const form = { hour: "2-digit", minute: "2-digit" };
    try {
      return seen.toLocaleTimeString("en-GB", { timeZone, ...form });
    } catch {
      return seen.toISOString().slice(11, 16); // this browser does not know the zone
    }
  };
  const say = (button, text) => {
    const next = button.nextElementSibling;
    const said = next && next.matches(".copied, .off-why") ? next : null;
    if (said) said.remove();
    if (!text) return;
    const place = document.createElement("span");
    place.className = text === WHY ? "off-why" : "copied";
    place.setAttribute("role", "status");
    place.textContent = text;
    button.after(place);
  };

  document.addEventListener("click", async (event) => {
    const place = event.target.closest && event.target.closest("[data-copy]");
    if (!place || event.ctrlKey || event.metaKey || event.shiftKey || !navigator.clipboard) return;
    event.preventDefault();
    try {
      await navigator.clipboard.writeText(place.dataset.copy || place.href);
      say(place, "Copied");
      setTimeout(() => say(place, ""), 2000);
    } catch {
      say(place, "Not copied: the browser refuses it");
    }
  });

  const draw = () => {
    document.documentElement.classList.toggle("is-offline", offline);
    for (const button of document.querySelectorAll("[data-needs-server]")) {
      if (button.disabled === offline) continue;
      button.disabled = offline;
      say(button, offline ? WHY : "");
    }
    for (const state of document.querySelectorAll("[data-state=live]")) {
      state.dataset.said = state.dataset.said || state.textContent;
      state.textContent = offline ? `was ${state.dataset.said} at ${clock()}` : state.dataset.said;
    }
  };
  document.addEventListener("htmx:afterRequest", (event) => {
    const status = event.detail.xhr ? event.detail.xhr.status : 0;
    if (status) seen = new Date();
    if (offline === !status) return;
    offline = !status;
    draw();
  });
})();
