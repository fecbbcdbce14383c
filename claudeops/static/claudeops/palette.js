// The palette: Ctrl-K (keys.js) or the sidebar's field opens it. The focus stays in the field; aria-activedescendant
// names the chosen option. htmx fetches the options, one request after the other, so that an older answer never
// replaces a newer one. An option with data-confirm asks once more before it acts.
(() => {
  "use strict";
  const link = document.getElementById("jump-link");
  const dialog = document.getElementById("palette");
  if (!link || !dialog || !dialog.showModal) return;
  const field = document.getElementById("palette-text");
  const said = document.getElementById("palette-said");
  let entered = null; // Enter was pressed before the options of this text had come: its event

  const list = () => document.getElementById("palette-hits");
  const options = () => [...list().querySelectorAll("[role=option]")];
  const chosen = () => list().querySelector("[aria-selected=true]");
  const isCurrent = () => list().dataset.for === field.value;
  const disarm = () => {
    for (const option of list().querySelectorAll("[data-armed]")) {
      option.querySelector("[data-text]").textContent = option.dataset.armed;
      delete option.dataset.armed;
    }
  };
  const choose = (option) => {
    const before = chosen();
    if (before === option) return;
    disarm();
    if (before) before.setAttribute("aria-selected", "false");
    if (!option) {
      field.removeAttribute("aria-activedescendant");
      return;
    }
    option.setAttribute("aria-selected", "true");
    field.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  };
  const step = (by) => {
    const all = options();
    if (all.length) choose(all[(all.indexOf(chosen()) + by + all.length) % all.length]);
  };
  const open = (event) => {
    const option = chosen();
    if (!option) return;
    if (option.href && (event.ctrlKey || event.metaKey)) window.open(option.href, "_blank", "noopener");
    else option.click();
  };

  link.setAttribute("aria-haspopup", "dialog");
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || !window.htmx) return;
    event.preventDefault();
    if (dialog.open) {
      dialog.close();
      return;
    }
    field.value = "";
    dialog.showModal();
    field.focus();
    window.htmx.trigger(field, "opened");
  });
  dialog.addEventListener("close", () => (entered = null));
  field.addEventListener("input", () => (entered = null));
  field.addEventListener("keydown", (event) => {
    if (event.isComposing || event.altKey) return;
    if (event.key === "ArrowDown") step(1);
    else if (event.key === "ArrowUp") step(-1);
    else if (event.key === "Enter" && isCurrent()) open(event);
    else if (event.key === "Enter") entered = event;
    else return;
    event.preventDefault();
  });
  // Before htmx sees the click: an action that asks is only armed by the first.
  dialog.addEventListener(
    "click",
    (event) => {
      if (event.target === dialog) dialog.close(); // the ground beside the palette
      const option = event.target.closest("[role=option]");
      if (!option) return;
      choose(option);
      if (!option.dataset.confirm || option.dataset.armed) return;
      event.preventDefault();
      event.stopPropagation();
      const text = option.querySelector("[data-text]");
      option.dataset.armed = text.textContent;
      text.textContent = said.textContent = option.dataset.confirm;
    },
    true,
  );
  dialog.addEventListener("mousemove", (event) => {
    const option = event.target.closest("[role=option]");
    if (option && (event.movementX || event.movementY)) choose(option); // not when rows move under a pointer at rest
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (!event.detail.target || event.detail.target.id !== "palette-hits") return; // the history has no target
    const all = options();
    choose(all[0]);
    said.textContent = `${all.length} ${all.length === 1 ? "hit" : "hits"}`;
    if (!entered || !isCurrent()) return;
    const event_ = entered;
    entered = null;
    open(event_);
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!dialog.contains(event.detail.elt)) return;
    const { requestConfig, xhr } = event.detail;
    // What was done is said by a message on the page, and so is what was refused.
    if (requestConfig.verb === "post" ? xhr.status : xhr.status >= 400) dialog.close();
  });
  document.addEventListener("theme", (event) => {
    const theme = event.detail.value;
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    document.querySelector('meta[name="color-scheme"]').content = theme || "light dark";
  });
})();
