"""``turngym solve``: an equilibrium of a small game, as a file that plays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import Pairs, key_values, parse
from turngym.envs.multiagent.equilibria import GameTree, TabularPolicy, evaluate_policy, game_tree, make_solver
from turngym.envs.multiagent.equilibria.solvers import Solver
from turngym.envs.multiagent.equilibria.tree import MOST_NODES
from turngym.envs.multiagent.registration import make_game
from turngym.envs.vector.slots.boundary import closing_quietly
from turngym.errors import ConfigError, missing_extra
from turngym.terminal.console import Console
from turngym.terminal.interrupted import INTERRUPTED, stop_signals
from turngym.terminal.output import print_json

USES_OWN_MODULES = True
_NETWORKS = ("deep", "nfsp", "deep-psro")


@dataclass(frozen=True)
class Arguments:
    """Solve a small game and print the exploitability of the policy.

    The game is enumerated by playing its rules, which requires anchors with perfect recall and few chance outcomes. An
    interrupted command (Ctrl-C or SIGTERM) finishes its iteration, reports, and writes the policy so far.

    Args:
        game: Id of the game, `module:Class` or `path/to/file.py:Class`.
        solver: Counterfactual regret minimisation (plain, CFR+, discounted, with external or outcome sampling),
            fictitious play, or double oracle with exact best responses (psro), for two seats and zero sums. Networks
            replace the tables in deep (Deep CFR), nfsp (neural fictitious self-play) and deep-psro (best responses
            learned from sampled games).
        iterations: Number of iterations.
        seed: Seed of the solvers that sample.
        walks: Games sampled at a time by solvers with networks: walks per seat and iteration of deep (default: 100),
            games per iteration of nfsp (200) and per round of training of deep-psro (200); refused with others.
        option: Option of the game, such as faces=3.
        out: New JSON file for the policy; `tabular:FILE` plays it in tournaments and as an opponent.
        json: Print the results as JSON.
    """

    game: Positional[str]
    solver: Literal["cfr", "cfr+", "dcfr", "fictitious", "psro", "external", "outcome", "deep", "nfsp", "deep-psro"] = (
        "cfr+"
    )
    iterations: int = 1000
    seed: int = 0
    walks: int | None = None
    option: Pairs = ()
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """Solve the game, print what was found, and write the policy."""
    arguments = parse(Arguments, argv, "solve")
    walks = arguments.walks
    if min(arguments.iterations, 1 if walks is None else walks) < 1 or arguments.seed < 0:
        raise ConfigError(
            f"--iterations and --walks must be at least 1 and --seed at least 0, got {arguments.iterations}, "
            f"{walks} and {arguments.seed}."
        )
    if walks is not None and arguments.solver not in _NETWORKS:
        raise ConfigError(
            f"--walks is an option of --solver {', '.join(_NETWORKS)}, got {arguments.solver}: leave it out."
        )
    if arguments.out is not None and arguments.out.exists():
        raise ConfigError(f"{arguments.out} exists already: pass another file as --out.")
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True, highlight=False)
    with (
        closing_quietly(make_game(arguments.game, **key_values(arguments.option, "--option"))) as game,
        console.status(f"enumerating {game.name}, up to {MOST_NODES:,} histories"),
    ):
        tree = game_tree(game)
    solver, done, stops = _solver(arguments, tree), 0, list[bool]()
    with suppress(KeyboardInterrupt), stop_signals(lambda: stops.append(True)), console.status("solving") as status:
        while done < arguments.iterations and not stops:
            solver.step()
            done += 1
            status.update(f"{done:,} of {arguments.iterations:,} iterations of {arguments.solver}")
    policy = solver.average()
    result = evaluate_policy(tree, policy)
    found = {
        "game": arguments.game,
        "solver": arguments.solver,
        "iterations": done,
        "histories": len(tree.parent),
        "information_sets": len(tree.sets),
        "exploitability": result.exploitability,
        "values": list(result.values),
        "best_responses": list(result.best),
    }
    if arguments.out is not None:
        TabularPolicy(game.name, tree.table(policy), game.settings, found).save(arguments.out)
    _print(found, arguments)
    return 0 if done == arguments.iterations else INTERRUPTED


def _solver(arguments: Arguments, tree: GameTree) -> Solver:
    """Return the solver; those with networks are a layer above the others and need torch."""
    if arguments.solver not in _NETWORKS:
        return make_solver(arguments.solver, tree, arguments.seed)
    try:
        from turngym.trainers.equilibria import NFSP, DeepCFR, DeepPSRO
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise missing_extra(f"--solver {arguments.solver}", "torch", "train") from error
    if arguments.solver == "deep":
        return DeepCFR(tree, arguments.seed, arguments.walks or 100)
    kind = NFSP if arguments.solver == "nfsp" else DeepPSRO
    return kind(tree, seed=arguments.seed, games=arguments.walks or 200)


def _print(found: dict[str, Any], arguments: Arguments) -> None:
    if arguments.json:
        print_json(found)
        return
    console = Console(highlight=False)
    console.print(
        f"{found['game']}: {found['histories']:,} histories, {found['information_sets']:,} information sets\n"
        f"{found['iterations']:,} iterations of {found['solver']}: exploitability {found['exploitability']:.6f}",
        markup=False,
    )
    for seat, (value, best) in enumerate(zip(found["values"], found["best_responses"], strict=True)):
        console.print(f"player_{seat}: value {value:+.6f}, best response {best:+.6f}", markup=False)
    if arguments.out is not None:
        console.print(f"written to {arguments.out}", markup=False, soft_wrap=True)
