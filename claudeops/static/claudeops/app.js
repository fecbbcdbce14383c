// Messages, dialogs and small manners of forms. One listener on the document for each; markup says what it wants:
//   data-toast, data-close-toast       a message and what takes it away
//   data-dialog-open="id"              opens <dialog id>; data-dialog-close in it closes it
//   data-shows="id" on an input        the input's value is written into the element of that id while it moves
//   data-auto-submit on a form         a changed select, checkbox or slider sends the form
(() => {
  "use strict";
  // The browser's zone, for an account that has chosen none (claudeops/lib/preferences/middleware.py).
  document.cookie = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone || ""}; path=/; max-age=31536000; samesite=lax`;
  const TICK = 250;
  const STAYS = { error: 40000, warning: 20000, undo: 20000, else: 8000 }; // milliseconds for which nobody points at them
  const MOST = 3;
  const GAP = 12; // pixels between a message and the bar below it

  const place = () => document.getElementById("toasts");
  const toasts = () => [...document.querySelectorAll("[data-toast]")];
  const undoOf = (toast) => toast.querySelector(".toast-undo");
  const level = (toast) => toast.className.match(/toast-(\w+)/)[1]; // htmx adds classes of its own for a moment
  const stays = (toast) => {
    return STAYS[level(toast)] || STAYS[undoOf(toast) ? "undo" : "else"];
  };
  const number = (toast) => Number(toast.dataset.number || 1);
  const undone = (form) => [...form.querySelectorAll("[name=undo]")].map((field) => field.value);
  const text = (toast) => toast.querySelector(".toast-text");
  const words = (toast) => toast.dataset.words || text(toast).textContent; // without "(2 times)"

  // Messages of one kind become one, which undoes all of them: "4 approved." Equal ones are counted.
  const alike = (one, other) =>
    level(one) === level(other) &&
    (one.dataset.kind
      ? one.dataset.kind === other.dataset.kind && Boolean(undoOf(one)) === Boolean(undoOf(other))
      : !undoOf(one) && !undoOf(other) && words(one) === words(other));
  const collapse = (older, newer) => {
    const sum = number(older) + number(newer);
    newer.dataset.number = sum;
    newer.dataset.words = words(newer);
    if (newer.dataset.kind) text(newer).textContent = `${sum} ${newer.dataset.kind}.`;
    else text(newer).append(` (${sum} times)`);
    const [first, second] = [undoOf(older), undoOf(newer)];
    if (first && second) {
      const all = [first, second].flatMap((form) => (undone(form).length ? undone(form) : [form.getAttribute("hx-post")]));
      second.querySelectorAll("[name=undo]").forEach((field) => field.remove());
      for (const address of all) {
        const field = document.createElement("input");
        Object.assign(field, { type: "hidden", name: "undo", value: address });
        second.append(field);
      }
      for (const name of ["action", "hx-post"]) second.setAttribute(name, place().dataset.undoAll);
      if (window.htmx) window.htmx.process(second);
    }
    older.remove();
  };

  // They stand above the bar of actions at the foot of the window, wherever that is now. A style sheet of the script's
  // own, since the content policy forbids styles on elements.
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  const stand = () => {
    const area = place();
    if (!area || !toasts().length) return;
    const height = area.offsetHeight;
    let bottom = 16;
    for (const bar of document.querySelectorAll(".bulk-bar, .inbox-do")) {
      const box = bar.getBoundingClientRect();
      const isBelow = box.height && box.top < innerHeight && box.bottom > innerHeight - bottom - height;
      if (isBelow) bottom = Math.max(bottom, Math.min(innerHeight - box.top + GAP, innerHeight - height - GAP));
    }
    sheet.replaceSync(`.toasts { --foot: ${Math.round(bottom)}px; }`);
  };

  let clock = null;
  const tick = () => {
    const area = place();
    stand();
    if (!area || document.hidden || area.matches(":hover, :focus-within")) return;
    for (const toast of toasts()) {
      toast.dataset.left = (toast.dataset.left || stays(toast)) - TICK;
      if (toast.dataset.left <= 0) toast.remove();
    }
    if (toasts().length) return;
    clearInterval(clock);
    clock = null;
  };
  const settle = () => {
    for (const toast of toasts()) {
      if (toast.dataset.left) continue;
      toast.dataset.left = stays(toast);
      const before = toasts().find((one) => one !== toast && one.dataset.left && alike(one, toast));
      if (before) collapse(before, toast);
    }
    const all = toasts().filter((toast) => !toast.querySelector(".htmx-request")); // what is being undone is about to go
    const rank = (toast) => (toast.matches(":focus-within") ? 2 : undoOf(toast) ? 1 : 0); // what goes first, the oldest of them
    const older = all.slice(0, -1).sort((one, other) => rank(one) - rank(other)); // the newest stays
    const extra = older.slice(0, Math.max(0, all.length - MOST));
    extra.forEach((toast) => toast.remove());
    if (all.length && !clock) clock = setInterval(tick, TICK);
    stand();
  };
  // What the page came with is put in anew, since only what is added to a live region is read.
  const readAloud = () => {
    const area = place();
    if (area && area.children.length) setTimeout(() => area.append(...area.children), TICK);
  };
  let cameFrom = null; // where the focus was before it went to a message, for when that goes
  const away = (toast) => {
    const held = toast.contains(document.activeElement);
    toast.remove();
    if (held && cameFrom && cameFrom.isConnected) cameFrom.focus({ preventScroll: true });
  };
  const shows = (input) => {
    const place = document.getElementById(input.dataset.shows);
    if (place) place.textContent = input.value;
  };

  document.addEventListener("click", (event) => {
    const hit = (selector) => event.target.closest && event.target.closest(selector);
    const close = hit("[data-close-toast]");
    if (close) away(close.closest("[data-toast]"));
    const opens = hit("[data-dialog-open]");
    if (opens) {
      const dialog = document.getElementById(opens.dataset.dialogOpen);
      if (dialog && !dialog.open) {
        event.preventDefault();
        dialog.showModal();
      }
    }
    const closes = hit("[data-dialog-close]");
    if (closes) {
      event.preventDefault();
      closes.closest("dialog").close();
    }
  });
  document.addEventListener("input", (event) => {
    if (event.target.dataset && event.target.dataset.shows) shows(event.target);
  });
  document.addEventListener("change", (event) => {
    const form = event.target.closest && event.target.closest("form[data-auto-submit]");
    if (form && event.target.matches("select, input[type=checkbox], input[type=radio], input[type=range]")) {
      form.requestSubmit();
    }
  });
  // The address of a list holds only what is set: fields without a value are not sent.
  document.addEventListener("formdata", (event) => {
    if (event.target.getAttribute("method") !== "get") return;
    const fields = [...event.formData];
    for (const [name] of fields) event.formData.delete(name);
    for (const [name, value] of fields) if (value !== "") event.formData.append(name, value);
  });
  // An answered undo has done its work: its message goes, the answer's own says what happened.
  document.addEventListener("htmx:afterRequest", (event) => {
    const undo = event.target.closest && event.target.closest(".toast-undo");
    if (undo && event.detail.successful) away(undo.closest("[data-toast]"));
  });
  document.addEventListener("htmx:afterSettle", settle);
  document.addEventListener("htmx:oobAfterSwap", settle);
  document.addEventListener("focusin", (event) => {
    const from = event.relatedTarget;
    if (event.target.closest("#toasts") && from && !from.closest("#toasts")) cameFrom = from;
  });
  for (const name of ["scroll", "resize"]) window.addEventListener(name, stand, { passive: true });
  // A link to a folded form opens it: /memories#add.
  const unfold = () => {
    const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  window.addEventListener("hashchange", unfold);
  const begin = () => {
    settle();
    readAloud();
    unfold();
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
