// Tables that can be sorted, and a box that filters them. Without this script all rows are there, in their first order.
(() => {
  const parts = (element, selector) => [...element.querySelectorAll(selector)];
  const missing = cell => !("value" in cell.dataset);

  function sorter(table) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], first = [...body.rows];
    const value = (row, column) => row.cells[column].dataset.value;
    const compare = (a, b, column) => {
      const one = value(a, column), other = value(b, column), difference = Number(one) - Number(other);
      return Number.isNaN(difference) ? one.localeCompare(other) : difference;
    };
    return function sort(column, direction) {
      const sign = direction === "ascending" ? 1 : -1;
      const known = first.filter(row => !missing(row.cells[column]));
      known.sort((a, b) => sign * compare(a, b, column));  // rows that are equal keep their first order
      body.append(...known, ...first.filter(row => missing(row.cells[column])));
      heads.forEach((head, index) => {
        if (index === column) head.setAttribute("aria-sort", direction); else head.removeAttribute("aria-sort");
      });
    };
  }

  function makeSortable(table) {
    const sort = sorter(table), heads = [...table.tHead.rows[0].cells];
    const label = document.createElement("label"), choice = document.createElement("select");
    label.className = "sort-by";
    label.append("Sort by ", choice);
    heads.forEach((head, column) => {
      const natural = head.dataset.sort;
      if (!natural) return;
      const button = document.createElement("button"), name = head.textContent;
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const turned = now === "ascending" ? "descending" : "ascending";
        sort(column, now ? turned : natural);
        choice.value = String(column);
      });
      choice.add(new Option(name, String(column), false, head.hasAttribute("aria-sort")));
    });
    if (!table.tHead.querySelector("[aria-sort]")) choice.selectedIndex = -1;
    choice.addEventListener("change", () => sort(Number(choice.value), heads[choice.value].dataset.sort));
    table.parentElement.before(label);
    table.classList.add("scripted");
  }

  function makeFilter(box) {
    const rows = parts(document, "tr[data-row]"), told = box.querySelector("output"), input = box.querySelector("input");
    const keys = new Set(rows.map(row => row.dataset.row));  // what else bears such a key comes and goes with the row
    const others = parts(document, "[data-row]").filter(each => keys.has(each.dataset.row));
    const filter = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const kept = new Set(rows.filter(row => {
        const text = `${row.textContent} ${row.dataset.words || ""}`.toLowerCase();
        return words.every(word => text.includes(word));
      }).map(row => row.dataset.row));
      for (const each of others) each.hidden = !kept.has(each.dataset.row);
      told.textContent = words.length ? `${kept.size} of ${keys.size} shown` : "";
    };
    input.addEventListener("input", filter);
    box.hidden = false;
    filter();
  }

  function openTarget() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
  }

  addEventListener("hashchange", openTarget);
  openTarget();
  parts(document, "table.sortable").forEach(makeSortable);
  parts(document, ".filter").forEach(makeFilter);
})();
