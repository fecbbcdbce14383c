// Selects a range of bars in a plot (data-brush: the address that the range is appended to; each bar is a link with
// data-span, "from..to", and data-said). Drag with the pointer, or focus the plot: arrow keys move, with Shift they extend,
// Enter filters, Escape takes the selection back. A click on one bar stays its link.
(() => {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  let drag = null; // {plot, from, to, moved}

  const barsOf = (plot) => [...plot.querySelectorAll("a[data-span]")];
  const barAt = (plot, x) => {
    const bars = barsOf(plot);
    const box = plot.getBoundingClientRect();
    const place = Math.floor(((x - box.left) / box.width) * bars.length);
    return Math.min(Math.max(place, 0), bars.length - 1);
  };
  const say = (plot, text) => {
    const place = document.getElementById("hours-said");
    if (place) place.textContent = text;
  };
  const draw = (plot, from, to) => {
    const svg = plot.querySelector("svg");
    let mark = svg.querySelector(".brushing");
    if (from === null) {
      if (mark) mark.remove();
      say(plot, "");
      return;
    }
    if (!mark) {
      mark = document.createElementNS(SVG, "rect");
      mark.setAttribute("class", "brushing");
      svg.append(mark);
    }
    const bars = barsOf(plot);
    const [low, high] = [Math.min(from, to), Math.max(from, to)];
    const step = svg.viewBox.baseVal.width / bars.length;
    mark.setAttribute("x", low * step);
    mark.setAttribute("width", (high - low + 1) * step);
    mark.setAttribute("height", svg.viewBox.baseVal.height);
    const said = [...new Set([bars[low].dataset.said, bars[high].dataset.said])];
    say(plot, said.join(" … "));
  };
  const apply = (plot, from, to) => {
    const bars = barsOf(plot);
    const since = bars[Math.min(from, to)].dataset.span.split("..")[0];
    const until = bars[Math.max(from, to)].dataset.span.split("..")[1];
    location.assign(plot.dataset.brush + encodeURIComponent(`${since}..${until}`).replaceAll("%3A", ":"));
  };

  document.addEventListener("pointerdown", (event) => {
    const plot = event.button === 0 && event.target.closest("[data-brush]");
    if (!plot) return;
    const bar = barAt(plot, event.clientX);
    drag = { plot, from: bar, to: bar, moved: false };
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const bar = barAt(drag.plot, event.clientX);
    if (bar === drag.to && !drag.moved) return;
    drag.moved = true;
    drag.to = bar;
    draw(drag.plot, drag.from, drag.to);
  });
  document.addEventListener("pointerup", () => {
    if (drag && drag.moved) apply(drag.plot, drag.from, drag.to);
    else drag = null;
  });
  document.addEventListener("pointercancel", () => {
    if (drag) draw(drag.plot, null);
    drag = null;
  });
  // After a drag the browser sends a click to the bar below the pointer: it must not be followed.
  document.addEventListener(
    "click",
    (event) => {
      if (drag && drag.moved && event.target.closest("[data-brush]")) event.preventDefault();
      drag = null;
    },
    true,
  );
  document.addEventListener("dragstart", (event) => {
    if (event.target.closest && event.target.closest("[data-brush]")) event.preventDefault();
  });

  const keyed = new WeakMap(); // the plot: [from, to]
  document.addEventListener("keydown", (event) => {
    const plot = event.target.closest && event.target.closest("[data-brush]");
    if (!plot || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = barsOf(plot).length - 1;
    let [from, to] = keyed.get(plot) || [last + 1, last + 1];
    if (event.key === "Escape" && keyed.has(plot)) {
      keyed.delete(plot);
      draw(plot, null);
    } else if (event.key === "Enter" && keyed.has(plot)) apply(plot, from, to);
    else if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) {
      const next = { ArrowLeft: to - 1, ArrowRight: to + 1, Home: 0, End: last }[event.key];
      to = Math.min(Math.max(next, 0), last);
      from = event.shiftKey && keyed.has(plot) ? from : to;
      keyed.set(plot, [from, to]);
      draw(plot, from, to);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  // Only with this script is there something for keys to do: without it the plot is no stop of Tab.
  const ready = () => {
    for (const plot of document.querySelectorAll("[data-brush]:not([tabindex])")) {
      plot.tabIndex = 0;
      plot.setAttribute("role", "group");
      plot.setAttribute("aria-label", "Select hours: arrow keys move, with Shift they extend, Enter filters, Escape takes it back");
    }
  };
  ready();
  document.addEventListener("htmx:afterSettle", ready);
})();
