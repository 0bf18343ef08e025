"""Groups of episodes of one iteration, for custom training loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from turngym.agents.episodes.rollout import Schedule, rollout
from turngym.agents.models.loading import LanguageModel
from turngym.agents.players import AgentSettings, settings_for
from turngym.agents.players.transformers import transformers_agent
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.vector import TextVectorEnv
from turngym.errors import ConfigError
from turngym.seeding import stream_seed


def group_specs(
    groups: int, group_size: int, *, iteration: int = 0, seed: int = 0, attempt: int = 0
) -> list[EpisodeSpec]:
    """Return the episodes of an iteration: ``groups`` task instances, each ``group_size`` times.

    Args:
        groups: Task instances.
        group_size: Episodes per instance; they start from the same state.
        iteration: Number of the iteration; each has different instances.
        seed: Seed of the run.
        attempt: Number of earlier rollouts of the iteration; each has different instances, groups and numbers.

    >>> [(spec.episode, spec.group) for spec in group_specs(2, 2)]
    [(0, 0), (1, 0), (2, 1), (3, 1)]
    """
    found = []
    for group in range(groups):
        of_group = stream_seed("group", seed, iteration, attempt, group) % 2**31
        number = attempt * groups + group
        found += [EpisodeSpec(number * group_size + member, of_group, number) for member in range(group_size)]
    return found


def play_groups(
    vector: TextVectorEnv,
    model: LanguageModel,
    *,
    groups: int,
    group_size: int,
    iteration: int = 0,
    seed: int = 0,
    temperature: float = 1.0,
    settings: AgentSettings | None = None,
    options: Mapping[str, Any] | None = None,
    schedule: Schedule = "lockstep",
    final_prompts: bool = False,
) -> list[Trajectory]:
    """Play the episodes of an iteration with a policy, as ``turngym train`` does.

    Args:
        vector: A vector with autoreset mode DISABLED.
        model: The policy.
        groups: Task instances.
        group_size: Episodes per instance.
        iteration: Number of the iteration; each has different instances and random numbers.
        seed: Seed of the run.
        temperature: Sampling temperature, above 0; pass the same one to ``prepare``.
        settings: Format, prompt and length of answers; by default those of the model's folder, if turngym wrote it.
            Seed and temperature in it are ignored.
        options: Options of every reset.
        schedule: ``lockstep`` is reproducible to the bit, ``continuous`` never waits for slow slots.
        final_prompts: Keep the next prompt of truncated episodes, for methods with a critic.

    Raises:
        ConfigError: The temperature is not above 0, or the vector has autoreset.
    """
    if temperature <= 0:
        raise ConfigError(f"training samples, so temperature must be above 0, got {temperature}.")
    chosen = replace(settings or settings_for(f"hf:{model.name}"), seed=seed, temperature=temperature)
    specs = group_specs(groups, group_size, iteration=iteration, seed=seed)
    if options is not None:
        specs = [replace(spec, options=dict(options)) for spec in specs]
    agent = transformers_agent(model, chosen, iteration)
    found = rollout(vector, agent, specs, schedule=schedule, final_prompts=final_prompts)
    for turn in (turn for trajectory in found for turn in trajectory.turns):
        turn.policy_version = iteration
    return found
