// One turn, its tokens, and the tabs of a game between seats.
const block = text => {
  const full = visible(text);
  if (full.length <= LONG) return make("pre", {}, full);
  const part = make("pre", {}, full.slice(0, LONG)), box = make("div", {}, part);
  const button = make("button", { type: "button", on: { click: () => { part.textContent = full; button.remove(); } } },
    `Show all ${full.length.toLocaleString("en")} characters`);
  box.append(button);
  return box;
};
const labelled = (label, ...children) => [make("div", { class: "label" }, label), ...children];
const closed = (summary, ...children) => make("details", {}, make("summary", {}, summary), ...children);
// Long episodes are shown piece by piece, and so much of them at once that a certain part is there.
const inPieces = (count, partOf, least = 0) => {
  let done = 0;
  const more = make("button", { type: "button", on: { click: () => fill(done + PIECE) } });
  const box = make("div", { class: "pieces" }, more);
  const fill = end => {
    for (; done < Math.min(end, count); done++)
      for (const part of [partOf(done)].flat(Infinity)) if (part) box.insertBefore(part, more);
    more.hidden = done >= count;
    more.textContent = `Show more, ${(count - done).toLocaleString("en")} are left`;
  };
  fill(Math.max(PIECE, least));
  return box;
};
const pairsOf = pairs => make("dl", { class: "facts" },
  pairs.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value.length > LONG ? block(value) : value)]));

const tokens = turn => {
  const logprobs = turn.logprobs || [], advantages = turn.advantages || [];
  const total = Math.max(logprobs.length, advantages.length, (turn.tokens || []).length), count = Math.min(total, TOKENS);
  if (!count) return [];
  const kinds = [logprobs.length && "log-probability", advantages.length && "advantage"].filter(Boolean);
  const largest = advantages.reduce((most, value) => Math.max(most, Math.abs(value || 0)), 1e-9);
  const readout = make("p", { class: "readout", role: "status" },
    logprobs.length ? `Sum of log-probabilities ${number(logprobs.reduce((sum, value) => sum + (value || 0), 0))} over `
      + `${counted(logprobs.length, "token")}.${total > count ? ` The first ${count.toLocaleString("en")} are shown.` : ""}` : "");
  const tell = k => {
    const name = turn.tokens ? `\u201c${turn.tokens[k]}\u201d` : "";
    const parts = [];
    if (k < logprobs.length) parts.push(logprobs[k] === null ? "log-probability unknown"
      : `log-probability ${number(logprobs[k])} (${(100 * Math.exp(logprobs[k])).toFixed(1)} %)`);
    if (k < advantages.length) parts.push(advantages[k] === null ? "advantage unknown" : `advantage ${signed(advantages[k])}`);
    readout.textContent = visible(`Token ${k + 1} of ${count} ${name}: ${parts.join(", ")}.`);
  };
  const spans = [...Array(count).keys()].map(k => make("span", { tabindex: k ? "-1" : "0", role: "listitem",
    on: { mouseenter: () => tell(k), focus: () => tell(k), click: () => spans[k].focus() } },
    turn.tokens ? turn.tokens[k] || "" : `${number(logprobs[k])} `));
  const paint = kind => spans.forEach((span, k) => {
    const isAdvantage = kind === "advantage", value = (isAdvantage ? advantages : logprobs)[k] || 0;
    const share = isAdvantage ? Math.abs(value) / largest : Math.min(1, -value / 4);
    const colour = isAdvantage ? (value < 0 ? "--bad" : "--good") : "--accent";
    span.style.background = `color-mix(in srgb, var(${colour}) ${(33 * Math.max(0, share)).toFixed(1)}%, transparent)`;
    span.classList.toggle("minus", isAdvantage && value < 0);
  });
  const move = event => {
    const at = spans.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: count - 1 }[event.key];
    if (at < 0 || to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    if (!spans[to]) return;
    spans[at].tabIndex = -1;
    spans[to].tabIndex = 0;
    spans[to].focus();
  };
  const colour = make("select", { "aria-label": "Colour of tokens", on: { change: () => paint(colour.value) } },
    kinds.map(kind => make("option", {}, kind)));
  if (kinds.length) paint(kinds[0]);
  const box = make("div", { class: "tokens", role: "list", "aria-label": "Tokens", on: { keydown: move } }, spans);
  return [make("div", { class: "bar label" }, "Tokens, coloured by ", kinds.length > 1 ? colour : kinds[0] || "nothing"), box, readout];
};

// Values of states by playouts, as a curve over turns; a click shows the turn.
const drawn = (name, properties, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) element.setAttribute(key, value);
  element.append(...children.map(child => child instanceof Node ? child : visible(child)));
  return element;
};
const percent = value => `${(100 * value).toFixed(0)} %`;
const valueText = at => `${percent(at.value)} of ${counted(at.count, "playout")} succeed `
  + `(95 % interval ${percent(at.low)} to ${percent(at.high)})${at.score === null ? "" : `, mean score ${number(at.score)}`}`;
const valueCurve = form => {
  if (!(form.values || []).length) return "";
  const last = Math.max(1, form.turns.length - 1), x = at => 30 + 560 * at.turn / last, y = value => 95 - 85 * value;
  const line = (points, key) => points.map(at => `${x(at).toFixed(1)},${y(at[key]).toFixed(1)}`);
  const band = [...line(form.values, "low"), ...line([...form.values].reverse(), "high")].join(" ");
  const show = at => {
    const card = panel.querySelector(`[data-turn="${at.turn}"]`);
    if (card) { card.focus({ preventScroll: true }); card.scrollIntoView({ block: "nearest" }); }
  };
  const dots = form.values.map(at => {
    const dot = drawn("circle", { cx: x(at), cy: y(at.value), r: 4 },
      drawn("title", {}, `Before turn ${at.turn + 1}: ${valueText(at)}`));
    dot.addEventListener("click", () => show(at));
    return dot;
  });
  const ticks = [0, 0.5, 1].flatMap(value => [drawn("line", { x1: 30, x2: 590, y1: y(value), y2: y(value) }),
    drawn("text", { x: 0, y: y(value) + 4 }, `${100 * value}`)]);
  const first = form.values[0], end = form.values[form.values.length - 1];
  const label = `Success of playouts in % before each turn: ${percent(first.value)} before turn ${first.turn + 1}, `
    + `${percent(end.value)} before turn ${end.turn + 1}. Each turn has its number below.`;
  return make("figure", { class: "values" }, make("figcaption", { class: "label" },
    "Value of states: success of playouts in %, before each turn, with 95 % intervals"),
    drawn("svg", { viewBox: "0 0 600 105", role: "img", "aria-label": label }, ...ticks, drawn("polygon", { points: band }),
      drawn("polyline", { points: line(form.values, "value").join(" ") }), ...dots));
};
const continued = (form, k) => {
  if (!form || !form.from) return "";
  const at = (form.values || []).find(each => each.turn === k);
  const commands = [`turngym play --from ${form.from}@${k}`, `turngym eval --from ${form.from}@${k} --agent random --repeats 20`];
  return [at ? make("p", { class: "quiet" }, `Value before this turn: ${valueText(at)}.`) : "",
    closed("Continue from here", commands.map(each => make("p", {}, make("code", {}, each))))];
};

const turnCard = (turn, k, side, names, isDifferent, form) => {
  const title = [`Turn ${k + 1}`, names && turn.seat >= 0 && names[turn.seat] ? names[turn.seat].label : ""];
  const card = make("section", { class: isDifferent ? "turn differs" : "turn", tabindex: "-1", "data-turn": k,
    "aria-label": `${side === null ? "" : `${SIDES[side]}, `}turn ${k + 1}` });
  const reward = turn.reward === null ? "" : make("span", { class: "quiet" }, `reward ${signed(turn.reward)}`);
  card.append(make("h3", {}, title.filter(Boolean).join(", "), reward,
    turn.valid === false ? badge("invalid") : "", turn.phase ? make("span", { class: "quiet" }, turn.phase) : ""));
  if (turn.image) card.append(make("img", { src: turn.image, alt: `Picture before turn ${k + 1}; the text tells the same.` }));
  if (turn.seen !== undefined) card.append(...labelled("Observation", block(turn.seen)));
  if (turn.prompt !== undefined)
    card.append(closed(turn.continues ? "Prompt, what was added to it" : "Prompt", block(turn.prompt)));
  if (turn.completion && turn.completion !== turn.action) card.append(...labelled("Completion", block(turn.completion)));
  for (const [kind, said] of turn.notes || []) card.append(closed(`Written beside it: ${kind}`, block(said)));
  card.append(...tokens(turn));
  card.append(make("p", { class: "act" }, "Action ", (turn.action || "").length > LONG ? block(turn.action)
    : make("code", {}, turn.action === undefined || turn.action === "" ? "(empty)" : turn.action)));
  if (turn.more && turn.more.length) card.append(closed("More about this turn", pairsOf(turn.more)));
  card.append(...[continued(form, k)].flat().filter(Boolean));
  return card;
};
const finalPart = form => form.final && (form.final.seen !== undefined || form.final.image)
  ? [make("section", { class: "turn", tabindex: "-1" }, make("h3", {}, "After the last turn"),
    form.final.image ? make("img", { src: form.final.image, alt: "Picture after the last turn." }) : "",
    form.final.seen === undefined ? "" : block(form.final.seen))] : [];
const callerOf = form => {
  const { n, seat, episode, turn } = form.caller;
  const name = seat || `episode ${episode}`, when = turn === null ? "" : ` in turn ${turn + 1}`;
  const link = make("a", { href: `#${n}`, "data-caller": n, on: { click: event => { event.preventDefault(); open(n); } } }, name);
  return make("p", {}, "Called by ", n === null || about.diff ? name : link, when, ".");
};
const aboutForm = form => [
  form.caller ? callerOf(form) : "",
  form.fault ? make("p", { class: "bad" }, `Fault: ${form.fault}`) : "",
  ...form.notes.map(note => make("p", { class: "quiet" }, note)),
  closed("About this episode", pairsOf(form.facts), form.replay && form.replay.command
    ? make("p", {}, "The same task in a terminal: ", make("code", {}, form.replay.command)) : ""),
  form.instructions ? closed("Rules", block(form.instructions)) : "", valueCurve(form)];

// A game between seats: one tab for all of it, and one for what each seat saw.
const seatTabs = form => {
  const names = form.seats.map(seat => ({ ...seat, label: seat.role ? `${seat.name} (${seat.role})` : seat.name }));
  const content = make("div", { role: "tabpanel", tabindex: "-1" });
  const readers = to => to.length === names.length ? "to everybody" : `to ${to.map(k => names[k].name).join(", ")}`;
  const fill = who => {
    const seat = who < 0 ? null : names[who], parts = [];
    if (seat) parts.push(make("p", {}, `${seat.label} was played by ${seat.player}`, seat.team ? `, team ${seat.team}` : "",
      `, return ${number(seat.return)}.`, seat.won ? badge("won") : ""), closed("Answers and costs", pairsOf(seat.counts)),
      seat.instructions ? closed("Rules as this seat read them", block(seat.instructions)) : "");
    const partOf = at => {
      const event = form.events[at];
      if (event.to && (who < 0 || event.to.includes(who)))
        return make("p", { class: event.to.length === names.length ? "line" : "line private" },
          make("span", { class: "quiet" }, readers(event.to)), event.text);
      if (event.turn !== undefined && (who < 0 || form.turns[event.turn].seat === who))
        return turnCard(form.turns[event.turn], event.turn, null, names);
      if (event.rewards && (who < 0 || event.rewards[who]))
        return make("p", { class: "earned" }, "Earned: ", who < 0
          ? event.rewards.map((reward, k) => reward ? `${names[k].name} ${signed(reward)}` : "").filter(Boolean).join(", ")
          : signed(event.rewards[who]));
      return null;
    };
    content.replaceChildren(...parts.filter(Boolean), inPieces(form.events.length, partOf));
  };
  const choose = (who, takesFocus) => {
    tabs.forEach((tab, k) => {
      tab.setAttribute("aria-selected", String(k === who + 1));
      tab.tabIndex = k === who + 1 ? 0 : -1;
    });
    if (takesFocus) tabs[who + 1].focus();
    content.setAttribute("aria-label", who < 0 ? "All seats" : names[who].label);
    fill(who);
  };
  const tabs = ["All seats", ...names.map(seat => seat.label)].map((label, k) =>
    make("button", { type: "button", role: "tab", on: { click: () => choose(k - 1, true) } }, label));
  const move = event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], at = tabs.indexOf(event.target);
    if (!step || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    choose((at + step + tabs.length) % tabs.length - 1, true);
  };
  choose(-1, false);
  return [make("div", { role: "tablist", "aria-label": "Seats", on: { keydown: move } }, tabs), content];
};
