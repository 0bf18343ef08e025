"use strict";
const $ = id => document.getElementById(id);
const held = id => { const found = $(id); return found ? JSON.parse(found.textContent) : null; };
const about = held("about"), list = $("rows"), panel = $("episode"), filter = $("filter");
const LONG = 20000, PAGE = 50, PIECE = 200, TOKENS = 5000, SIDES = about.names;

// Text that came from models or files is never read as HTML; what would change how it is shown becomes visible.
const visible = text => String(text)
  .replace(/[\x00-\x08\x0b-\x1f]/g, c => String.fromCharCode(0x2400 + c.charCodeAt(0)))
  .replace(/[\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]/gu, "\ufffd");
const make = (name, properties, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key === "on") for (const [event, call] of Object.entries(value)) element.addEventListener(event, call);
    else if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  for (const child of children.flat(Infinity))
    if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== "") element.append(visible(child));
  return element;
};
const number = value => value === null || value === undefined ? "unknown"
  : (+value.toFixed(4)).toString().replace("-", "\u2212");
const signed = value => (value > 0 ? "+" : "") + number(value);
const badge = text => make("span", { class: "badge " + text.split(" ").pop() }, text);
const counted = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
