// What polls (hx-trigger="every 3s, wake from:body") keeps the operator's place: a row (data-row, with an id) in which
// somebody types or an edit is open (data-editing) is left alone, focus and opened details stay. Nothing moves under a
// pressed button: a click goes to what was pressed, and a second one never to what slid under the pointer meanwhile.
// Nothing is asked while nobody looks. What stands still is said in #connection: old numbers must not look like true ones.
(() => {
  "use strict";
  const FIELDS = "input:not([type=checkbox]):not([type=hidden]):not([type=submit]), textarea, select";
  const MOMENT = 150; // milliseconds after which the bar at the top shows that a request runs
  let last = new Date();
  let polled = false; // whether the answer that is being swapped in was asked for by a poll
  let kept = [];
  let opened = new Map();
  let focus = null;
  let pressed = false; // between pressing and letting go an exchanged element would lose its click
  let missed = false; // whether an answer was left out because of that

  const say = (text, action = "") => {
    const place = document.getElementById("connection");
    if (!place || place.textContent === text + action) return;
    place.textContent = text;
    if (!action) return;
    const link = document.createElement("a");
    link.href = `${place.dataset.signIn}?next=${encodeURIComponent(location.pathname + location.search)}`;
    link.textContent = action;
    place.append(link);
  };
  const clock = () => {
    const timeZone = document.documentElement.dataset.zone || "UTC";
    try {
      return last.toLocaleTimeString("en-GB", { timeZone, timeZoneName: "short" });
    } catch {
      return last.toISOString().slice(11, 19) + " UTC"; // this browser does not know the zone
    }
  };
  const isPoll = (config) => {
    const cause = config && config.triggeringEvent;
    return Boolean(config) && config.verb === "get" && (!cause || cause.type === "wake");
  };
  const dirty = (field) =>
    field.tagName === "SELECT"
      ? [...field.options].some((option) => option.selected !== option.defaultSelected)
      : field.value !== field.defaultValue;
  const busy = (row) =>
    row.matches("[data-editing]") ||
    row.querySelector("[data-editing]") !== null ||
    [...row.querySelectorAll(FIELDS)].some((field) => field === document.activeElement || dirty(field));

  // Where the focus is, in words that survive an exchange of the elements.
  const remember = (root) => {
    const active = document.activeElement;
    if (!active || active === document.body || !root.contains(active)) return null;
    if (active.id) return { id: active.id };
    const row = active.closest("[data-row][id]");
    if (!row) return null;
    const places = [...row.querySelectorAll("a[href], button, input, select, textarea, summary")];
    return { row: row.id, place: places.indexOf(active) };
  };
  const restore = (where) => {
    if (!where || (document.activeElement && document.activeElement !== document.body)) return;
    const row = where.row && document.getElementById(where.row);
    const again = where.id
      ? document.getElementById(where.id)
      : row && row.querySelectorAll("a[href], button, input, select, textarea, summary")[where.place];
    if (!again) return;
    if (again.matches("[data-row]")) again.tabIndex = -1; // the cursor of keys.js
    again.focus({ preventScroll: true });
  };

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && isPoll(event.detail.requestConfig)) event.preventDefault();
  });

  // What a person asked for and waits for is shown by a bar, when it takes a moment.
  let waiting = 0;
  let timer = null;
  const drawWaiting = () => {
    const main = document.getElementById("main");
    document.documentElement.classList.toggle("is-busy", waiting > 0);
    if (main) main.setAttribute("aria-busy", String(waiting > 0));
  };
  document.addEventListener("htmx:beforeSend", (event) => {
    if (isPoll(event.detail.requestConfig)) return;
    waiting += 1;
    if (waiting === 1) timer = setTimeout(drawWaiting, MOMENT);
    // The request's own event: what has asked may be gone from the page when the answer comes.
    event.detail.xhr.addEventListener("loadend", () => {
      waiting -= 1;
      if (waiting) return;
      clearTimeout(timer);
      drawWaiting();
    });
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    const asked = event.detail.requestConfig; // "3 new" is answered as a poll is
    polled = isPoll(asked) || Boolean(asked && asked.elt && asked.elt.closest(".list-held"));
    kept = [];
    opened = new Map();
    focus = null;
    if (!polled || !event.detail.shouldSwap) return;
    if (pressed) {
      event.detail.shouldSwap = false; // the poller stays as it is, and asks for the same again
      missed = true;
      return;
    }
    const target = event.detail.target;
    focus = remember(document.body);
    if (target.matches("[data-row]") && busy(target)) {
      event.detail.shouldSwap = false;
      return;
    }
    for (const row of target.querySelectorAll("[data-row][id]")) {
      if (busy(row)) {
        if (!event.detail.serverResponse.includes(`id="${row.id}"`)) {
          event.detail.shouldSwap = false; // it would go with what is typed in it: asked for again until that is done
          kept = [];
          return;
        }
        const active = row.contains(document.activeElement) ? document.activeElement : null;
        const typed = active && "selectionStart" in active ? active.selectionStart : null;
        kept.push({ row, active, typed });
      }
    }
    for (const details of document.querySelectorAll("details[id]")) opened.set(details.id, details.open);
  });

  // Rows and parts that come beside the answer, out of band.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const target = event.detail.target;
    if (polled && target && target.matches("[data-row]") && busy(target)) event.detail.shouldSwap = false;
  });

  const after = () => {
    for (const { row, active, typed } of kept) {
      const fresh = document.getElementById(row.id);
      if (fresh && fresh !== row) fresh.replaceWith(row);
      if (active && row.isConnected) {
        active.focus({ preventScroll: true });
        if (typed !== null) {
          try {
            active.setSelectionRange(typed, typed);
          } catch {
            // a slider and a number have no place in their text
          }
        }
      }
    }
    kept = [];
    for (const [id, open] of opened) {
      const details = document.getElementById(id);
      if (details && details.tagName === "DETAILS" && details.open !== open) details.open = open;
    }
    opened = new Map();
    restore(focus);
  };
  document.addEventListener("htmx:afterSwap", after);
  document.addEventListener("htmx:oobAfterSwap", () => restore(focus));

  // Beside what was pressed, too: an action that was not sent must not look done.
  const sayNotSent = (detail) => {
    const cause = detail.requestConfig.triggeringEvent;
    const at = (cause && cause.submitter) || detail.elt;
    if (!at.isConnected || (at.nextElementSibling && at.nextElementSibling.matches(".not-sent"))) return;
    const said = document.createElement("span");
    said.className = "not-sent";
    said.setAttribute("role", "alert");
    said.textContent = "Not sent: the server cannot be reached.";
    at.after(said);
  };

  document.addEventListener("htmx:afterRequest", (event) => {
    polled = false;
    focus = null;
    const status = event.detail.xhr ? event.detail.xhr.status : 0;
    if (status) document.querySelectorAll(".not-sent").forEach((said) => said.remove());
    if (status >= 200 && status < 400) {
      last = new Date();
      say("");
    } else if (status === 403 && !isPoll(event.detail.requestConfig) && !signedOut(event.detail.xhr)) {
      say("Your account may not do that. Nothing was changed.");
    } else if (status === 403) {
      say(`You are signed out. What you see is from ${clock()}. `, "Sign in");
    } else if (status === 409 || status === 422) {
      say(""); // the answer says itself what is wrong
    } else if (status) {
      say("The server answered with an error (" + status + "). What you see is from " + clock() + ".");
    } else if (event.detail.xhr) {
      say("The server cannot be reached. What you see is from " + clock() + ".");
      if (!isPoll(event.detail.requestConfig)) sayNotSent(event.detail);
    }
  });
  const signedOut = (xhr) => Boolean(xhr) && xhr.responseText.startsWith("Signed out");

  const letGo = () => {
    pressed = false;
    if (!missed) return;
    missed = false;
    setTimeout(() => window.htmx && window.htmx.trigger(document.body, "wake")); // behind the click
  };
  document.addEventListener("pointerdown", () => (pressed = true), true);

  const REST = 400; // milliseconds after an exchange in which a click at the place of the last one is not obeyed
  const NEAR = 8; // pixels
  let swapped = -REST;
  let clicked = null;
  const control = (element) => element.closest("a, button, summary, label, input, select, textarea") || element;
  document.addEventListener("htmx:afterSettle", () => (swapped = performance.now()));
  document.addEventListener(
    "click",
    (event) => {
      if (!event.detail) return; // by a key or a script
      const on = control(event.target);
      const isThere = clicked && Math.hypot(event.clientX - clicked.x, event.clientY - clicked.y) < NEAR;
      const acts = on.closest("[data-row], form[method=post]"); // a link "Earlier" may be clicked as fast as one can
      const isOther = isThere && acts && on !== clicked.on && (!on.id || on.id !== clicked.on.id);
      if (isOther && performance.now() - swapped < REST) {
        event.preventDefault();
        event.stopPropagation();
        return;
      }
      clicked = { x: event.clientX, y: event.clientY, on };
    },
    true,
  );
  for (const name of ["pointerup", "pointercancel", "dragend"]) document.addEventListener(name, letGo, true);
  window.addEventListener("blur", letGo);

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && window.htmx) window.htmx.trigger(document.body, "wake");
  });
})();
