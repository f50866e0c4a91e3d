// The browser of judgments. Every text of the data was written by somebody else: it goes into the page as text, by
// textContent, and never as markup. The data lies in inert blocks of the page, or in files beside it.
"use strict";
(() => {
  const ROWS = 50; // of a page of the list
  const LONG = 20000; // characters of a text that are shown at once
  const EXCERPT = 240;
  const KEPT = 24; // unpacked chunks of a table that is not searched
  const OURS = "#browse:"; // how the hash of a state begins
  const NOT_THERE = 0, GRADED = 1, REASONS = 2;
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

  // ---- Data: packed chunks, unpacked when they are needed ----

  async function unpack(packed) {
    const compressed = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  // A page from a disk may not fetch a file, but it may run one as a script.
  function fromFile(name) {
    return new Promise((resolve, reject) => {
      const script = make("script", { src: `${root.dataset.beside}/${name}.js` });
      script.onload = () => { script.remove(); resolve(script.packed); };
      script.onerror = () => reject(new Error(`${script.getAttribute("src")} is not beside this page`));
      document.head.append(script);
    });
  }

  async function chunkOf(name) {
    const block = document.getElementById(`judge-${name}`);
    return unpack(block ? block.textContent : await fromFile(name));
  }

  class DataTable {
    constructor(name, starts, all) {
      Object.assign(this, { name, starts, all, chunks: new Map() });
    }

    chunk(number) {
      let found = this.chunks.get(number);
      if (!found) {
        found = chunkOf(`${this.name}-${number}`);
        found.catch(() => this.chunks.delete(number));
        this.chunks.set(number, found);
        if (!this.all && this.chunks.size > KEPT) this.chunks.delete(this.chunks.keys().next().value);
      }
      return found;
    }

    async get(index) {
      let low = 0, high = this.starts.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (this.starts[middle] <= index) low = middle;
        else high = middle - 1;
      }
      return (await this.chunk(low))[index - this.starts[low]];
    }
  }

  let data; // the columns
  let tables;
  let order = []; // the rows that pass the filters, in the order of the list
  let state = {};

  // An even reference is of a searched text, an odd one of another.
  const text = async (reference) =>
    reference === undefined || reference < 0 ? null : tables[reference % 2 ? "stored" : "searched"].get(reference >> 1);

  // ---- State: it lives in the hash, so that a link shows the same ----

  function stateOf(hash) {
    const told = hash.startsWith(OURS) ? Object.fromEntries(new URLSearchParams(hash.slice(OURS.length))) : {};
    const turn = data.turns.indexOf(told.turn);
    return turn < 0 ? told : { ...told, topic: data.topics[data.turn_topic[turn]] };
  }

  function hashOf(wanted) {
    return OURS + new URLSearchParams(PARTS.filter((name) => wanted[name]).map((name) => [name, wanted[name]])).toString();
  }

  function replaceHash() {
    history.replaceState(null, "", hashOf(state));
  }

  async function change(changes) {
    // What is typed counts at once, though typing alone waits for a pause.
    state = { ...state, page: undefined, q: at("q").value, ...changes };
    if ("topic" in changes) state.turn = undefined;
    replaceHash();
    await showList();
  }

  // ---- Search ----

  const lowered = new Map();
  const hits = new Map();

  async function loweredChunk(number) {
    if (!lowered.has(number)) lowered.set(number, (await tables.searched.chunk(number)).map((one) => one.toLowerCase()));
    return lowered.get(number);
  }

  async function searchedTexts(word, told) {
    const { starts } = tables.searched;
    const found = [];
    let pending = [];
    for (let number = 0; number < starts.length; number++) {
      pending.push(loweredChunk(number));
      if (pending.length === 8 || number === starts.length - 1) {
        for (const chunk of await Promise.all(pending)) for (const one of chunk) found.push(one.includes(word) ? 1 : 0);
        pending = [];
        if (starts.length > 16) told(number + 1, starts.length);
      }
    }
    return Uint8Array.from(found);
  }

  // For one word: which texts, turns, sets of runs and judges have it.
  async function hitsOf(word, told) {
    if (!hits.has(word)) {
      const has = (name) => name.toLowerCase().includes(word);
      const runs = data.runs.map(has);
      const texts = await searchedTexts(word, told);
      hits.set(word, {
        texts,
        turns: data.turns.map((name, turn) => has(name) || texts[data.utterance[turn] >> 1] === 1),
        sets: data.run_sets.map((set) => set.some((run) => runs[run])),
        judges: data.judges.map(has),
        names: data.rows.name.map(has),
      });
      if (hits.size > 16) hits.delete(hits.keys().next().value);
    }
    return hits.get(word);
  }

  function rowHas(row, hit) {
    const { text: texts, turn, runs } = data.rows;
    if (hit.texts[texts[row] >> 1] || hit.turns[turn[row]] || hit.sets[runs[row]] || hit.names[row]) return true;
    return data.said.some((said) => said.state[row] && (hit.texts[said.words[row] >> 1] || hit.judges[said.judge[row]]));
  }

  async function searchTest(query, told) {
    const wanted = query.normalize("NFC").toLowerCase().split(/\s+/).filter(Boolean);
    if (!wanted.length) return null;
    const found = [];
    for (const word of wanted) found.push(await hitsOf(word, told));
    return (row) => found.every((hit) => rowHas(row, hit));
  }

  // ---- Filters: a value of a facet is a number; a row counts where every other filter lets it pass ----

  const kinds = Object.keys(DIFFERS);

  function gapOf(row, kind) {
    const { gap_gold: gold, gap_judges: judges, gap_jury: jury } = data.rows;
    if (kind === "gold") return gold[row] ?? 0;
    if (kind === "judges") return judges[row] ?? 0;
    if (kind === "jury") return jury[row] ?? 0;
    return Math.max(gold[row] ?? 0, judges[row] ?? 0, jury[row] ?? 0);
  }

  // The kinds of disagreement on a row, a bit for each.
  const differences = (row) => kinds.reduce((bits, kind, number) =>
    bits | ((kind === "none" ? gapOf(row) === 0 : gapOf(row, kind) > 0) ? 1 << number : 0), 0);

  // What a side says of a row, as a number of the facet of grades; -1 where it does not have the response.
  function codeOf(said, row) {
    if (said.state[row] === NOT_THERE) return -1;
    return said.state[row] === GRADED ? data.grades.indexOf(said.grade[row]) : data.grades.length + said.state[row] - REASONS;
  }

  // The names of a facet's values, in order.
  function valuesOf(facet) {
    const { runs, topics, turns, criteria, sides, gradeNames } = data;
    return { run: runs, topic: topics, turn: turns, criterion: criteria, side: sides, grade: gradeNames, differs: kinds }[facet];
  }

  // For each facet: a test of a row for a value, and the counting of a row's values.
  const FILTERS = {
    run: {
      test: (value) => {
        const sets = data.run_sets.map((set) => set.includes(value));
        return (row) => sets[data.rows.runs[row]];
      },
      count: (row, counts) => { for (const run of data.run_sets[data.rows.runs[row]]) counts[run] += 1; },
    },
    topic: {
      test: (value) => (row) => data.turn_topic[data.rows.turn[row]] === value,
      count: (row, counts) => { counts[data.turn_topic[data.rows.turn[row]]] += 1; },
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
    for (let row = 0; row < data.rows.turn.length; row++) {
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
    const grades = side >= 0 ? [data.said[side].grade[row]] : data.said.map((said) => said.grade[row]);
    return grades.find((grade) => grade !== null && grade !== undefined) ?? null;
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
    const keys = new Float64Array(data.rows.turn.length);
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
    const turns = data.turns.map((_, turn) => turn).filter((turn) => data.turn_topic[turn] === topic);
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

  let turnOf = 0; // tells a later request from an earlier one

  async function showList() {
    const mine = ++turnOf;
    const told = (done, all) => {
      if (mine === turnOf) at("status").textContent = `Searching: ${done} of ${all} parts of the texts.`;
    };
    const test = await searchTest(state.q ?? "", told);
    if (mine !== turnOf) return false;
    const { passing, counts } = filterRows(test);
    order = sorted(passing);
    showCounts(counts);
    showPage();
    return true;
  }

  const pages = () => Math.max(1, Math.ceil(order.length / ROWS));
  const pageNumber = () => Math.min(Math.max(1, Math.trunc(Number(state.page)) || 1), pages());

  function statusText() {
    const all = data.rows.turn.length;
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
    { head: "Judge", when: () => data.sides.length === 1, cell: (row) => cell(make("bdi", {}, data.judges[data.said[0].judge[row]])) },
    { head: "Gold", when: () => data.gold, cell: (row) => cell(data.rows.gold[row] === null ? "–" : gradeElement(data.rows.gold[row])) },
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
    data.said.forEach((_, side) => {
      const code = data.codes[side][row];
      if (code >= 0) tally.set(code, (tally.get(code) ?? 0) + 1);
    });
    return [...tally].sort((a, b) => a[0] - b[0]).flatMap(([code, count]) =>
      [code < data.grades.length ? gradeElement(data.grades[code]) : words(data.gradeNames[code]), ` × ${count} `]);
  }

  function sideGrade(side, row) {
    const said = data.said[side];
    if (said.state[row] === NOT_THERE) return make("span", { class: "note" }, "not judged");
    if (said.state[row] !== GRADED) return make("span", { class: "badge warn" }, words(data.reasons[said.state[row] - REASONS]));
    return gradeElement(said.grade[row], said.off[row] > 0);
  }

  function gradeElement(grade, differs = false) {
    const level = Math.min(Math.max(grade, 0), 5); // as judge/io/page.py has it
    const element = make("span", { class: `chip level-${level}${differs ? " differs" : ""}` }, String(grade));
    if (differs) element.append(make("span", { class: "hidden-visually" }, " (gold differs)"));
    return element;
  }

  function responseCell(row) {
    const excerpt = make("span", { class: "browse-excerpt" });
    text(data.rows.text[row]).then((whole) => { excerpt.textContent = shortened(whole ?? "(no text on record)"); }, showFault);
    const name = data.rows.name[row];
    const link = make("a", { href: hashOf({ ...state, item: name }), class: "id", "data-row": row }, bare(name));
    return make("th", { scope: "row" }, link, excerpt);
  }

  const shortened = (whole) => (whole.length > EXCERPT ? `${whole.slice(0, EXCERPT)}…` : whole);

  function runsCell(row) {
    const runs = data.run_sets[data.rows.runs[row]].map((run) => data.runs[run]);
    const more = runs.length > 2 ? ` and ${runs.length - 2} more` : "";
    const shown = runs.slice(0, 2).flatMap((run, place) => [place ? ", " : "", make("bdi", {}, run)]);
    return make("td", { class: "runs" }, ...shown, more);
  }

  function rowElement(row) {
    const headed = (cell, head) => (cell.setAttribute("data-head", head), cell);
    return make("tr", {}, ...data.columns.map((column) => headed(column.cell(row), column.head)));
  }

  // ---- One item ----

  async function showItem(name) {
    const mine = ++turnOf;
    const row = data.rows.name.indexOf(name);
    if (row < 0) {
      at("status").textContent = `This report has no judgment ${name}.`;
      return;
    }
    const detail = await tables.items.get(row);
    const parts = await itemParts(row, detail);
    if (mine !== turnOf) return;
    at("item").replaceChildren(...parts);
    at("list").hidden = at("filters").hidden = at("status").hidden = at("notes").hidden = true;
    at("item").hidden = false;
    at("item-title").focus({ preventScroll: true });
    root.scrollIntoView({ block: "start" });
  }

  async function itemParts(row, detail) {
    const [conversation, response, passages] = await Promise.all([
      conversationPart(row), responsePart(row, detail), passagesPart(row, detail),
    ]);
    return [
      navigation(row),
      heading(row),
      facts(row, detail),
      make("div", { class: "browse-texts" },
        make("div", {}, make("section", { class: "browse-asked" }, ...conversation), make("section", {}, ...response)),
        make("div", { class: "browse-evidence" }, await gradesPart(row, detail), make("section", {}, ...passages))),
      ...sentParts(detail),
    ];
  }

  function heading(row) {
    const id = make("bdi", { class: "id" }, bare(data.rows.name[row]));
    const criterion = data.criteria[data.rows.criterion[row]];
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
      [number ? ", " : "", make("bdi", {}, data.runs[run]), where && ` (${where})`]);
    const entries = [["Turn", make("bdi", { class: "id" }, data.turns[data.rows.turn[row]])]];
    if (runs.length) entries.push([detail.runs.length === 1 ? "Run" : "Runs", make("span", {}, ...runs)]);
    const pairs = entries.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
    return make("dl", { class: "browse-facts" }, ...pairs);
  }

  // The words of a text that say something: those of four letters or more.
  const wordsOf = (whole) => new Set(whole.toLowerCase().match(/[\p{L}\p{N}]{4,}/gu) ?? []);

  // A text with the words marked that another one has as well; without any it is one piece.
  function marked(whole, shared) {
    if (!shared.size) return [whole];
    const pieces = whole.split(/([\p{L}\p{N}]{4,})/u);
    return pieces.map((piece, place) => (place % 2 && shared.has(piece.toLowerCase()) ? make("mark", {}, piece) : piece));
  }

  // A stranger's text in its own box; the rest of a very long one comes on request.
  function textBox(whole, tag = "div", shared = new Set()) {
    const box = make(tag, { class: "stranger", dir: "auto" }, ...marked(whole.slice(0, LONG), shared));
    if (whole.length <= LONG) return [box];
    const more = make("button", { type: "button" }, `Show all ${whole.length.toLocaleString("en")} characters`);
    more.addEventListener("click", () => { box.textContent = whole; more.remove(); });
    return [box, more];
  }

  async function conversationPart(row) {
    const turn = data.rows.turn[row];
    const told = await tables.turns.get(turn);
    const utterance = await text(data.utterance[turn]);
    if (told === null) return [make("p", { class: "note" }, "The conversation of this turn is not on record.")];
    const resolved = await text(told.resolved);
    const parts = [make("h4", {}, "Utterance"), ...textBox(utterance ?? "")];
    if (resolved) parts.push(make("p", { class: "note" }, "Resolved: ", make("bdi", {}, resolved)));
    const { context, ptkb } = told;
    const folded = [];
    if (context.length) folded.push(later(`Conversation before it (${plural(context.length, "exchange")})`, () => exchanges(context)));
    if (ptkb.length) folded.push(later(`PTKB (${plural(ptkb.length, "statement")})`, () => statements(ptkb)));
    return folded.length ? [...parts, make("div", { class: "browse-folded" }, ...folded)] : parts;
  }

  async function exchanges(context) {
    const one = async ([asked, said]) => make("div", { class: "browse-exchange" },
      make("p", {}, "User"), ...textBox((await text(asked)) ?? ""), make("p", {}, "System"), ...textBox((await text(said)) || "(none)"));
    return Promise.all(context.map(one));
  }

  async function statements(ptkb) {
    const one = async ([, reference, linked]) => make("li", { dir: "auto" }, (await text(reference)) ?? "",
      linked ? make("span", { class: "badge accent" }, "linked to this turn") : "");
    return [make("ul", {}, ...(await Promise.all(ptkb.map(one))))];
  }

  // A closed part, whose content is made when it is opened.
  function later(title, content, attributes = {}) {
    const details = make("details", attributes, make("summary", {}, title));
    details.addEventListener("toggle", async () => {
      if (details.open && details.childElementCount === 1) details.append(...(await content()));
    });
    return details;
  }

  async function responsePart(row, detail) {
    const whole = await text(data.rows.text[row]);
    const title = make("h4", {}, "Response ");
    if (detail.cut) title.append(make("span", { class: "badge warn" }, "cut at the token limit"));
    if (whole === null) return [title, make("p", { class: "note" }, "The text of this response is not on record.")];
    if (!detail.sentences.length) return [title, ...textBox(whole), ...unmatched(detail)];
    const named = detail.checked
      ? "The passage named beside a sentence is the one that most likely supports it, as the checker has it."
      : "The passage named beside a sentence holds most of its words: it was computed, and no judge named it.";
    return [title, await sentencesList(detail), make("p", { class: "note" }, `The verdicts are the judge's. ${named}`)];
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

  async function sentencesList(detail) {
    const labeling = labelers(detail).filter(({ labels }) => labels.length === detail.sentences.length);
    const texts = await Promise.all(detail.sentences.map(text));
    const items = texts.map((sentence, number) => sentenceElement(sentence, number, labeling, detail));
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

  async function passagesPart(row, detail) {
    const title = make("h4", {}, `Used passages (${detail.passages.length})`);
    if (!detail.passages.length) return [title, make("p", { class: "note" }, "The response names no passage.")];
    const lacking = detail.passages.filter(([, reference]) => reference < 0).length;
    const said = `${lacking} of ${plural(detail.passages.length, "passage")} without a text: no judge saw the whole evidence.`;
    const note = lacking ? [make("p", { class: "banner warn" }, said)] : [];
    const shared = wordsOf((await text(data.rows.text[row])) ?? "");
    const all = await Promise.all(detail.passages.map((passage, number) => passageElement(passage, number, shared)));
    const rest = all.splice(OPEN);
    const more = rest.length ? [make("details", {}, make("summary", {}, plural(rest.length, "more passage")), ...rest)] : [];
    return [title, ...note, ...all, ...more];
  }

  async function passageElement([id, reference, source], number, shared) {
    const whole = await text(reference);
    const name = make("p", { class: "browse-passage-id" }, make("strong", {}, `${number + 1}. `), make("bdi", { class: "id" }, id), " ",
      source === "run" ? make("span", { class: "badge warn" }, "text from a run") : null);
    const content = whole === null ? [make("p", { class: "note" }, "No text is on record for this passage.")] : textBox(whole, "div", shared);
    return make("div", { class: "browse-passage", id: `browse-passage-${number}`, tabindex: "-1" }, name, ...content);
  }

  // ---- What judges and assessors say ----

  const sideEntries = (detail) => Object.entries(detail.sides).map(([side, said]) => [Number(side), said]);

  async function gradesPart(row, detail) {
    const cards = await Promise.all(sideEntries(detail).map(([side, said]) => sideCard(row, side, said)));
    if (detail.gold.length) cards.unshift(goldCard(row, detail));
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
    const rows = detail.gold.map(([assessor, grade, made]) => [make("bdi", {}, assessor), gradeElement(grade), made]);
    return make("section", { class: "browse-card gold" }, make("h4", {}, "Gold"), verdict(row, data.rows.gold[row], null, null),
      smallTable("Gold of each assessor", ["Assessor", "Grade", "Made"], rows));
  }

  function smallTable(name, heads, rows, attributes = {}) {
    return make("div", { class: "scroll", ...attributes, role: "region", "aria-label": name, tabindex: "0" }, make("table", {},
      make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell)))))));
  }

  async function sideCard(row, side, said) {
    const name = data.sides.length > 1 ? data.sides[side] : said.judge;
    const parts = [make("h4", {}, make("bdi", {}, name)), verdict(row, said.grade, said.reason, side)];
    parts.push(...(await saidParts(said, name)));
    if (said.votes) parts.push(...(await votesPart(said.votes, name)));
    return make("section", { class: said.votes ? "browse-card jury" : "browse-card" }, ...parts);
  }

  async function saidParts(said, name) {
    const notes = [];
    if (said.judge !== name) notes.push(said.judge);
    if (said.prompt && !name.includes(said.prompt)) notes.push(`prompt ${said.prompt}`);
    if (said.model) notes.push(`model ${said.model}`);
    if (said.expected !== undefined) notes.push(`expected grade ${said.expected.toFixed(2)}`);
    if (said.probabilities) notes.push(`entropy ${entropy(said.probabilities).toFixed(2)} bits`);
    if (said.repaired) notes.push("asked a second time, because the first reply was unreadable");
    const parts = notes.length ? [make("p", { class: "note" }, make("bdi", {}, notes.join(" · ")))] : [];
    const [rationale, detail] = await Promise.all([text(said.rationale), text(said.detail)]);
    if (detail !== null) parts.push(...textBox(detail));
    if (rationale !== null && !said.votes) parts.push(...textBox(rationale));
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

  async function votesPart(votes, name) {
    const one = async (vote) => [
      make("bdi", {}, voteName(vote, votes)),
      vote.grade === null ? make("span", { class: "badge warn" }, words(vote.reason ?? "no grade")) : gradeElement(vote.grade),
      make("bdi", {}, (await text(vote.rationale)) ?? (await text(vote.detail)) ?? ""),
    ];
    return [make("h5", {}, "Votes of the jury"), smallTable(`Votes of ${name}`, ["Member", "Grade", "Rationale"], await Promise.all(votes.map(one)))];
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

  async function messages(said) {
    const one = async ([role, pieces]) => {
      const whole = (await Promise.all(pieces.map(text))).join("");
      return [make("p", { class: "note" }, role), ...textBox(whole, "pre")];
    };
    const sent = (await Promise.all((said.sent ?? []).map(one))).flat();
    const reply = await text(said.reply);
    return reply === null ? sent : [...sent, make("p", { class: "note" }, "reply"), ...textBox(reply || "(empty)", "pre")];
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
    state = { ...state, item: data.rows.name[row], page: page > 1 ? String(page) : undefined };
    replaceHash();
    showItem(state.item).catch(showFault);
  }

  function closeItem() {
    const row = data.rows.name.indexOf(state.item);
    state = { ...state, item: undefined };
    history.pushState(null, "", hashOf(state));
    leaveItem(row);
  }

  function leaveItem(row) {
    turnOf += 1;
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
    else openRow(neighbor(data.rows.name.indexOf(state.item), step));
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

  async function follow() {
    if (!location.hash.startsWith(OURS)) return;
    const before = state.item;
    state = stateOf(location.hash);
    if (!(await showList())) return;
    if (state.item) await showItem(state.item);
    else if (!at("item").hidden) leaveItem(data.rows.name.indexOf(before));
  }

  function listen() {
    let timer;
    at("q").addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => change({}).catch(showFault), 120);
    });
    at("filters").addEventListener("submit", (event) => event.preventDefault());
    for (const name of [...FACETS, "sort"]) {
      at(name).addEventListener("change", () => change({ [name]: at(name).value || undefined }).catch(showFault));
    }
    at("clear").addEventListener("click", () => {
      at("q").value = "";
      change(Object.fromEntries(FACETS.map((name) => [name, undefined]))).catch(showFault);
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
    addEventListener("popstate", () => follow().catch(showFault));
  }

  function showFault(fault) {
    at("status").hidden = false;
    at("status").textContent = `The judgments cannot be shown: ${fault.message}.`;
  }

  function prepare(unpacked) {
    data = unpacked;
    tables = Object.fromEntries(Object.entries(data.tables).map(([name, { starts }]) =>
      [name, new DataTable(name, starts, name === "searched")]));
    const grades = new Set(data.said.flatMap((said) => said.grade).filter((grade) => grade !== null));
    data.grades = [...grades].sort((a, b) => a - b);
    data.gradeNames = [...data.grades.map(String), ...data.reasons];
    data.codes = data.said.map((said) => Int16Array.from(said.state, (_, row) => codeOf(said, row)));
    data.differs = Uint8Array.from(data.rows.turn, (_, row) => differences(row));
    data.gold = data.rows.gold.some((grade) => grade !== null);
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

  async function start() {
    prepare(await chunkOf("columns"));
    if (!data.rows.turn.length) {
      at("status").textContent = "There is no judgment to show.";
      return;
    }
    at("list").hidden = at("filters").hidden = false;
    listen();
    state = stateOf(location.hash);
    await showList();
    if (!location.hash.startsWith(OURS)) return;
    if (state.item) await showItem(state.item);
    else root.scrollIntoView({ block: "start" });
  }

  // After the first paint: the page above is readable before anything is unpacked.
  requestAnimationFrame(() => setTimeout(() => start().catch(showFault)));
})();
