"""The pages of the shop for a browser: an address for every view, and what is served there.

An address holds all of a view, so the server remembers nothing of it and any page can be opened again. A page holds the
text that :func:`turngym.envs.webshop.pages.text` returns: a line there is a heading, paragraph, list item or row of
links here, and what stands in square brackets there is a link or a button here. :data:`READ` brings the text back.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlencode, urlsplit

from turngym.envs.webshop import pages
from turngym.envs.webshop.catalogue import Catalogue
from turngym.envs.webshop.pages import BACK_TO_SEARCH, BOUGHT, BUY, DETAILS, ITEM, PREVIOUS, RESULTS, SEARCH, View
from turngym.envs.webshop.product import Product

START = "start"
"""Address of the page that an episode starts with: the search page with the wish on it."""
LONGEST_QUERY = 300
_OPTION = "option."
_MOST_FIELDS = 200
_STYLE = """
body { margin: 0; font: 14px/1.35 sans-serif; color: #1a1a1a; background: #fff; }
header { background: #22324d; color: #fff; padding: 8px 16px; }
header p { margin: 0; }
main { padding: 8px 16px; }
h1 { font-size: 16px; margin: 4px 0 8px; }
p, nav, li { margin: 4px 0; white-space: pre-wrap; }
a, button { display: inline-block; font: inherit; color: #0b4a8f; border: 1px solid #9db3cc; border-radius: 4px;
  background: #f2f6fb; padding: 0 6px; text-decoration: none; max-width: 100%; box-sizing: border-box; }
a.chosen { background: #0b4a8f; color: #fff; }
input { font: inherit; width: 60%; padding: 4px; margin-right: 6px; }
"""
_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title><link rel="icon" href="data:,">'
    "<style>{style}</style></head><body>{header}<main>{main}</main></body></html>"
)
READ = """(() => {
  const shown = node => node.nodeType === 3 ? node.data : node.nodeType !== 1 ? "" :
    ["A", "BUTTON"].includes(node.tagName) ? `[${node.textContent}]` : [...node.childNodes].map(shown).join("");
  const line = each => (each.tagName === "LI" ? "- " : "") + shown(each);
  return { url: location.href, text: [...document.querySelectorAll("h1, p, li, nav, form")].map(line).join("\\n") };
})()"""
"""Request of a browser for a page: its address and its text."""
TOUCH = """(wanted => {
  for (const each of document.querySelectorAll("a[href], button, input"))
    if ((each.tagName === "INPUT" ? "" : each.textContent) === wanted) {
      each.scrollIntoView({ block: "nearest", behavior: "instant" });
      each.focus();
      if (wanted) each.click();
      return true;
    }
  return false;
})(%s)"""
"""Clicks the link or button with this text, or goes to the field, which has none; false if there is no such thing."""


def address(view: View) -> str:
    """Return the address of a view, relative to where the shop is served.

    >>> address(View("results", "red mug", 1))
    'results?q=red+mug&page=1'
    """
    if view.page == SEARCH:
        return SEARCH
    fields = [("q", view.query), ("page", str(view.number))]
    if view.page != RESULTS:
        fields += [("asin", view.asin), ("detail", view.detail)]
        fields += [(f"{_OPTION}{name}", value) for name, value in view.chosen.items()]
    return f"{view.page}?{urlencode(fields)}"


def read_address(catalogue: Catalogue, relative: str) -> View | None:
    """Return the view that an address names, None if the shop has no such page.

    >>> from turngym.envs.webshop.catalogue import procedural
    >>> read_address(procedural(50, 0), "search"), read_address(procedural(50, 0), "item?asin=nothing")
    (View(page='search', query='', number=0, asin='', detail='', chosen={}), None)
    """
    try:
        parts = urlsplit(relative)
        fields = dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        return None
    if parts.path in (START, SEARCH):
        return View()
    if parts.path not in (RESULTS, ITEM, BOUGHT):
        return None
    query, number = fields.get("q", "")[:LONGEST_QUERY], fields.get("page", "0")
    found = len(catalogue.search(query))
    if not (
        number.isascii() and number.isdecimal() and len(number) < 4 and int(number) * pages.PAGE_SIZE < max(found, 1)
    ):
        return None
    if parts.path == RESULTS:
        return View(RESULTS, query, int(number))
    product = catalogue.by_asin.get(fields.get("asin", ""))
    detail = fields.get("detail", "")
    chosen = {name.removeprefix(_OPTION): value for name, value in fields.items() if name.startswith(_OPTION)}
    if product is None or detail not in ("", *DETAILS):
        return None
    if any(value not in product.options.get(name, ()) for name, value in chosen.items()):
        return None
    return View(parts.path, query, int(number), product.asin.lower(), detail, chosen)


def page(catalogue: Catalogue, view: View, customer: str = "") -> str:
    """Return the page of a view.

    Args:
        catalogue: The shop.
        view: Where the customer is.
        customer: The wish, where the page repeats it.

    >>> from turngym.envs.webshop.catalogue import procedural
    >>> "<button>search</button>" in page(procedural(50, 0), View())
    True
    """
    header = f"<header>{_line(f'Customer: {customer}')}</header>" if customer else ""
    if view.page == SEARCH:
        main = (
            f'<form action="{RESULTS}"><input name="q" aria-label="search words" autocomplete="off">'
            "<button>search</button></form>"
        )
    elif view.page == RESULTS:
        main = _results(catalogue, view)
    elif view.page == BOUGHT:
        main = _line(f"You bought {catalogue.by_asin[view.asin].title}.")
    else:
        main = _item(catalogue, view)
    return _PAGE.format(style=_STYLE, header=header, main=main)


def _results(catalogue: Catalogue, view: View) -> str:
    links = pages.clickables(catalogue, view)
    shown = pages.results(catalogue, view)
    products = [
        f"<p>{_link(catalogue, view, product.asin.lower())} {_text(product.title)} <b>{pages.money(product)}</b></p>"
        for product in shown
    ]
    rest = [link for link in links if link in pages.FIXED]
    return "".join([_line(pages.heading(catalogue, view), "h1"), *products, _row(catalogue, view, rest)])


def _item(catalogue: Catalogue, view: View) -> str:
    product = catalogue.by_asin[view.asin]
    title = _line(product.title, "h1")
    if view.detail:
        main = "".join(_detail(line) for line in pages.detail_lines(product, view.detail))
        return f"{title}{main}{_row(catalogue, view, (BACK_TO_SEARCH, PREVIOUS))}"
    facts = "".join(_line(line) for line in pages.facts(product))
    options = "".join(f"<p>{_text(name)}: {_values(catalogue, view, product, name)}</p>" for name in product.options)
    return f"{title}{facts}{options}{_row(catalogue, view, (*DETAILS, BUY, BACK_TO_SEARCH, PREVIOUS))}"


def _values(catalogue: Catalogue, view: View, product: Product, name: str) -> str:
    found = []
    for value in product.options[name]:
        if value in pages.FIXED:  # named like a link of every page, so it cannot be chosen
            found.append(f"<a>{_text(value)}</a>")
            continue
        is_chosen = view.chosen.get(name) == value
        found.append(_link(catalogue, view, value, is_chosen) + (" (chosen)" if is_chosen else ""))
    return " ".join(found)


def _row(catalogue: Catalogue, view: View, links: Iterable[str]) -> str:
    return f"<nav>{' '.join(_link(catalogue, view, link) for link in links)}</nav>"


def _link(catalogue: Catalogue, view: View, target: str, is_chosen: bool = False) -> str:
    leads = _text(address(pages.click(catalogue, view, target)))
    return f'<a href="{leads}"{" class=chosen" if is_chosen else ""}>{_text(target)}</a>'


def _detail(line: str) -> str:
    return f"<li>{_text(line[2:])}</li>" if line.startswith("- ") else _line(line)


def _line(text: str, tag: str = "p") -> str:
    return f"<{tag}>{_text(text)}</{tag}>"


def _text(text: str) -> str:
    """Return a text as HTML; a carriage return would be read as the end of a line unless it is written as a number."""
    return html.escape(text).replace("\r", "&#13;")
