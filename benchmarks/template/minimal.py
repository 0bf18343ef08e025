"""The smallest whole environment: twelve lines, imports and registration included."""

from __future__ import annotations

MINIMAL = """\
from turngym.envs import Outcome, TextEnv, register_env


class {name}(TextEnv[str]):
    instructions = "Turn the dial to 0 in at most 20 turns. Answer with left (one less) or right (one more)."

    def initial_state(self, generator):
        return int(generator.integers(1, 20)) * int(generator.choice([-1, 1]))

    def observation(self):
        return f"The dial shows {{self.state}}."

    def apply_action(self, action):
        self.state += {{"left": -1, "right": 1}}.get(action, 0)
        is_open = self.state == 0
        return Outcome(self.observation(), float(is_open), is_open, is_open, action in ("left", "right"))


register_env("my/{name}-v0", {name}, summary="Turn a dial to 0.")
"""
