"""``turngym solve``: results, the file, and wrong arguments."""

import json
import signal
import sys
from pathlib import Path

import pytest

from turngym.benchmarks.cli import solve
from turngym.benchmarks.cli.solve import main
from turngym.envs.multiagent import make_game, make_player
from turngym.envs.multiagent.equilibria import CFR, SOLVERS, GameTree, evaluate_policy, game_tree
from turngym.envs.multiagent.game import Game
from turngym.errors import ConfigError, MissingExtra

KUHN = "turngym/KuhnPoker-v0"


def test_a_game_is_solved_and_its_file_plays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policy.json"
    assert main([KUHN, "--iterations", "100", "--out", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "55 histories, 12 information sets" in shown and "exploitability 0.001194" in shown
    game = make_game(KUHN)
    player, tree = make_player(f"tabular:{file}", game), game_tree(game)
    policy = tree.policy(player.policy.table)  # type: ignore[attr-defined]
    assert evaluate_policy(tree, policy).exploitability == pytest.approx(0.001194, abs=1e-6)


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_every_solver_has_its_name(solver: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([KUHN, "--solver", solver, "--iterations", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["solver"] == solver and found["iterations"] == 2 and len(found["values"]) == 2


@pytest.mark.parametrize("solver", ["deep", "nfsp", "deep-psro"])
def test_networks_solve_a_game_and_their_file_plays(
    solver: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.json"
    command = [KUHN, "--solver", solver, "--iterations", "1", "--walks", "10", "--json", "--out", str(file)]
    assert main(command) == 0
    found, game = json.loads(capsys.readouterr().out), make_game(KUHN)
    player, tree = make_player(f"tabular:{file}", game), game_tree(game)
    policy = tree.policy(player.policy.table)  # type: ignore[attr-defined]
    assert evaluate_policy(tree, policy).exploitability == pytest.approx(found["exploitability"])


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def hiding_torch(game: Game) -> GameTree:  # tyro, which has read the arguments by now, imports a torch that it sees
        for name in ("deep_cfr", "deep_psro", "networks", "nfsp"):
            monkeypatch.delitem(sys.modules, f"turngym.trainers.equilibria.{name}", raising=False)
        monkeypatch.setitem(sys.modules, "torch", None)
        return game_tree(game)

    monkeypatch.setattr(solve, "game_tree", hiding_torch)
    with pytest.raises(MissingExtra, match=r"--solver deep needs the package torch.*turngym\[train\]"):
        main([KUHN, "--solver", "deep"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_writes_the_policy_so_far(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(CFR):
        def step(self) -> None:
            if self.iteration == 3:
                signal.raise_signal(number)
            super().step()

    monkeypatch.setattr(solve, "make_solver", lambda name, tree, seed: Interrupted(tree))
    file = tmp_path / "policy.json"
    assert main([KUHN, "--out", str(file)]) == 130
    assert json.loads(file.read_text())["about"]["iterations"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--iterations", "0"], "--iterations and --walks must be at least 1"),
        (["--walks", "0"], "--iterations and --walks must be at least 1"),
        (["--walks", "100"], r"--walks is an option of --solver deep, nfsp, deep-psro, got cfr\+"),
        (["--option", "hands=2"], "perfect recall"),
        (["--option", "hnds=2"], "Did you mean 'hands'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        main([KUHN, *arguments])


def test_a_file_that_cannot_be_written_is_found_out_before_solving(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError):
        main([KUHN, "--iterations", str(10**12), "--out", str(tmp_path / "file" / "policy.json")])


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text("mine")
    with pytest.raises(ConfigError, match="exists already"):
        main([KUHN, "--out", str(tmp_path / "policy.json")])
    assert (tmp_path / "policy.json").read_text() == "mine"
