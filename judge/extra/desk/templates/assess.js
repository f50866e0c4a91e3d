// Keys of the assess desk; everything works without them.
"use strict";
// Speech input types letters, and whoever uses it turns single keys off on every page of the desk.
const singleKeys = document.getElementById("single-keys");
singleKeys.checked = true;
singleKeys.closest("p").hidden = false;
try {
  singleKeys.checked = localStorage.getItem("judge single keys") !== "off";
  singleKeys.addEventListener("change", () => localStorage.setItem("judge single keys", singleKeys.checked ? "on" : "off"));
} catch {
  // A browser that keeps nothing has them turned off page by page.
}
// On a phone, passages are titles at first; where passages are labeled, what was said before is.
if (matchMedia("(max-width: 40rem)").matches) {
  for (const passage of document.querySelectorAll(":is(.evidence, .talk) > details[open]")) passage.open = false;
}
document.addEventListener("keydown", (event) => {
  const form = document.getElementById("label");
  const at = event.target;
  const writing = at instanceof HTMLTextAreaElement;
  if (writing && form) {
    if (event.key === "Escape") at.blur();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save(event, form);
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key.length === 1 && !singleKeys.checked) return;
  if (event.key === "?") {
    event.preventDefault();
    document.getElementById("keys").togglePopover();
    return;
  }
  const link = { b: "back", s: "skip", z: "undo" }[event.key];
  if (link) {
    press(event, document.getElementById(link));
  } else if (form && event.key === "c") {
    event.preventDefault();
    document.getElementById("comment").focus();
  } else if (form && event.key === "Enter" && (at === document.body || at.matches("[name=grade], section"))) {
    save(event, form);
  } else if (form && /^[0-9u]$/.test(event.key)) {
    const level = form.querySelector(`input[data-key="${event.key}"]`);
    if (level) {
      event.preventDefault();
      level.checked = true;
      level.focus({ focusVisible: false });
    }
  }
});

// A key that is held down, or pressed twice, must not act on the page that comes next.
let leaving = false;
function press(event, element) {
  event.preventDefault();
  if (!element || event.repeat || leaving) return;
  leaving = true;
  element.click();
}
function save(event, form) {
  event.preventDefault();
  if (event.repeat || leaving || !form.reportValidity()) return;
  leaving = true;
  form.requestSubmit();
}
window.addEventListener("pageshow", () => { leaving = false; });
