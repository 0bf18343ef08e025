"""Requests of the operator of a gateway: opening, rewarding and ending episodes, and their trajectories."""

from __future__ import annotations

from turngym.agents.gateway.body import Fields
from turngym.agents.gateway.calls import TokenCounts
from turngym.agents.gateway.episode import GatewayEpisode
from turngym.agents.gateway.refusal import Body, Refusal, wrong
from turngym.agents.gateway.service import Gateway
from turngym.agents.gateway.trajectories import trajectory_of
from turngym.agents.trajectory_json import trajectory_to_json

_OPENING = ("id", "group", "seed", "env_id", "instance", "options")
_MOST_REWARD_IDS = 10_000
_LONGEST_REWARD_ID = 200
_ENDS = ("terminated", "truncated", "fault")


def open_episode(gateway: Gateway, body: Body, origin: str) -> Body:
    """Open an episode, and return its name, key and address."""
    unknown = set(body) - set(_OPENING)
    if unknown:
        raise wrong(f"an episode has no field {sorted(unknown)[0][:50]!r}; it has {', '.join(_OPENING)}.")
    fields = Fields(body)
    episode = gateway.open(
        fields.text("id"),
        group=fields.integer("group", 0) or 0,
        seed=fields.integer("seed", 0) or 0,
        env_id=fields.text("env_id", "gateway"),
        instance=fields.text("instance"),
        options=fields.object("options"),
    )
    return {"id": episode.id, "key": episode.key, "base_url": f"{origin}/episode/{episode.id}/v1"}


def reward(episode: GatewayEpisode, body: Body) -> Body:
    """Reward an episode or one of its calls; a repeated ``request_id`` changes nothing."""
    fields = Fields(body)
    value = fields.number("value", -1e12, 1e12)
    if value is None:
        raise wrong("a reward has a value.")
    request_id = fields.text("request_id")
    if request_id and request_id in episode.reward_ids:
        return {"id": episode.id, "reward": episode.reward, "repeated": True}
    if len(request_id) > _LONGEST_REWARD_ID:
        raise wrong(f"request_id must have at most {_LONGEST_REWARD_ID} characters, got {len(request_id)}.")
    if request_id and len(episode.reward_ids) >= _MOST_REWARD_IDS:
        raise Refusal(429, f"episode {episode.id} has had {_MOST_REWARD_IDS} rewards with a request_id, the limit.")
    turn = fields.integer("turn", -1)
    if name := fields.text("call"):
        episode.find(name, fields.integer("choice", 0) or 0).reward += value
    elif turn is not None:
        if turn >= len(episode.calls) or not episode.calls:
            raise Refusal(404, f"episode {episode.id} has no turn {turn}.")
        episode.calls[turn].reward += value
    else:
        episode.reward += value
        episode.is_rewarded = True
    if request_id:
        episode.reward_ids.add(request_id)
    if fields.flag("finish"):
        finish(episode, {})
    return {"id": episode.id, "reward": episode.reward, "repeated": False}


def finish(episode: GatewayEpisode, body: Body) -> Body:
    """End an episode; one that has ended stays as it is."""
    fields = Fields(body)
    status = fields.text("status", "terminated")
    if status not in _ENDS:
        raise wrong(f"status must be one of {', '.join(_ENDS)}.")
    if episode.status == "open":
        success = fields.integer("success", -1, 1)
        episode.success = success if success is not None else episode.success
        episode.score = fields.number("score", -1e12, 1e12) or 0.0
        episode.detail = fields.text("detail")[:1000]
        episode.status = "terminated" if status == "terminated" else "truncated" if status == "truncated" else "fault"
    return state(episode)


def state(episode: GatewayEpisode) -> Body:
    """Return what became of an episode so far."""
    counts = TokenCounts()
    for call in episode.calls:
        counts.add(call)
    return {
        "id": episode.id,
        "status": episode.status,
        "calls": [{"id": each.id, "choice": each.choice, "agent": each.agent} for each in episode.calls],
        "reward": episode.reward,
        "tokens": counts.report(),
    }


def trajectory(gateway: Gateway, episode: GatewayEpisode) -> Body:
    """Return the trajectory of an episode."""
    return trajectory_to_json(trajectory_of(episode, gateway.rules.train_abandoned))
