"""The shop's pages for a browser, without one: the same text, addresses that hold a view, nothing that runs."""

import http.client
import random
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from turngym.envs.webshop import pages
from turngym.envs.webshop.catalogue import Catalogue, from_folder, procedural
from turngym.envs.webshop.html import READ, address, page, read_address
from turngym.envs.webshop.pages import BOUGHT, BUY, DETAILS, ITEM, RESULTS, Move, View
from turngym.envs.webshop.product import Product
from turngym.envs.webshop.server import ShopServer, Visit, shared_server

PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "webshop"
LINES = ("h1", "p", "li", "nav", "form")


class Reader(HTMLParser):
    """Reads a page as the script READ does in a browser, and notes links and tags."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self.links: dict[str, str] = {}
        self.tags: set[str] = set()
        self._leads = ""
        self._in_line = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag in LINES:
            self.lines.append("- " if tag == "li" else "")
            self._in_line = True
        elif tag in ("a", "button"):
            self.lines[-1] += "["
            self._leads = dict(attrs).get("href") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag in LINES:
            self._in_line = False
        elif tag in ("a", "button"):
            self.lines[-1] += "]"
            self._leads = ""

    def handle_data(self, data: str) -> None:
        if self._in_line:
            self.lines[-1] += data
            if self._leads:
                self.links.setdefault(data, self._leads)


def walk(shop: Catalogue, draw: random.Random, steps: int) -> list[View]:
    """Return the views of a random walk; buying leads back to the shop."""
    found, view = [View()], View()
    for _ in range(steps):
        links = pages.clickables(shop, view)
        words = " ".join(draw.sample(draw.choice(shop.products).text.split(), 2))
        view = pages.after(shop, view, Move(draw.choice(links)) if links else Move(words, is_search=True))
        found.append(view)
        view = View() if view.page == BOUGHT else view
    return found


def same_page(shop: Catalogue, view: View) -> Reader:
    """Demand that a page has the text of the text mode and its links, which lead where a click does."""
    read = Reader(page(shop, view))
    assert "\n".join(read.lines) == pages.text(shop, view)
    assert set(read.links) == set(pages.clickables(shop, view))
    for target, leads in read.links.items():
        assert read_address(shop, leads) == pages.click(shop, view, target)
    return read


def test_every_page_has_the_text_of_the_text_mode_and_links_that_lead_where_clicks_do() -> None:
    shop, draw = procedural(120, 2), random.Random(0)
    kinds = set()
    for view in walk(shop, draw, 400):
        same_page(shop, view)
        assert read_address(shop, address(view)) == view
        kinds.add((view.page, bool(view.detail), bool(view.chosen), bool(view.number)))
    assert {page for page, *_ in kinds} == {"search", "results", "item", "bought"} and len(kinds) >= 7


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the data of the published WebShop is not here")
def test_the_pages_of_the_published_products_agree_too() -> None:
    shop = from_folder(str(PUBLISHED))
    for product in shop.products[::9]:
        item = View(ITEM, "shoes", 0, product.asin.lower())
        for view in (item, *(View(ITEM, "shoes", 0, product.asin.lower(), detail) for detail in DETAILS)):
            same_page(shop, view)
    for query in ("women's shoes", "tv stand", "xyzzy", "snack & nuts", "50% off <b>"):
        same_page(shop, View(RESULTS, query))


HOSTILE = Product(
    "B666",
    "<script>alert(1)</script> & \"quotes\" 'too'",
    description='line one\r\n  two\rthree <a href="http://example.com/">here</a>\n',
    bullets=("</li></main><form action=http://example.com>", "&lt;b&gt; &#65;"),
    options={"size": ("buy now", "a&b=c#d?e+f", "1/2 %20", "next >"), "style <i>": ("buy now", "é ✔ 𝔸")},
    reviews=("- dashes", "[brackets]"),
)


def test_what_products_say_is_text_and_never_a_tag_or_a_link() -> None:
    shop = Catalogue("hostile", [HOSTILE], lambda product: ())
    item = View(ITEM, "tags", 0, "b666")
    for view in (item, View(RESULTS, "script"), *(View(ITEM, "q", 0, "b666", detail) for detail in DETAILS)):
        read = same_page(shop, view)
        assert read.tags <= {"html", "head", "meta", "title", "link", "style", "body", "main", *LINES, "a", "b", "ul"}
    chosen = pages.click(shop, item, "a&b=c#d?e+f")
    assert chosen.chosen == {"size": "a&b=c#d?e+f"} == (read_address(shop, address(chosen)) or View()).chosen
    assert BUY in pages.clickables(shop, item) and pages.click(shop, item, BUY).page == BOUGHT
    wish = page(shop, View(), "<script>alert(1)</script>")
    assert "<script" not in wish and "&lt;script" in wish
    assert "eval" not in READ


AN_ADDRESS_THAT_IS_NO_PAGE_OF_THE_SHOP_I: list[str] = [
    "",
    "cart",
    "item",
    "item?asin=B666",
    "item?asin=b666&detail=source",
    "item?asin=b666&option.size=gold",
    "item?asin=b666&option.colour=gold",
    "bought?q=x",
    "results?q=script&page=1",
    "results?q=script&page=-1",
    "results?q=script&page=9999999999",
    "results?q=script&page=²",
    "//[",
    "results?" + "&".join(f"option.{n}=x" for n in range(999)),
    "../search",
]


def test_an_address_that_is_no_page_of_the_shop_is_none() -> None:
    for relative in AN_ADDRESS_THAT_IS_NO_PAGE_OF_THE_SHOP_I:
        assert read_address(Catalogue("hostile", [HOSTILE], lambda product: ()), relative) is None


def get(url: str) -> tuple[int, str, dict[str, str]]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answer = connection.getresponse()
    found = answer.status, answer.read().decode("utf8"), dict(answer.getheaders())
    connection.close()
    return found


def test_the_server_shows_a_visit_below_its_secret_name_alone_until_it_ends() -> None:
    server, shop = shared_server(), procedural(50, 0)
    assert server is shared_server() and server.server_address[0] == "127.0.0.1"
    first, second = server.enter(), server.enter()
    assert first != second and len(first) > len(server.url) + 16
    server.tell(first, Visit(shop, "I want tea", True))
    server.tell(second, Visit(shop, "I want mugs", False))
    status, text, headers = get(f"{first}start")
    assert (
        status == 200 and "I want tea" in text and headers["Content-Security-Policy"].startswith("default-src 'none'")
    )
    assert "I want tea" in get(f"{first}results?q=tea")[1]
    assert "I want mugs" in get(f"{second}start")[1] and "I want mugs" not in get(f"{second}search")[1]
    assert "I want" not in get(f"{first}bought?asin={shop.products[0].asin.lower()}")[1]
    assert [get(f"{server.url}{path}")[0] for path in ("", "start", "x/start", "../etc/hosts")] == [404] * 4
    assert get(f"{first}no such page".replace(" ", "%20"))[0] == 404
    server.tell(first, None)
    server.tell(first, None)
    assert get(f"{first}start")[0] == 404 and get(f"{second}start")[0] == 200
    server.tell(second, None)


def test_a_browser_that_ends_in_the_middle_of_a_request_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    server = ShopServer()
    try:
        for error, is_told in ((ConnectionResetError(), False), (BrokenPipeError(), False), (ValueError("x"), True)):
            try:
                raise error
            except Exception:
                server.handle_error(None, ("127.0.0.1", 1))
            assert bool(capsys.readouterr().err) == is_told
    finally:
        server.server_close()


def test_a_server_answers_without_listening_too() -> None:
    server = ShopServer()
    try:
        start = server.enter()
        server.tell(start, Visit(procedural(50, 0), "tea", True))
        found = server.answer(urlsplit(start).path + "search")
        assert found is not None and "<button>search</button>" in found
        assert server.answer("/") is None and server.answer("") is None
    finally:
        server.server_close()
