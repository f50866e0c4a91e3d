"use strict";
// The desk by keyboard: j and k to the next one and the one before, e to edit. A page whose job is under way looks again by itself.
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
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    if (keys[event.key]()) event.preventDefault();
  });
  const error = document.getElementById("error");
  if (error) error.focus();
  if (document.querySelector("main[data-running]")) setTimeout(() => location.reload(), 1000);
})();
