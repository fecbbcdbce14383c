// Polling that says when it cannot: numbers that stand still must not look like numbers that are true.
(() => {
  "use strict";
  const note = () => document.getElementById("connection");
  let last = new Date();

  const say = (text) => {
    const place = note();
    if (place && place.textContent !== text) place.textContent = text;
  };
  const clock = () => last.toISOString().slice(11, 19) + " UTC";

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden) event.preventDefault(); // nobody looks: ask nothing
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const status = event.detail.xhr ? event.detail.xhr.status : 0;
    if (status === 200 || status === 204) {
      last = new Date();
      say("");
    } else if (status === 403) {
      say("You are signed out. Reload the page to sign in. What you see is from " + clock() + ".");
    } else if (status) {
      say("The server answered with an error (" + status + "). What you see is from " + clock() + ".");
    } else {
      say("The server cannot be reached. What you see is from " + clock() + ".");
    }
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && window.htmx) window.htmx.trigger(document.body, "wake");
  });
})();
