"""Episodes of a gateway as trajectories: calls become turns, in the order in which they were answered.

Turns whose prompt begins with an earlier turn and its answer share a training sequence with it; where a history was
edited a new sequence begins. A token is trained on in the turn that sampled it and is context everywhere else.
"""

from __future__ import annotations

from collections.abc import Sequence

from turngym.agents.gateway.calls import SampledCall
from turngym.agents.gateway.conversations.tools import written_call
from turngym.agents.gateway.episode import GatewayEpisode
from turngym.agents.trajectory import EpisodeSpec, Trajectory, TruncationReason, Turn
from turngym.agents.usage import Usage
from turngym.columns import Value


def trajectory_of(episode: GatewayEpisode, with_abandoned: bool = False) -> Trajectory:
    """Return an episode as a trajectory.

    The reward of the episode is that of its last turn. Rewards of calls that are left out go to the turn after them.

    Args:
        episode: The episode; if it has not ended it is truncated.
        with_abandoned: Whether answers that no client received are turns.
    """
    turns, carried = [], 0.0
    for call in list(episode.calls):
        carried += call.reward
        if call.delivered or with_abandoned:
            turns.append(_turn(call, carried))
            carried = 0.0
    if turns:
        turns[-1].reward += carried + episode.reward
    is_truncated = episode.status in ("truncated", "open")
    return Trajectory(
        EpisodeSpec(episode.number, episode.seed, episode.group, options=dict(episode.options) or None),
        env_id=episode.env_id,
        instance=episode.instance,
        turns=turns,
        terminated=episode.status == "terminated",
        truncated=is_truncated,
        truncation_reason=_reason(episode) if is_truncated else "",
        truncation_detail=episode.prompt_did_not_fit or episode.detail if is_truncated else "",
        success=episode.success if episode.status == "terminated" else max(episode.success, -1),
        score=episode.score,
        fault=(episode.detail or "the agent failed") if episode.status == "fault" else "",
        columns=_columns(episode, turns),
    )


def _reason(episode: GatewayEpisode) -> TruncationReason:
    return "context" if episode.prompt_did_not_fit else "environment"


def _columns(episode: GatewayEpisode, turns: Sequence[Turn]) -> dict[str, Value]:
    return {
        "gateway/calls": float(len(episode.calls)),
        "gateway/left_out": float(len(episode.calls) - len(turns)),
        "gateway/forked": float(sum(call.link == "forked" for call in episode.calls)),
    }


def _turn(call: SampledCall, reward: float) -> Turn:
    said = call.message
    action = "\n".join([said.text] * bool(said.text) + [written_call(each) for each in said.calls])
    about: dict[str, Value] = {"call": call.id, "parent": float(call.parent), "link": call.link}
    return Turn(
        observation=call.observation,
        anchor=call.key,
        action=action,
        completion=action,
        prompt_ids=call.prompt_ids,
        completion_ids=call.completion_ids,
        logprobs=call.logprobs,
        reward=reward,
        agent=call.agent,
        usage=Usage(len(call.prompt_ids), len(call.completion_ids), calls=1, latency=call.seconds),
        policy_version=call.version,
        columns={**call.columns, **about},
        cut_off=call.stop == "length",
        restricted=call.restricted,
    )
