"""A wrapper whose rewards have parts, in a module that worker processes import fast."""

from turngym.wrappers.core import Played, TextWrapper


class Parts(TextWrapper):
    """Stands for an environment whose reward has parts: what it paid before, and a cost of every turn."""

    name = "parts"

    def on_step(self, played: Played) -> tuple[float, bool]:
        played.info["reward_components"] = {"paid": played.reward, "cost": -0.1}
        return played.reward - 0.1, False
