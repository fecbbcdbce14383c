// Messages, dialogs and small manners of forms. One listener on the document for each; markup says what it wants:
//   data-toast, data-close-toast       a message and what takes it away
//   data-dialog-open="id"              opens <dialog id>; data-dialog-close in it closes it
//   data-shows="id" on an input        the input's value is written into the element of that id while it moves
//   data-auto-submit on a form         a changed select, checkbox or slider sends the form
(() => {
  "use strict";
  // The browser's zone, for an account that has chosen none (claudeops/lib/preferences/middleware.py).
  document.cookie = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone || ""}; path=/; max-age=31536000; samesite=lax`;
  const STAYS = 12000; // milliseconds; a message that can be undone, a warning or an error stays until it is closed
  const MOST = 5;

  const passing = (toast) => !toast.matches(".toast-error, .toast-warning") && !toast.querySelector("form");
  const arrived = (toast) => {
    if (toast.dataset.seen) return;
    toast.dataset.seen = "1";
    if (!passing(toast)) return;
    const leave = () => {
      if (toast.matches(":hover, :focus-within")) setTimeout(leave, STAYS / 4);
      else toast.remove();
    };
    setTimeout(leave, STAYS);
  };
  const settle = () => {
    const all = [...document.querySelectorAll("[data-toast]")];
    all.forEach(arrived);
    all.slice(0, Math.max(0, all.length - MOST)).forEach((toast) => toast.remove());
  };
  const shows = (input) => {
    const place = document.getElementById(input.dataset.shows);
    if (place) place.textContent = input.value;
  };

  document.addEventListener("click", (event) => {
    const hit = (selector) => event.target.closest && event.target.closest(selector);
    const close = hit("[data-close-toast]");
    if (close) close.closest("[data-toast]").remove();
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
    if (undo && event.detail.successful) undo.closest("[data-toast]").remove();
  });
  document.addEventListener("htmx:afterSettle", settle);
  document.addEventListener("htmx:oobAfterSwap", settle);
  document.addEventListener("DOMContentLoaded", settle);
  if (document.readyState !== "loading") settle();
})();
