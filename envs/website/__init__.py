"""Three sites of several pages each: an issue tracker, a web mail, the back office of a shop.

``site`` is what a site is, with ``page`` for its pages and ``store`` for its tables; each site has its pages, changes
and goals in files of its name. ``goal`` judges goals and finds the way to them. ``session`` is where an agent is,
without a browser; ``live`` shows the same pages in a real one.
"""

from turngym.envs.registration import Spec

_ENTRY = "turngym.envs.website.env:WebSite"
SPECS: dict[str, Spec] = {
    "turngym/WebSite-v0": Spec(_ENTRY, {}, "Get something done on one of three web sites of several pages."),
    "turngym/WebSiteEasy-v0": Spec(
        _ENTRY,
        {"kind": ["close", "triage", "reply", "reprice", "add_product"], "max_turns": 20},
        "Change one thing on one of three web sites.",
    ),
    "turngym/WebSiteIssues-v0": Spec(_ENTRY, {"site": "issues"}, "Keep the issues of a small office in order."),
    "turngym/WebSiteMail-v0": Spec(_ENTRY, {"site": "mail"}, "Answer, forward and file mails."),
    "turngym/WebSiteShop-v0": Spec(_ENTRY, {"site": "shop"}, "Run the back office of a shop."),
}
