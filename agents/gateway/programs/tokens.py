"""Episodes that agent programs played, with the tokens of their calls: what is trained on."""

from __future__ import annotations

from dataclasses import replace

from turngym.agents.gateway.programs.agent import Play
from turngym.agents.gateway.trajectories import trajectory_of
from turngym.agents.trajectory import Trajectory


def with_tokens(played: Trajectory, play: Play, with_abandoned: bool = False) -> Trajectory:
    """Return an episode whose turns are the calls of its program, instead of the actions.

    The reward of an action goes to the last call before it, or to the first one if there was none. Rewards that the
    program gave itself, if it may, are added, and decide then whether it succeeded.

    Args:
        played: The episode, with a turn for each action.
        play: Result of the program.
        with_abandoned: Whether answers that the program did not receive are turns.
    """
    episode = play.episode
    rewards, is_valid = dict[str, float](), dict[str, bool]()
    for turn, mark in zip(played.turns, play.marks, strict=False):
        if episode.calls:
            call = episode.calls[max(mark - 1, 0)]
            key = f"{call.id}/{call.choice}"
            rewards[key] = rewards.get(key, 0.0) + turn.reward
            is_valid[key] = is_valid.get(key, True) and turn.action_is_valid
    for call in episode.calls:
        call.reward += rewards.get(f"{call.id}/{call.choice}", 0.0)
    made = trajectory_of(episode, with_abandoned)
    choices = {(call.id, call.prompt_ids, call.completion_ids): f"{call.id}/{call.choice}" for call in episode.calls}
    for turn in made.turns:
        key = choices[str(turn.columns["call"]), turn.prompt_ids, turn.completion_ids]
        turn.action_is_valid = is_valid.get(key, True)
    if episode.rewards_itself:
        total = sum(turn.reward for turn in made.turns)
        success = episode.success if episode.success >= 0 else int(total > 0)
        played = replace(played, success=success, score=episode.score or total, fault=played.fault or made.fault)
    columns = {**played.columns, **made.columns, "gateway/actions": float(len(played.turns))}
    return replace(played, turns=made.turns, columns=columns, final_prompt_ids=(), final_pictures=())
