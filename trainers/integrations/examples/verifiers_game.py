"""A taskset for verifiers: turngym's Guess the Number, evaluated by verifiers' own runner.

    pip install verifiers==0.4.0 turngym
    python trainers/integrations/examples/verifiers_game.py --model MODEL -n 8 --client.base-url http://127.0.0.1:8000/v1

This module is what verifiers calls a package: one that exports a taskset, an environment and a harness. Any environment
is chosen by options, such as ``--env.taskset.env-id turngym/Sokoban-v0``. Traces go to ``outputs/``.
"""

import os
import sys
from pathlib import Path

from turngym.trainers.integrations.verifiers import TurngymEnv, TurngymHarness, TurngymTaskset

__all__ = ["TurngymEnv", "TurngymHarness", "TurngymTaskset"]


def main() -> None:
    """Evaluate on this machine, and upload nothing."""
    from verifiers.v1.cli.eval.main import main as evaluate

    here = str(Path(__file__).parent)
    if here not in sys.path:
        sys.path.insert(0, here)
    os.environ.setdefault("TURNGYM_KEY", "none")
    evaluate([Path(__file__).stem, "--no-push", "--no-rich", "--client.api-key-var", "TURNGYM_KEY", *sys.argv[1:]])


if __name__ == "__main__":
    main()
