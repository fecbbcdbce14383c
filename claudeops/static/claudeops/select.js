// Selecting rows. A list's form says data-select; in the list (or tied to the form with form="…"):
//   data-pick            a row's checkbox (inside its data-row); Shift-click takes every row between
//   data-pick-page       the checkbox that stands for all rows of the page
//   data-bulk            the bar with the actions (or the form itself); shown while something is selected
//   data-picked          where the number of selected rows is written
//   data-pick-all        a button "Select all N that match" (data-total="N"); offered when the page is selected
//   data-pick-none       a button that clears
//   name="all_matching"  value 1: a checkbox (works without this script) or a hidden field, disabled until chosen
// A selection is kept while rows are exchanged, and let go when the list's filters change.
(() => {
  "use strict";
  const picked = new Map(); // form id → set of values
  let query = location.search;
  let lastPick = null;

  const forms = () => [...document.querySelectorAll("form[data-select]")];
  const name = (form) => form.getAttribute("id") || ""; // form.id is the field called "id", where there is one
  const within = (form, selector) => [
    ...new Set([
      ...form.querySelectorAll(selector),
      ...(name(form) ? document.querySelectorAll(`${selector}[form="${name(form)}"]`) : []),
    ]),
  ];
  const formOf = (box) => box.form || box.closest("form[data-select]");
  const chosen = (form) => {
    if (!picked.has(name(form))) picked.set(name(form), new Set());
    return picked.get(name(form));
  };
  const matching = (form) => within(form, '[name="all_matching"]')[0];
  const allMatch = (field) => Boolean(field) && (field.type === "checkbox" ? field.checked : !field.disabled);
  const everything = new Set(); // ids of forms whose "all that match" is chosen: it outlives a swap of the field
  const setAll = (form, on) => {
    const field = matching(form);
    if (!field) return;
    if (on) everything.add(name(form));
    else everything.delete(name(form));
    if (field.type === "checkbox") field.checked = on;
    else field.disabled = !on;
  };
  const boxes = (form) => within(form, "[data-pick]");

  const draw = (form) => {
    const all = boxes(form);
    const values = chosen(form);
    let count = 0;
    for (const box of all) {
      const row = box.closest("[data-row]");
      if (box.checked) {
        count += 1;
        values.add(box.value);
      } else {
        values.delete(box.value);
      }
      if (row) row.classList.toggle("is-picked", box.checked);
    }
    const field = matching(form);
    const full = all.length > 0 && count === all.length;
    if (!full && allMatch(field)) setAll(form, false); // one taken out: no longer all
    const every = allMatch(field);
    for (const page of within(form, "[data-pick-page]")) {
      page.checked = full;
      page.indeterminate = count > 0 && !full;
    }
    for (const button of within(form, "[data-pick-all]")) {
      const total = Number(button.dataset.total || 0);
      button.hidden = every || !full || (total > 0 && total <= all.length);
    }
    const allButton = within(form, "[data-pick-all]")[0];
    for (const place of within(form, "[data-picked]")) {
      const total = allButton && allButton.dataset.total ? Number(allButton.dataset.total).toLocaleString("en") : "";
      const text = every ? `All ${total} that match are selected`.replace("  ", " ") : `${count} selected`;
      if (place.textContent !== text) place.textContent = text;
    }
    for (const bar of form.matches("[data-bulk]") ? [form] : within(form, "[data-bulk]")) bar.hidden = count === 0;
  };

  const again = () => {
    if (location.search !== query) {
      query = location.search;
      picked.clear();
      lastPick = null;
      for (const form of forms()) setAll(form, false);
    }
    for (const form of forms()) {
      const values = chosen(form);
      const every = everything.has(name(form)) || allMatch(matching(form));
      if (every) setAll(form, true);
      for (const box of boxes(form)) if (every || values.has(box.value)) box.checked = true;
      draw(form);
    }
  };

  document.addEventListener("click", (event) => {
    const target = event.target;
    if (!target.closest) return;
    if (target.matches("[data-pick]")) {
      const form = formOf(target);
      if (!form) return;
      if (event.shiftKey && lastPick && lastPick !== target.value) {
        const all = boxes(form);
        const from = all.findIndex((box) => box.value === lastPick);
        const to = all.indexOf(target);
        if (from >= 0) {
          for (const box of all.slice(Math.min(from, to), Math.max(from, to) + 1)) box.checked = target.checked;
        }
      }
      lastPick = target.value;
      draw(form);
      return;
    }
    const button = target.closest("[data-pick-all], [data-pick-none]");
    if (!button) return;
    const form = formOf(button);
    if (!form) return;
    const all = button.matches("[data-pick-all]");
    for (const box of boxes(form)) box.checked = all;
    if (!all) chosen(form).clear();
    setAll(form, all);
    draw(form);
    if (!all) lastPick = null;
  });
  document.addEventListener("change", (event) => {
    const target = event.target;
    if (target.matches("[data-pick-page]")) {
      const form = formOf(target);
      if (!form) return;
      for (const box of boxes(form)) box.checked = target.checked;
      draw(form);
    } else if (target.matches('[name="all_matching"]') && target.checked) {
      const form = formOf(target);
      if (!form || !form.matches("[data-select]")) return;
      setAll(form, true);
      for (const box of boxes(form)) box.checked = true;
      draw(form);
    } else if (target.matches("[data-pick]")) {
      const form = formOf(target);
      if (form) draw(form);
    }
  });
  document.addEventListener("htmx:afterSettle", again);
  document.addEventListener("htmx:oobAfterSwap", again);
  window.addEventListener("pageshow", again); // the browser fills in boxes again on the way back
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", again);
  else again();
})();
