"""Training sequences: which turns share one, what is read where, and which rows are the same sequence."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers.core.rows import Read, Row, build_batch, build_rows, by_padded_length, micro_batches

Ids = tuple[int, ...]
Plain = tuple[Ids, tuple[Read, ...]]


def trajectory(turns: Sequence[tuple[Ids, Ids]], final_prompt: Ids = ()) -> Trajectory:
    made = [Turn("", "", "", "", prompt, completion, (-1.0,) * len(completion)) for prompt, completion in turns]
    return Trajectory(EpisodeSpec(0, 0), turns=made, truncated=bool(final_prompt), final_prompt_ids=final_prompt)


def plain(rows: Sequence[Row]) -> list[Plain]:
    return [(tuple(row.ids.tolist()), tuple(row.reads)) for row in rows]


def token_by_token(trajectories: Sequence[Trajectory], with_final_prompts: bool, merge: bool) -> list[Plain]:
    """The rule of the module, without arrays and spans."""
    found: list[Plain] = []
    turn_number = tokens = 0
    for episode, each in enumerate(trajectories):
        parts = [(turn.prompt_ids, turn.completion_ids, True) for turn in each.turns]
        parts += [(each.final_prompt_ids, (), False)] if with_final_prompts and each.final_prompt_ids else []
        first = len(found)
        for prompt, completion, is_turn in parts:
            reads = [
                Read(len(prompt) + k - 1, token, tokens + k, turn_number, episode) for k, token in enumerate(completion)
            ] or [Read(len(prompt) - 1, -1, -1, turn_number if is_turn else -1, episode)]
            begun = [k for k in range(first, len(found)) if prompt[: len(found[k][0])] == found[k][0]]
            if prompt and merge and begun:
                found[begun[-1]] = (prompt + completion, (*found[begun[-1]][1], *reads))
            elif prompt:
                found.append((prompt + completion, tuple(reads)))
            turn_number, tokens = turn_number + is_turn, tokens + len(completion)
    return found


def random_episode(draw: random.Random) -> Trajectory:
    """Prompts that continue the last one, start anew, or are empty; completions may be empty, too."""
    turns: list[tuple[Ids, Ids]] = []
    ids: Ids = ()
    for _ in range(draw.randint(1, 5)):
        new = tuple(draw.randrange(3) for _ in range(draw.randint(1, 3)))
        prompt = draw.choice([ids + new, ids + new, new, ids or new])
        completion = tuple(draw.randrange(3) for _ in range(draw.randint(0, 3)))
        turns.append((prompt, completion) if draw.random() < 0.95 else ((), ()))
        ids = prompt + completion
    return trajectory(turns, final_prompt=draw.choice([(), (*ids, 1), (2,)]))


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("with_final_prompts", [True, False])
def test_rows_are_those_of_the_rule_token_by_token(merge: bool, with_final_prompts: bool) -> None:
    draw = random.Random(0)
    for _ in range(100):
        played = [random_episode(draw) for _ in range(draw.randint(0, 4))]
        found = plain(build_rows(played, with_final_prompts, merge))
        assert found == token_by_token(played, with_final_prompts, merge)


def test_conversations_that_take_turns_are_one_row_each() -> None:
    played = trajectory([((1,), (2,)), ((5,), (6,)), ((1, 2, 3), (4,)), ((5, 6, 7), (8,)), ((1, 9, 3), (4,))])
    rows = build_rows([played], with_final_prompts=False)
    assert [row.ids.tolist() for row in rows] == [[1, 2, 3, 4], [5, 6, 7, 8], [1, 9, 3, 4]]
    assert [row.reads.turn.tolist() for row in rows] == [[0, 2], [1, 3], [4]]


def test_a_batch_stores_equal_rows_once() -> None:
    draw = random.Random(1)
    played = [random_episode(draw) for _ in range(40)]
    rows = build_rows(played, with_final_prompts=True)
    batch = build_batch(rows)
    keys = [(ids, tuple((read.position, read.target) for read in reads)) for ids, reads in plain(rows)]
    assert len(batch.sequences) == len(set(keys)) < len(rows)
    assert batch.sequence_of.tolist() == [list(dict.fromkeys(keys)).index(key) for key in keys]
    for k, row in enumerate(rows):
        for name in ("token", "turn", "episode"):
            assert getattr(batch, name)[k].tolist()[: len(row.reads)] == getattr(row.reads, name).tolist()
            assert (getattr(batch, name)[k, len(row.reads) :] == -1).all()


def test_rows_with_the_same_tokens_and_other_targets_are_two_sequences() -> None:
    """A turn without tokens is read where another episode's turn has its first one."""
    silent = trajectory([((1, 2), ()), ((1, 2, 3), (4,))])
    whole = trajectory([((1, 2), (3,)), ((1, 2, 3), (4,))])
    batch = build_batch(build_rows([silent, whole], with_final_prompts=False))
    targets = [row.reads.target.tolist() for row in batch.sequences]
    assert targets == [[-1, 4], [3, 4]]


def test_no_rows_make_an_empty_batch() -> None:
    batch = build_batch(build_rows([], with_final_prompts=True))
    assert not batch.sequences
    assert batch.token.shape == (0, 0)
    assert micro_batches(batch, [], 100) == []


def test_sequences_are_slices_of_one_array() -> None:
    rows = build_rows([trajectory([((1, 2), (3,)), ((5,), (6, 7))])], with_final_prompts=False)
    assert np.shares_memory(rows[0].ids.base, rows[1].ids)
    assert rows[0].ids.base is rows[1].ids.base


def cut_of(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    rows = [Row.of([number] * length, [Read(0, 1, 0, 0, 0)]) for number, length in enumerate(lengths)]
    return by_padded_length(rows, range(len(rows)), max_tokens)


def test_micro_batches_are_cut_by_padded_tokens() -> None:
    assert cut_of([8, 10, 10, 12, 40], 30) == [[0, 1, 2], [3], [4]]


def test_attention_squares_of_long_sequences_count() -> None:
    """Four of 4,096 tokens fit into 16,384; two of 8,192 have twice their squares, and one of them is what is left."""
    assert cut_of([4096] * 4, 16_384) == [[0, 1, 2, 3]]
    assert cut_of([8192] * 2, 16_384) == [[0], [1]]
    assert cut_of([8192] * 2, 32_768) == [[0, 1]]


def test_an_observed_token_is_one_that_was_read_and_not_sampled() -> None:
    """The token with id 0 too, and nothing behind a shorter row."""
    observed, sampled, last = Read(0, 0, -1, -1, -1), Read(1, 5, 0, 0, 0), Read(2, -1, -1, 0, 0)
    batch = build_batch([Row.of([3, 0, 5], [observed, sampled, last]), Row.of([3, 0], [observed])])
    assert batch.observed.tolist() == [[True, False, False], [True, False, False]]
