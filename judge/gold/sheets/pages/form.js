"use strict";
// Texts are never made into markup here: labels are read from the page's own attributes and go into a table.
const articles = [...document.querySelectorAll("article")];
const fieldsets = [...document.querySelectorAll("fieldset[data-criterion]")];
const name = document.getElementById("assessor");
const place = "judge sheet " + document.body.dataset.sheet;
const columns = ["turn_id", "response_id", "criterion", "assessor", "grade", "comment"];
let unsaved = false;

function chosen(fieldset) {
  const input = fieldset.querySelector("input:checked");
  return input ? input.value : "";
}

function choose(fieldset, value) {
  for (const input of fieldset.querySelectorAll("input")) input.checked = input.value === value;
}

function key(article, fieldset) {
  return JSON.stringify([article.dataset.turn, article.dataset.response, fieldset.dataset.criterion]);
}

function state() {
  const labels = {}, comments = {};
  for (const article of articles) {
    const comment = article.querySelector("textarea").value;
    if (comment) comments[JSON.stringify([article.dataset.turn, article.dataset.response])] = comment;
    for (const fieldset of article.querySelectorAll("fieldset")) {
      if (chosen(fieldset)) labels[key(article, fieldset)] = chosen(fieldset);
    }
  }
  return { name: name.value, labels, comments };
}

function restore({ name: given, labels, comments }) {
  if (given) name.value = given;
  let taken = 0;
  for (const article of articles) {
    const comment = comments[JSON.stringify([article.dataset.turn, article.dataset.response])];
    if (typeof comment === "string") article.querySelector("textarea").value = comment;
    for (const fieldset of article.querySelectorAll("fieldset")) {
      const value = labels[key(article, fieldset)];
      if (typeof value === "string") {
        choose(fieldset, value);
        if (chosen(fieldset)) taken += 1;
      }
    }
  }
  return taken;
}

function show() {
  let given = 0;
  for (const article of articles) {
    const own = [...article.querySelectorAll("fieldset")];
    const done = own.filter(chosen).length;
    given += done;
    article.classList.toggle("labeled", done === own.length);
  }
  document.getElementById("done").value = `${given} of ${fieldsets.length} labels`;
  document.getElementById("progress").value = given;
}

function keep() {
  try {
    localStorage.setItem(place, JSON.stringify(state()));
  } catch {
    document.getElementById("unkept").hidden = false;
  }
}

function changed() {
  unsaved = true;
  show();
  keep();
}

function cell(text) {
  // A spreadsheet must run no cell as a formula.
  const safe = /^\s*[=+@"-](?!$)/.test(text) && !/^[+-]?[0-9.]*$/.test(text) ? "\\" + text : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

function table() {
  const lines = [columns.join(",")];
  for (const article of articles) {
    const comment = article.querySelector("textarea").value;
    for (const fieldset of article.querySelectorAll("fieldset")) {
      const { turn, response } = article.dataset;
      const cells = [turn, response, fieldset.dataset.criterion, name.value.trim(), chosen(fieldset), comment];
      lines.push(cells.map(cell).join(","));
    }
  }
  return "\ufeff" + lines.join("\r\n") + "\r\n";
}

function rows(text) {
  const found = [[""]];
  let quoted = false;
  for (let at = text.charCodeAt(0) === 0xfeff ? 1 : 0; at < text.length; at += 1) {
    const sign = text[at], row = found[found.length - 1];
    if (quoted && sign === '"' && text[at + 1] === '"') { row[row.length - 1] += '"'; at += 1; }
    else if (sign === '"') quoted = !quoted;
    else if (!quoted && sign === ",") row.push("");
    else if (!quoted && sign === "\n") found.push([""]);
    else if (quoted || sign !== "\r") row[row.length - 1] += sign;
  }
  return found.filter((row) => row.length > 1);
}

function next() {
  const open = fieldsets.find((fieldset) => !chosen(fieldset));
  if (open) go(open.closest("article"), open);
}

function go(article, fieldset) {
  article.scrollIntoView({ block: "start" });
  (fieldset.querySelector("input:checked") || fieldset.querySelector("input")).focus({ preventScroll: true });
}

document.addEventListener("change", (event) => {
  if (event.target.type !== "file") changed();
});
document.addEventListener("input", (event) => {
  if (event.target.matches("textarea, #assessor")) changed();
});
document.addEventListener("keydown", (event) => {
  const article = event.target.closest("article");
  if (!article || event.target.matches("textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  const own = [...article.querySelectorAll("fieldset")];
  const fieldset = event.target.closest("fieldset") || own.find((each) => !chosen(each)) || own[0];
  const step = { n: 1, p: -1 }[event.key];
  const value = event.key === "u" ? "unable" : event.key;
  const input = [...fieldset.querySelectorAll("input")].find((each) => each.value === value);
  if (step) {
    const other = articles[articles.indexOf(article) + step];
    if (other) go(other, other.querySelector("fieldset"));
  } else if (input) {
    input.checked = true;
    input.focus();
    changed();
    const following = own[own.indexOf(fieldset) + 1];
    if (following) (following.querySelector("input:checked") || following.querySelector("input")).focus();
  } else return;
  event.preventDefault();
});
document.getElementById("next").addEventListener("click", next);
document.getElementById("save").addEventListener("click", () => {
  if (!name.value.trim()) {
    name.setCustomValidity("Your name goes with the labels");
    name.reportValidity();
    name.focus();
    return;
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([table()], { type: "text/csv" }));
  link.download = `labels-${name.value.trim().replace(/[^A-Za-z0-9_.@+-]+/g, "_")}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  unsaved = false;
});
name.addEventListener("input", () => name.setCustomValidity(""));
document.getElementById("earlier").addEventListener("change", async (event) => {
  const [head, ...lines] = rows(await event.target.files[0].text());
  const at = columns.map((column) => (head || []).indexOf(column));
  const said = document.getElementById("taken");
  if (at.includes(-1)) {
    said.textContent = "This is no table that this page wrote.";
    return;
  }
  const labels = {}, comments = {};
  let given = "";
  for (const line of lines) {
    const [turn, response, criterion, assessor, grade, comment] = at.map((column) => line[column] || "");
    given = assessor || given;
    if (grade) labels[JSON.stringify([turn, response, criterion])] = grade;
    if (comment) comments[JSON.stringify([turn, response])] = comment.replace(/^\\(?=\s*[=+@"-])/, "");
  }
  const taken = restore({ name: given, labels, comments });
  said.textContent = `${taken} labels taken over`;
  changed();
});
addEventListener("beforeunload", (event) => {
  if (unsaved) event.preventDefault();
});

// What was said last is what the response answers.
for (const talk of document.querySelectorAll(".talk")) talk.scrollTop = talk.scrollHeight;
try {
  const kept = localStorage.getItem(place);
  if (kept) restore(JSON.parse(kept));
} catch {
  document.getElementById("unkept").hidden = false;
}
show();
