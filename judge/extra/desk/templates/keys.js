// Whether single keys act. Speech input types letters, and whoever uses it turns them off on every page of the desk.
"use strict";
const singleKeys = document.getElementById("single-keys");
singleKeys.checked = true;
singleKeys.closest("p").hidden = false;
try {
  singleKeys.checked = localStorage.getItem("judge single keys") !== "off";
  singleKeys.addEventListener("change", () => localStorage.setItem("judge single keys", singleKeys.checked ? "on" : "off"));
} catch {
  // A browser that keeps nothing has them turned off page by page.
}
