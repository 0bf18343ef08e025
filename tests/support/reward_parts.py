"""A wrapper whose rewards have parts, in a module that worker processes import fast."""

from turngym.wrappers.core import StepResult, TextWrapper


class Parts(TextWrapper):
    """Stands for an environment whose reward has parts: what it paid before, and a cost of every turn."""

    name = "parts"

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        step.info["reward_components"] = {"paid": step.reward, "cost": -0.1}
        return step.reward - 0.1, False
