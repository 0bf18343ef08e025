"""Episodes that agent programs played: the tokens of their calls, and the rewards of a verifier."""

from __future__ import annotations

from dataclasses import replace

from turngym.agents.core import Agent
from turngym.agents.gateway.programs.agent import Play
from turngym.agents.gateway.trajectories import trajectory_of
from turngym.agents.players import AgentSettings
from turngym.agents.trajectory import Trajectory
from turngym.agents.verifiers import judge, make_verifier
from turngym.arithmetic import is_finite


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


_SOLVED = 0.5


class VerifierJudge:
    """Rewards episodes with the scores of a verifier, which sees what was asked and answered and not the outcome.

    Args:
        description: The verifier, such as ``model:openai:MODEL@URL``.
        settings: Settings of the agent that plays.
        agent: Agent whose model the programs call.

    Raises:
        UnknownName: There is no such verifier.
        ConfigError: It cannot be made, or is not a verifier.
    """

    def __init__(self, description: str, settings: AgentSettings, agent: Agent) -> None:
        self._verifier = make_verifier(description, settings, agent)

    def judged(self, played: Trajectory) -> Trajectory:
        """Return an episode with the score on its last turn; a score from 0.5 is a success, none at all is a fault."""
        if played.fault or not played.turns:
            return played
        score = judge(self._verifier, played).score
        if not is_finite(score):
            return replace(played, fault="the verifier gave no score")
        last = replace(played.turns[-1], reward=played.turns[-1].reward + score)
        return replace(played, turns=[*played.turns[:-1], last], score=score, success=int(score >= _SOLVED))
