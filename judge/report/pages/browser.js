// The browser of judgments. Every text of the data was written by somebody else: it goes into the page as text, by
// textContent, and never as markup. The data lies in an inert block of the page, as JSON.
"use strict";
(() => {
  const ROWS = 50; // of a page of the list
  const LONG = 20000; // characters of a text that are shown at once
  const EXCERPT = 240;
  const OURS = "#browse:"; // how the hash of a state begins
  const FACETS = ["run", "topic", "turn", "criterion", "side", "grade", "differs"];
  const PARTS = ["q", ...FACETS, "sort", "page", "item"]; // of a state
  const DIFFERS = {
    any: "Anyone differs", gold: "A judge differs from gold", judges: "Judges differ", jury: "Members of a jury differ",
    none: "Nobody differs",
  };
  const ORDERS = { natural: "By turn", worst: "Furthest apart first", low: "Lowest grade first", high: "Highest grade first" };
  const MARKS = { supported: "good", unsupported: "warn", contradicted: "bad" };

  const at = (id) => document.getElementById(`browse-${id}`);
  const root = document.getElementById("browse");
  const OPEN = Number(root.dataset.open); // passages that are not folded
  const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
  const words = (code) => code.replaceAll("_", " ");

  // An element with text or children; a child that is a string becomes a text.
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  let data; // the document, with columns of its items
  let order = []; // the rows that pass the filters, in the order of the list
  let state = {};

  // A passage, or a part of a prompt.
  const shared = (place) => (place === null ? null : data.texts[place]);
  const said = (row, side) => data.items[row].sides[side];

  // ---- State: it lives in the hash, so that a link shows the same ----

  function stateOf(hash) {
    const told = hash.startsWith(OURS) ? Object.fromEntries(new URLSearchParams(hash.slice(OURS.length))) : {};
    const turn = data.turns.indexOf(told.turn);
    return turn < 0 ? told : { ...told, topic: data.topics[data.topicOf[turn]] };
  }

  function hashOf(wanted) {
    return OURS + new URLSearchParams(PARTS.filter((name) => wanted[name]).map((name) => [name, wanted[name]])).toString();
  }

  function replaceHash() {
    history.replaceState(null, "", hashOf(state));
  }

  function change(changes) {
    // What is typed counts at once, though typing alone waits for a pause.
    state = { ...state, page: undefined, q: at("q").value, ...changes };
    if ("topic" in changes) state.turn = undefined;
    replaceHash();
    showList();
  }

  // ---- Search ----

  const hits = new Map();

  // For one word: which rows have it in a text or a name.
  function hitsOf(word) {
    if (!hits.has(word)) {
      const has = (text) => (text ?? "").toLowerCase().includes(word);
      const turns = data.told.map((turn) => has(turn.name) || has(turn.utterance));
      const runs = data.runs.map(has);
      hits.set(word, data.items.map((item, row) =>
        turns[data.rows.turn[row]] || has(item.name) || has(item.text) || data.rows.runs[row].some((run) => runs[run])
        || Object.values(item.sides).some((one) => has(one.judge) || has(one.rationale ?? one.detail))));
      if (hits.size > 16) hits.delete(hits.keys().next().value);
    }
    return hits.get(word);
  }

  function searchTest(query) {
    const wanted = query.normalize("NFC").toLowerCase().split(/\s+/).filter(Boolean);
    if (!wanted.length) return null;
    const found = wanted.map(hitsOf);
    return (row) => found.every((hit) => hit[row]);
  }

  // ---- Filters: a value of a facet is a number; a row counts where every other filter lets it pass ----

  const kinds = Object.keys(DIFFERS);

  function gapOf(row, kind) {
    const { gaps } = data.items[row];
    return ["gold", "judges", "jury"].includes(kind) ? gaps[kind] ?? 0 : Math.max(0, ...Object.values(gaps));
  }

  // The kinds of disagreement on a row, a bit for each.
  const differences = (row) => kinds.reduce((bits, kind, number) =>
    bits | ((kind === "none" ? gapOf(row) === 0 : gapOf(row, kind) > 0) ? 1 << number : 0), 0);

  // What a side says of a row, as a number of the facet of grades; -1 where it does not have the response.
  function codeOf(side, row) {
    const one = said(row, side);
    if (!one) return -1;
    return one.grade === null ? data.grades.length + data.reasons.indexOf(reasonOf(one)) : data.grades.indexOf(one.grade);
  }

  const reasonOf = (one) => one.reason ?? "no grade";

  // The names of a facet's values, in order.
  function valuesOf(facet) {
    const { runs, topics, turns, criteria, sides, gradeNames } = data;
    return { run: runs, topic: topics, turn: turns, criterion: criteria, side: sides, grade: gradeNames, differs: kinds }[facet];
  }

  // For each facet: a test of a row for a value, and the counting of a row's values.
  const FILTERS = {
    run: {
      test: (value) => (row) => data.rows.runs[row].includes(value),
      count: (row, counts) => { for (const run of data.rows.runs[row]) counts[run] += 1; },
    },
    topic: {
      test: (value) => (row) => data.topicOf[data.rows.turn[row]] === value,
      count: (row, counts) => { counts[data.topicOf[data.rows.turn[row]]] += 1; },
    },
    turn: {
      test: (value) => (row) => data.rows.turn[row] === value,
      count: (row, counts) => { counts[data.rows.turn[row]] += 1; },
    },
    criterion: {
      test: (value) => (row) => data.rows.criterion[row] === value,
      count: (row, counts) => { counts[data.rows.criterion[row]] += 1; },
    },
    differs: {
      test: (value) => (row) => data.differs[row] & (1 << value),
      count: (row, counts) => { for (let kind = 0; kind < kinds.length; kind++) counts[kind] += (data.differs[row] >> kind) & 1; },
    },
  };

  // The chosen value of each facet, as a number; -1 for all, -2 for one that the data does not have.
  function chosen() {
    return Object.fromEntries(FACETS.map((facet) => {
      const value = state[facet];
      if (value === undefined) return [facet, -1];
      const number = valuesOf(facet).indexOf(value);
      return [facet, number < 0 ? -2 : number];
    }));
  }

  // Side and grade belong together: "2" of judge A is the grade that A gave.
  function sidesPass(row, side, grade) {
    for (let number = 0; number < data.codes.length; number++) {
      if (side !== -1 && side !== number) continue;
      const code = data.codes[number][row];
      if (code >= 0 && (grade === -1 || code === grade)) return true;
    }
    return false;
  }

  function filterRows(test) {
    const wanted = chosen();
    const counts = Object.fromEntries(FACETS.map((facet) => [facet, new Uint32Array(valuesOf(facet).length)]));
    const active = Object.keys(FILTERS)
      .filter((facet) => wanted[facet] !== -1)
      .map((facet) => [facet, FILTERS[facet].test(wanted[facet])]);
    const passing = [];
    for (let row = 0; row < data.items.length; row++) {
      if (test && !test(row)) continue;
      let fails = 0, failing = null;
      for (const [facet, passes] of active) if (!passes(row)) { fails += 1; failing = facet; }
      if (!sidesPass(row, wanted.side, wanted.grade)) { fails += 1; failing = "sides"; }
      if (fails === 0) passing.push(row);
      if (fails < 2) countRow(row, wanted, counts, failing);
    }
    return { passing, counts };
  }

  function countRow(row, wanted, counts, failing) {
    for (const facet in FILTERS) if (failing === null || failing === facet) FILTERS[facet].count(row, counts[facet]);
    if (failing !== null && failing !== "sides") return;
    for (let side = 0; side < data.codes.length; side++) {
      const code = data.codes[side][row];
      if (code < 0) continue;
      if (wanted.grade === -1 || wanted.grade === code) counts.side[side] += 1;
      if ((wanted.side === -1 || wanted.side === side) && !saidBefore(row, code, side, wanted.side)) counts.grade[code] += 1;
    }
  }

  // Whether an earlier side gave the row the same grade, so that the row is not counted twice.
  function saidBefore(row, code, side, only) {
    for (let earlier = 0; only === -1 && earlier < side; earlier++) if (data.codes[earlier][row] === code) return true;
    return false;
  }

  function gradeFor(row) {
    const side = data.sides.indexOf(state.side);
    const given = side >= 0 ? [said(row, side)] : Object.values(data.items[row].sides);
    return given.find((one) => one && one.grade !== null)?.grade ?? null;
  }

  function sorted(rows) {
    const way = currentOrder();
    if (way === "natural") return rows;
    const kind = ["gold", "judges", "jury"].includes(state.differs) ? state.differs : "any";
    const lowest = way === "low";
    const key = way === "worst" ? (row) => -gapOf(row, kind) : (row) => {
      const grade = gradeFor(row);
      return grade === null ? Infinity : lowest ? grade : -grade; // who has no grade comes last
    };
    const keys = new Float64Array(data.items.length);
    for (const row of rows) keys[row] = key(row);
    return rows.sort((a, b) => (keys[a] === keys[b] ? a - b : keys[a] - keys[b]));
  }

  const currentOrder = () => (Object.hasOwn(ORDERS, state.sort ?? "") ? state.sort : data.order);

  // ---- Controls ----

  const ALL = {
    run: "All runs", topic: "All topics", turn: "All of the topic", criterion: "All criteria", side: "All judges",
    grade: "All grades", differs: "All",
  };

  function labelOf(facet, value) {
    if (facet === "differs") return DIFFERS[value];
    return facet === "grade" ? words(value) : value;
  }

  function fillSelect(facet) {
    const options = valuesOf(facet).map((value, number) => make("option", { value, "data-number": number }));
    const missing = facet === "grade" ? options.splice(data.grades.length) : [];
    at(facet).replaceChildren(make("option", { value: "" }, ALL[facet]), ...options);
    if (missing.length) at(facet).append(make("optgroup", { label: "No grade" }, ...missing));
    at(facet).closest("[data-facet]").hidden = !useful(facet);
  }

  // A choice of turns is offered within a topic; all turns of a track would be too long a list.
  function fillTurns() {
    const topic = data.topics.length === 1 ? 0 : data.topics.indexOf(state.topic);
    const turns = data.turns.map((_, turn) => turn).filter((turn) => data.topicOf[turn] === topic);
    const options = turns.map((turn) => make("option", { value: data.turns[turn], "data-number": turn }));
    at("turn").replaceChildren(make("option", { value: "" }, ALL.turn), ...options);
    at("turn").closest("[data-facet]").hidden = !turns.length;
  }

  function useful(facet) {
    if (facet === "differs") return data.apart;
    return valuesOf(facet).length > 1;
  }

  function showCounts(counts) {
    fillTurns();
    for (const facet of FACETS) {
      const select = at(facet);
      const values = valuesOf(facet);
      for (const option of select.querySelectorAll("[data-number]")) {
        const number = Number(option.dataset.number);
        option.textContent = `${labelOf(facet, values[number])} (${counts[facet][number].toLocaleString("en")})`;
        option.hidden = facet === "differs" && counts[facet][number] === 0 && state[facet] !== values[number];
      }
      select.value = state[facet] ?? "";
      select.classList.toggle("set", Boolean(state[facet]));
    }
    at("sort").value = currentOrder();
    if (document.activeElement !== at("q")) at("q").value = state.q ?? "";
    at("q").classList.toggle("set", Boolean(state.q));
    at("clear").disabled = ![...FACETS, "q"].some((name) => state[name]);
  }

  // ---- The list ----

  function showList() {
    const { passing, counts } = filterRows(searchTest(state.q ?? ""));
    order = sorted(passing);
    showCounts(counts);
    showPage();
  }

  const pages = () => Math.max(1, Math.ceil(order.length / ROWS));
  const pageNumber = () => Math.min(Math.max(1, Math.trunc(Number(state.page)) || 1), pages());

  function statusText() {
    const all = data.items.length;
    const part = order.length === all ? "" : `${order.length.toLocaleString("en")} of `;
    const shown = part + plural(all, "judgment");
    const apart = order.reduce((sum, row) => sum + (data.differs[row] & 1), 0);
    return data.apart && state.differs !== "none" ? `${shown}, ${apart.toLocaleString("en")} with a disagreement` : shown;
  }

  function showPage() {
    const start = (pageNumber() - 1) * ROWS;
    const rows = order.slice(start, start + ROWS);
    at("status").textContent = order.length ? statusText() : "No judgment passes these filters.";
    at("list").querySelector("tbody").replaceChildren(...rows.map(rowElement));
    at("list").querySelector(".scroll").hidden = !rows.length;
    at("pager").hidden = pages() === 1;
    at("page").textContent = `Page ${pageNumber()} of ${pages()}`;
    at("before").disabled = pageNumber() === 1;
    at("after").disabled = pageNumber() === pages();
  }

  function goToPage(page) {
    state.page = page === 1 ? undefined : String(page);
    replaceHash();
    // At an end, the button with the focus is disabled; newer browsers take the focus from it at once.
    const focused = document.activeElement;
    showPage();
    for (const [pressed, other] of [["before", "after"], ["after", "before"]]) {
      if (focused === at(pressed) && focused.disabled) at(other).focus();
    }
  }

  const cell = (...children) => make("td", {}, ...children);
  const bare = (name) => name.slice(0, name.lastIndexOf("/")); // of an item, without its criterion

  const columns = [
    { head: "Response", cell: responseCell },
    { head: "Turn", cell: (row) => cell(make("bdi", { class: "id" }, data.turns[data.rows.turn[row]])) },
    { head: "Run", when: () => data.runs.length, cell: runsCell },
    { head: "Criterion", when: () => data.criteria.length > 1, cell: (row) => cell(data.criteria[data.rows.criterion[row]]) },
    { head: "Judge", when: () => data.sides.length === 1, cell: (row) => cell(make("bdi", {}, said(row, 0).judge)) },
    { head: "Gold", when: () => data.gold, cell: (row) => cell(data.items[row].gold === null ? "–" : gradeElement(data.items[row].gold)) },
  ];

  function sideColumns() {
    if (data.sides.length > 4) return [{ head: "Grades", cell: (row) => make("td", {}, ...gradesTallied(row)) }];
    return data.sides.map((name, side) => ({
      head: data.sides.length === 1 ? "Grade" : name,
      cell: (row) => make("td", {}, sideGrade(side, row)),
    }));
  }

  function gradesTallied(row) {
    const tally = new Map();
    for (const codes of data.codes) {
      const code = codes[row];
      if (code >= 0) tally.set(code, (tally.get(code) ?? 0) + 1);
    }
    return [...tally].sort((a, b) => a[0] - b[0]).flatMap(([code, count]) =>
      [code < data.grades.length ? gradeElement(data.grades[code]) : words(data.gradeNames[code]), ` × ${count} `]);
  }

  function sideGrade(side, row) {
    const one = said(row, side);
    if (!one) return make("span", { class: "note" }, "not judged");
    if (one.grade === null) return make("span", { class: "badge warn" }, words(reasonOf(one)));
    return gradeElement(one.grade, one.off > 0);
  }

  function gradeElement(grade, differs = false) {
    const level = Math.min(Math.max(grade, 0), 5); // as judge/io/page.py has it
    const element = make("span", { class: `chip level-${level}${differs ? " differs" : ""}` }, String(grade));
    if (differs) element.append(make("span", { class: "hidden-visually" }, " (gold differs)"));
    return element;
  }

  function responseCell(row) {
    const { name, text } = data.items[row];
    const excerpt = make("span", { class: "browse-excerpt" }, shortened(text ?? "(no text on record)"));
    const link = make("a", { href: hashOf({ ...state, item: name }), class: "id", "data-row": row }, bare(name));
    return make("th", { scope: "row" }, link, excerpt);
  }

  const shortened = (whole) => (whole.length > EXCERPT ? `${whole.slice(0, EXCERPT)}…` : whole);

  // The name of a run, which a line may break behind a sign between its parts.
  const runName = (run) => make("bdi", {}, ...run.split(/(?<=[_./])/).flatMap((part, place) => (place ? [make("wbr"), part] : [part])));

  function runsCell(row) {
    const runs = data.rows.runs[row].map((run) => data.runs[run]);
    const more = runs.length > 2 ? ` and ${runs.length - 2} more` : "";
    const shown = runs.slice(0, 2).flatMap((run, place) => [place ? ", " : "", runName(run)]);
    return make("td", { class: "runs" }, ...shown, more);
  }

  function rowElement(row) {
    const headed = (cell, head) => (cell.setAttribute("data-head", head), cell);
    return make("tr", {}, ...data.columns.map((column) => headed(column.cell(row), column.head)));
  }

  // ---- One item ----

  function showItem(name) {
    const row = rowOf(name);
    if (row < 0) {
      at("status").textContent = `This report has no judgment ${name}.`;
      return;
    }
    at("item").replaceChildren(...itemParts(row, data.items[row]));
    at("list").hidden = at("filters").hidden = at("status").hidden = at("notes").hidden = true;
    at("item").hidden = false;
    at("item-title").focus({ preventScroll: true });
    root.scrollIntoView({ block: "start" });
  }

  const rowOf = (name) => data.items.findIndex((item) => item.name === name);

  function itemParts(row, detail) {
    return [
      navigation(row),
      heading(row),
      facts(row, detail),
      make("div", { class: "browse-texts" },
        make("div", {}, make("section", { class: "browse-asked" }, ...conversationPart(row)), make("section", {}, ...responsePart(detail))),
        make("div", { class: "browse-evidence" }, gradesPart(row, detail), make("section", {}, ...passagesPart(detail)))),
      ...sentParts(detail),
    ];
  }

  function heading(row) {
    const id = make("bdi", { class: "id" }, bare(data.items[row].name));
    const { criterion } = data.items[row];
    return make("h3", { id: "browse-item-title", tabindex: "-1" }, "Response ", id, `, ${criterion}`);
  }

  function neighbor(row, step) {
    const place = order.indexOf(row);
    return place < 0 ? undefined : order[place + step];
  }

  function navigation(row) {
    const place = order.indexOf(row);
    const step = (label, by) => {
      const button = make("button", { type: "button", disabled: neighbor(row, by) === undefined }, label);
      button.addEventListener("click", () => openRow(neighbor(row, by)));
      return button;
    };
    const back = make("button", { type: "button" }, "Back to the list ", make("kbd", {}, "Esc"));
    back.addEventListener("click", closeItem);
    const [number, all] = [place + 1, order.length].map((count) => count.toLocaleString("en"));
    const where = make("span", { class: "note" }, place < 0 ? "not among those that pass the filters" : `${number} of ${all}`);
    return make("nav", { class: "browse-nav", "aria-label": "Judgments" }, back, step("Previous", -1), step("Next", 1), where);
  }

  function facts(row, detail) {
    const runs = detail.runs.flatMap(([run, where], number) =>
      [number ? ", " : "", runName(run), where && ` (${where})`]);
    const entries = [["Turn", make("bdi", { class: "id" }, data.turns[data.rows.turn[row]])]];
    if (runs.length) entries.push([detail.runs.length === 1 ? "Run" : "Runs", make("span", {}, ...runs)]);
    const pairs = entries.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
    return make("dl", { class: "browse-facts" }, ...pairs);
  }

  // The words of a text that say something: those of four letters or more.
  const wordsOf = (whole) => new Set(whole.toLowerCase().match(/[\p{L}\p{N}]{4,}/gu) ?? []);

  // A text with the words marked that another one has as well; without any it is one piece.
  function marked(whole, common) {
    if (!common.size) return [whole];
    const pieces = whole.split(/([\p{L}\p{N}]{4,})/u);
    return pieces.map((piece, place) => (place % 2 && common.has(piece.toLowerCase()) ? make("mark", {}, piece) : piece));
  }

  // A stranger's text in its own box; the rest of a very long one comes on request.
  function textBox(whole, tag = "div", common = new Set()) {
    const box = make(tag, { class: "stranger", dir: "auto" }, ...marked(whole.slice(0, LONG), common));
    if (whole.length <= LONG) return [box];
    const more = make("button", { type: "button" }, `Show all ${whole.length.toLocaleString("en")} characters`);
    more.addEventListener("click", () => { box.textContent = whole; more.remove(); });
    return [box, more];
  }

  function conversationPart(row) {
    const { utterance, resolved, context, references, ptkb } = data.told[data.rows.turn[row]];
    if (utterance === undefined) return [make("p", { class: "note" }, "The conversation of this turn is not on record.")];
    const parts = [make("h4", {}, "Utterance"), ...textBox(utterance)];
    if (resolved) parts.push(make("p", { class: "note" }, "Resolved: ", make("bdi", {}, resolved)));
    const folded = [];
    if (context.length) folded.push(later(`Conversation before it (${plural(context.length, "exchange")})`, () => context.map(exchange)));
    if (references.length) folded.push(later("Reference answer", () => references.flatMap((text) => textBox(text))));
    if (ptkb.length) folded.push(later(`PTKB (${plural(ptkb.length, "statement")})`, () => [make("ul", {}, ...ptkb.map(statement))]));
    return folded.length ? [...parts, make("div", { class: "browse-folded" }, ...folded)] : parts;
  }

  const exchange = ([asked, answered]) => make("div", { class: "browse-exchange" },
    make("p", {}, "User"), ...textBox(asked), make("p", {}, "System"), ...textBox(answered || "(none)"));

  const statement = ([text, linked]) => make("li", { dir: "auto" }, text,
    linked ? make("span", { class: "badge accent" }, "linked to this turn") : "");

  // A closed part, whose content is made when it is opened.
  function later(title, content, attributes = {}) {
    const details = make("details", attributes, make("summary", {}, title));
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) details.append(...content());
    });
    return details;
  }

  function responsePart(detail) {
    const whole = detail.text;
    const title = make("h4", {}, "Response ");
    if (detail.cut) title.append(make("span", { class: "badge warn" }, "cut at the token limit"));
    if (whole === null) return [title, make("p", { class: "note" }, "The text of this response is not on record.")];
    if (!detail.sentences.length) return [title, ...textBox(whole), ...unmatched(detail)];
    const named = detail.checked
      ? "The passage named beside a sentence is the one that most likely supports it, as the checker has it."
      : "The passage named beside a sentence holds most of its words: it was computed, and no judge named it.";
    return [title, sentencesList(detail), make("p", { class: "note" }, `The verdicts are the judge's. ${named}`)];
  }

  function labelers(detail) {
    const all = sideEntries(detail).flatMap(([side, said]) => [
      { name: data.sides.length > 1 ? data.sides[side] : "", labels: said.sentences },
      ...(said.votes ?? []).map((vote) => ({ name: voteName(vote, said.votes), labels: vote.sentences })),
    ]);
    return all.filter(({ labels }) => labels && labels.length);
  }

  function unmatched(detail) {
    const told = "The judge labeled sentences, but not as many as this text has.";
    return labelers(detail).length ? [make("p", { class: "banner warn" }, told)] : [];
  }

  function sentencesList(detail) {
    const labeling = labelers(detail).filter(({ labels }) => labels.length === detail.sentences.length);
    const items = detail.sentences.map((sentence, number) => sentenceElement(sentence, number, labeling, detail));
    return make("ol", { class: "browse-sentences" }, ...items);
  }

  const markOf = (label) => (Object.hasOwn(MARKS, label) ? MARKS[label] : "");

  function sentenceElement(sentence, number, labeling, detail) {
    const labels = labeling.map(({ name, labels: all }) => ({ name, label: all[number] }));
    const same = labels.every(({ label }) => label === labels[0].label);
    const mark = same ? markOf(labels[0].label) : "warn";
    const badges = labels.map(({ name, label }) =>
      make("span", { class: `badge ${markOf(label)}` }, name ? `${name}: ${words(label)}` : words(label)));
    const support = detail.support[number];
    if (support) badges.push(pointer(...support, detail));
    const quoted = make("span", { class: `sentence ${mark}`, dir: "auto" }, sentence);
    return make("li", {}, quoted, make("span", { class: "badges" }, ...badges));
  }

  function pointer(passage, share, detail) {
    const said = detail.checked
      ? `passage ${passage + 1} supports it, probability ${share.toFixed(2)}`
      : `passage ${passage + 1} holds ${Math.round(share * 100)} % of its words`;
    const button = make("button", { type: "button", class: "browse-pointer" }, said);
    button.addEventListener("click", () => {
      for (const one of at("item").querySelectorAll(".pointed")) one.classList.remove("pointed");
      const target = at(`passage-${passage}`);
      target.closest("details")?.setAttribute("open", "");
      target.classList.add("pointed");
      target.focus({ preventScroll: true });
      target.scrollIntoView({ block: "nearest" });
    });
    return button;
  }

  function passagesPart(detail) {
    const title = make("h4", {}, `Used passages (${detail.passages.length})`);
    if (!detail.passages.length) return [title, make("p", { class: "note" }, "The response names no passage.")];
    const lacking = detail.passages.filter(([, place]) => place === null).length;
    const said = `${lacking} of ${plural(detail.passages.length, "passage")} without a text: no judge saw the whole evidence.`;
    const note = lacking ? [make("p", { class: "banner warn" }, said)] : [];
    const common = wordsOf(detail.text ?? "");
    const all = detail.passages.map((passage, number) => passageElement(passage, number, common));
    const rest = all.splice(OPEN);
    const more = rest.length ? [make("details", {}, make("summary", {}, plural(rest.length, "more passage")), ...rest)] : [];
    return [title, ...note, ...all, ...more];
  }

  function passageElement([id, place, source, relevance], number, common) {
    const whole = shared(place);
    const name = make("p", { class: "browse-passage-id" }, make("strong", {}, `${number + 1}. `), make("bdi", { class: "id" }, id), " ",
      source === "run" ? make("span", { class: "badge warn" }, "text from a run") : null,
      relevance ? make("span", { class: relevance.startsWith("relevant (") ? "badge" : "badge warn" }, relevance) : null);
    const content = whole === null ? [make("p", { class: "note" }, "No text is on record for this passage.")] : textBox(whole, "div", common);
    return make("div", { class: "browse-passage", id: `browse-passage-${number}`, tabindex: "-1" }, name, ...content);
  }

  // ---- What judges and assessors say ----

  const sideEntries = (detail) => Object.entries(detail.sides).map(([side, one]) => [Number(side), one]);

  function gradesPart(row, detail) {
    const cards = sideEntries(detail).map(([side, one]) => sideCard(row, side, one));
    if (detail.assessors.length) cards.unshift(goldCard(row, detail));
    return make("div", { class: "browse-cards" }, ...cards);
  }

  // What a grade means on a side; for gold, where all sides with a scale say the same.
  function meaningOf(row, grade, side) {
    const all = data.levels[data.rows.criterion[row]].map((levels) => levels[String(grade)]);
    const known = side === null ? all.filter(Boolean) : [all[side]];
    const [level] = known;
    if (!level || known.some((other) => other.join() !== level.join())) return "";
    return level[0] === String(grade) ? level[1] : `${level[0]}: ${level[1]}`;
  }

  function verdict(row, grade, reason, side) {
    if (grade === null) return make("p", { class: "browse-verdict" }, make("span", { class: "badge warn" }, reason ? words(reason) : "no grade"));
    return make("p", { class: "browse-verdict" }, gradeElement(grade), make("span", { class: "note" }, meaningOf(row, grade, side)));
  }

  function goldCard(row, detail) {
    const commented = detail.assessors.some((one) => one[3]);
    const rows = detail.assessors.map(([assessor, grade, made, comment]) =>
      [make("bdi", {}, assessor), gradeElement(grade), made, ...(commented ? [make("bdi", {}, comment ?? "")] : [])]);
    return make("section", { class: "browse-card gold" }, make("h4", {}, "Gold"), verdict(row, detail.gold, null, null),
      smallTable("Gold of each assessor", ["Assessor", "Grade", "Made", ...(commented ? ["Comment"] : [])], rows));
  }

  function smallTable(name, heads, rows, attributes = {}) {
    return make("div", { class: "scroll", ...attributes, role: "region", "aria-label": name, tabindex: "0" }, make("table", {},
      make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell)))))));
  }

  function sideCard(row, side, said) {
    const name = data.sides.length > 1 ? data.sides[side] : said.judge;
    const parts = [make("h4", {}, make("bdi", {}, name)), verdict(row, said.grade, said.reason, side)];
    parts.push(...saidParts(said, name));
    if (said.votes) parts.push(...votesPart(said.votes, name));
    return make("section", { class: said.votes ? "browse-card jury" : "browse-card" }, ...parts);
  }

  function saidParts(said, name) {
    const notes = [];
    if (said.judge !== name) notes.push(said.judge);
    if (said.prompt && !name.includes(said.prompt)) notes.push(`prompt ${said.prompt}`);
    if (said.model) notes.push(`model ${said.model}`);
    if (said.expected !== undefined) notes.push(`expected grade ${said.expected.toFixed(2)}`);
    if (said.probabilities) notes.push(`entropy ${entropy(said.probabilities).toFixed(2)} bits`);
    if (said.repaired) notes.push("asked a second time, because the first reply was unreadable");
    const parts = notes.length ? [make("p", { class: "note" }, make("bdi", {}, notes.join(" · ")))] : [];
    if (said.detail !== undefined) parts.push(...textBox(said.detail));
    if (said.rationale !== undefined && !said.votes) parts.push(...textBox(said.rationale));
    if (said.probabilities) parts.push(probabilities(said.probabilities, name));
    return parts;
  }

  function probabilities(shares, name) {
    const rows = Object.entries(shares).map(([label, share]) => [
      make("bdi", {}, label),
      make("span", {}, share.toFixed(2), " ", make("progress", { max: "1", value: share, "aria-hidden": "true" })),
    ]);
    return smallTable(`Probabilities of ${name}`, ["Label", "Probability"], rows, { class: "scroll browse-shares" });
  }

  // -Σ p log2 p: 0 where the judge is sure of one label.
  function entropy(shares) {
    const parts = Object.values(shares).filter((share) => share > 0);
    const total = parts.reduce((sum, share) => sum + share, 0);
    return parts.reduce((sum, share) => sum - (share / total) * Math.log2(share / total), 0);
  }

  function voteName(vote, votes) {
    const prompts = new Set(votes.map((one) => one.prompt)).size > 1 ? `, ${vote.prompt}` : "";
    const sample = votes.some((one) => one.sample) ? `, sample ${(vote.sample ?? 0) + 1}` : "";
    return vote.judge + prompts + sample;
  }

  function votesPart(votes, name) {
    const one = (vote) => [
      make("bdi", {}, voteName(vote, votes)),
      vote.grade === null ? make("span", { class: "badge warn" }, words(vote.reason ?? "no grade")) : gradeElement(vote.grade),
      make("bdi", {}, vote.rationale ?? vote.detail ?? ""),
    ];
    return [make("h5", {}, "Votes of the jury"), smallTable(`Votes of ${name}`, ["Member", "Grade", "Rationale"], votes.map(one))];
  }

  // ---- What was sent, and what came back ----

  function sentParts(detail) {
    const asked = sideEntries(detail).flatMap(([side, said]) =>
      [[side, said, said.judge], ...(said.votes ?? []).map((vote) => [side, vote, voteName(vote, said.votes)])]);
    const shown = asked.filter(([, said]) => said.sent || said.reply !== undefined);
    if (!shown.length) return [make("p", { class: "note" }, "The prompt and the reply of this judgment are not on record.")];
    return [make("h4", {}, "As sent"), ...shown.map(([side, said, name]) => {
      const who = data.sides.length > 1 ? `${data.sides[side]}, ${name}` : name;
      const title = said.sent ? (said.reply === undefined ? "Prompt" : "Prompt and reply") : "Reply";
      return later(`${title}: ${who}`, () => messages(said), { class: "browse-sent" });
    })];
  }

  function messages(said) {
    const one = ([role, places]) => [make("p", { class: "note" }, role), ...textBox(places.map(shared).join(""), "pre")];
    const sent = (said.sent ?? []).flatMap(one);
    return said.reply === undefined ? sent : [...sent, make("p", { class: "note" }, "reply"), ...textBox(said.reply || "(empty)", "pre")];
  }

  // ---- Moving about ----

  function openRow(row) {
    if (row === undefined) return;
    const place = order.indexOf(row);
    const page = place < 0 ? 1 : Math.floor(place / ROWS) + 1;
    if (at("item").hidden) {
      replaceHash(); // the place that one step back leads to, from any item
      history.pushState(null, "", location.href);
    }
    state = { ...state, item: data.items[row].name, page: page > 1 ? String(page) : undefined };
    replaceHash();
    showItem(state.item);
  }

  function closeItem() {
    const row = rowOf(state.item);
    state = { ...state, item: undefined };
    history.pushState(null, "", hashOf(state));
    leaveItem(row);
  }

  function leaveItem(row) {
    at("item").hidden = true;
    at("item").replaceChildren();
    at("list").hidden = at("filters").hidden = at("status").hidden = false;
    at("notes").hidden = !data.notes.length;
    showPage();
    (linkOf(row) ?? links()[0])?.focus();
  }

  const links = () => [...at("list").querySelectorAll("[data-row]")];
  const linkOf = (row) => links().find((link) => Number(link.dataset.row) === row);

  function moveInList(step) {
    const all = links();
    const place = all.indexOf(document.activeElement);
    const target = place < 0 ? 0 : place + step;
    if (all[target]) all[target].focus();
    else if (target >= all.length && pageNumber() < pages()) { goToPage(pageNumber() + 1); links()[0]?.focus(); }
    else if (target < 0 && pageNumber() > 1) { goToPage(pageNumber() - 1); links().at(-1)?.focus(); }
  }

  function move(step) {
    if (at("item").hidden) moveInList(step);
    else openRow(neighbor(rowOf(state.item), step));
  }

  // Keys work where the focus is in the browser, or nowhere while the browser is on the screen.
  function listening(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || at("keys").open) return false;
    if (event.target.closest("input, select, textarea")) return false;
    if (root.contains(event.target)) return true;
    const box = root.getBoundingClientRect();
    return event.target === document.body && box.top < innerHeight && box.bottom > 0;
  }

  const KEYS = {
    j: () => move(1),
    k: () => move(-1),
    "/": () => { if (!at("item").hidden) closeItem(); at("q").focus(); at("q").select(); },
    "?": () => at("keys").showModal(),
  };

  function onKey(event) {
    if (event.key === "Escape" && !at("item").hidden && !at("keys").open) { closeItem(); event.preventDefault(); return; }
    if (!listening(event)) return;
    const inList = at("item").hidden && links().includes(document.activeElement);
    const arrow = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (arrow && inList) moveInList(arrow);
    else if (at("keys-on").checked && Object.hasOwn(KEYS, event.key)) KEYS[event.key]();
    else return;
    event.preventDefault();
  }

  function follow() {
    if (!location.hash.startsWith(OURS)) return;
    const before = state.item;
    state = stateOf(location.hash);
    showList();
    if (state.item) showItem(state.item);
    else if (!at("item").hidden) leaveItem(rowOf(before));
  }

  function listen() {
    let timer;
    at("q").addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => change({}), 120);
    });
    at("filters").addEventListener("submit", (event) => event.preventDefault());
    for (const name of [...FACETS, "sort"]) {
      at(name).addEventListener("change", () => change({ [name]: at(name).value || undefined }));
    }
    at("clear").addEventListener("click", () => {
      at("q").value = "";
      change(Object.fromEntries(FACETS.map((name) => [name, undefined])));
      at("q").focus();
    });
    at("help").addEventListener("click", () => at("keys").showModal());
    at("before").addEventListener("click", () => goToPage(pageNumber() - 1));
    at("after").addEventListener("click", () => goToPage(pageNumber() + 1));
    at("list").addEventListener("click", (event) => {
      const link = event.target.closest("tr")?.querySelector("[data-row]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey || String(getSelection())) return;
      event.preventDefault();
      openRow(Number(link.dataset.row));
    });
    document.addEventListener("keydown", onKey);
    addEventListener("popstate", follow);
  }

  const places = (names) => new Map(names.map((name, place) => [name, place]));

  function prepare(read) {
    const { items, turns: told } = read;
    const turns = told.map((turn) => turn.name);
    const topics = [...new Set(told.map((turn) => turn.topic))];
    const criteria = read.criteria.map((criterion) => criterion.name);
    const answers = items.flatMap((item) => Object.values(item.sides));
    data = {
      ...read, told, turns, topics, criteria,
      topicOf: told.map((turn) => topics.indexOf(turn.topic)),
      levels: read.criteria.map((criterion) => criterion.levels),
      grades: [...new Set(answers.map((one) => one.grade))].filter((grade) => grade !== null).sort((a, b) => a - b),
      reasons: [...new Set(answers.filter((one) => one.grade === null).map(reasonOf))],
    };
    const [turnPlace, runPlace, criterionPlace] = [turns, data.runs, criteria].map(places);
    data.rows = {
      turn: items.map((item) => turnPlace.get(item.turn)),
      criterion: items.map((item) => criterionPlace.get(item.criterion)),
      runs: items.map((item) => [...new Set(item.runs.map(([run]) => runPlace.get(run)))].sort((a, b) => a - b)),
    };
    data.gradeNames = [...data.grades.map(String), ...data.reasons];
    data.codes = data.sides.map((_, side) => Int16Array.from(items, (_item, row) => codeOf(side, row)));
    data.differs = Uint8Array.from(items, (_, row) => differences(row));
    data.gold = items.some((item) => item.gold !== null);
    data.apart = data.differs.some((bits) => bits & 1);
    const [response, turn, run, criterion, judge, gold] = columns;
    data.columns = [response, turn, run, criterion, judge, ...sideColumns(), gold].filter(({ when }) => !when || when());
    const heads = data.columns.map(({ head }) => make("th", { scope: "col" }, make("bdi", {}, head)));
    at("list").querySelector("thead").replaceChildren(make("tr", {}, ...heads));
    for (const facet of FACETS) fillSelect(facet);
    for (const [value, label] of Object.entries(ORDERS)) {
      if (value !== "worst" || data.apart) at("sort").append(make("option", { value }, label));
    }
    at("notes").replaceChildren(...data.notes.map((note) => make("li", {}, note)));
    at("notes").hidden = !data.notes.length;
  }

  function start() {
    const block = document.getElementById("judge-data");
    prepare(JSON.parse(block.textContent));
    block.remove();
    if (!data.items.length) {
      at("status").textContent = "There is no judgment to show.";
      return;
    }
    at("list").hidden = at("filters").hidden = false;
    listen();
    state = stateOf(location.hash);
    showList();
    if (!location.hash.startsWith(OURS)) return;
    if (state.item) showItem(state.item);
    else root.scrollIntoView({ block: "start" });
  }

  // After the first paint: the page above is readable before anything is read.
  requestAnimationFrame(() => setTimeout(start));
})();
