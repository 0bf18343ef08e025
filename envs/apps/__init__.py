"""Apps: mail, calendar, notes, payments, files and music of one person, behind documented functions.

``effects`` says what functions do, ``functions`` declares them all, ``dialect`` names them and writes their
documentation, ``fiction`` draws a person's accounts and records, ``part`` says what a part of a request is, and
``mail_parts``, ``time_parts``, ``money_parts`` and ``file_parts`` make them. ``task`` puts an instance together,
``env`` is the environment.
"""

from turngym.envs.registration import Spec

_ENTRY = "turngym.envs.apps.env:Apps"
SPECS: dict[str, Spec] = {
    "turngym/Apps-v0": Spec(_ENTRY, {}, "Do two errands in somebody's apps, with functions that must be looked up."),
    "turngym/AppsEasy-v0": Spec(
        _ENTRY,
        {"level": 1, "docs": "given", "reward": "dense", "max_turns": 40},
        "Do one errand in somebody's apps, with all functions listed and each right change rewarded.",
    ),
    "turngym/AppsHard-v0": Spec(
        _ENTRY,
        {"level": 3, "max_turns": 120},
        "Do three errands over several accounts, with functions whose names differ between instances.",
    ),
}
