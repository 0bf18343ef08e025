"""The laboratory of the claims: its arithmetic, its arms beside the pages of their methods, and its runs."""

import math
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies" / "learning"))

from lab.decisions import corrected, decide
from lab.experiment import PILOT_SEEDS, Arm, Contrast, Experiment, outcome
from lab.experiments import EXPERIMENTS
from lab.imitation import PASSES, Expert, demonstrations, imitate
from lab.ledger import Job, Ledger
from lab.network import lab_model
from lab.page import page
from lab.planning import make_plan, pilot_jobs, run_experiment, summary
from lab.progress import NEVER_ACTED, main_jobs
from lab.questions import Questions
from lab.runs import Method, Setting, run
from lab.settings import confounds, deviations, unexplained
from lab.task import LabTask, Play
from lab.worlds import AlikeMaze, Combination, Maze, NoisyMaze

from turngym.benchmarks.statistics.power import (
    Interval,
    critical_t,
    interval,
    power,
    seeds_needed,
    student_tail,
    upper_deviation,
    verdict,
)
from turngym.benchmarks.statistics.several_tests import holm, p_value
from turngym.envs.search.step_rewards import SearchProgress
from turngym.trainers.core.rows import Read, Row
from turngym.trainers.engine.scoring import Critic, score

ALL = pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=list(EXPERIMENTS))


@pytest.mark.parametrize(
    ("effect", "seeds"), [(0.2, 265), (0.5, 44), (0.8, 19), (1.5, 7)], ids=lambda value: str(value)
)
def test_seeds_for_90_percent_power_are_those_of_published_tables(effect: float, seeds: int) -> None:
    assert seeds_needed(effect, 1.0) == seeds
    assert power(effect, 1.0, seeds) >= 0.9 > power(effect, 1.0, seeds - 1)


def test_power_is_the_share_of_simulated_studies_that_exclude_0() -> None:
    draws = np.random.default_rng(0).normal(0.6, 1.0, size=(2000, 20))
    found = [interval(row).low > 0 or interval(row).high < 0 for row in draws.tolist()]
    assert fmean(found) == pytest.approx(power(0.6, 1.0, 20), abs=0.03)
    assert power(0.0, 1.0, 20) == pytest.approx(0.05, abs=1e-3)


def test_critical_values_are_those_of_students_t() -> None:
    table = ((1, 12.7062), (2, 4.3027), (3, 3.1824), (7, 2.3646), (19, 2.0930), (59, 2.0010), (1000, 1.9623))
    for degrees, t in table:
        assert critical_t(degrees) == pytest.approx(t, abs=1e-4)
        assert student_tail(t, degrees) == pytest.approx(0.025, abs=5e-6)


def test_power_of_two_pairs_is_that_of_simulated_ones() -> None:
    draws = np.random.default_rng(0).normal(2.0, 0.5, size=(4000, 2)).tolist()
    found = [interval(row).low > 0 or interval(row).high < 0 for row in draws]
    assert fmean(found) == pytest.approx(power(2.0, 0.5, 2), abs=0.02)


def test_pilot_deviation_is_bounded_from_above_four_times_of_five() -> None:
    draws = np.random.default_rng(1).normal(0, 1, size=(1000, 8)).tolist()
    assert fmean(upper_deviation(row) >= 1 for row in draws) == pytest.approx(0.8, abs=0.04)


def test_verdicts_need_the_whole_interval() -> None:
    assert verdict(Interval(0.06, 0.01, 0.11), 0.05) == "holds"
    assert verdict(Interval(-0.1, -0.2, -0.01), 0.05) == "does not hold"
    assert verdict(Interval(0.01, -0.02, 0.04), 0.05) == "does not hold"
    assert verdict(Interval(0.04, -0.02, 0.1), 0.05) == "undecided"


@ALL
def test_arms_have_the_settings_of_their_pages_or_say_why_not(experiment: Experiment) -> None:
    assert not unexplained(experiment)
    used = {name for arm in experiment.arms.values() for name in deviations(arm)}
    assert set(experiment.reasons) == used, "reasons for settings that no arm changes"


@ALL
def test_compared_arms_differ_in_what_is_under_test_alone(experiment: Experiment) -> None:
    for contrast in experiment.contrasts:
        assert not confounds(experiment, contrast), contrast
        assert set(contrast.claimed_at) <= set(experiment.levels)


@ALL
def test_levels_give_every_arm_the_same_samples(experiment: Experiment) -> None:
    for setting in experiment.levels.values():
        assert bool(setting.turns) != bool(setting.iterations)
    names = [name for contrast in experiment.contrasts for name in (contrast.better, contrast.worse)]
    assert set(names) <= set(experiment.arms)
    assert all(experiment.arms[contrast.better].acts for contrast in experiment.contrasts), (
        "nothing shows that it acted"
    )


def test_undeclared_setting_and_confound_are_found() -> None:
    arms = {
        "epo": Arm(Method("grpo+epo", {"grpo": {"entropy_coef": 0.01}}), acts={"loss/epo": 0.0}),
        "none": Arm(Method("grpo")),
    }
    setting = Setting(Maze(4), 100)
    contrast = Contrast("epo", "none", ("only",))
    found = Experiment("x", "", "", "", {"only": setting}, arms, (contrast,))
    assert unexplained(found) == {"grpo.entropy_coef"}
    assert confounds(found, contrast) == {"entropy_coef": ("0.01", "0")}


def test_sampler_and_learner_agree_on_every_context() -> None:
    model = lab_model(3, 5, 3, copying=0.7, seed=4)
    with torch.no_grad():
        model.network.head.bias.add_(torch.tensor([0.3, -0.2, 0.1]))
    task = LabTask(Maze(size=3, walls=0.0, limit=4), Play(groups=1, group_size=4, turn_tokens=3), seed=0)
    model = lab_model(4, task.world.num_observations, 3, copying=0.7, seed=4)
    turns = [turn for trajectory in task.gather(model, 0, 0) for turn in trajectory.turns]
    for turn in turns:
        ids = [*turn.prompt_ids, *turn.completion_ids]
        reads = [Read(k, token, k, 0, 0) for k, token in enumerate(turn.completion_ids)]
        found = score(model.network, [Row.of(ids[:-1], reads)], 1.0).logprobs[0]
        assert found.tolist() == pytest.approx(turn.logprobs, abs=1e-5)
    assert {turn.action for turn in turns} >= {"nothing"} and any(not turn.action_is_valid for turn in turns)


def test_first_policy_repeats_the_token_before_as_often_as_asked() -> None:
    model = lab_model(4, 2, 3, copying=0.7, seed=0)
    table = np.exp(model.network.log_probabilities())
    assert table.shape == (2 * 9, 4)
    assert table[9].tolist() == pytest.approx([0.25] * 4, abs=1e-6)
    assert [table[10 + k, k] for k in range(4)] == pytest.approx([0.7] * 4, abs=1e-6)


def test_critic_starts_at_0_and_reads_prompts_without_an_answer() -> None:
    model = lab_model(4, 6, 2, copying=0.5, seed=0)
    rows = [Row.of([7], [Read(0, -1, -1, -1, 0)]), Row.of([7, 1], [Read(0, 1, 0, 0, 0), Read(1, 2, 1, 0, 0)])]
    assert Critic(model.network)(rows).abs().sum() == 0


def test_maze_reaches_its_goal_and_never_leaves_its_cells() -> None:
    maze = Maze(size=6, limit=30)
    states = np.arange(maze.num_states)
    for action in range(4):
        step = maze.step(states, np.full(maze.num_states, action), np.ones(maze.num_states))
        assert (abs(maze.distance[step.state] - maze.distance[states]) <= 1).all()
        assert (step.ended == (maze.distance[step.state] == 0)).all()
    assert all(maze.distance[maze.start(seed)] >= maze.distance.max() / 2 for seed in range(20))


def test_dense_rewards_of_a_maze_sum_to_the_progress() -> None:
    maze = Maze(size=6, limit=30, dense=1.0, slip=0.3)
    rng, state = np.random.default_rng(0), np.array([maze.start(1)])
    first, total = maze.distance[state[0]], 0.0
    for _ in range(10):
        step = maze.step(state, rng.integers(4, size=1), rng.random(1))
        total, state = total + float(step.reward[0]), step.state
        if step.ended[0]:
            break
    expected = (first - maze.distance[state[0]]) / maze.distance.max() + float(maze.distance[state[0]] == 0)
    assert total == pytest.approx(expected)


def test_lock_opens_after_its_combination_alone() -> None:
    lock = Combination(length=3, locks=2, actions=3)
    state = np.array([lock.start(0)])
    for k in range(3):
        right = [a for a in range(3) if lock.step(state, np.array([a]), np.ones(1)).state[0] != state[0] or k]
        steps = [lock.step(state, np.array([a]), np.ones(1)) for a in range(3)]
        [forward] = [each for each in steps if each.solved[0] or each.state[0] == state[0] + 1]
        assert right and sum(each.state[0] != state[0] - k for each in steps) == 1
        state = forward.state
    assert forward.reward[0] == 1 and forward.ended[0]


def test_noisy_maze_moves_as_the_maze_does_and_shows_another_symbol() -> None:
    plain, noisy = Maze(size=4, limit=9, slip=0.2), NoisyMaze(size=4, limit=9, slip=0.2, symbols=5)
    rng = np.random.default_rng(0)
    place, action, draw = rng.integers(plain.num_states, size=200), rng.integers(4, size=200), rng.random(200)
    expected, found = plain.step(place, action, draw), noisy.step(place * 5 + 2, action, draw)
    assert (found.state // 5 == expected.state).all() and (found.reward == expected.reward).all()
    assert set((found.state % 5).tolist()) == set(range(5))


def test_questions_pay_single_searches_as_the_search_environment_does() -> None:
    world = Questions(hops=3, limit=40, gain=0.6, penalty=0.4)
    rng, ones = np.random.default_rng(0), np.ones(1)
    for seed in range(6):
        state = np.array([world.start(seed)])
        question = int(world.observe(state)[0]) // (world.documents + 1)
        progress = SearchProgress([world.texts[k] for k in world.chains[question].tolist()])
        for action in [world.mentions, *rng.integers(world.mentions + 1, size=12).tolist()]:
            step = world.step(state, np.array([action]), ones)
            found = int(world.observe(step.state)[0]) % (world.documents + 1)
            gain, redundancy = progress.add([world.texts[found]])
            assert step.reward[0] == pytest.approx(0.6 * gain - 0.4 * redundancy) and not step.ended[0]
            state = step.state


def test_question_is_solved_by_its_chain_and_a_wrong_answer_ends_the_episode() -> None:
    world, ones = Questions(hops=4, limit=10), np.ones(1)
    search, answer = np.array([world.mentions]), np.array([world.mentions + 1])
    state = np.array([world.start(3)])
    assert not world.step(state, answer, ones).valid[0], "nothing has been found"
    [chain] = world.chains[world.observe(state) // (world.documents + 1)].tolist()
    for hop in range(world.hops):
        actions = [search] if hop == 0 else [np.array([k]) for k in range(world.mentions)]
        after = [world.step(state, action, ones).state for action in actions]
        [state] = [each for each in after if world.observe(each)[0] % (world.documents + 1) == chain[hop]]
        step = world.step(state, answer, ones)
        assert step.ended[0] and bool(step.solved[0]) == (hop == 3) == bool(step.reward[0])


def test_wrong_answers_are_no_success() -> None:
    task = LabTask(Questions(hops=4, limit=10), Play(groups=2, group_size=16, evaluation_episodes=64), seed=0)
    model = lab_model(task.world.num_actions, task.world.num_observations, 1, copying=0.5, seed=0)
    found = task.gather(model, 0, 0)
    assert sum(each.terminated for each in found) > 5 * sum(each.success for each in found)
    assert task.success(model) < 0.1


def test_arms_may_have_rewards_and_groups_of_their_own() -> None:
    setting = EXPERIMENTS["f"].arms["grpo, dense"].setting(EXPERIMENTS["f"].levels["8 x 8"])
    assert isinstance(setting.world, Maze) and setting.world.dense == 1.0 and setting.play.group_size == 8
    archer = EXPERIMENTS["g"].arms["archer"].setting(EXPERIMENTS["g"].levels["8 symbols"])
    assert archer.critic_rate == 0.003 and EXPERIMENTS["g"].levels["8 symbols"].critic_rate == 0.03
    level = EXPERIMENTS["h"].levels["5 actions"]
    assert EXPERIMENTS["h"].arms["arpo"].setting(level).play.group_size == 4


@pytest.mark.parametrize(
    ("letter", "arm"),
    [("b", "turn_ppo"), ("c", "st_ppo raw"), ("d", "epo 0.01"), ("e", "plain 0.9"), ("g", "vine_ppo"), ("g", "archer")],
)
def test_arms_run(letter: str, arm: str) -> None:
    experiment = EXPERIMENTS[letter]
    level = next(iter(experiment.levels.values()))
    play = replace(level.play, groups=1, group_size=2, evaluation_episodes=4)
    setting = replace(level, world=NoisyMaze(size=2, walls=0.0, limit=3), play=play, turns=0, iterations=2, epochs=1)
    found = run(experiment.arms[arm].setting(setting), experiment.arms[arm].method, 0.03, 0)
    assert found["iterations"] == 2 and set(experiment.arms[arm].acts) <= set(found["metrics"])


def test_anchors_are_shared_as_often_as_asked_and_the_policy_does_not_see_it() -> None:
    maze = Maze(size=4, limit=12)
    model = lab_model(4, maze.num_observations, 1, copying=0.5, seed=0)
    found = []
    for share in (0.0, 1.0):
        task = LabTask(maze, Play(groups=2, group_size=4, shared_anchors=share), seed=3)
        found.append([turn for trajectory in task.gather(model, 0, 0) for turn in trajectory.turns])
    assert [turn.completion_ids for turn in found[0]] == [turn.completion_ids for turn in found[1]]
    assert len({turn.anchor for turn in found[0]}) == len(found[0])
    assert len({turn.anchor for turn in found[1]}) <= maze.num_states


def test_cells_look_alike_to_methods_and_not_to_the_policy() -> None:
    maze = AlikeMaze(size=5, walls=0.0, limit=20, alike=5)
    states = np.arange(maze.num_states)
    assert np.bincount(maze.anchor(states)).tolist() == [5] * 5 and (maze.observe(states) == states).all()
    task = LabTask(maze, Play(groups=1, group_size=8, snapshots=True), seed=0)
    model = lab_model(4, maze.num_observations, 1, copying=0.5, seed=0)
    turns = [turn for each in task.gather(model, 0, 0) for turn in each.turns]
    assert len({turn.anchor for turn in turns}) <= 5 < len({turn.prompt_ids for turn in turns})
    states_of = {turn.prompt_ids: int.from_bytes(turn.snapshot[:8], "little") + 4 for turn in turns}
    assert all(prompt == (state,) for prompt, state in states_of.items()), "a snapshot keeps the cell, not its look"


def test_expert_errs_as_often_as_asked_and_its_turns_are_counted() -> None:
    maze = Maze(size=6, limit=40)
    moves = np.exp(Expert(maze, 0.2).log_probabilities())
    assert moves.sum(1) == pytest.approx(np.ones(maze.num_states))
    assert moves[maze.distance == 1].max(1) == pytest.approx(0.85)
    task = LabTask(maze, Play(groups=2, group_size=4), seed=0)
    played, turns = demonstrations(task, 0.0, 100)
    assert turns == sum(len(each.turns) for each in played) >= 100 and all(each.success for each in played)
    assert demonstrations(task, 1.0, 100)[1] > sum(len(each.turns) for each in demonstrations(task, 1.0, 100)[0])


def test_imitation_and_reinforcement_share_the_turns() -> None:
    setting = Setting(Maze(size=3, walls=0.0, limit=10), 400, Play(groups=1, group_size=4, evaluation_episodes=64))
    found = [run(replace(setting, imitation=share), Method("grpo"), 0.1, 0) for share in (0.5, 1.0)]
    assert [each["turns"] for each in found] == [pytest.approx(400, abs=40)] * 2
    assert found[0]["iterations"] > 0 == found[1]["iterations"] and found[1]["final"] > 0.9
    assert all(len(each["curve"]) == 16 for each in found) and found[0]["metrics"]["imitation/turns"] >= 200


def test_imitation_notes_its_progress() -> None:
    task = LabTask(Maze(size=3, walls=0.0, limit=10), Play(groups=1, group_size=4), seed=0)
    noted: list[float] = []
    imitate(task, lab_model(4, 9, 1, copying=0.5, seed=0), 0.0, 20, 0.1, noted.append)
    assert noted[0] == 1 / PASSES and noted[-1] == 1.0 and sorted(noted) == noted


def tiny(name: str = "tiny") -> Experiment:
    """Return an experiment that takes no time."""
    world = Maze(size=3, walls=0.0, limit=6)
    return Experiment(
        name,
        "gigpo beats grpo",
        "nobody",
        "nothing",
        {"only": Setting(world, 100, Play(groups=1, group_size=4, evaluation_episodes=8))},
        {"gigpo": Arm(Method("gigpo"), acts={"credit/turns_with_shared_anchor": 0.1}), "grpo": Arm(Method("grpo"))},
        (Contrast("gigpo", "grpo", ("only",)),),
        under_test=frozenset({"kl_coef", "normalisation", "invalid_penalty"}),
        effect=2.0,
        rates=(0.1,),
    )


def stored(experiment: Experiment, folder: Path, jobs: Iterable[Job]) -> Ledger:
    """Return a ledger with made-up runs: gigpo has 0.1 more success than grpo."""
    ledger = Ledger(experiment, folder)
    for job in jobs:
        final = 0.5 + 0.1 * (job.arm == "gigpo")
        line = {"curve": [0.0, final], "final": final, "mean": final, "turns": 100, "seconds": 0.0}
        ledger.add(job, {**line, "metrics": {"policy/ess": 1.0, "credit/turns_with_shared_anchor": 0.5}})
    return ledger


def test_queue_plans_after_the_pilot_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    experiment = tiny()
    pilot = pilot_jobs(experiment)
    stored(experiment, tmp_path, pilot)
    plan = make_plan(experiment, Ledger(experiment, tmp_path).done)
    main = main_jobs(experiment, plan, plan["seeds"])
    assert plan["seeds"] == 20 and len(main) == 2 * 20 and not {job.seed for job in main} & set(PILOT_SEEDS)
    stored(experiment, tmp_path, main[:-1])
    assert summary(Ledger(experiment, tmp_path))["state"] == "the pilot is not complete"
    found = run_experiment(experiment, at_once=1, folder=tmp_path)
    assert found["state"] == "complete" and found["runs"] == len(pilot) + len(main)
    assert found["contrasts"][0]["seeds"] == 20 and all(found["arms"][0]["acted"].values())
    ledger = tmp_path / "tiny.runs.jsonl"
    lines = ledger.read_text("utf8").splitlines(keepends=True)
    ledger.write_text("".join(lines[:-1]), "utf8")
    waiting = summary(Ledger(experiment, tmp_path))
    assert waiting["state"] == "39 main runs of at most 40" and "contrasts" not in waiting, (
        "one look, after the last run"
    )
    assert run_experiment(experiment, at_once=1, folder=tmp_path)["contrasts"] == found["contrasts"]
    assert len(ledger.read_text("utf8").splitlines()) == len(lines)


def test_arm_that_never_acted_gets_no_verdict(tmp_path: Path) -> None:
    experiment = replace(tiny(), contrasts=(Contrast("gigpo", "grpo", ("only",)),))
    idle = replace(experiment, arms={**experiment.arms, "gigpo": Arm(Method("gigpo"), acts={"policy/ess": 2.0})})
    stored(idle, tmp_path, pilot_jobs(idle))
    stored(idle, tmp_path, [Job(arm, "only", 0.1, seed) for arm in idle.arms for seed in range(20)])
    found = run_experiment(idle, at_once=1, folder=tmp_path)
    assert found["contrasts"][0]["verdict"] == NEVER_ACTED
    assert found["contrasts"][0]["difference"]["mean"] == pytest.approx(0.1)


def test_runs_repeat_to_the_bit_and_keep_to_their_turns() -> None:
    setting = Setting(Maze(size=3, walls=0.0, limit=10), 300, Play(groups=2, group_size=4, evaluation_episodes=16))
    first, second = (run(setting, Method("ppo"), 0.03, 7) for _ in range(2))
    assert first["curve"] == second["curve"] and first["metrics"]["train/grad_norm"] > 0
    assert 300 <= first["turns"] < 300 + 8 * 10 and len(first["curve"]) == 16


def test_run_that_diverges_has_no_success_from_there_on() -> None:
    maze = Maze(size=3, limit=6, dense=math.inf)
    setting = Setting(maze, 300, Play(groups=2, group_size=4, evaluation_episodes=16))
    with np.errstate(invalid="ignore"):
        found = run(setting, Method("grpo"), 0.03, 0)
    assert found["diverged"] and found["final"] == 0.0 and len(found["curve"]) == 16


def test_plan_takes_the_widest_comparison_and_the_best_step_size() -> None:
    experiment = tiny()
    done = {}
    for job in pilot_jobs(experiment):
        value = 0.3 + 0.01 * (job.seed % 3) * (job.arm == "gigpo")
        done[job] = {"curve": [value], "final": value, "mean": value}
    plan = make_plan(experiment, done)
    assert plan["rates"] == {"gigpo at only": 0.1, "grpo at only": 0.1}
    assert plan["seeds"] == 20 and plan["contrasts"][0]["power"] == 1.0
    assert outcome({"curve": [0, 0.5, 0.4], "final": 0.4}, "kept") == 1.0
    assert Job("gigpo", "only", 0.1, 0) in main_jobs(experiment, plan, 20)


def test_only_primary_comparisons_set_the_number_of_seeds() -> None:
    experiment = replace(tiny(), effect=0.01)
    done = {}
    for job in pilot_jobs(experiment):
        value = 0.3 + 0.1 * (job.seed % 3) * (job.arm == "gigpo")
        done[job] = {"curve": [value], "final": value, "mean": value}
    first = experiment.contrasts[0]
    both = (replace(first, primary=False), replace(first, outcome="kept"))
    assert make_plan(experiment, done)["seeds"] == 200
    assert make_plan(replace(experiment, most_seeds=50), done)["seeds"] == 50
    plan = make_plan(replace(experiment, contrasts=both), done)
    assert plan["seeds"] == 20 and [row["power"] for row in plan["contrasts"]] == [pytest.approx(0.05, abs=0.02), 1.0]


def test_page_says_what_has_not_run() -> None:
    head = {"claim": "it is better", "about": "", "source": "a paper", "varied": "size", "command": "run x"}
    text = page({"x": {**head, "state": "the pilot is not complete"}})
    assert "not finished: the pilot is not complete" in text


def compared(mean: float, half: float, level: str = "only", **more: object) -> dict[str, object]:
    """Return a comparison with 20 seeds as a summary has it."""
    found = {"mean": mean, "low": mean - half, "high": mean + half}
    row = {"contrast": "new > old (final)", "level": level, "claimed": True, "primary": True, "seeds": 20}
    return {**row, "difference": found, "verdict": "holds", "better": 0.5, "worse": 0.4, **more}


def test_verdicts_are_corrected_for_the_number_of_tests_of_a_claim() -> None:
    assert corrected([compared(0.1, 0.09)], [0.1]) == ["holds"]
    both = corrected([compared(0.1, 0.09), compared(0.05, 0.1)], [0.1, 0.1])
    assert both == ["undecided", "undecided"], "p = .03 alone is .06 of two"
    assert corrected([compared(0.1, 0.02), compared(0.0, 0.03)], [0.1, 0.1]) == ["holds", "does not hold"]
    assert corrected([compared(-0.1, 0.02)], [0.1]) == ["does not hold, worse"]
    assert holm([0.01, 0.04]) == [0.02, 0.04] and holm([]) == []
    assert p_value(Interval(0.1, 0.1, 0.1), 20) == 0.0 and p_value(Interval(0.0, 0.0, 0.0), 20) == 1.0


def test_claim_is_decided_by_its_primary_tests_at_claimed_levels() -> None:
    rows = [
        compared(0.1, 0.02, "a"),
        compared(-0.1, 0.02, "b"),
        compared(0.1, 0.02, "elsewhere", claimed=False),
        compared(0.1, 0.02, "beside", primary=False),
        compared(0.1, 0.02, "idle", verdict=NEVER_ACTED),
    ]
    planned = [{"contrast": "new > old (final)", "level": row["level"], "effect": 0.1, "power": 0.9} for row in rows]
    found = decide(rows, planned, NEVER_ACTED)
    assert [test["level"] for test in found["tests"]] == ["a", "b"] and found["idle"] == 1
    assert found["verdict"] == "holds in part"
    assert decide(rows[1:2], planned, NEVER_ACTED)["verdict"] == "does not hold"
    assert decide(rows[4:], planned, NEVER_ACTED)["verdict"] == "not tested"


def test_page_begins_with_one_verdict_for_each_claim(tmp_path: Path) -> None:
    experiment = replace(EXPERIMENTS["j"], name="j", rates=(0.1,))
    ledger = Ledger(experiment, tmp_path)
    for job in [*pilot_jobs(experiment), *[Job(arm, at, 0.1, s) for arm, at in experiment.cells() for s in range(20)]]:
        final = 0.5 + (0.2 if job.arm == "grpo 0.1" else 0.0)
        line = {"curve": [0.0, final], "final": final, "mean": final, "turns": 9, "seconds": 0.0}
        ledger.add(job, {**line, "metrics": {"rollout/invalid_actions": 0.3}})
    found = run_experiment(experiment, at_once=1, folder=tmp_path)
    assert found["decision"]["verdict"] == "holds in part"
    text = page({"j": found})
    assert "Of 1 claims: 1 holds in part." in text and "grpo 0.1 > grpo 0 at illegal actions: +20.0" in text
    assert text.index("## Verdicts") < text.index("## (j)") < text.index("A maze whose walls refuse a step.")
