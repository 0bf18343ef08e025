"""No seat is shown anything that depends on what it may not know, and a game that leaks is found out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from werewolf_games import A_ACTIONS, A_ROLES, play, rules, started
from werewolf_worlds import compare

from turngym.envs.werewolf.game import Werewolf
from turngym.envs.werewolf.redeal import Past, other_world


def test_swapped_facts_show_in_none_of_50_games() -> None:
    found = Counter(compare(number) for number in range(50))
    results = Counter[str]()
    for (result, _), count in found.items():
        results[result] += count
    assert set(results) <= {"equal", "nothing to swap"}
    assert results["equal"] > 40
    assert {role for result, role in found if result == "equal"} == {"werewolf", "seer", "doctor", "villager"}


class TellsResults(Werewolf):
    """Lets everybody read what the seer reads."""

    def tell(self, to: Sequence[int], text: str) -> None:
        """Address a line."""
        super().tell(self.everyone if text.startswith("[seer]") else to, text)


class CountsWolves(Werewolf):
    """Its questions say how many werewolves live."""

    def prompt(self, seat: int) -> str:
        """Return the question."""
        return f"{super().prompt(seat)} Werewolves: {sum(self.roles[other] == 'werewolf' for other in self.living)}."


class SortsByRole(Werewolf):
    """Its lists of votes are in an order that depends on roles."""

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the legal actions."""
        legal = super().legal_actions(seat)
        if self.phase() != "vote":
            return legal
        return tuple(sorted(legal, key=lambda action: action == f"vote player_{self.doctor}"))


class ProgressOfWolves(Werewolf):
    """Its progress depends on who was exiled."""

    def progress(self, seat: int) -> float:
        """Return the progress."""
        return sum(self.roles[other] == "werewolf" for other in self.everyone if other not in self.living) / 9


class TellsProposals(Werewolf):
    """Lets the seer read what the werewolves propose."""

    def tell(self, to: Sequence[int], text: str) -> None:
        """Address a line."""
        super().tell((*to, self.seer) if text.startswith("[wolves]") else to, text)


class NamesTheDoctorInAnchors(Werewolf):
    """Its anchors know who is doctor."""

    def anchor(self, seat: int) -> str:
        """Return the anchor."""
        return f"{super().anchor(seat)}{self.doctor}"


LEAKS = [TellsResults, CountsWolves, SortsByRole, ProgressOfWolves, TellsProposals, NamesTheDoctorInAnchors]


@pytest.mark.parametrize("leak", LEAKS)
def test_a_game_that_leaks_is_found_out(leak: type[Werewolf]) -> None:
    assert any(compare(number, leak)[0] not in ("equal", "nothing to swap") for number in range(100))


def test_other_worlds_keep_what_each_role_knows() -> None:
    game = rules(play(started(A_ROLES), A_ACTIONS[:34]))
    generator = np.random.default_rng(0)
    for _ in range(40):
        of_wolf = other_world(game.past(), 3, generator)
        assert of_wolf is not None
        assert [seat for seat, role in enumerate(of_wolf.roles) if role == "werewolf"] == [0, 3]
        assert [night[0] for night in of_wolf.nights] == [4, 1], "it knows whom it attacked"
        of_seer = other_world(game.past(), 1, generator)
        assert of_seer is not None
        assert (of_seer.roles[1], of_seer.roles[0], of_seer.roles[3]) == ("seer", "werewolf", "werewolf")
        of_doctor = other_world(game.past(), 4, generator)
        assert of_doctor is not None
        assert of_doctor.roles[4] == "doctor"
        assert of_doctor.roles[1] != "werewolf", "werewolves do not kill their own"
        assert [night[1] for night in of_doctor.nights] == [4, 4]
        of_villager = other_world(game.past(), 6, generator)
        assert of_villager is not None
        assert of_villager.roles[1] != "werewolf"
        assert of_villager.roles[6] == "villager"
        assert sorted(of_villager.roles) == sorted(A_ROLES)


def test_there_is_no_other_world_where_everything_is_known() -> None:
    known = Past(["werewolf", "seer", "villager"], [], [], [], True, True, "none")
    seer_who_saw_all = known._replace(checks=[0, 2])
    assert other_world(seer_who_saw_all, 1, np.random.default_rng(0)) is None
    assert other_world(known, 1, np.random.default_rng(0)) is not None


def test_nothing_is_swapped_when_the_game_is_over() -> None:
    game = rules(play(started(A_ROLES), A_ACTIONS))
    assert not game.swap_hidden(2, np.random.default_rng(0))
