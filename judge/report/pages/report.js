// Boards are sorted by a click on a heading: up, down, and back to the order of the page.
"use strict";
for (const table of document.querySelectorAll("table.board")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  if (rows.length < 3) continue;
  const heads = [...table.tHead.rows[0].cells];
  const words = new Intl.Collator("en", { numeric: true });
  const text = (row, place) => row.cells[place].textContent.trim();
  const figure = (row, place) => Number(row.cells[place].dataset.value ?? NaN);
  heads.forEach((head, place) => {
    if (head.classList.contains("drawn")) return;
    const isNumber = head.classList.contains("number");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    const name = head.querySelector(".head-name");
    name.replaceWith(button);
    button.append(name);
    button.addEventListener("click", () => {
      const next = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
      const order = next === undefined ? "ascending" : next;
      for (const other of heads) other.removeAttribute("aria-sort");
      if (order) head.setAttribute("aria-sort", order);
      const value = isNumber ? figure : text;
      const way = order === "descending" ? -1 : 1;
      const lacks = (row) => isNumber ? Number.isNaN(value(row, place)) : text(row, place) === "";
      const compared = (a, b) => isNumber ? value(a, place) - value(b, place) : words.compare(value(a, place), value(b, place));
      // Rows without a value stay last either way.
      const moved = [...rows].sort((a, b) => lacks(a) - lacks(b) || (lacks(a) ? 0 : way * compared(a, b)));
      body.append(...(order ? moved : rows));
    });
  });
}
