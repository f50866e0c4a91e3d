// The desk by keyboard: j and k to the next one and the one before, e to edit. A page whose job is under way follows it by itself.
"use strict";
(() => {
  const follow = (selector) => { const link = document.querySelector(selector); if (link) link.click(); return Boolean(link); };
  const step = (by) => {
    const links = [...document.querySelectorAll("a[data-step]")];
    if (!links.length) return follow(by > 0 ? 'a[rel="next"]' : 'a[rel="prev"]');
    const place = links.indexOf(document.activeElement) + by;
    if (place >= links.length) return follow('a[rel="next"]');
    links[Math.max(place, 0)].focus();
    return true;
  };
  const keys = { j: () => step(1), k: () => step(-1), e: () => follow('a[href*="/prompt?name="]') };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select");
    if (typing || !singleKeys.checked || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    if (keys[event.key]()) event.preventDefault();
  });
  const error = document.getElementById("error");
  if (error) error.focus();

  // Only how far it is changes, so that the focus stays where it is; the page is loaded again when the job has ended.
  async function look() {
    const found = await fetch(location.href);
    const now = new DOMParser().parseFromString(await found.text(), "text/html");
    if (!now.querySelector("main[data-running]")) { location.reload(); return; }
    const words = now.getElementById("how-far"), bar = now.querySelector("progress[value]");
    if (words) document.getElementById("how-far").textContent = words.textContent;
    if (bar) for (const name of ["max", "value"]) document.querySelector("progress").setAttribute(name, bar.getAttribute(name));
    later();
  }
  const later = () => setTimeout(() => look().catch(() => location.reload()), 1000);
  if (document.querySelector("main[data-running]")) later();
})();
