// What the tab asks of a page: to read it back from its elements, and to find the element with a number.
(() => {
  const numbered = number => document.querySelector(`[data-n="${number}"]`);
  const piece = element => {
    if (element.tagName === "SPAN") return { kind: "text", label: element.textContent };
    const control = element.tagName === "LABEL" ? element.lastElementChild : element;
    const found = { number: Number(control.dataset.n), label: control.textContent };
    if (control.tagName === "A") return { ...found, kind: "link", href: control.pathname + control.search };
    found.form = control.form ? Number(control.form.id.slice(1)) : -1;
    if (control.tagName === "BUTTON") return { ...found, kind: "button" };
    found.label = element.firstChild.data.trim();
    if (control.tagName === "SELECT")
      return { ...found, kind: "select", value: control.value, options: [...control.options].map(each => each.text) };
    if (control.type === "checkbox") return { ...found, kind: "box", checked: control.checked };
    return { ...found, kind: "field", value: control.value };
  };
  const read = () => ({
    path: location.pathname + location.search,
    title: document.querySelector("h1").textContent,
    forms: [...document.forms].map(form => [new URL(form.action).pathname, form.method]),
    rows: [...document.querySelectorAll("main > div")].map(row => [...row.children].map(piece)),
  });
  const place = number => {
    const element = numbered(number);
    element.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
    const box = element.getClientRects()[0]; // the first line of a link that runs over several
    return [box.x + Math.min(box.width, 40) / 2, box.y + box.height / 2];
  };
  const focus = number => numbered(number).focus();
  const clear = number => { focus(number); numbered(number).select(); };
  const select = (number, option) => {
    const list = numbered(number);
    list.focus();
    list.selectedIndex = [...list.options].findIndex(each => each.text === option);
    for (const kind of ["input", "change"]) list.dispatchEvent(new Event(kind, { bubbles: true }));
  };
  return { read, place, focus, clear, select };
})()
