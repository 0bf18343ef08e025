"""SQL: questions and changes over generated SQLite databases.

``domains`` holds the words, ``schema`` names tables and columns, ``contents`` draws rows, ``conditions``, ``questions``
and ``updates`` the requests, ``task`` puts one together; ``engine`` runs statements of models within limits, ``judge``
compares what they do on hidden databases, ``calls`` is the notation, ``env`` the environment.
"""

from turngym.envs.registration import Spec

_ENTRY = "turngym.envs.sql.env:Sql"
SPECS: dict[str, Spec] = {
    "turngym/Sql-v0": Spec(_ENTRY, {}, "Answer a question about a database, or make a change in it, with SQL."),
    "turngym/SqlEasy-v0": Spec(
        _ENTRY, {"level": 1, "reward": "dense"}, "Answer a question, or make a change, with one condition."
    ),
    "turngym/SqlHard-v0": Spec(
        _ENTRY, {"level": 3}, "Answer questions and make changes where names mislead and words have several meanings."
    ),
}
