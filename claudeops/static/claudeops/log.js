// The log of a session: it scrolls on with what is new while its reader is at the end, and stays where it is otherwise.
// Works on #log-box > #log-lines; the lines themselves come by htmx (#log-next asks for them). A link to a line of the
// page goes there without loading it again. #log-hold keeps the place even at the end. #log-unfold opens and closes all folded lines, those to come too.
(() => {
  "use strict";
  const NEAR = 40; // pixels from the end that still are the end
  let swap = null; // what was on the screen before lines came in

  const box = () => document.getElementById("log-box");
  const atEnd = (place) => place.scrollHeight - place.scrollTop - place.clientHeight < NEAR;
  const toEnd = (place) => {
    place.scrollTop = place.scrollHeight;
  };
  const isHeld = () => {
    const hold = document.getElementById("log-hold");
    return Boolean(hold) && hold.getAttribute("aria-pressed") === "true";
  };
  const button = () => {
    const place = box();
    const newest = document.getElementById("log-newest");
    if (place && newest) newest.hidden = atEnd(place);
    const hold = document.getElementById("log-hold");
    if (!place || !hold) return;
    hold.hidden = Boolean(document.querySelector("#log-next[data-ended]"));
    document.getElementById("log-following").hidden = hold.hidden || isHeld() || !atEnd(place);
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
    const address = list.dataset.address + "?before=" + seq(below) + list.dataset.only;
    const more = document.createElement("li");
    const link = document.createElement("a");
    more.className = "log-more";
    const number = list.dataset.only ? "" : ` ${seq(below) - seq(above || below) - 1}`;
    link.textContent = above ? `Show the${number} lines between` : "Show earlier lines";
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

  const unfold = () => document.getElementById("log-unfold");
  const isUnfolded = () => Boolean(unfold()) && unfold().getAttribute("aria-pressed") === "true";
  const setFolds = (open) => {
    for (const details of document.querySelectorAll("#log-lines details")) details.open = open;
  };
  const lineOf = (hash) => (/^#line-\d+$/.test(hash) ? document.getElementById(hash.slice(1)) : null);
  const show = (place, line) => {
    for (const other of place.querySelectorAll(".is-line")) if (other !== line) other.classList.remove("is-line");
    line.classList.add("is-line");
    place.scrollTop += line.getBoundingClientRect().top - place.getBoundingClientRect().top - place.clientHeight / 3;
  };

  document.addEventListener("htmx:beforeSwap", (event) => {
    const place = box();
    const target = event.detail.target;
    if (!place || !target || !place.contains(target) || !event.detail.shouldSwap) return;
    const news = target.id === "log-next";
    swap = { news, follow: news && !isHeld() && atEnd(place), height: place.scrollHeight, top: place.scrollTop };
  });
  document.addEventListener("htmx:afterSwap", () => {
    const place = box();
    if (!swap || !place) return;
    const { news, follow, height, top } = swap;
    swap = null;
    if (isUnfolded()) setFolds(true);
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
    const hold = event.target.closest && event.target.closest("#log-hold");
    if (!hold) return;
    hold.setAttribute("aria-pressed", String(!isHeld()));
    if (!isHeld()) toEnd(box());
    button();
  });
  document.addEventListener("click", (event) => {
    if (event.target.id !== "log-newest") return;
    toEnd(box());
    box().focus({ preventScroll: true });
    button();
  });
  document.addEventListener("click", (event) => {
    if (!unfold() || event.target !== unfold()) return;
    const open = !isUnfolded();
    unfold().setAttribute("aria-pressed", String(open));
    setFolds(open);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href*="#line-"]');
    if (!link || !box() || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const line = lineOf(link.hash);
    if (!line || link.pathname !== location.pathname) return;
    event.preventDefault();
    history.replaceState(history.state, "", link.href);
    show(box(), line);
    box().scrollIntoView({ block: "nearest" });
  });

  // A line that was asked for is shown, otherwise the end. One that is not in the page is fetched with its neighbours.
  const begin = () => {
    const place = box();
    if (!place) return;
    const asked = new URLSearchParams(location.search).get("line");
    const line = lineOf(location.hash) || lineOf(`#line-${asked}`);
    if (line) {
      show(place, line);
      place.scrollIntoView({ block: "nearest" });
    } else {
      toEnd(place);
      if (/^#line-\d+$/.test(location.hash) && !asked) location.replace(`?line=${location.hash.slice(6)}${location.hash}`);
    }
    if (unfold()) unfold().hidden = false;
    button();
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
