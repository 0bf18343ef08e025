// Where episodes come from: a server, or this page itself.
const ask = async path => {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(answer.status === 404 ? "There is no such episode." : await answer.text());
  return answer.json();
};
const all = about.server ? null : held("all-rows");
// As turngym.benchmarks.pages.summaries.matches has it.
const isMeant = (row, word) => {
  const [, key, value] = /^(task|seed):(.*)$/.exec(word) || [];
  const names = [row.task, `${row.name}#${row.task}`, row.instance, row.seed];
  if (key === "seed") return row.seed.toLowerCase() === value;
  if (key === "task") return names.some(each => each.toLowerCase() === value);
  return [row.name, row.env, row.seat, row.winner, row.task, row.seed, row.instance, ...row.flags]
    .join(" ").toLowerCase().includes(word);
};
const fits = (row, words) => {
  const own = about.diff ? words.filter(word => word !== "different" && word !== "equal") : words;
  if (about.diff && words.includes(row.apart ? "equal" : "different")) return false;
  return (row.sides || [row]).some(each => each && own.every(word => isMeant(each, word)));
};
const source = about.server ? {
  rows: (from, count, query) => ask(`rows?from=${from}&count=${count}&q=${encodeURIComponent(query)}`),
  episode: n => ask(`episode?n=${n}`),
  replayed: (n, side) => ask(`replayed?n=${n}&side=${side}`),
} : {
  rows: async (from, count, query) => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean), found = all.filter(row => fits(row, words));
    return { rows: found.slice(from, from + count), found: found.length, complete: true, problems: [] };
  },
  episode: async n => held(`episode-${n}`),
  replayed: async (n, side) => held(`replayed-${n}-${side}`),
};

// The list.
let rows = [], query = about.query || "", current = null, shown = 0, asked = 0;
filter.value = query;
const taskOf = row => row.task === "" ? "" : `${row.task.includes(":") ? "match" : "task"} ${row.task.replaceAll(",", ", ")}`;
const rowButton = row => {
  const parts = [taskOf(row), row.attempt > 0 && `attempt ${row.attempt + 1}`,
    row.seed !== "" && `seed ${row.seed}`, row.seat, counted(row.turns, "turn")].filter(Boolean);
  const lines = about.diff ? row.sides.map((each, k) => make("small", {}, `${"AB"[k]} `, each
      ? [each.winner ? `won by ${each.winner}` : `return ${number(each.returns)}`, ...each.flags.map(badge)] : "is missing"))
    : [make("small", {}, [row.winner && `won by ${row.winner}`, row.returns === null ? "" : `return ${number(row.returns)}`,
      row.score === null ? "" : `score ${number(row.score)}`].filter(Boolean).join(", "))];
  const marks = about.diff ? [badge(row.sides.includes(null) ? "one side" : row.apart ? "different" : "equal")]
    : row.flags.map(badge);
  return make("button", { type: "button", "aria-current": String(row.n === current), "data-n": row.n,
    on: { click: () => open(row.n) } }, row.name, marks, make("small", {}, parts.join(", ")), lines);
};
const drawRows = () => {
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.n : null;
  list.replaceChildren(...rows.map(row => make("li", {}, rowButton(row))));
  if (focused) { const again = list.querySelector(`[data-n="${focused}"]`); if (again) again.focus(); }
};
const tellFound = answer => {
  const what = counted(answer.found, about.diff ? "task" : "episode");
  $("found").textContent = answer.complete ? `${what}${query ? " found" : ""}`
    : about.diff ? `Reading: ${counted(answer.known, "episode")} so far.` : `${what} so far, still reading.`;
  for (const each of answer.problems) $("found").append(" ", visible(each));
  if (about.left_out) $("found").append(` ${about.left_out.toLocaleString("en")} more are not in this page.`);
  $("more").hidden = rows.length >= answer.found;
};
const loadRows = async (count = PAGE) => {
  const mine = ++asked;
  let answer, found = [];
  try {
    do {
      answer = await source.rows(found.length, Math.min(count - found.length, 500), query);
      if (mine !== asked) return;
      found = found.concat(answer.rows);
    } while (answer.rows.length && found.length < Math.min(count, answer.found));
  } catch (error) {
    $("found").textContent = `The server does not answer: ${visible(error.message)}`;
    return;
  }
  const isSame = found.length === rows.length && JSON.stringify(found) === JSON.stringify(rows);
  rows = found;
  if (!isSame) drawRows();  // a row that is being clicked must stay where it is
  tellFound(answer);
  if (current === null && rows.length) open(wanted(), false);
  else if (current === null && answer.complete) {
    panel.replaceChildren(make("p", { class: "quiet" }, query ? "No episode fits the filter." : "There are no episodes."));
    panel.setAttribute("aria-busy", "false");
  }
  if (!answer.complete) setTimeout(() => { if (mine === asked) loadRows(Math.max(count, PAGE)); }, isSame ? 500 : 250);
};
const wanted = () => {
  const [, n] = /^#(\d+)$/.exec(location.hash) || [];
  return n !== undefined && !query ? +n : rows[0].n;
};
$("more").addEventListener("click", () => loadRows(rows.length + PAGE));
let typing = 0;
filter.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => { query = filter.value; loadRows(); }, 120);
});

// One episode, or two side by side.
const open = async (n, takesFocus = true) => {
  current = n;
  for (const each of list.querySelectorAll("button")) {
    const isCurrent = +each.dataset.n === n;
    each.setAttribute("aria-current", String(isCurrent));
    if (isCurrent) each.scrollIntoView({ block: "nearest" });
  }
  panel.setAttribute("aria-busy", "true");
  const mine = ++shown;
  let found;
  try { found = await source.episode(n); } catch (error) { found = { error: error.message }; }
  if (mine !== shown) return;
  history.replaceState(null, "", `#${n}`);
  if (!found || found.error)
    panel.replaceChildren(make("p", { class: "bad" }, found ? found.error : "This episode is not in this page."));
  else draw(n, found);
  panel.setAttribute("aria-busy", "false");
  panel.dataset.n = n;
  if (takesFocus) { panel.focus({ preventScroll: true }); scrollTo({ top: panel.offsetTop - 8 }); }
};
const replayButton = (n, side, form, redraw) => {
  if (!form.replay || (!about.server && !$(`replayed-${n}-${side}`))) return "";
  const play = async () => {
    button.disabled = true;
    button.textContent = "Playing again";
    try {
      const found = await source.replayed(n, side);
      form.instructions = found.instructions;
      form.turns.forEach((turn, k) => {
        if (turn.seen === undefined && found.seen[k] !== undefined) turn.seen = found.seen[k];
        if (!turn.image && found.images[k]) turn.image = found.images[k];
      });
      const last = form.turns.length;
      if (found.images[last]) form.final.image = found.images[last];
      if (form.final.seen === undefined && found.seen[last] !== undefined) form.final.seen = found.seen[last];
      if (found.note) form.notes.push(found.note);
    } catch (error) { form.notes.push(error.message); }
    form.replay = null;
    redraw();
  };
  const where = about.diff ? ` ${"AB"[side]}` : "";
  const button = make("button", { type: "button", "data-replay": side, on: { click: play } }, `Play${where} again for rules and pictures`);
  if (form.replay.has_pictures) setTimeout(play);
  return button;
};
const draw = (n, found) => {
  const redraw = () => { if (current === n) draw(n, found); };
  const step = (by, text) => make("button", { type: "button", on: { click: () => go(by) } }, text);
  const { row } = found, heading = [row.name, taskOf(row), row.seed !== "" && `seed ${row.seed}`];
  const bar = make("div", { class: "bar" }, step(-1, "Previous"), step(1, "Next"),
    found.sides.map((form, side) => form ? replayButton(n, side, form, redraw) : ""));
  const title = make("h2", {}, heading.filter(Boolean).join(", "), about.diff ? [] : row.flags.map(badge));
  if (!about.diff) {
    const [form] = found.sides;
    panel.replaceChildren(title, bar, ...aboutForm(form).filter(Boolean), ...(form.seats && form.seats.length ? seatTabs(form)
      : [inPieces(form.turns.length, k => turnCard(form.turns[k], k, null, null, false, form))]), ...finalPart(form));
    return;
  }
  const differs = (one, other) => ["seen", "prompt", "completion", "action", "reward", "valid"].some(
    key => one[key] !== undefined && other[key] !== undefined && one[key] !== other[key]);
  const sides = found.sides, count = Math.max(...sides.map(form => form ? form.turns.length : 0));
  const names = sides.map(form => form && form.seats
    ? form.seats.map(seat => ({ label: seat.role ? `${seat.name} (${seat.role})` : seat.name })) : null);
  const partOf = k => {
    const turns = sides.map(form => form ? form.turns[k] : undefined);
    const mark = k === found.differs ? make("p", { class: "mark", id: "first-difference", tabindex: "-1" },
      `First difference: turn ${k + 1}`) : null;
    return [mark, make("div", { class: "pair" }, turns.map((turn, side) => turn
      ? turnCard(turn, k, side, names[side], turns[1 - side] && differs(turn, turns[1 - side]), sides[side])
      : make("section", { class: "turn absent" }, sides[side] ? `${SIDES[side]} has ended.` : `${SIDES[side]} has no such episode.`)))];
  };
  const same = sides.every(Boolean) && found.differs === null
    ? make("p", {}, "Both are the same in everything that was recorded of their turns.") : "";
  panel.replaceChildren(...[title, bar, same, make("div", { class: "pair heads" }, sides.map((form, side) => make("div", {},
    SIDES[side], form && row.sides[side] ? row.sides[side].flags.map(badge) : ""))), make("div", { class: "pair" },
    sides.map(form => make("div", {}, form ? aboutForm(form) : "is missing"))),
    inPieces(count, partOf, (found.differs || 0) + 1),
    make("div", { class: "pair" }, sides.map(form => make("div", {}, form ? finalPart(form) : "")))].filter(Boolean));
};

// Keys.
const go = by => {
  const at = rows.findIndex(row => row.n === current) + by;
  if (rows[at]) open(rows[at].n);
  else if (by > 0 && !$("more").hidden) loadRows(rows.length + PAGE).then(() => { if (rows[at]) open(rows[at].n); });
};
const walk = by => {
  const turns = [...panel.querySelectorAll(".turn")], focused = document.activeElement.closest(".turn");
  const next = turns[focused ? turns.indexOf(focused) + by : by > 0 ? 0 : turns.length - 1];
  const more = panel.querySelector(".pieces > button:not([hidden])");
  const isAfter = next && more && more.compareDocumentPosition(next) & Node.DOCUMENT_POSITION_FOLLOWING;
  if (more && by > 0 && focused && (!next || isAfter)) {
    more.click();
    walk(by);
    return;
  }
  if (!next) return;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: next.offsetHeight > innerHeight ? "start" : "nearest" });
};
const keys = {
  j: () => walk(1), k: () => walk(-1), ArrowRight: () => go(1), ArrowLeft: () => go(-1),
  "/": () => { filter.focus(); filter.select(); },
  d: () => { const mark = $("first-difference"); if (mark) { mark.focus(); mark.scrollIntoView(); } },
  r: () => { const button = panel.querySelector("[data-replay]"); if (button) button.click(); },
};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
  if (event.target === filter && event.key === "Escape") { panel.focus(); return; }
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
loadRows();
