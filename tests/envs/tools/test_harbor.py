"""Harbor task folders: what they are worth to those who do nothing, solve or forge; broken and hostile ones."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import harbor_folders as folders
import pytest

import turngym
from turngym.envs.tools.harbor import Harbor
from turngym.envs.tools.harbor.box import BoxLost
from turngym.envs.tools.harbor.bubblewrap_box import BubblewrapBox
from turngym.envs.tools.harbor.dockerfile import Recipe
from turngym.envs.tools.harbor.rewards import VerifierError
from turngym.envs.tools.harbor.settings import BoxSettings
from turngym.errors import ConfigError, MissingExtra, SnapshotUnsupported

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
SUBMIT = "<submit></submit>"


def bash(command: str) -> str:
    return f"<bash>{command}</bash>"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Any]:
    """Make environments of task folders, closed after the test."""
    opened: list[Harbor] = []

    def make(files: dict[str, str], damage: Callable[[Path], None] = lambda _: None, **options: Any) -> Harbor:
        place = folders.write(tmp_path / f"task{len(opened)}", files)
        damage(place)
        env = gymnasium.make("turngym/Harbor-v0", path=str(place), **options)
        assert isinstance(env, Harbor)
        opened.append(env)
        return env

    yield make
    for env in opened:
        env.close()


def solved(env: Harbor) -> tuple[list[str], float, dict[str, Any]]:
    """Play the expert; returns what was seen, the return, and the last info."""
    observation, info = env.reset(seed=0)
    seen, total, is_over = [observation], 0.0, False
    while not is_over:
        observation, reward, is_over, _, info = env.step(env.expert_action())
        seen.append(observation)
        total += reward
    return seen, total, info


@pytest.mark.parametrize("name", folders.GOOD)
def test_doing_nothing_gives_nothing_and_the_solution_all(name: str, made: Any) -> None:
    env = made(folders.GOOD[name])
    prompt, _ = env.reset(seed=0)
    assert "canary" not in prompt
    is_over, total = False, 0.0
    while not is_over:
        _, reward, is_over, _, info = env.step(SUBMIT)
        total += reward
    assert (total, info["success"], info["fault"]) == (0.0, 0, "")
    seen, total, info = solved(env)
    assert (total, info["success"], info["score"]) == (1.0, 1, 1.0)
    assert solved(env)[0] == seen


def test_what_the_agent_wrote_before_the_verifier_counts_nothing(made: Any) -> None:
    env = made(folders.task(tests="test -e /logs/verifier/reward.json || echo 0 > /logs/verifier/reward.txt\n"))
    forged = f"echo 1 | tee {folders.LOGS}/reward.txt; echo '{{\"reward\": 1}}' > {folders.LOGS}/reward.json"
    late = f"(while true; do echo 1 > {folders.LOGS}/reward.txt; done) > /dev/null 2>&1 &"
    replaced = "rm -rf /tests /logs/verifier; ln -s /app /tests; ln -s /app /logs/verifier; echo 1 > reward.txt"
    for command in (forged, late, replaced, f"mkdir -p {folders.LOGS}/reward.json"):
        env.reset(seed=0)
        env.step(bash(command))
        assert env.step(SUBMIT)[1:3] == (0.0, True), command


def test_who_spoils_the_box_before_submitting_gets_nothing(made: Any) -> None:
    env = made(folders.task())
    for command in ("chmod 000 /", "chmod 000 /usr", "rm /bin", "rm -r /logs; touch /logs", "chmod 000 /logs"):
        env.reset(seed=0)
        env.step(bash(command))
        _, reward, terminated, _, info = env.step(SUBMIT)
        assert (reward, terminated, info["fault"]) == (0.0, True, ""), command


def test_what_tests_wrote_that_were_killed_counts_nothing(made: Any) -> None:
    for kill in ("kill -9 $$", "bash -c 'kill -9 $$'", "kill -9 -1"):
        env = made(folders.task(tests=f"echo 1 > {folders.LOGS}/reward.txt\n{kill}\n"))
        env.reset(seed=0)
        _, reward, terminated, _, info = env.step(SUBMIT)
        assert (reward, terminated, info["fault"]) == (0.0, True, ""), kill


def test_a_snapshot_holds_the_permissions_of_the_root(made: Any) -> None:
    env = made(folders.task())
    env.reset(seed=0)
    env.step(bash("chmod 711 /"))
    snapshot = env.snapshot()
    env.reset(seed=0)
    env.restore(snapshot)
    assert "711" in env.step(bash("stat -c %a /"))[0]


@pytest.mark.parametrize("name", folders.UNFIT_REWARDS)
def test_a_reward_that_is_none_is_an_error(name: str, made: Any) -> None:
    tests, message = folders.UNFIT_REWARDS[name]
    env = made(folders.task("[verifier]\ntimeout_sec = 0.5\n" if name == "late" else "", tests=tests))
    env.reset(seed=0)
    with pytest.raises(VerifierError, match=message):
        env.step(SUBMIT)


def test_an_error_of_the_verifier_is_a_fault_of_its_slot(tmp_path: Path) -> None:
    folders.write(tmp_path, folders.task(tests="echo nan > /logs/verifier/reward.txt\n"))
    vector = turngym.make_vec("turngym/Harbor-v0", num_envs=1, autoreset_mode="disabled", path=str(tmp_path))
    vector.reset(seed=0)
    _, rewards, _, truncations, infos = vector.step([SUBMIT])
    vector.close()
    assert (list(rewards), list(truncations)) == ([0.0], [True])
    assert "expected a finite number" in infos["fault"][0]


@pytest.mark.parametrize("name", folders.HOSTILE)
def test_broken_and_hostile_folders_are_refused_in_a_sentence(name: str, made: Any) -> None:
    damage, message = folders.HOSTILE[name]
    with pytest.raises(ConfigError, match=message):
        made(folders.task(), damage).reset(seed=0)


@pytest.mark.parametrize("line", folders.DOCKER_ONLY)
def test_a_dockerfile_that_needs_docker_says_why(line: str, made: Any) -> None:
    files = folders.task(**{"environment/Dockerfile": f"FROM debian\nWORKDIR /app\n{line}\n"})
    with pytest.raises(MissingExtra, match=folders.DOCKER_ONLY[line]):
        made(files, sandbox="bubblewrap")


def test_unplayable_tasks_can_be_left_out(tmp_path: Path) -> None:
    folders.write(tmp_path / "good", folders.task())
    folders.write(tmp_path / "bad", folders.task("x = ["))
    with pytest.raises(ConfigError, match="not TOML"):
        gymnasium.make("turngym/Harbor-v0", path=str(tmp_path))
    with pytest.warns(UserWarning, match=r"1 tasks of .* are left out: bad \("):
        env = gymnasium.make("turngym/Harbor-v0", path=str(tmp_path), skip=True)
    assert env.unwrapped.tasks() == ("good",)  # type: ignore[attr-defined]


def test_nothing_is_written_outside_of_the_box(made: Any, tmp_path: Path) -> None:
    escape = "FROM x\nWORKDIR /app\nCOPY data.txt ../../../../../../tmp/turngym-harbor-escape\n"
    env = made(folders.task(**{"environment/Dockerfile": escape}))
    env.reset(seed=0)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    seen, *_ = env.step(bash(f"ls /tmp; touch {tmp_path}/x /usr/bin/x /usr/share/x /etc/alternatives/x"))
    assert "turngym-harbor-escape" in seen
    assert seen.count("cannot touch") == 4
    assert not Path("/tmp/turngym-harbor-escape").exists()
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    seen, *_ = env.step(bash(f"python3 -c 'import turngym'; ls {Path(__file__).parent} /home; ls -A /root; env"))
    assert "No module named 'turngym'" in seen
    assert "cannot access" in seen


def test_an_aborted_step_counts_as_the_last(made: Any) -> None:
    env = made(folders.steps("", "one", "must", "two"))
    env.reset(seed=0)
    env.step(bash("echo one > answer.txt"))
    assert "Step 2 of 3" in env.step(SUBMIT)[0]
    _, reward, is_over, _, info = env.step(SUBMIT)
    assert (reward, is_over, info["success"]) == (0.5, True, 0)


def test_names_of_rewards_are_columns_and_one_can_be_chosen(made: Any) -> None:
    for options, expected in (({}, 0.5), ({"reward": "style"}, 1.0), ({"reward": "tests"}, 0.0)):
        env = made(folders.GOOD["names"], **options)
        env.reset(seed=0)
        env.step(bash("echo other > answer.txt"))
        _, reward, _, _, info = env.step(SUBMIT)
        assert reward == expected
        assert info["columns"] == {"task_id": info["columns"]["task_id"], "reward_tests": 0.0, "reward_style": 1.0}
    with pytest.raises(VerifierError, match="no reward named 'speed', only tests, style"):
        env = made(folders.GOOD["names"], reward="speed")
        env.reset(seed=0)
        env.step(SUBMIT)


def test_a_separate_verifier_gets_the_artifacts_alone(made: Any) -> None:
    one, none = (f"echo {reward} > {folders.LOGS}/reward.txt" for reward in (1, 0))
    toml = 'artifacts = ["/app/answer.txt"]\n' + folders.SEPARATE
    env = made(folders.task(toml, tests=f"[ -e other.txt ] || [ ! -e answer.txt ] && {none} || {one}"))
    env.reset(seed=0)
    env.step(bash("echo hello | tee answer.txt > other.txt; mkdir -p /root; echo x > /root/.bashrc"))
    assert env.step(SUBMIT)[1] == 1.0


def test_calls_are_native_or_tags_or_json(made: Any) -> None:
    env = made(folders.task(), max_turns=6)
    env.reset(seed=0)
    assert [each["name"] for each in env.native_tools.tools] == ["bash", "submit"]
    native = '<tool_call>{"name": "bash", "arguments": {"command": "echo $((6*7))"}}</tool_call>'
    assert env.step(native)[0] == "<output>\n42\n</output>"
    assert env.step("I think <bash>exit 3</bash>")[0] == "<output>\nThere was no output.\nExit code: 3\n</output>"
    for text in ("ls", "<bash> </bash>", '<tool_call>{"name": "dig", "arguments": {}}</tool_call>'):
        _, reward, is_over, _, info = env.step(text)
        assert (reward, is_over, info["action_is_valid"]) == (0.0, False, False), text
    assert env.step('<tool_call>{"name": "submit", "arguments": {}}</tool_call>')[2]
    env = made(folders.task(), form="json")
    assert solved(env)[1] == 1.0


def test_the_last_turn_is_verified(made: Any) -> None:
    env = made(folders.task(), max_turns=1)
    env.reset(seed=0)
    seen, reward, is_over, is_cut, _ = env.step(bash("cp data.txt answer.txt"))
    assert (reward, is_over, is_cut) == (1.0, True, False)
    assert seen.endswith("No turns are left; your work is tested.")


def test_commands_have_a_time_and_the_agent_too(made: Any) -> None:
    env = made(folders.task("[agent]\ntimeout_sec = 0.6\n"), seconds=0.4)
    env.reset(seed=0)
    assert env.step(bash("sleep 30"))[0] == "<output>\nThere was no output.\nIt was stopped: out of time.\n</output>"
    env.step(bash("sleep 30"))
    assert "The time of this step is up" in env.step(bash("cp data.txt answer.txt"))[0]
    assert env.step(SUBMIT)[1] == 0.0


def test_a_box_that_its_agent_brings_down_counts_nothing(made: Any) -> None:
    env = made(folders.task("[environment]\nmemory_mb = 256\nstorage_mb = 8\n"))
    env.reset(seed=0)
    assert "No space left" in env.step(bash("head -c 20000000 /dev/zero > big; rm big"))[0]
    assert env.step(bash("kill -9 -1; kill -9 1; echo still here > answer.txt"))[2] is False
    assert solved(env)[1] == 1.0


def test_snapshots_hold_the_files(made: Any) -> None:
    env, other = made(folders.task()), None
    env.reset(seed=0)
    env.step(bash("mkdir -p a/b; echo 1 > a/b/c; ln -s b/c a/d; chmod 700 a/b; chmod 400 a/b/c; touch -d 2001-02-03 a"))
    snapshot = env.snapshot()
    look = bash("stat -c '%n %a %Y' a a/b a/b/c; readlink a/d; cat a/d; ls -A / /app")
    seen = env.step(look)[0]
    other = gymnasium.make("turngym/Harbor-v0", **env.settings)
    other.unwrapped.restore(snapshot)  # type: ignore[attr-defined]
    assert other.unwrapped.snapshot() == snapshot  # type: ignore[attr-defined]
    assert other.step(look)[0] == seen
    other.close()
    assert "a 755 981158400" in seen


def test_processes_stay_where_the_task_needs_them(made: Any) -> None:
    tests = f"kill -0 $(cat pid) && echo 1 > {folders.LOGS}/reward.txt || echo 0 > {folders.LOGS}/reward.txt"
    for background in (False, True):
        env = made(folders.task(tests=tests), background=background)
        env.reset(seed=0)
        env.step(bash("sleep 60 & echo $! > pid"))
        if background:
            with pytest.raises(SnapshotUnsupported, match="processes run in the box"):
                env.snapshot()
        assert env.step(SUBMIT)[1] == float(background)


def test_variables_of_the_host_are_read_where_they_are_allowed(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARBOR_SECRET", "s3cret")
    toml = '[environment.env]\nA = "${HARBOR_SECRET}"\nB = "${HARBOR_SECRET:-none}"\n'
    env = made(folders.task(toml))
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="allow it with variables=\\['HARBOR_SECRET'\\]"):
        env.step(bash("env"))
    env = made(folders.task(toml), variables=("HARBOR_SECRET",))
    env.reset(seed=0)
    assert env.step(bash("echo $A $B"))[0] == "<output>\ns3cret s3cret\n</output>"
    env = made(folders.task(toml.replace("A = ", "B = ", 1).split("\n", 2)[0] + '\nB = "${HARBOR_SECRET:-none}"\n'))
    env.reset(seed=0)
    assert env.step(bash("echo $B"))[0] == "<output>\nnone\n</output>"


def test_a_folder_of_splits_gives_the_tasks_of_each(tmp_path: Path) -> None:
    for split, name in (("train", "a"), ("train", "b"), ("test", "c")):
        folders.write(tmp_path / split / name, folders.task())
    found = {
        split: gymnasium.make("turngym/Harbor-v0", path=str(tmp_path), split=split).unwrapped.tasks()  # type: ignore[attr-defined]
        for split in ("train", "test")
    }
    assert found == {"train": ("a", "b"), "test": ("c",)}
    with pytest.raises(ConfigError, match="holds no Harbor task"):
        gymnasium.make("turngym/Harbor-v0", path=str(tmp_path), split="dev")


@pytest.mark.parametrize(
    ("order", "answer"),
    [
        ("run", '{"x": 1}'),
        ("run", '{"code": "0", "head": "", "tail": "", "left_out": 0, "late": false}'),
        ("run", '{"code": 0, "head": "", "tail": "\\\\ud800", "left_out": 0, "late": false}'),
        ("run", '{"code": 0, "head": "", "tail": "", "left_out": -1, "late": false}'),
        ("run", "[]"),
        ("run", "{" * 10),
        ("get", '{"tree": 1}'),
        ("rewards", '{"reward.txt": 1}'),
        ("others", '{"count": "1"}'),
        ("put", '{"tree": ""}'),
    ],
)
def test_a_box_that_answers_in_another_form_is_lost(order: str, answer: str) -> None:
    box = BubblewrapBox(Recipe(), BoxSettings(), {})
    box._session.run(f"def main(order):\n    print(order['token'], '{answer}')")
    calls: dict[str, Callable[[], object]] = {
        "run": lambda: box.run("true", {}, 5),
        "get": lambda: box.get(["/app"], 1000),
        "rewards": lambda: box.rewards("/logs"),
        "others": box.has_processes,
        "put": lambda: box.put("", "/app"),
    }
    with pytest.raises(BoxLost, match="has changed the program"):
        calls[order]()
    with pytest.raises(BoxLost, match="has ended"):
        box.run("true", {}, 5)
