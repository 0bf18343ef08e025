"""The rollout loop: whoever plays, in whatever order, each episode is what playing it alone would give."""

from collections.abc import Sequence

import gymnasium
import pytest
from small import agent_of, group_specs, small_model, sokoban_vector
from toy_envs import Counter, Faulty

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.episodes.evaluate import distinct_instances, evaluate, play_all, summarise
from turngym.agents.episodes.rollout import rollout
from turngym.agents.players import make_agent
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.benchmarks.evaluation.records import metrics
from turngym.envs.core import Outcome
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, UnknownName


def signature(trajectory: Trajectory) -> tuple[object, ...]:
    turns = [
        (t.observation, t.anchor, t.action, t.reward, t.action_is_valid, t.completion_ids) for t in trajectory.turns
    ]
    return turns, trajectory.success, trajectory.terminated, trajectory.truncated, trajectory.instance


def alone(spec: EpisodeSpec, actions: Sequence[str]) -> list[tuple[str, float]]:
    env = gymnasium.make("turngym/Sokoban-v0", view="coordinates", max_turns=4)
    observation, _ = env.reset(seed=spec.seed)
    found = []
    for action in actions:
        seen = observation
        observation, reward, *_ = env.step(action)
        found.append((seen, float(reward)))
    return found


@pytest.mark.parametrize("schedule", ["lockstep", "continuous"])
@pytest.mark.parametrize("slots", [1, 3, 8, 11])
def test_every_episode_is_what_playing_it_alone_gives(schedule: str, slots: int) -> None:
    vector = sokoban_vector(slots)
    specs = [EpisodeSpec(i, 50 + i, i) for i in range(10)]
    trajectories = rollout(vector, make_agent("random"), specs, schedule=schedule)  # type: ignore[arg-type]
    vector.close()
    for spec, trajectory in zip(specs, trajectories, strict=True):
        assert trajectory.spec is spec
        assert trajectory.terminated != trajectory.truncated
        assert [(t.observation, t.reward) for t in trajectory.turns] == alone(
            spec, [t.action for t in trajectory.turns]
        )


@pytest.mark.parametrize("schedule", ["lockstep", "continuous"])
def test_worker_processes_change_no_transcript(schedule: str) -> None:
    specs = [EpisodeSpec(i, 50 + i, i) for i in range(12)]
    found = []
    for backend in ("sync", "process"):
        vector = make_vec("turngym/Sokoban-v0", 4, backend=backend, autoreset_mode="disabled", max_turns=6)
        found.append(rollout(vector, make_agent("random"), specs, schedule=schedule))  # type: ignore[arg-type]
        vector.close()
    assert [signature(t) for t in found[0]] == [signature(t) for t in found[1]]


@pytest.mark.parametrize("slots", [2, 5])
def test_slots_do_not_change_what_a_model_samples(slots: int) -> None:
    """Sampling depends on episode and turn, not on the batch: a shared generator would fail here."""
    model, specs = small_model(), group_specs(2, 3)
    vectors = [sokoban_vector(6), sokoban_vector(slots)]
    first, second = (rollout(vector, agent_of(model), specs) for vector in vectors)
    assert [signature(t) for t in first] == [signature(t) for t in second]


def test_members_of_a_group_start_from_the_same_instance() -> None:
    trajectories = rollout(sokoban_vector(4), make_agent("random"), group_specs(2, 4))
    assert len({t.instance for t in trajectories[:4]}) == 1
    assert trajectories[0].instance != trajectories[4].instance
    assert len({t.turns[0].observation for t in trajectories[:4]}) == 1


def test_the_final_prompt_is_kept_for_truncated_episodes_only() -> None:
    model = small_model()
    trajectories = rollout(sokoban_vector(4), agent_of(model, "conversation"), group_specs(1, 4))
    for trajectory in trajectories:
        assert bool(trajectory.final_prompt_ids) == trajectory.truncated
        if trajectory.truncated:
            last = trajectory.turns[-1]
            assert trajectory.final_prompt_ids[: len(last.prompt_ids + last.completion_ids)] == (
                last.prompt_ids + last.completion_ids
            )


def test_the_log_is_what_was_sampled() -> None:
    trajectory = rollout(sokoban_vector(1), agent_of(small_model()), group_specs(1, 1))[0]
    for turn in trajectory.turns:
        assert len(turn.logprobs) == len(turn.completion_ids) > 0
        assert all(logprob <= 0 for logprob in turn.logprobs)


def test_a_fault_ends_its_episode_only() -> None:
    vector = make_vec(env_fns=[Faulty, Counter, Counter], autoreset_mode="disabled")
    specs = [EpisodeSpec(i, i, 0) for i in range(3)]
    trajectories = rollout(vector, make_agent("scripted:raise"), specs)
    vector.close()
    assert [bool(t.fault) for t in trajectories] == [True, False, False]
    assert trajectories[0].truncated and not trajectories[0].terminated


class _Silent(Agent):
    def act(self, requests: Sequence[Request]) -> list[Decision]:
        return []


def test_wrong_use_is_refused() -> None:
    specs = group_specs(1, 2)
    with pytest.raises(ConfigError, match="does not reset by itself"):
        rollout(make_vec("turngym/Sokoban-v0", 1), make_agent("random"), specs)
    with pytest.raises(ConfigError, match="got 'chaotic'"):
        rollout(sokoban_vector(1), make_agent("random"), specs, schedule="chaotic")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="same number"):
        rollout(sokoban_vector(1), make_agent("random"), [specs[0], specs[0]])
    with pytest.raises(ConfigError, match=r"^_Silent\.act returned 0 decisions for 1 requests"):
        rollout(sokoban_vector(1), _Silent(), specs)
    with pytest.raises(UnknownName, match=r"no agent named 'randm'\. Did you mean 'random'\?"):
        make_agent("randm")


def test_the_expert_solves_held_out_rooms_and_random_does_not() -> None:
    options = {"view": "coordinates", "max_turns": 15}
    expert, _ = evaluate("turngym/Sokoban-v0", make_agent("expert"), episodes=30, env_kwargs=options)
    chance, _ = evaluate("turngym/Sokoban-v0", make_agent("random"), episodes=30, env_kwargs=options)
    assert expert.success.value == 1.0
    assert chance.success.high < 0.6
    assert len({record["instance"] for record in expert.episodes}) == 30
    assert [r["instance"] for r in expert.episodes] == [r["instance"] for r in chance.episodes]


def test_held_out_instances_are_never_shown_in_training() -> None:
    test = distinct_instances("turngym/Sokoban-v0", 200, {"split": "test"})
    train = distinct_instances("turngym/Sokoban-v0", 1000, {"split": "train"}, seed=5)
    assert len(test) == 200
    assert not test.keys() & train.keys()


def test_more_instances_than_there_are_is_refused() -> None:
    with pytest.raises(ConfigError, match="has 100 instances, fewer than the 101 asked for"):
        distinct_instances("turngym/GuessTheNumber-v0", 101, {})


def test_a_fault_is_played_once_more_and_then_counts_as_a_failure() -> None:
    vector = make_vec(env_fns=[Faulty, Counter], autoreset_mode="disabled")
    specs = [EpisodeSpec(i, i, i) for i in range(2)]
    trajectories = play_all(vector, make_agent("scripted:raise"), specs)
    result = summarise("toy", trajectories)
    assert result.success.count == 2, "n never shrinks"
    assert result.faults == 1
    assert [record["status"] for record in result.episodes] == ["env_error", "ok"]
    vector.close()


def test_a_fault_that_the_second_attempt_does_not_have_is_in_the_record() -> None:
    seen: list[int] = []

    class Once(Counter):
        def apply_action(self, action: str) -> Outcome[str]:
            seen.append(self.turn)
            if len(seen) == 1:
                raise OSError("no luck")
            return super().apply_action(action)

    vector = make_vec(env_fns=[Once], autoreset_mode="disabled")
    result = summarise("toy", play_all(vector, make_agent("scripted:raise"), [EpisodeSpec(0, 0, 0)]))
    [record] = result.episodes
    assert result.faults == 0 and record["status"] == "ok"
    assert record["retried_fault"].startswith("exception: OSError: no luck")
    assert metrics(result)["retried"]["value"] == 1
    vector.close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "must return a list with a Decision for each request, got None"),
        ([Decision("up")], "returned 1 decisions for 2 requests: return one for each"),
        (["up", "up"], r"must return Decision objects, got 'up': write Decision\(action\)"),
        ([Decision(5), Decision("up")], r"must decide on a string, got Decision\(5\)"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_decision_is_named_with_its_agent(answer: object, message: str) -> None:
    class Mine(Agent):
        def act(self, requests: Sequence[Request]) -> list[Decision]:
            return answer  # type: ignore[return-value]

    with sokoban_vector(2) as vector, pytest.raises(ConfigError, match=rf"^Mine\.act {message}"):
        rollout(vector, Mine(), [EpisodeSpec(i, i, i) for i in range(2)])
