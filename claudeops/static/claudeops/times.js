// Ages grow older while a page stands still: <time datetime title> says "5 minutes ago" in the words of
// claudeops/lib/humanize.py, and goes on saying what is so. An age that is being selected is left alone, and so is one in a
// live region, which would be read out again and again.
(() => {
  "use strict";
  const EVERY = 5000;
  const MINUTE = 60;
  const HOUR = 60 * MINUTE;
  const DAY = 24 * HOUR;
  const UNITS = [
    [2 * 365 * DAY, 365 * DAY, "year"],
    [60 * DAY, 30 * DAY, "month"],
    [2 * DAY, DAY, "day"],
    [2 * HOUR, HOUR, "hour"],
    [MINUTE, MINUTE, "minute"],
    [0, 1, "second"],
  ];
  const WORDS = /^(just now|in \d+ \w+|\d+ \w+ ago)$/;
  // How far this browser's clock is ahead of the server's, as the last answer told it: seconds, as exact as its header.
  let ahead = 0;

  const words = (then, now) => {
    const seconds = (now - then) / 1000;
    const size = Math.abs(seconds);
    if (size < 5) return "just now";
    const [, length, unit] = UNITS.find(([from]) => size >= from);
    const count = Math.floor(size / length);
    const text = `${count} ${unit}${count === 1 ? "" : "s"}`;
    return seconds > 0 ? `${text} ago` : `in ${text}`;
  };
  const selected = (element) => {
    const chosen = document.getSelection();
    return Boolean(chosen) && !chosen.isCollapsed && chosen.containsNode(element, true);
  };
  const grow = () => {
    if (document.hidden) return;
    const now = Date.now() - ahead;
    for (const element of document.querySelectorAll("time[datetime][title]")) {
      const then = Date.parse(element.dateTime);
      if (Number.isNaN(then) || !WORDS.test(element.textContent) || element.closest("[aria-live], [role=status]")) continue;
      const text = words(then, now);
      if (element.textContent !== text && !selected(element)) element.textContent = text;
    }
  };

  document.addEventListener("htmx:afterRequest", (event) => {
    const said = event.detail.xhr && Date.parse(event.detail.xhr.getResponseHeader("Date") || "");
    if (!said) return;
    const off = Date.now() - said;
    ahead = Math.abs(off) > 3000 ? off : 0; // less is the way of the answer
  });
  document.addEventListener("visibilitychange", grow);
  setInterval(grow, EVERY);
})();
