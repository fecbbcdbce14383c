// The keyboard. Never while somebody types. Rows say data-row (its value names the row); in a row:
//   data-open   the link that Enter opens (otherwise the first link)
//   data-edit   what `e` clicks
//   data-approve   what `a` clicks
//   data-pick   the checkbox that `x` ticks
// A button of the shown bulk bar says data-key: while rows are selected, its key is for all of them.
// A button or link of the page itself says data-shortcut: its key clicks it.
// The search field that `/` goes to says data-search (otherwise the first input of type search); where a page has none,
// the palette opens.
(() => {
  "use strict";
  let cursor = null; // the row's name, so that an exchanged row is found again

  const typing = (element) =>
    Boolean(element && element.closest) &&
    (element.isContentEditable ||
      element.closest("textarea, select, input:not([type=checkbox]):not([type=radio]):not([type=button]):not([type=submit])") !== null);
  const shown = (element) => element.getClientRects().length > 0;
  const rows = () => [...document.querySelectorAll("[data-row]")].filter(shown);
  const current = () => {
    const focused = document.activeElement && document.activeElement.closest("[data-row]");
    return focused || rows().find((row) => row.dataset.row === cursor) || null;
  };
  const mark = (row) => {
    for (const other of document.querySelectorAll(".is-cursor")) if (other !== row) other.classList.remove("is-cursor");
    if (row) row.classList.add("is-cursor");
  };
  const go = (row) => {
    if (!row) return;
    cursor = row.dataset.row;
    mark(row);
    if (!row.hasAttribute("tabindex")) row.tabIndex = -1;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  };
  const step = (by) => {
    const all = rows();
    const here = all.indexOf(current());
    if (!all.length) return;
    go(here < 0 ? all[by > 0 ? 0 : all.length - 1] : all[Math.min(all.length - 1, Math.max(0, here + by))]);
  };
  const inRow = (selector) => {
    const row = current();
    return row && row.querySelector(selector);
  };
  const click = (element) => Boolean(element) && (element.click(), true);
  const help = () => {
    const dialog = document.getElementById("keys-help");
    if (!dialog) return false;
    if (dialog.open) dialog.close();
    else dialog.showModal();
    return true;
  };
  const search = () => {
    const field = [...document.querySelectorAll("[data-search], input[type=search]")].find(shown);
    if (!field) return click(document.getElementById("jump-link"));
    field.focus();
    field.select();
    return true;
  };
  const pick = (event) => {
    const box = inRow("[data-pick]");
    if (!box) return false;
    box.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, shiftKey: event.shiftKey }));
    return true;
  };
  const leave = () => {
    const active = document.activeElement;
    const cancel = active && active.closest("[data-editing]") && active.closest("[data-editing]").querySelector("[data-cancel]");
    if (cancel) return click(cancel);
    if (typing(active)) {
      active.blur();
      return true;
    }
    if (!cursor) return false;
    cursor = null;
    mark(null);
    return true;
  };
  const open = () => {
    const row = current();
    if (!row || document.activeElement !== row) return false;
    return click(row.querySelector("[data-open]") || row.querySelector("a[href]"));
  };

  const KEYS = {
    "/": search,
    "?": help,
    j: () => (step(1), true),
    k: () => (step(-1), true),
    x: pick,
    X: pick,
    e: () => click(inRow("[data-edit]")),
    a: () => click(inRow("[data-approve]")),
    u: () => click([...document.querySelectorAll(".toast-undo button")].pop()),
    Enter: open,
  };

  // Ctrl-K works while somebody types, too.
  document.addEventListener("keydown", (event) => {
    const jump = document.getElementById("jump-link");
    if (!jump || event.key !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    jump.click();
  });
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const dialog = document.querySelector("dialog[open]");
    if (event.key === "Escape") {
      if (!dialog && leave()) event.preventDefault(); // an open dialog closes by itself
      return;
    }
    if (typing(event.target) || (dialog && !(dialog.id === "keys-help" && event.key === "?"))) return;
    const bulk = [...document.querySelectorAll("[data-bulk] [data-key]")].find(
      (button) => button.dataset.key === event.key && shown(button),
    );
    if (bulk) {
      event.preventDefault();
      bulk.click();
      return;
    }
    const act = Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : null;
    if (act && act(event)) {
      event.preventDefault();
      return;
    }
    const own = [...document.querySelectorAll("[data-shortcut]")].find(
      (one) => one.dataset.shortcut === event.key && !one.disabled && shown(one),
    );
    if (!own || event.repeat) return;
    event.preventDefault();
    own.click();
  });
  document.addEventListener("focusin", (event) => {
    const row = event.target.closest && event.target.closest("[data-row]");
    if (!row) return;
    cursor = row.dataset.row;
    if (row.classList.contains("is-cursor") || event.target === row) mark(row);
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (cursor) mark(rows().find((row) => row.dataset.row === cursor) || null);
  });
})();
