// Put into every document before its own scripts: a clock that only turns move, repeatable random numbers, and
// eyes for the observation. Nothing of it can be reached by what an agent may do.
(() => {
  if (window.__turngym) return;
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection"]) delete window[name]; // they reach any host
  const realFrame = window.requestAnimationFrame.bind(window);
  const realMessage = new MessageChannel();
  const RealDate = Date, epoch = RealDate.UTC(2020, 0, 1, 12);
  let now = 0, serial = 0, timers = new Map();

  // The clock.
  const moment = () => epoch + Math.floor(now);
  const VirtualDate = new Proxy(RealDate, {
    construct: (target, given, kind) => Reflect.construct(target, given.length ? given : [moment()], kind === VirtualDate ? target : kind),
    apply: () => new RealDate(moment()).toString(),
    get: (target, name) => name === "now" ? moment : Reflect.get(target, name),
  });
  RealDate.prototype.constructor = VirtualDate;
  window.Date = VirtualDate;
  performance.now = () => now;
  const later = (run, wait, every, given) => {
    timers.set(++serial, { run, given, every, time: now + Math.max(1, Number(wait) || 0), id: serial });
    return serial;
  };
  const forget = id => { timers.delete(Number(id)); };
  window.setTimeout = (run, wait, ...given) => later(run, wait, 0, given);
  window.setInterval = (run, wait, ...given) => later(run, wait, Math.max(1, Number(wait) || 0), given);
  window.requestAnimationFrame = run => later(run, 16 - now % 16, 0, null);
  window.clearTimeout = window.clearInterval = window.cancelAnimationFrame = forget;
  const advance = span => {
    const end = now + span;
    for (let count = 0; count < 20000; count++) {
      let next = null;
      for (const timer of timers.values())
        if (timer.time <= end && (!next || timer.time < next.time || (timer.time === next.time && timer.id < next.id)))
          next = timer;
      if (!next) break;
      now = Math.max(now, next.time);
      if (next.every) next.time = now + next.every; else timers.delete(next.id);
      try {
        if (typeof next.run === "function") next.run.apply(window, next.given || [now]);
        else (0, eval)(String(next.run));
      } catch (error) { console.warn(String(error)); }
    }
    now = end;
    for (let place = 0; place < window.length; place++)
      try { window[place].__turngym.advance(span); } catch { /* a frame of another site, or one that has not loaded */ }
  };

  // Random numbers that do not differ from load to load, until the task seeds its own.
  let random = 1;
  Math.random = () => {
    random = (random + 0x6D2B79F5) | 0;
    let t = Math.imul(random ^ (random >>> 15), 1 | random);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };

  // Which elements listen to the mouse or the keyboard.
  const HEARD = new Set(["click", "mousedown", "mouseup", "dblclick", "mouseover", "mouseenter", "dragstart", "touchstart"]);
  let listening = new WeakMap();
  // Lists and calendars that the browser opens over a page are no part of it, and a page that draws only when told to
  // would wait for them for ever: they stay shut, also to Enter, which does not send the form of such a field then.
  // Values are selected, filled in or typed.
  const isList = element => element.matches("select:not([multiple])") && element.size < 2;
  const isPicker = element => element.matches(
    "input[type=date], input[type=month], input[type=week], input[type=time], input[type=datetime-local], input[type=color]");
  const opens = event => [" ", "Enter", "F4"].includes(event.key) || (event.altKey && event.key.startsWith("Arrow"));
  addEventListener("keydown", event => {
    if (event.target instanceof Element && (isList(event.target) || isPicker(event.target)) && opens(event)) event.preventDefault();
  }, true);
  addEventListener("mousedown", event => {
    const list = event.target instanceof Element && event.target.closest("select");
    if (list && isList(list)) { event.preventDefault(); list.focus(); }
  }, true);
  addEventListener("click", event => {
    if (event.target instanceof Element && isPicker(event.target)) event.preventDefault();
  }, true);
  for (const kind of [HTMLInputElement, HTMLSelectElement]) kind.prototype.showPicker = () => {};

  // The browser has one clipboard for all its pages: each page gets one of its own instead, which holds plain text.
  let clipboard = "";
  const chosen = () => {
    const field = document.activeElement;
    if (!field || field.selectionStart === undefined || field.selectionStart === null) return String(getSelection());
    return field.type === "password" ? "" : field.value.slice(field.selectionStart, field.selectionEnd);
  };
  for (const kind of ["copy", "cut"])
    addEventListener(kind, event => {
      event.preventDefault();
      const text = chosen();
      if (!text) return;
      clipboard = text;
      if (kind === "cut") document.execCommand("delete");
    }, true);
  addEventListener("paste", event => {
    event.preventDefault();
    if (clipboard) document.execCommand("insertText", false, clipboard);
  }, true);

  const add = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (kind, ...rest) {
    if (HEARD.has(kind) && this instanceof Element) listening.set(this, true);
    return add.call(this, kind, ...rest);
  };
  const hears = element => {
    if (element.ownerDocument !== document) return element.ownerDocument.defaultView.__turngym.hears(element);
    return listening.has(element) || element.onclick || element.onmousedown || element.ondblclick;
  };

  // Pages within the page: shadow roots, also closed ones, and frames of the same origin.
  const roots = new WeakMap(), attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (...given) {
    const root = attach.apply(this, given);
    roots.set(this, root);
    return root;
  };
  const rootOf = element => {
    const view = element.ownerDocument.defaultView;
    return element.shadowRoot || (view === window ? roots.get(element) : view && view.__turngym && view.__turngym.rootOf(element));
  };
  const isFrame = element => element.tagName === "IFRAME" || element.tagName === "FRAME";
  const pageOf = element => {
    const page = isFrame(element) ? element.contentDocument : null;
    return page && page.body && page.defaultView && page.defaultView.__turngym ? page : null;
  };
  const flat = element => {
    const given = element.tagName === "SLOT" ? element.assignedNodes() : [];
    return given.length ? given : (rootOf(element) || element).childNodes;
  };
  const childrenOf = element => {
    if (element.tagName === "DETAILS" && !element.open) return [...element.children].filter(each => each.tagName === "SUMMARY").slice(0, 1);
    const page = pageOf(element);
    return page ? [page.body] : flat(element);
  };
  const above = node => node.parentNode || node.host || (node.defaultView && node.defaultView.frameElement);
  const holds = (element, node) => {
    for (; node; node = above(node)) if (node === element) return true;
    return false;
  };
  // What is at a point, and what has the focus, as deep as it goes.
  const at = (x, y) => {
    let found = document.elementFromPoint(x, y);
    for (let deeper = found; deeper; ) {
      found = deeper;
      const root = rootOf(found), page = pageOf(found);
      if (page) {
        const box = found.getBoundingClientRect();
        x -= box.x + found.clientLeft; y -= box.y + found.clientTop;
      }
      deeper = root ? root.elementFromPoint(x, y) : page ? page.elementFromPoint(x, y) : null;
      if (deeper === found) break;
    }
    return found;
  };
  const active = () => {
    let found = document.activeElement;
    for (let deeper = found; deeper; ) {
      found = deeper;
      const root = rootOf(found), page = pageOf(found);
      deeper = root ? root.activeElement : page ? page.activeElement : null;
    }
    return found;
  };
  // How far the page that an element is in lies from the corner of the whole.
  const shift = element => {
    let x = 0, y = 0;
    for (let view = element.ownerDocument.defaultView; view && view !== window; view = view.parent) {
      const box = view.frameElement.getBoundingClientRect();
      x += box.x + view.frameElement.clientLeft; y += box.y + view.frameElement.clientTop;
    }
    return [x, y];
  };
  const boxOf = (element, box = element.getBoundingClientRect()) => {
    if (element.ownerDocument === document) return box;
    const [x, y] = shift(element);
    return new DOMRect(box.x + x, box.y + y, box.width, box.height);
  };

  // The browser tells a page some time later that what lies under the resting mouse has changed. To make that no matter
  // of chance, whoever looks asks first whether it is due, and moves the mouse on the spot if so.
  let mouse = null, under = null;
  for (const kind of ["mousemove", "mouseover"])
    add.call(window, kind, event => { mouse = [event.clientX, event.clientY]; under = event.target; }, true);
  const isStale = () => mouse !== null && document.elementFromPoint(...mouse) !== under;

  // Eyes.
  let numbers = new WeakMap(), elements = new Map(), count = 0;
  const numberOf = element => {
    let number = numbers.get(element);
    if (!number) { number = ++count; numbers.set(element, number); elements.set(number, element); }
    return number;
  };
  const SKIPPED = new Set(["SCRIPT", "STYLE", "HEAD", "META", "LINK", "NOSCRIPT", "TEMPLATE", "OPTION", "OPTGROUP", "defs"]);
  const SHAPES = new Set(["circle", "rect", "polygon", "ellipse", "line", "path", "polyline", "text", "tspan", "image"]);
  const CONTROLS = new Set(["A", "BUTTON", "INPUT", "SELECT", "TEXTAREA", "CANVAS", "IMG", "SUMMARY", "LABEL"]);
  const clean = text => text.replace(/\s+/g, " ").trim();
  const round = value => Math.round(value * 10) / 10;
  const walk = (element, hidden, out) => {
    if (SKIPPED.has(element.tagName) || hidden.has(element.id)) return;
    const style = getComputedStyle(element);
    if (style.display === "none" || Number(style.opacity) === 0) return;
    const rect = boxOf(element), tag = element.tagName.toLowerCase();
    const isShape = SHAPES.has(element.tagName), shown = style.visibility === "visible";
    let node = null;
    const own = [];
    for (const child of childrenOf(element))
      if (child.nodeType === 3 && tag !== "textarea") { const text = clean(child.data); if (text) own.push(text); }
    const isEditable = element.isContentEditable && !(element.parentElement && element.parentElement.isContentEditable);
    const role = element.getAttribute("role") || "";
    const heard = !!hears(element);
    const paint = !isShape && !CONTROLS.has(element.tagName) && style.backgroundColor !== "rgba(0, 0, 0, 0)" && !element.firstElementChild && !own.length;
    const visible = shown && rect.width > 0 && rect.height > 0;
    if (element !== element.ownerDocument.body && (visible || (shown && isShape && (rect.width > 0 || rect.height > 0))) &&
        (isShape || CONTROLS.has(element.tagName) || heard || own.length || isEditable || role || paint ||
         element.tabIndex >= 0 || element.draggable || style.overflowY === "scroll" || style.overflowY === "auto")) {
      node = { id: numberOf(element), tag, at: [round(rect.x), round(rect.y), round(rect.width), round(rect.height)] };
      if (own.length) node.text = own[0];
      if (role) node.role = role;
      if (heard) node.heard = true;
      if (isEditable) { node.editable = true; node.value = element.innerText.replace(/\n$/, ""); }
      if (element.disabled) node.disabled = true;
      if (active() === element) node.focused = true;
      if (element.id) node.name = element.id;
      const kind = typeof element.className === "string" ? element.className : element.className.baseVal;
      if (kind) node.class = kind;
      if (isShape) {
        const fill = style.fill;
        if (fill && fill !== "none") node.color = fill;
        if (tag === "polygon") node.corners = element.points.length;
        if (tag === "text" || tag === "tspan") node.size = parseFloat(style.fontSize);
        if (tag === "line") node.line = [element.x1, element.y1, element.x2, element.y2].map(v => v.baseVal.value);
        if (tag === "image") node.source = (element.href && element.href.baseVal || "").split("/").pop();
      } else if (paint) node.color = style.backgroundColor;
      if (tag === "img") node.source = (element.getAttribute("src") || "").split("/").pop();
      if (tag === "a" || element.tabIndex >= 0) node.focusable = true;
      if (element.scrollHeight > element.clientHeight + 1 && /auto|scroll/.test(style.overflowY))
        node.scroll = [round(element.scrollTop), element.scrollHeight - element.clientHeight];
      if (tag === "input") {
        node.type = element.type;
        if (element.type === "checkbox" || element.type === "radio") node.checked = element.checked;
        else node.value = element.value;
      } else if (tag === "textarea") node.value = element.value;
      else if (tag === "select") {
        node.options = [...element.options].map(each => clean(each.text));
        node.selected = [...element.selectedOptions].map(each => clean(each.text));
        if (element.multiple) node.multiple = true;
        if (element.size > 1) node.rows = element.size;
      }
      const hint = element.getAttribute("aria-label") || element.getAttribute("title") || element.getAttribute("placeholder") || element.getAttribute("alt");
      if (hint) node.hint = clean(hint);
      const bold = own.length && Number(style.fontWeight) >= 600;
      if (bold) node.bold = true;
      if (own.length && style.textDecorationLine.includes("underline")) node.underlined = true;
      if (own.length && style.fontStyle === "italic") node.italic = true;
      if (own.length || isShape || heard) node.ink = style.color;
      out.push(node);
    }
    if (isFrame(element) && visible && !pageOf(element))
      out.push({ id: numberOf(element), tag, at: [round(rect.x), round(rect.y), round(rect.width), round(rect.height)], text: "(a frame that cannot be read)" });
    let first = true;
    if (style.contentVisibility === "hidden") return;
    for (const child of childrenOf(element)) {
      if (child.nodeType === 1) walk(child, hidden, out);
      else if (child.nodeType === 3 && visible && tag !== "textarea") {
        const text = clean(child.data);
        if (!text) continue;
        if (first) { first = false; if (node && out[out.length - 1] === node) continue; if (node) delete node.text; }
        out.push({ id: 0, tag: "text", text, of: node ? node.id : 0 });
      }
    }
  };
  const observe = hidden => {
    const out = [];
    if (document.body) walk(document.body, new Set(hidden), out);
    return { nodes: out, url: location.href, scroll: [scrollX, scrollY] };
  };
  // The numbers of all elements in the order of the document, its frames' in lists of their own after it, null for one
  // that cannot be read: 0 for those without, -1 for those that are not shown.
  const order = hidden => {
    const names = new Set(hidden), pages = [document];
    const visit = (element, list) => {
      list.push(names.has(element.id) ? -1 : numbers.get(element) || 0);
      if (isFrame(element)) pages.push(pageOf(element));
      for (const child of flat(element)) if (child.nodeType === 1) visit(child, list);
      return list;
    };
    const lists = [];
    for (const page of pages) lists.push(page && visit(page.documentElement, []));
    return lists;
  };
  const pictures = () => Promise.all([...document.images].filter(each => !each.complete).map(
    each => new Promise(done => { each.addEventListener("load", done); each.addEventListener("error", done); })));
  const kept = [];
  const preload = addresses => Promise.all(addresses.map(address => {
    const image = new Image();
    kept.push(image);
    image.src = address;
    return image.decode().catch(() => null);
  }));
  const frame = () => new Promise(done => realFrame(() => { realMessage.port1.onmessage = () => done(true); realMessage.port2.postMessage(0); }));
  let painted = false;
  const mark = () => { painted = false; realFrame(() => { painted = true; }); };
  // Where an element can be clicked, or "moved" if it had to be brought into view: ask again behind the next frame,
  // which what listens to the scroll is told with.
  const place = (number, isMoved) => {
    const element = elements.get(number);
    if (!element || !element.isConnected) return null;
    const rect = boxOf(element);
    const inside = box => box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
    const reaches = box => {
      const x = box.x + box.width / 2, y = box.y + box.height / 2, top = at(x, y);
      return top && holds(element, top);
    };
    if (!isMoved && (!inside(rect) || !reaches(rect))) {
      element.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
      return "moved";
    }
    let x = rect.x + rect.width / 2, y = rect.y + rect.height / 2;
    const hits = (atX, atY) => {
      const hit = at(atX, atY);
      return hit && holds(element, hit);
    };
    if (!hits(x, y)) { // covered in the middle, or text that runs over lines: the first free point
      search: for (const box of [...element.getClientRects()].map(each => boxOf(element, each)))
        for (const down of [0.5, 0.15, 0.85, 0.3, 0.7])
          for (const across of [0.5, 0.1, 0.9, 0.3, 0.7])
            if (hits(box.x + box.width * across, box.y + box.height * down)) {
              x = box.x + box.width * across; y = box.y + box.height * down;
              break search;
            }
    }
    return [x, y, rect.x, rect.y, rect.width, rect.height];
  };
  const select = (number, wanted) => {
    const element = elements.get(number);
    if (!element || element.tagName !== "SELECT" || element.disabled) return false;
    const options = [...element.options];
    const found = options.filter(each => !each.disabled && wanted.includes(clean(each.text)));
    if (!found.length) return false;
    if (!element.multiple) element.value = found[0].value, element.selectedIndex = found[0].index;
    else for (const each of options) each.selected = found.includes(each);
    element.focus();
    for (const kind of ["input", "change"]) element.dispatchEvent(new Event(kind, { bubbles: true }));
    return true;
  };
  const focus = number => {
    const element = elements.get(number);
    if (!element || !element.isConnected) return false;
    element.focus();
    return holds(element, active());
  };
  const clear = number => {
    const element = elements.get(number);
    if (!focus(number) || element.readOnly) return false;
    if (element.select) element.select();
    else if (element.isContentEditable) {
      const page = element.ownerDocument, range = page.createRange(); range.selectNodeContents(element);
      const chosen = page.getSelection(); chosen.removeAllRanges(); chosen.addRange(range);
    } else return false;
    return true;
  };
  // Only sets what a date, time, colour or range field holds: these are not typed into. What the browser would replace
  // by another value is refused, with the limits of the field.
  const put = (number, value) => {
    const element = elements.get(number);
    if (!element || element.tagName !== "INPUT" || element.readOnly && element.type !== "range" && element.type !== "color") return null;
    const set = entry => Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(element, entry);
    const before = element.value;
    set(value);
    const held = element.value;
    if (element.type === "range" ? value === "" || Number(held) !== Number(value) : held !== value) {
      set(before);
      return { min: element.min, max: element.max, step: element.step };
    }
    element.focus();
    for (const kind of ["input", "change"]) element.dispatchEvent(new Event(kind, { bubbles: true }));
    return true;
  };
  const scroll = (number, across, down) => {
    let target = number ? elements.get(number) : null;
    if (number && !target) return false;
    const moves = each => each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth + 1;
    while (target && !(moves(target) && /auto|scroll/.test(getComputedStyle(target).overflowY + getComputedStyle(target).overflowX) || target.tagName === "TEXTAREA")) target = target.parentElement;
    (target || document.scrollingElement || document.documentElement).scrollBy({ left: across, top: down, behavior: "instant" });
    return true;
  };
  const forgetAll = () => { numbers = new WeakMap(); elements = new Map(); count = 0; };
  // Back to how the page was when it had loaded, without loading it: its elements, its own plain variables, the clock,
  // the numbers, what listens to the page as a whole. Whether that is all depends on the page; tests say for which.
  let loaded = null;
  const plain = value => {
    if (value === null || ["string", "number", "boolean", "undefined"].includes(typeof value)) return true;
    if (Array.isArray(value)) return value.length < 2000 && value.every(plain);
    return Object.getPrototypeOf(value) === Object.prototype && Object.keys(value).length < 2000 && Object.values(value).every(plain);
  };
  const own = new Set(Object.getOwnPropertyNames(window));
  let added = null;
  const listen = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (...given) {
    const whole = this === window || this === document || this === document.documentElement || this === document.body;
    if (added && whole) added.push([this, given]);
    return listen.apply(this, given);
  };
  const keep = () => {
    const variables = {};
    for (const name of Object.getOwnPropertyNames(window))
      if (!own.has(name) && name !== "core" && name !== "__turngym" && plain(window[name])) variables[name] = structuredClone(window[name]);
    loaded = { body: document.body.innerHTML, attributes: [...document.body.attributes].map(each => [each.name, each.value]),
      head: document.head.childNodes.length, variables, serial, timers: [...timers.values()].map(each => ({ ...each })), now, random, title: document.title };
    added = [];
  };
  const rewind = () => {
    if (!loaded) return false;
    for (const [target, given] of added) target.removeEventListener(...given);
    added = [];
    if (document.activeElement && document.activeElement !== document.body) document.activeElement.blur();
    getSelection().removeAllRanges();
    document.body.innerHTML = loaded.body;
    for (const each of [...document.body.attributes]) document.body.removeAttribute(each.name);
    for (const [name, value] of loaded.attributes) document.body.setAttribute(name, value);
    while (document.head.childNodes.length > loaded.head) document.head.lastChild.remove();
    for (const [name, value] of Object.entries(loaded.variables)) window[name] = structuredClone(value);
    serial = loaded.serial; now = loaded.now; random = loaded.random; document.title = loaded.title;
    timers = new Map(loaded.timers.map(each => [each.id, { ...each }]));
    if (location.hash) history.replaceState(null, "", location.pathname);
    scrollTo(0, 0);
    mouse = under = null;
    clipboard = "";
    forgetAll();
    return true;
  };
  const tools = { hears, rootOf, keep, rewind, isStale, mouse: () => mouse, advance, observe, order, place, select, focus, clear, put, scroll, frame, mark, isPainted: () => painted, pictures, preload, forgetAll, time: () => now };
  Object.defineProperty(window, "__turngym", { value: Object.freeze(tools) });
})();
