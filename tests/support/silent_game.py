"""A game that is won by saying nothing."""

from turngym.envs.core import Outcome, TextEnv


class Silent(TextEnv[str]):
    """Say nothing, or "win"; "lose" loses."""

    instructions = "Say win or lose."
    finite_instances = 100

    def begin(self, task: str | int | None) -> str:
        self.instance = f"number {int(self.np_random.integers(100))}"
        return self.instance

    def apply_action(self, action: str) -> Outcome[str]:
        won = action in ("", "win")
        return Outcome("Over.", float(won), terminated=True, success=won)

    def legal_actions(self) -> tuple[str, ...]:
        return ("lose", "draw")

    def expert_action(self) -> str:
        return "win"
