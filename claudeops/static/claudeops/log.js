// The log of a session: it scrolls on with what is new while its reader is at the end, and stays where it is otherwise.
// Works on #log-box > #log-lines; the lines themselves come by htmx (#log-next asks for them).
(() => {
  "use strict";
  const NEAR = 40; // pixels from the end that still are the end
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

  const seq = (line) => Number(line.id.slice("line-".length));
  // Take what stands between two lines out of the page (from the beginning: without `above`), and offer to show it.
  const cut = (list, above, below) => {
    let gone = above ? above.nextElementSibling : list.firstElementChild;
    while (gone !== below) {
      const next = gone.nextElementSibling;
      gone.remove();
      gone = next;
    }
    const address = list.dataset.address + "?before=" + seq(below);
    const more = document.createElement("li");
    const link = document.createElement("a");
    more.className = "log-more";
    link.textContent = above ? `Show the ${seq(below) - seq(above) - 1} lines between` : "Show earlier lines";
    link.href = address;
    link.setAttribute("hx-get", above ? `${address}&floor=${seq(above)}` : address);
    link.setAttribute("hx-target", "closest li");
    link.setAttribute("hx-swap", "outerHTML");
    more.append(link);
    below.before(more);
    window.htmx.process(more);
  };

  const trim = (place, follow) => {
    const list = document.getElementById("log-lines");
    const lines = [...list.querySelectorAll("li[id^='line-']")];
    const most = Number(list.dataset.most); // lines kept in the page; others leave it, and can be shown again
    if (lines.length <= most) return;
    if (follow) {
      cut(list, null, lines[lines.length - most / 2]);
      return;
    }
    const edge = place.getBoundingClientRect().top;
    const read = Math.max(0, lines.findIndex((line) => line.getBoundingClientRect().bottom > edge));
    const height = lines[read].getBoundingClientRect().top;
    const around = most * 0.3; // on either side of what is read further up; the last tenth stays, where new lines come in
    const last = read + around;
    const tail = lines.length - most / 10;
    if (last + 1 < tail) cut(list, lines[last], lines[tail]);
    if (read > around) cut(list, null, lines[read - around]);
    place.scrollTop += lines[read].getBoundingClientRect().top - height; // what is read stays where it is
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
      trim(place, true);
      toEnd(place);
    } else if (news) {
      place.scrollTop = top;
    } else {
      place.scrollTop = top + place.scrollHeight - height; // what was read stays where it was
      if (document.activeElement === document.body) place.focus({ preventScroll: true });
    }
    if (!follow) trim(place, false);
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
