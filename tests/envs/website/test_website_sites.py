"""What the forms of each site do to its tables, and what they refuse."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from turngym.envs.website.page import text_of
from turngym.envs.website.shop.data import cents, money, total_of
from turngym.envs.website.site import PAGE_SIZE, Site, parted
from turngym.envs.website.sites import SITES, world_of
from turngym.envs.website.store import Store


class Opened:
    """A site with a database, without tabs and turns."""

    def __init__(self, name: str, world: int = 0) -> None:
        self.site: Site = SITES[name]
        self.store = Store()
        self.store.reset(world_of(name, world))

    def post(self, path: str, **values: str) -> str:
        """Send a form, and return what the next page says of it."""
        target = self.site.post(self.store.database, path, values)
        query = parted(target)[1]
        note = self.site.notes.get(query.get("note", ""), "")
        page = text_of(self.site.get(self.store.database, target))
        assert not note or note in page, (target, page)
        return note

    def show(self, path: str) -> str:
        return text_of(self.site.get(self.store.database, path))

    def rows(self, table: str, **cells: Any) -> list[dict[str, Any]]:
        names = ("id", *self.site.schema[table])
        found = [dict(zip(names, row, strict=True)) for row in self.store.rows(table)]
        return [row for row in found if all(row[name] == value for name, value in cells.items())]


@pytest.fixture
def issues() -> Iterator[Opened]:
    made = Opened("issues")
    yield made
    made.store.close()


@pytest.fixture
def mail() -> Iterator[Opened]:
    made = Opened("mail")
    yield made
    made.store.close()


@pytest.fixture
def shop() -> Iterator[Opened]:
    made = Opened("shop")
    yield made
    made.store.close()


def test_an_issue_is_edited_as_a_whole_or_not_at_all(issues: Opened) -> None:
    cells = {"title": "new title", "status": "closed", "priority": "high", "assignee": "nobody", "milestone": "none"}
    for wrong in ({"title": ""}, {"status": "gone"}, {"priority": ""}, {"assignee": "Nemo"}, {"milestone": "never"}):
        assert issues.post("/issues/3/edit", **{**cells, **wrong}).startswith("Nothing done")
    assert issues.store.changes() == []
    assert issues.post("/issues/3/edit", **cells) == "Saved."
    ((table, number, row),) = issues.store.changes()
    assert (table, number, row[1], row[3:]) == ("issue", 3, "new title", ("closed", "high", "nobody", "none"))
    shown = issues.show("/issues/3")
    assert "status closed, priority high, assignee nobody, milestone none" in shown and "new title" in shown


def test_labels_are_put_on_and_taken_off(issues: Opened) -> None:
    labels = [row["name"] for row in issues.rows("label")]
    assert issues.post("/issues/1/labels", **{labels[0]: "yes", labels[2]: "yes"}) == "Saved."
    assert {row["label"] for row in issues.rows("issue_label", issue=1)} == {1, 3}
    assert f"labels: {labels[0]}, {labels[2]}" in issues.show("/issues/1")
    issues.post("/issues/1/labels", **{labels[2]: "yes"})
    assert {row["label"] for row in issues.rows("issue_label", issue=1)} == {3}


def test_a_label_goes_with_its_links_and_names_stay_apart(issues: Opened) -> None:
    name, other = (row["name"] for row in issues.rows("label")[:2])
    assert issues.post("/labels", name=name.upper()).startswith("Nothing done")
    assert issues.post("/labels/1", name=other).startswith("Nothing done")
    assert issues.post("/labels/1", name=name.upper()) == "Saved."
    had = issues.rows("issue_label", label=2)
    assert had and issues.post("/labels/2/delete") == "Deleted."
    assert not issues.rows("issue_label", label=2) and not issues.rows("label", id=2)
    assert issues.post("/labels", name="fresh") == "Created." and issues.rows("label")[-1]["name"] == "fresh"


def test_issues_are_filed_commented_and_found(issues: Opened) -> None:
    assert issues.post("/issues/new", title="").startswith("Nothing done")
    chosen = {"priority": "low", "assignee": "nobody", "milestone": "none"}
    assert issues.post("/issues/new", title="a Coffee stain", body="b", **chosen) == "Created."
    assert "#25 a Coffee stain open low nobody" in issues.show("/issues?search=COFFEE&status=open")
    assert "no issues" in issues.show("/issues?search=coffee&status=closed")
    assert issues.post("/issues/25/comment", comment="").startswith("Nothing done")
    for count in range(6):
        assert issues.post("/issues/25/comment", comment=f"remark {count}") == "Comment added."
    assert re.findall(r"you: remark (\d)", issues.show("/issues/25")) == ["2", "3", "4", "5"]  # the latest four


def test_lists_come_in_pages_that_lead_to_each_other(issues: Opened) -> None:
    seen: list[str] = []
    for number in range(1, 5):
        shown = issues.show(f"/issues?page={number}")
        found = re.findall(r"#(\d+) ", shown)
        assert len(found) == PAGE_SIZE and f"page {number} of 4" in shown
        assert ("previous" in shown) == (number > 1) and ("next" in shown) == (number < 4)
        seen += found
    assert seen == [str(number) for number in range(1, 25)]
    assert "no issues" not in issues.show("/issues?page=99") and "page 99 of 4" in issues.show("/issues?page=99")


def test_mails_are_sent_to_addresses_only(mail: Opened) -> None:
    first = mail.rows("mail", id=2)[0]
    assert mail.post("/mails/2/reply", text="").startswith("Nothing done")
    assert mail.post("/mails/2/reply", text="yes") == "Sent."
    assert mail.post("/mails/2/forward", to="somebody", comment="look").startswith("Nothing done")
    assert mail.post("/mails/2/forward", to="a@b.c", comment="look") == "Sent."
    assert mail.post("/compose", to="", subject="s", text="t").startswith("Nothing done")
    assert mail.post("/compose", to="a@b.c", subject="s", text="t") == "Sent."
    sent = [row for row in mail.rows("mail", folder="Sent") if row["sender"] == "you"]
    assert [(row["address"], row["subject"], row["text"]) for row in sent] == [
        (first["address"], f"Re: {first['subject']}", "yes"),
        ("a@b.c", f"Fwd: {first['subject']}", f"look > {first['text']}"),
        ("a@b.c", "s", "t"),
    ]


def test_a_draft_is_kept_and_sent_in_the_end(mail: Opened) -> None:
    assert mail.post("/compose", to="", subject="s", text="t", **{"keep as draft": "yes"}) == "Kept as a draft."
    draft = mail.rows("mail", folder="Drafts", subject="s")[0]["id"]
    assert "Edit and send" in mail.show(f"/mails/{draft}") and "Reply" not in mail.show(f"/mails/{draft}")
    assert mail.post(f"/mails/{draft}/edit", to="x", subject="s", text="u").startswith("Nothing done")
    assert mail.post(f"/mails/{draft}/edit", to="a@b.c", subject="s", text="u") == "Sent."
    assert mail.rows("mail", id=draft)[0]["folder"] == "Sent"
    assert mail.post(f"/mails/{draft}/edit", to="a@b.c", subject="again", text="u") == ""
    assert "There is nothing here." in mail.show(f"/mails/{draft}/edit")


def test_mails_move_and_their_marks_turn_over(mail: Opened) -> None:
    before = mail.rows("mail", id=2)[0]
    assert mail.post("/mails/2/move", folder="Nowhere").startswith("Nothing done")
    folder = mail.rows("folder")[4]["name"]
    assert mail.post("/mails/2/move", folder=folder) == "Moved."
    for what, cell in (("star", "starred"), ("read", "unread")):
        assert mail.post(f"/mails/2/{what}") == "Saved." and mail.rows("mail", id=2)[0][cell] != before[cell]
        mail.post(f"/mails/2/{what}")
    assert mail.rows("mail", id=2)[0] == {**before, "folder": folder}
    assert mail.post("/mails/2/delete") == "Moved to Trash." and mail.rows("mail", id=2)[0]["folder"] == "Trash"
    assert "(Delete)" not in mail.show("/mails/2")


def test_folders_contacts_and_rules_are_kept(mail: Opened) -> None:
    assert mail.post("/folders", name="inbox").startswith("Nothing done")
    assert mail.post("/folders", name="New one") == "Saved." and "New one 0 mails" in mail.show("/folders")
    assert mail.post("/contacts/new", name="Ann", email="nowhere").startswith("Nothing done")
    assert mail.post("/contacts/new", name="Ann Lee", email="ann@lee.net") == "Saved."
    assert "phone unknown" in mail.show(f"/contacts/{mail.rows('contact', name='Ann Lee')[0]['id']}")
    assert mail.post("/contacts/1/edit", name="", email="a@b").startswith("Nothing done")
    assert mail.post("/contacts/1/delete") == "Deleted." and not mail.rows("contact", id=1)
    assert mail.post("/contacts/1/edit", name="x", email="a@b") == ""
    assert mail.post("/rules", sender="Ann Lee", folder="Nowhere").startswith("Nothing done")
    assert mail.post("/rules", sender="Ann Lee", folder="New one") == "Saved."
    assert "new mails from Ann Lee go to New one" in mail.show("/rules")
    assert mail.post("/rules/1/delete") == "Deleted." and len(mail.rows("rule")) == 1


def test_the_search_looks_into_senders_and_subjects_of_all_folders(mail: Opened) -> None:
    trashed = mail.rows("mail", folder="Drafts")[0]
    shown = mail.show(f"/search?search={trashed['subject'].upper()}")
    assert f"to nobody: {trashed['subject']}" in shown and "in Drafts" in shown
    assert "no mails" in mail.show("/search?search=zzz") and "no mails" not in mail.show("/search?search=")


@pytest.mark.parametrize(
    "wrong",
    [{"name": ""}, {"category": "cars"}, {"price": "-1"}, {"price": "1.234"}, {"price": "cheap"}, {"stock": "2.5"}],
)
def test_a_product_needs_all_its_cells(shop: Opened, wrong: dict[str, str]) -> None:
    cells = {"name": "oak chair", "category": "office", "price": "12.5", "stock": "3", "shown": "yes"}
    for path in ("/products/new", "/products/2/edit"):
        assert shop.post(path, **{**cells, **wrong}).startswith("Nothing done")
    assert shop.store.changes() == []
    assert shop.post("/products/new", **cells) == "Created."
    del cells["shown"]
    assert shop.post("/products/2/edit", **cells) == "Saved."
    assert shop.store.rows("product")[-1][1:] == ("oak chair", "office", 1250, 3, "yes")
    assert shop.rows("product", id=2)[0]["shown"] == "no" and "stock 3, hidden" in shop.show(
        "/products?search=oak+chair"
    )


def test_orders_customers_and_coupons_are_kept(shop: Opened) -> None:
    assert shop.post("/orders/1/edit", status="lost", note="").startswith("Nothing done")
    assert shop.post("/orders/1/edit", status="refunded", note="sorry") == "Saved."
    assert "status refunded" in shop.show("/orders/1") and "note: sorry" in shop.show("/orders/1")
    assert shop.post("/customers/1/edit", email="none", city="Graz", tier="gold").startswith("Nothing done")
    assert shop.post("/customers/1/edit", email="a@b", city="Graz", tier="gold") == "Saved."
    assert "a@b, city Graz, tier gold" in shop.show("/customers/1")
    taken = shop.rows("coupon", id=1)[0]["code"]
    for values in (
        {"code": taken.lower(), "percent": "5"},
        {"code": "X", "percent": "0"},
        {"code": "X", "percent": ""},
    ):
        assert shop.post("/coupons/new", **values).startswith("Nothing done")
    assert shop.post("/coupons/new", code="X5", percent="5") == "Created."
    assert shop.post("/coupons/1", percent="101", active="yes").startswith("Nothing done")
    assert shop.post("/coupons/1", percent="100") == "Saved." and shop.rows("coupon", id=1)[0]["active"] == "no"


def test_what_an_order_costs_is_the_sum_of_its_lines(shop: Opened) -> None:
    prices = {row["id"]: row["price"] for row in shop.rows("product")}
    spent: dict[str, int] = {}
    for sale in shop.rows("sale"):
        total = sum(prices[line["product"]] * line["quantity"] for line in shop.rows("line", sale=sale["id"]))
        assert total_of(shop.store.database, sale["id"]) == total > 0
        assert f"total {money(total)}" in shop.show(f"/orders/{sale['id']}")
        spent[sale["customer"]] = spent.get(sale["customer"], 0) + total
    listed = shop.show("/customers") + shop.show("/customers?page=2")
    assert all(f"ordered for {money(total)}" in listed for total in spent.values())


@pytest.mark.parametrize(("text", "expected"), [("0.05", 5), ("7", 700), ("12.5", 1250), ("99999.99", 9999999)])
def test_prices_are_read_as_they_are_written(text: str, expected: int) -> None:
    assert cents(text) == expected and cents(money(expected)) == expected


@pytest.mark.parametrize("name", sorted(SITES))
def test_every_link_and_form_of_a_site_leads_somewhere(name: str) -> None:
    """A walk over all links from the home page meets every kind of page, and no page that is missing."""
    opened = Opened(name)
    waiting, met = [opened.site.home], set[str]()
    actions = set[str]()
    while waiting:
        path = waiting.pop()
        if path in met:
            continue
        met.add(path)
        page = opened.site.get(opened.store.database, path)
        assert page.title != "Not found" and [piece.number for piece in page.pieces] == list(
            range(1, len(page.pieces) + 1)
        )
        assert len({*((piece.form, piece.label) for piece in page.pieces if piece.is_entry)}) == sum(
            piece.is_entry for piece in page.pieces
        )
        waiting += [piece.href for piece in page.pieces if piece.kind == "link"]
        actions |= {form.action for form in page.forms if not form.is_search}
    routes = {re.sub(r"/\d+", "/#", parted(path)[0]) for path in met}
    assert routes == set(opened.site.gets)
    assert {re.sub(r"/\d+", "/#", action) for action in actions} == set(opened.site.posts)
    opened.store.close()


@pytest.mark.parametrize("name", sorted(SITES))
def test_looking_changes_nothing_and_saving_what_is_there_neither(name: str) -> None:
    opened = Opened(name)
    for route in opened.site.gets:
        path = route.replace("#", "2")
        page = opened.site.get(opened.store.database, path)
        for number, form in enumerate(page.forms):
            if form.action == path and "edit" in path and name != "mail":
                assert opened.post(form.action, **page.values_of(number)) == "Saved."
    assert opened.store.changes() == []
    opened.store.close()
