"""Files for clusters: what they hold, that shells and parsers read them, and that what they run trains and resumes."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from turngym.__main__ import main
from turngym.benchmarks.launch import LAUNCHERS, ClusterJob, script
from turngym.errors import ConfigError

HOSTILE = "runs/it's $(touch hacked) `touch hacked`"
RAY = ("--rollout.ray.address", "auto", "--rollout.ray.workers", "2", "--rollout.ray.gpus", "1")


def training(*words: str, **fields: Any) -> ClusterJob:
    run_dir = fields.pop("run_dir", "runs/one")
    return ClusterJob(words=("train", "--run-dir", run_dir, *words), run_dir=run_dir, **fields)


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("gpus", [0, 1, 8])
def test_a_shell_reads_a_batch_script(nodes: int, gpus: int) -> None:
    text = LAUNCHERS["slurm"].render(training(run_dir=HOSTILE, nodes=nodes, gpus=gpus, gpu="h100", hours=36.5))
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
    assert "#SBATCH --time=36:30:00\n" in text and f"#SBATCH --nodes={nodes}\n" in text
    assert ("#SBATCH --gpus-per-node=h100:8\n" in text) == (gpus == 8)
    assert ("torch.distributed.run" in text) == (nodes > 1 or gpus > 1)
    assert ("--standalone" in text) == (nodes == 1 and gpus > 1)
    assert "#SBATCH --requeue\n" in text and "scontrol requeue" in text


def test_a_command_without_a_run_is_not_repeated() -> None:
    text = LAUNCHERS["slurm"].render(ClusterJob(words=("eval", "turngym-core", "--agent", "random"), gpus=8))
    assert "requeue" not in text and "torch.distributed" not in text and "RESUME" not in text


def test_words_reach_the_command_as_they_are(tmp_path: Path) -> None:
    job = ClusterJob(words=("echo", HOSTILE, "*", ""), setup="python() { shift 2; printf '%s\\n' \"$@\"; }")
    done = subprocess.run(["bash", "-c", script(job)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"echo\n{HOSTILE}\n*\n\n" and not list(tmp_path.iterdir())


def test_a_ray_job_learns_on_one_machine_and_plays_on_the_others() -> None:
    job = training(*RAY, run_dir=HOSTILE, nodes=3, gpus=2, image="registry/turngym:1", volume="claim", gpu="H100")
    job_spec = yaml.safe_load(LAUNCHERS["kubernetes"].render(job))["spec"]
    cluster = job_spec["rayClusterSpec"]
    pods = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    assert [each.get("replicas", 1) for each in pods] == [1, 2]
    for pod in (each["template"]["spec"] for each in pods):
        (container,) = pod["containers"]
        assert container["resources"] == {"limits": {"nvidia.com/gpu": 2}} and container["image"] == job.image
        assert container["volumeMounts"] == [{"name": "runs", "mountPath": "/work/runs"}]
        assert pod["volumes"] == [{"name": "runs", "persistentVolumeClaim": {"claimName": "claim"}}]
    assert cluster["headGroupSpec"]["rayStartParams"] == {"num-gpus": "0"}, "the learner's GPUs play no episodes"
    words = shlex.split(job_spec["entrypoint"])
    assert words[:2] == ["bash", "-c"] and shlex.quote(HOSTILE) in words[2] and "--standalone" in words[2]


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("kubernetes", {"volume": "x"}, "pass --image"),
        ("kubernetes", {"image": "x"}, "pass --volume"),
        ("kubernetes", {"image": "x", "volume": "x", "nodes": 2}, "--rollout.ray.workers"),
        ("skypilot", {"volume": "x"}, "pass --gpu"),
        ("skypilot", {"gpus": 0}, "pass --volume"),
        ("kubernetes", {"image": "x", "volume": "x", "run_dir": "/elsewhere"}, "write to runs/NAME, got /elsewhere"),
        ("skypilot", {"gpus": 0, "volume": "x", "run_dir": "runs/../else"}, "the volume is mounted as the folder runs"),
    ],
)
def test_jobs_that_a_scheduler_cannot_run(name: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LAUNCHERS[name].render(training(**fields))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["slurm"], "the command is missing: write it after --"),
        (["slurm", "--", "tain"], "Did you mean 'train'"),
        (["slurm", "--", "launch"], "no command named 'launch' runs on a cluster"),
        (["slrum", "--", "list"], "Did you mean 'slurm'"),
        (["slurm", "--", "train", "--sed", "1"], "Did you mean --seed"),
        (["slurm", "--setup", "a\nb", "--", "list"], "setup of the job must be one line"),
        (["slurm", "--name", "A b", "--", "list"], "name of the job must be lower-case"),
        (["slurm", "--hours", "nan", "--", "list"], "hours of the job must be a number in"),
        (["slurm", "--nodes", "2", "--", "list"], "nodes of the job must be 1 for list"),
        (["slurm", "--volume", "x", "--", "list"], "slurm has no use for --volume"),
        (["docker", "--image", "x", "--", "list"], "docker has no use for --image"),
        (["slurm", "--", "list", "\x85"], "words of the job must be printable text"),
        (["skypilot", "--gpus", "0", "--", "eval", "turngym-core", "--out", "x"], "pass --volume"),
        (["slurm", "--out", "there", "--", "list"], "there exists: pass --force"),
    ],
)
def test_wrong_words(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").write_text("mine")
    assert main(["launch", *words]) == 2 and message in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["there"] and (tmp_path / "there").read_text() == "mine"


@pytest.mark.integration
def test_two_machines_train_and_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of a SkyPilot task, with the variables of two machines; a run is not started twice."""
    monkeypatch.chdir(tmp_path)
    settings = "--iterations 1 --rollout.groups 2 --rollout.group-size 2 --evaluation.episodes 2 --no-control"
    words = ["--env", "turngym/GuessTheNumber-v0", *settings.split(), "--warmup.demonstrations", "0"]
    for nodes in (2, 1):
        options = ["--nodes", str(nodes), "--gpus", "0", "--volume", "s3://bucket", "--out", f"{nodes}.yaml"]
        assert main(["launch", "skypilot", *options, "--", "train", "--run-dir", "runs/one", *words]) == 0
        run = yaml.safe_load((tmp_path / f"{nodes}.yaml").read_text())["run"]
        machines = [_machine(rank, run) for rank in range(nodes)]
        assert [each.wait(timeout=900) for each in machines] == [0] * nodes
    metrics = (tmp_path / "runs" / "one" / "metrics.jsonl").read_text().splitlines()
    assert len([line for line in metrics if '"train/updates"' in line]) == 1


def _machine(rank: int, run: str) -> subprocess.Popen[str]:
    addresses = "127.0.0.1\n127.0.0.1"
    own = {"SKYPILOT_NUM_NODES": "2", "SKYPILOT_NODE_RANK": str(rank), "SKYPILOT_NODE_IPS": addresses}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(["bash", "-c", run], env={**os.environ, **own, "PATH": path}, text=True)
