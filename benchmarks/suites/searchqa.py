"""Questions about generated worlds, by the number of documents that the answer takes."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry
from turngym.envs.search.questions import KINDS

_FEWER = {"temporal": 70}
"""Kind -> episodes, where the world does not give 100 questions of the test split."""

SUITES.register("searchqa")(
    Suite(
        name="searchqa",
        version=2,
        description="100 questions (70 about time) of each of six kinds about a generated world of 5,000 documents.",
        entries=tuple(
            SuiteEntry("turngym/SearchQA-v0", {"kind": kind, "size": 5000}, episodes=_FEWER.get(kind, 100))
            for kind in KINDS
        ),
        metric="success",
        protocol=(
            "3 passages a search, 8 turns, one attempt at each question. Success is an exact match "
            "after SQuAD's normalisation. Questions are those of the test split; all splits search the same documents."
        ),
    )
)
