"""Guards against non-finite numbers: each reports the first one, with its episode and turn."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from turngym.agents.trajectory import Trajectory
from turngym.arithmetic import as_float, is_finite
from turngym.columns import reward_parts
from turngym.errors import DivergenceError
from turngym.lazy import Tensor, nn, torch
from turngym.trainers.core.algorithm import LossInputs, LossOutput
from turngym.trainers.core.turn_table import TurnTable

BadReward: TypeAlias = Literal["stop", "drop"]
_SHOWN = 200
_REFUSED = re.compile(r"exception: NotFinite: got (.*), which is not finite$")
"""Matches the fault of a slot whose environment returned a non-finite reward."""


def place_of(trajectory: Trajectory, turn: int) -> dict[str, Any]:
    """Return a description of a turn for debugging."""
    record = trajectory.turns[turn]
    return {
        "env": trajectory.env_id,
        "episode": trajectory.spec.episode,
        "group": trajectory.spec.group,
        "seed": trajectory.spec.seed,
        "instance": trajectory.instance,
        "turn": turn,
        "agent": record.agent,
        "observation": record.observation[:_SHOWN],
        "action": record.action[:_SHOWN],
        "reward": str(record.reward),
        "staleness": record.staleness,
    }


def _place_of_row(kept: Sequence[Trajectory], row: int) -> dict[str, Any]:
    """Return the description of a row of the turn table of these trajectories."""
    for trajectory in kept:
        if row < len(trajectory.turns):
            return place_of(trajectory, row)
        row -= len(trajectory.turns)
    return {}


def _bad_reward(trajectory: Trajectory) -> tuple[int, str] | None:
    """Return the first turn with a non-finite reward or reward component, and the value; None without one.

    A vector ends such an episode with a fault, and its last turn has reward 0.
    """
    if trajectory.fault:
        refused = _REFUSED.match(trajectory.fault)
        return (len(trajectory.turns) - 1, refused[1]) if refused and trajectory.turns else None
    for index, turn in enumerate(trajectory.turns):
        if not is_finite(turn.reward):
            return index, f"the reward {as_float(turn.reward)}"
        for name, part in reward_parts(turn.columns).items():
            if not is_finite(part):
                return index, f"the reward part {name!r} of {as_float(part)}"
    return None


def screen_rewards(trajectories: Sequence[Trajectory], bad_reward: BadReward) -> int:
    """Check episodes for non-finite rewards.

    Args:
        trajectories: Episodes; those with another fault are skipped.
        bad_reward: ``drop`` marks an episode with such a reward as faulted: counted but not used.

    Returns:
        Number of dropped episodes.

    Raises:
        DivergenceError: A reward is not finite, and ``bad_reward`` is ``stop``.
    """
    dropped = 0
    for trajectory in trajectories:
        found = _bad_reward(trajectory)
        if found is None:
            continue
        turn, what = found
        if bad_reward == "stop":
            raise DivergenceError(
                f"episode {trajectory.spec.episode} of {trajectory.env_id} got {what} at turn {turn}.",
                "reward",
                {**place_of(trajectory, turn), "reward": what.rpartition(" ")[2]},
            )
        trajectory.fault, trajectory.truncated = f"bad reward: {what} at turn {turn}", True
        dropped += 1
    return dropped


def check_advantages(advantages: Tensor, table: TurnTable, kept: Sequence[Trajectory]) -> None:
    """Raise if an advantage is not finite.

    Raises:
        DivergenceError: An advantage is not finite; the message names the turn.
    """
    bad = torch.nonzero(~torch.isfinite(advantages)).flatten()
    if len(bad):
        token = int(bad[0])
        where = {
            **_place_of_row(kept, int(table.token_turn[token])),
            "value": str(float(advantages[token])),
            "tokens": len(bad),
        }
        raise DivergenceError(
            "an advantage is not finite: look at the rewards and the critic's values.", "advantage", where
        )


def bad_loss(output: LossOutput, inputs: LossInputs) -> DivergenceError:
    """Return the error for a non-finite loss, with term and turn."""
    where: dict[str, Any] = {}
    for name, term in output.terms.items():
        weighed = (inputs.weights[term.over] * term.values).detach()
        bad = torch.nonzero(~torch.isfinite(weighed) & (inputs.turn_ids >= 0))
        if len(bad):
            row, column = (int(index) for index in bad[0])
            where = {
                "term": name,
                "row": int(inputs.turn_ids[row, column]),
                "log_probability": str(float(inputs.logprobs[row, column].detach())),
                "sampler_log_probability": str(float(inputs.behaviour_logprobs[row, column])),
                "advantage": str(float(inputs.advantages[row, column])),
            }
            break
    return DivergenceError(
        "the loss is not finite: lower the learning rate, or look at the last metrics.", "loss", where
    )


def located(error: DivergenceError, kept: Sequence[Trajectory]) -> DivergenceError:
    """Return the error with the description of its turn, if it names one."""
    row = error.where.pop("row", None)
    if isinstance(row, int):
        error.where = {**_place_of_row(kept, row), **error.where}
    return error


def _first_bad(named: Mapping[str, Tensor]) -> str:
    """Return the name of the first tensor with a non-finite entry; empty without one."""
    if not named:
        return ""
    sums: dict[type[Tensor], list[Tensor]] = {}
    for tensor in named.values():  # sharded ones and others do not mix
        sums.setdefault(type(tensor.detach()), []).append(tensor.detach().double().sum())
    if all(bool(torch.isfinite(torch.stack(of_kind)).all()) for of_kind in sums.values()):  # one transfer for all
        return ""
    return next((name for name, tensor in named.items() if not bool(torch.isfinite(tensor).all())), "")


def check_weights(modules: Mapping[str, nn.Module]) -> None:
    """Raise if a trained weight is not finite.

    Args:
        modules: Name -> network.

    Raises:
        DivergenceError: A weight is not finite; the message names the parameter.
    """
    named = {f"{key}.{name}": p for key, module in modules.items() for name, p in module.named_parameters()}
    bad = _first_bad({name: parameter for name, parameter in named.items() if parameter.requires_grad})
    if bad:
        raise DivergenceError(
            "a weight is not finite after the update: lower the learning rate, or look at the last metrics.",
            "weights",
            {"parameter": bad},
        )


def bad_gradient(gradients: Mapping[str, Tensor]) -> DivergenceError:
    """Return the error for non-finite gradients, with the name of the first parameter.

    Args:
        gradients: Name of a parameter -> its gradient.
    """
    return DivergenceError(
        "a gradient is not finite: lower the learning rate, or look at the last metrics.",
        "gradient",
        {"parameter": _first_bad(gradients)},
    )
