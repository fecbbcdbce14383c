// The log of a session: it scrolls on with what is new while its reader is at the end, and stays where it is otherwise.
// Works on #log-box > #log-lines; the lines themselves come by htmx (#log-next asks for them).
(() => {
  "use strict";
  const NEAR = 40; // pixels from the end that still are the end
  const MOST = 3000; // lines kept in the page; the oldest leave it when nobody looks at them, and can be shown again
  const KEPT = 1500;
  let swap = null; // what was on the screen before lines came in

  const box = () => document.getElementById("log-box");
  const atEnd = (place) => place.scrollHeight - place.scrollTop - place.clientHeight < NEAR;
  const toEnd = (place) => {
    place.scrollTop = place.scrollHeight;
  };
  const button = () => {
    const place = box();
    const newest = document.getElementById("log-newest");
    if (place && newest) newest.hidden = atEnd(place);
  };

  const trim = () => {
    const list = document.getElementById("log-lines");
    const lines = list.querySelectorAll("li[id^='line-']");
    if (lines.length <= MOST) return;
    const first = lines[lines.length - KEPT];
    while (list.firstElementChild !== first) list.firstElementChild.remove();
    const address = list.dataset.address + "?before=" + first.id.slice("line-".length);
    const more = document.createElement("li");
    const link = document.createElement("a");
    more.className = "log-more";
    link.textContent = "Show earlier lines";
    link.href = address;
    link.setAttribute("hx-get", address);
    link.setAttribute("hx-target", "closest li");
    link.setAttribute("hx-swap", "outerHTML");
    more.append(link);
    list.prepend(more);
    window.htmx.process(more);
  };

  document.addEventListener("htmx:beforeSwap", (event) => {
    const place = box();
    const target = event.detail.target;
    if (!place || !target || !place.contains(target) || !event.detail.shouldSwap) return;
    const news = target.id === "log-next";
    swap = { news, follow: news && atEnd(place), height: place.scrollHeight, top: place.scrollTop };
  });
  document.addEventListener("htmx:afterSwap", () => {
    const place = box();
    if (!swap || !place) return;
    const { news, follow, height, top } = swap;
    swap = null;
    if (follow) {
      trim();
      toEnd(place);
    } else if (news) {
      place.scrollTop = top;
    } else {
      place.scrollTop = top + place.scrollHeight - height; // what was read stays where it was
      if (document.activeElement === document.body) place.focus({ preventScroll: true });
    }
    button();
  });
  document.addEventListener("scroll", (event) => event.target === box() && button(), true);
  document.addEventListener("click", (event) => {
    if (event.target.id !== "log-newest") return;
    toEnd(box());
    box().focus({ preventScroll: true });
    button();
  });

  const begin = () => {
    const place = box();
    if (place) toEnd(place);
    button();
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
