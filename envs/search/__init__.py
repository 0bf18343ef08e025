"""Questions that are answered by searching.

``env`` is the environment, ``protocol`` how searches and answers are written, ``retriever`` the engines behind one
interface, ``world`` and ``questions`` the generated world, ``datasets`` real questions from files, ``answers`` the
published comparison of answers, ``step_rewards`` rewards of single searches.
"""

from turngym.envs.registration import Spec

_ENTRY = "turngym.envs.search.env:SearchQA"
SPECS: dict[str, Spec] = {
    "turngym/SearchQA-v0": Spec(_ENTRY, {}, "Answer questions about a generated world by searching its documents."),
    "turngym/SearchQAEasy-v0": Spec(
        _ENTRY, {"kind": "1 hop", "max_turns": 4}, "Answer questions that one search of a generated world settles."
    ),
    "turngym/SearchQAHard-v0": Spec(
        _ENTRY, {"kind": "4 hops", "size": 5000}, "Answer questions over four documents of a large generated world."
    ),
}
