"""Our environments, driven through skyrl_gym's own registry and life cycle."""

import doctest
import importlib
import importlib.metadata
import json
import random
from typing import Any

import gymnasium
import pytest
from plugin_examples import code_lines, example

from turngym.errors import ConfigError, EpisodeOver

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        not any(importlib.metadata.distributions(name="skyrl-gym")),
        reason="skyrl-gym is in .venvs/plugins only: run make test-integration",
    ),
]


def made(row: dict[str, Any], **config: Any) -> Any:
    import skyrl_gym

    return skyrl_gym.make(row["env_class"], env_config=config, extras=row)


def rows(env_id: str, seeds: Any, **task: Any) -> list[dict[str, Any]]:
    from turngym.trainers.integrations.skyrl import skyrl_rows

    return skyrl_rows(env_id, seeds, **task)


@pytest.mark.parametrize("env_id", ["turngym/TowerOfHanoi-v0", "turngym/KuhnPokerSeat-v0", "turngym/Wordle-v0"])
def test_an_episode_is_that_of_the_environment_itself(env_id: str) -> None:
    for row in rows(env_id, range(5)):
        choose = random.Random(row["seed"])
        ours = gymnasium.make(env_id)
        observation, info = ours.reset(seed=row["seed"])
        env = made(row)
        prompt, _ = env.init(row["prompt"])
        assert prompt[-1] == {"role": "user", "content": observation}
        assert ours.get_wrapper_attr("instructions") in prompt[0]["content"]
        ended = False
        while not ended:
            action = choose.choice(info["legal_actions"] or ("crane",))
            observation, reward, terminated, truncated, info = ours.step(action)
            output = env.step(f"I think: <action>{action}</action>")
            ended = terminated or truncated
            assert output["reward"] == reward and output["done"] == ended
            assert (output["metadata"]["terminated"], output["metadata"]["truncated"]) == (terminated, truncated)
            assert output["observations"] == ([] if ended else [{"role": "user", "content": observation}])
        assert output["metadata"]["final_observation"] == observation
        assert env.get_metrics()["turns"] == env.turns <= env.max_turns == ours.get_wrapper_attr("max_turns")
        env.close()


def test_registering_again_changes_nothing_and_the_id_is_listed() -> None:
    import skyrl_gym

    from turngym.trainers.integrations.skyrl import NAME, register

    register()
    assert skyrl_gym.spec(NAME).entry_point == "turngym.trainers.integrations.skyrl:TurngymEnv"
    assert NAME in skyrl_gym.pprint_registry(disable_print=True)


def test_rows_survive_a_data_file_and_tell_environments_settings_and_wrappers() -> None:
    found = rows("turngym/NumberLine-v0", [3], settings={"highest": 3}, wrappers=["turn_limit:limit=1"])
    env = made(json.loads(json.dumps(found[0])), legal_actions=True)
    prompt, _ = env.init([{"role": "system", "content": "Be brief."}])
    assert prompt[0]["content"].startswith("Be brief.\n\n") and "from 0 to 3" in prompt[0]["content"]
    assert "Legal actions" in prompt[-1]["content"]
    output = env.step("no action here")
    assert output["done"] and output["metadata"]["truncated"] and not output["metadata"]["terminated"]
    assert env.get_metrics()["invalid_actions"] == 1.0


def test_a_fault_ends_the_trajectory_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from turngym.envs.textgames.number_line import NumberLine

    def break_down(self: Any, action: str) -> Any:
        raise OSError("gone")

    monkeypatch.setattr(NumberLine, "apply_action", break_down)
    row = rows("turngym/NumberLine-v0", [3])[0]
    env = made(row)
    env.init(row["prompt"])
    output = env.step("<action>+</action>")
    assert output["done"] and output["reward"] == 0.0
    assert output["metadata"]["fault"] == "OSError: gone"
    assert env.get_metrics()["faulted"] == 1.0
    with pytest.raises(EpisodeOver):
        env.step("<action>+</action>")


def test_a_row_without_a_seed_is_refused_when_the_object_is_made() -> None:
    with pytest.raises(ConfigError, match="seed"):
        made({"env_class": "turngym", "env_id": "turngym/NumberLine-v0"})


def test_the_example_plays_and_its_metrics_are_averaged_by_skyrl() -> None:
    metrics = example("skyrl_env").main()
    assert metrics["terminated"] == 1.0 and metrics["faulted"] == 0.0 and metrics["invalid_actions"] == 0.0
    assert 1.0 <= metrics["turns"] <= 2.0
    assert code_lines("skyrl_env") < 60


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(importlib.import_module("turngym.trainers.integrations.skyrl")).failed == 0
