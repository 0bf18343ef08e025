"""Trajectories as a flat list of turns; defines the order and number of sampled tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turngym.agents.trajectory import Trajectory, Turn
from turngym.errors import ConfigError


class FlatTurn(NamedTuple):
    """A turn and its position in a batch.

    Args:
        episode: Index of the episode.
        position: Index of the turn in its episode.
        trajectory: The episode.
        turn: The turn.
        first_token: Number of tokens sampled in earlier turns of the batch.
    """

    episode: int
    position: int
    trajectory: Trajectory
    turn: Turn
    first_token: int


def flatten(trajectories: Sequence[Trajectory]) -> list[FlatTurn]:
    """Return the turns of a batch in order."""
    found, tokens = [], 0
    for episode, trajectory in enumerate(trajectories):
        for position, turn in enumerate(trajectory.turns):
            found.append(FlatTurn(episode, position, trajectory, turn, tokens))
            tokens += len(turn.completion_ids)
    return found


def check_tokens(turns: Sequence[FlatTurn]) -> None:
    """Raise if sampled tokens cannot be trained on.

    Raises:
        ConfigError: In some turn, the number of log-probabilities differs from that of sampled tokens, the prompt is
            missing, or tokens were sampled from part of the vocabulary.
    """
    for each in turns:
        turn, tokens = each.turn, len(each.turn.completion_ids)
        if len(turn.logprobs) == tokens and (turn.prompt_ids or not tokens) and not turn.restricted:
            continue
        place = f"turn {each.position} of episode {each.trajectory.spec.episode} has {tokens} sampled tokens"
        if turn.restricted:
            raise ConfigError(
                f"{place} from a part of the vocabulary (top-p, top-k or min-p), so their log-probabilities are not "
                "those of the policy that is trained: sample from all of it to train, with top_p=1."
            )
        if len(turn.logprobs) != tokens:
            raise ConfigError(
                f"{place} and {len(turn.logprobs)} log-probabilities: an agent that is trained must return both in its "
                "Decision, one log-probability a token."
            )
        raise ConfigError(f"{place} and no prompt: an agent that is trained must return prompt_ids in its Decision.")
