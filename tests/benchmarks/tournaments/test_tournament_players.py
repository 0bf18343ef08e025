"""Tournament players: agents without an answer or with a memory, names, players that cannot be made."""

import itertools
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tournament_games import HIGH_DIGITS, Ace, of, plan, same

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.players import AgentSettings
from turngym.benchmarks.statistics.bradley_terry import Comparison, strengths
from turngym.benchmarks.statistics.ratings import rate
from turngym.benchmarks.tournaments.pairings import Match
from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.benchmarks.tournaments.results import comparisons, results
from turngym.benchmarks.tournaments.run import play_tournament
from turngym.benchmarks.tournaments.tables import remarks
from turngym.errors import ConfigError


class Strange(Agent):
    """Answers with what it is made with; may be unable to forget."""

    def __init__(self, answer: Any, can_forget: bool = True) -> None:
        self.answer, self.can_forget = answer, can_forget

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        return [self.answer for _ in requests]

    def forget(self, episode: int) -> None:
        if not self.can_forget:
            raise OSError("cannot forget")


class Unmade(Ace):
    """Can be made once, to look at, and never again."""

    made = itertools.count()

    def __init__(self) -> None:
        if next(self.made):
            raise OSError("no memory left")


MADE: list[Strange] = []


def last(settings: AgentSettings) -> Strange:
    return MADE[-1]


def against_random(agent: Strange, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    MADE.append(agent)
    monkeypatch.setitem(sys.modules, "strange_agents", sys.modules[__name__])
    return play_tournament(
        TournamentPlan(HIGH_DIGITS, {"random": "random", "agent": "module:strange_agents.last"}, blocks=3)
    )


@pytest.mark.parametrize("answer", [None, "9", Decision(None, ""), Decision(9, "9")])  # type: ignore[arg-type]
def test_an_agent_that_gives_no_text_gets_default_actions_and_the_blame(
    answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, records = against_random(Strange(answer), monkeypatch)
    own = [record for record in records if "agent" in record["seat_map"].values()]
    assert found["env_errors"] == 0 and found["agent_errors"] == len(own)
    assert {record["restarts"] for record in records} == {0}
    usage = found["players"]["agent"]["usage"]
    assert usage["faults"] == usage["forfeits"] > 0 and "instead of a Decision with a text" in own[0]["fault"]
    assert found["players"]["agent"]["all"]["win"]["value"] < found["players"]["random"]["all"]["win"]["value"]


def test_an_agent_that_cannot_forget_a_game_ends_no_tournament(monkeypatch: pytest.MonkeyPatch) -> None:
    found, records = against_random(Strange(Decision("9", "9"), can_forget=False), monkeypatch)
    own = [record for record in records if "agent" in record["seat_map"].values()]
    assert found["agent_errors"] == len(own) and "cannot forget" in own[0]["fault"]
    sound, _ = against_random(Strange(Decision("9", "9")), monkeypatch)
    assert same(found["ratings"], sound["ratings"]) and sound["agent_errors"] == 0


def test_a_player_that_cannot_be_made_again_is_its_own_fault() -> None:
    found, records = play_tournament(
        TournamentPlan(HIGH_DIGITS, {"random": "random", "unmade": f"{__name__}:Unmade"}, blocks=2)
    )
    own = [record for record in records if "unmade" in record["seat_map"].values()]
    assert found["env_errors"] == 0 and found["agent_errors"] == len(own)
    assert "no memory left" in own[0]["fault"]


def test_commas_in_names_make_no_two_games_one() -> None:
    names = ["a", "b,c", "a,b", "c", "a\\", "b\\,c", ""]
    assert len({Match(0, 0, pair).key for pair in itertools.permutations(names, 2)}) == 42
    found, records = play_tournament(
        TournamentPlan(HIGH_DIGITS, dict.fromkeys(names, "random"), blocks=1, pairing="sides")
    )
    assert len({record["match"] for record in records}) == len(records) == found["n_games"] == 49


def test_one_player_under_two_names_is_two_players() -> None:
    found, _ = play_tournament(TournamentPlan(HIGH_DIGITS, {"one": "random", "two": "random"}, blocks=20))
    one, two = (found["ratings"]["players"][name]["elo"] for name in ("one", "two"))
    assert one["value"] != two["value"] and one["ci_low"] < two["value"] < one["ci_high"]


def test_no_games_have_no_ratings_and_one_game_has_some() -> None:
    tournament = plan("random", of("Ace"), blocks=1).settled()
    content = tournament.content()
    nothing = results(content, [])
    assert nothing["ratings"] is None and nothing["n_games"] == 0 and nothing["win_matrix"] == []
    _, records = play_tournament(tournament)
    record = next(record for record in records if len(set(record["seat_map"].values())) == 2)
    [comparison] = comparisons(record)
    ratings = rate([comparison], resamples=50)
    assert len(ratings.entrants) == 2 and all(np.isfinite(e.value) for e in ratings.entrants.values())
    assert {e.count for e in ratings.entrants.values()} == {1}
    one = results(content, [record])
    assert one.keys() == nothing.keys() and one["n_games"] == 1


ESTIMATE = {"value", "stderr", "ci_low", "ci_high", "n_games", "n_blocks", "method", "higher_is_better"}
USED = {"calls", "answers", "parse_failures", "illegal", "forfeits", "faults", "tokens_in", "tokens_out", "latency"}


def test_the_fields_of_results_and_records_are_these() -> None:
    """Readers depend on them: what is added belongs here, and what is renamed or dropped needs another format."""
    found, records = play_tournament(plan("random", "first_legal", blocks=2))
    assert set(found) == {
        *("format", "env", "ruleset_hash", "pairing", "sides", "seed", "n_games", "n_blocks", "ratings", "win_matrix"),
        *("partners", "players", "differences", "game", "agent_errors", "env_errors"),
        "first_fault",
    }
    ratings, player, cell = found["ratings"], found["players"]["random"], found["win_matrix"][0]
    assert set(ratings) == {
        *("method", "anchor", "anchor_elo", "prior", "players", "by_side", "side_advantage", "groups"),
    }
    assert set(ratings["players"]["random"]["elo"]) == set(player["all"]["win"]) == set(cell["points"]) == ESTIMATE
    assert set(cell) == {"player", "side", "opponent", "opponent_side", "wins", "draws", "losses", "points"}
    assert set(player) == {"all", "by_side", "by_role", "usage"} and set(player["usage"]) > USED
    assert set(found["differences"][0]) == {"first", "second", "win"} and found["format"] == 1
    assert set(records[0]) == {
        *("match", "env", "env_version", "ruleset_hash", "seed", "block_id", "seat_map", "started", "restarts"),
        *("roles", "teams", "returns", "scores", "winners", "winner", "length", "metrics", "seats", "actions"),
        *("transcript_sha256", "status", "fault"),
    }
    assert set(records[0]["seats"]["player_0"]) == USED


def test_intervals_without_width_are_remarked() -> None:
    one, two = (play_tournament(plan("random", "first_legal", blocks=blocks))[0] for blocks in (1, 2))
    assert "1 block is too few for intervals, which resample whole blocks: play --blocks 6 or more" in remarks(one)
    assert any(line.startswith("2 blocks are too few") for line in remarks(two))


def test_weights_and_priors_are_finite() -> None:
    """An endless weight or prior would make every strength nan."""
    one, two = (("one", ""),), (("two", ""),)
    with pytest.raises(ConfigError, match="a finite weight above 0"):
        Comparison(one, two, 1.0, weight=math.inf)
    for prior in (math.inf, math.nan):
        with pytest.raises(ConfigError, match="finite"):
            strengths([Comparison(one, two, 1.0)], prior=prior)
        with pytest.raises(ConfigError, match="finite prior of at least"):
            rate([Comparison(one, two, 1.0)], prior=prior)
