"""All rules, in the order in which they are run: causes before consequences."""

from __future__ import annotations

from turngym.envs.checks import calls, hidden, leaks, repeat, results, snapshots, tasks, worth
from turngym.envs.checks.rule import Rule

_ORDER = (
    calls.plays,
    calls.instructions_given,
    results.info_complete,
    results.info_values,
    results.observation_in_space,
    results.reward_finite,
    results.flags_exclusive,
    results.turn_limit_holds,
    results.legal_actions_valid,
    tasks.expert_pure,
    tasks.expert_valid,
    tasks.expert_solves,
    calls.no_step_without_episode,
    calls.close_twice,
    calls.any_text_answered,
    repeat.no_global_random,
    repeat.no_clock,
    repeat.copies_isolated,
    repeat.seed_repeats,
    repeat.seed_varies,
    repeat.seed_binds,
    repeat.reset_forgets,
    results.results_not_shared,
    tasks.instance_named,
    snapshots.snapshot_json,
    snapshots.snapshot_generator,
    snapshots.snapshot_exact,
    hidden.hidden_in_observation,
    hidden.hidden_in_anchor,
    hidden.hidden_in_legal_actions,
    hidden.hidden_in_progress,
    hidden.anchor_timeless,
    tasks.tasks_bind,
    tasks.splits_disjoint,
    calls.renders,
    calls.gymnasium_accepts,
    repeat.no_hash_order,
    repeat.same_in_other_process,
    repeat.no_environment_variables,
    snapshots.snapshot_elsewhere,
    leaks.no_temporary_files,
    leaks.no_leaked_processes,
    leaks.no_leaked_threads,
    leaks.no_leaked_files,
)

RULES: dict[str, Rule] = {rule.name: rule for rule in _ORDER}
"""Name -> rule."""
WORTH: dict[str, Rule] = {rule.name: rule for rule in (worth.nothing_fails, worth.expert_best, worth.skill_pays)}
"""Name -> rule that compares players, for which many episodes are played."""
