// A list: menus (details.menu) close when somebody clicks elsewhere or presses Escape; one is open at a time.
// While a person uses the list (a row is selected or has the focus, or the list is scrolled), its poll asks with `hold`:
// new rows are held back, so that nothing moves, and a button says how many.
(() => {
  "use strict";
  const open = () => [...document.querySelectorAll("details.menu[open]")];

  document.addEventListener("click", (event) => {
    for (const menu of open()) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape") return;
      for (const menu of open()) {
        menu.open = false;
        if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
        event.stopPropagation();
      }
    },
    true,
  );

  const inUse = (list) =>
    list.getBoundingClientRect().top < 0 ||
    list.querySelector("[data-pick]:checked, [data-row]:focus, [data-row] :focus") !== null;
  document.addEventListener("htmx:configRequest", (event) => {
    const { elt, parameters } = event.detail;
    const list = elt.closest("[data-list]");
    if (list && elt.matches('[id$="-poll"]') && inUse(list)) parameters.hold = "1";
  });
})();
