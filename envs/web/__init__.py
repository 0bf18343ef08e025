"""Tasks on web pages in a real browser.

``browser`` keeps browsers, ``keeper`` keeps a tab of theirs for one environment, ``tab`` is one page in one, ``page``
what an agent is shown of it, ``actions`` what it may do, ``hands`` how that is done. ``miniwob`` is the environment on
the pages of MiniWoB++.
"""

from turngym.envs.registration import Spec

SPECS: dict[str, Spec] = {
    "turngym/MiniWoB-v0": Spec(
        "turngym.envs.web.miniwob:MiniWoB", {}, "Do what a small web page asks, one of 130, in a real browser.", "web"
    ),
}
