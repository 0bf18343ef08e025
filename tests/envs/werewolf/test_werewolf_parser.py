"""Every form in which an action of Werewolf may be written, and what is not an action."""

from __future__ import annotations

import json

import pytest
from werewolf_games import A_ACTIONS, A_ROLES, play, started

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.werewolf.parser import PLAIN, Move, read_move

FORMS = [
    ("kill player_4", Move("kill", 4)),
    ("[kill player_4]", Move("kill", 4)),
    ("[ KILL Player_4 ]", Move("kill", 4)),
    ("[kill 4]", Move("kill", 4)),
    ("[kill: player 4]", Move("kill", 4)),
    ("[Kill PLAYER 4.]", Move("kill", 4)),
    ("Kill player 4.", Move("kill", 4)),
    ("  kill 4\n", Move("kill", 4)),
    ('{"action": "kill", "target": "player_4"}', Move("kill", 4)),
    ('{"action": "KILL", "target": 4}', Move("kill", 4)),
    ('{"action": "kill", "target": "Player 4"}', Move("kill", 4)),
    ('{"action": "kill player_4"}', Move("kill", 4)),
    ('{"action": "vote for player_4"}', Move("vote", 4)),
    ('```json\n{"reasoning": "{...}", "action": "vote", "player": "4"}\n```', Move("vote", 4)),
    ("[see player_12]", Move("see", 12)),
    ("[save 0]", Move("save", 0)),
    ("[abstain]", Move("abstain")),
    ("Abstain.", Move("abstain")),
    ('{"action": "abstain"}', Move("abstain")),
    ('{"action": "abstain", "target": "player_2"}', Move("abstain")),
    ("[bid 3]", Move("bid", 3)),
    ("[bid: 0]", Move("bid", 0)),
    ('{"action": "bid", "amount": 4}', Move("bid", 4)),
    ('{"action": "bid", "bid": "2"}', Move("bid", 2)),
    ("[bid -1]", Move("bid", -1)),
    ("[say]", Move("say")),
    ("say", Move("say")),
    ("say Hello there.", Move("say", speech="Hello there.")),
    ("[say Hello there.]", Move("say", speech=" Hello there.")),
    ("[say: Hello]", Move("say", speech=" Hello")),
    ("[say look at [player_3], please]", Move("say", speech=" look at [player_3], please")),
    ('{"action": "say", "text": "Hello"}', Move("say", speech="Hello")),
    ('{"action": "say", "message": "Hello"}', Move("say", speech="Hello")),
    ('{"action": "say", "text": null}', Move("say")),
    ('{"action": "say"}', Move("say")),
]
LAST = [
    ("I could [kill player_1], but [kill player_2] is better.", Move("kill", 2)),
    ('{"action": "kill", "target": 1} no, {"action": "kill", "target": 2}', Move("kill", 2)),
    ('[kill player_1] or {"action": "kill", "target": 2}', Move("kill", 2)),
    ('{"action": "kill", "target": 1} or [kill player_2]', Move("kill", 2)),
    ('{"action": "say", "text": "[vote player_3]"}', Move("say", speech="[vote player_3]")),
    ('[say {"action": "vote", "target": 3}]', Move("say", speech=' {"action": "vote", "target": 3}')),
    (
        '{"action": "say", "text": "{\\"action\\": \\"vote\\", \\"target\\": 3}"}',
        Move("say", speech='{"action": "vote", "target": 3}'),
    ),
    ('{"thoughts": {"action": "kill", "target": 1}, "action": "kill", "target": 2}', Move("kill", 2)),
    ("[vote player_2] [I am done]", Move("vote", 2)),
    ("[killer] [vote player_2] {not json} [seen]", Move("vote", 2)),
    ("say [vote player_2]", Move("say", speech="[vote player_2]")),
]
UNREADABLE = [
    "",
    "Hello!",
    "[kill]",
    "[kill somebody]",
    "[kill player_1 player_2]",
    "[kill player_1",
    "kill",
    "kill player_1 because I can",
    '{"action": "dance"}',
    '{"action": "kill"}',
    '{"action": "kill", "target": 1.5}',
    '{"action": "kill", "target": true}',
    '{"action": 3}',
    '{"target": "player_1"}',
    "[bid high]",
    "[bid 2.5]",
    "[killplayer_1]",
    "[1]",
]


def test_a_text_is_read() -> None:
    for text, move in FORMS + LAST:
        assert read_move(text) == move


def test_a_text_without_an_action_is_refused() -> None:
    for text in UNREADABLE:
        with pytest.raises(InvalidAction) as refused:
            read_move(text)
        assert refused.value.kind == "unreadable"


def test_every_canonical_text_means_itself() -> None:
    for text, move in PLAIN.items():
        assert read_move(text) == read_move(f"[{text}]") == move


def test_json_and_brackets_lead_to_the_same_game() -> None:
    def as_json(text: str) -> str:
        verb, _, rest = text.partition(" ")
        return json.dumps({"reasoning": "Who knows?", "action": verb, "text" if verb == "say" else "target": rest})

    plain, brackets, objects = (started(A_ROLES) for _ in range(3))
    play(plain, A_ACTIONS)
    play(brackets, [(seat, f"Hm. [{text}]") for seat, text in A_ACTIONS])
    play(objects, [(seat, as_json(text)) for seat, text in A_ACTIONS])
    assert plain.log == brackets.log == objects.log
    assert plain.actions == brackets.actions == objects.actions


@pytest.mark.parametrize(
    ("taken", "text", "reason"),
    [
        (0, "[vote player_1]", "You cannot vote now: answer with kill."),
        (
            0,
            "[kill player_8]",
            "You cannot kill player_8 now: name one of player_1, player_2, player_4, player_5, player_6.",
        ),
        (4, "[vote player_1]", "You cannot vote now: answer with say."),
        (11, "[say no]", "You cannot say now: answer with vote."),
        (
            11,
            "[vote player_0]",
            "You cannot vote player_0 now: name one of player_1, player_2, player_3, player_4, player_5, player_6.",
        ),
        (0, "[kill]", "'kill' needs the name of one player after it."),
    ],
)
def test_a_refusal_says_why(taken: int, text: str, reason: str) -> None:
    table = play(started(A_ROLES), A_ACTIONS[:taken])
    assert table.answer(0, text).reason == reason


@pytest.mark.parametrize("amount", ["5", "-1", "99"])
def test_a_bid_out_of_range_is_refused(amount: str) -> None:
    table = play(started(A_ROLES, talk_protocol="bidding"), A_ACTIONS[:4])
    assert table.answer(0, f"[bid {amount}]").reason == f"A bid is a number from 0 to 4, not {amount}."
