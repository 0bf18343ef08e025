"""An agent program: the package openai for the model, and an environment of turngym over HTTP.

turngym train --env turngym/NumberLine-v0 --agent.command "python openai_agent.py"
"""

from __future__ import annotations

import json
import os
import re
from typing import Any
from urllib.request import Request, urlopen

from openai import OpenAI


def environment(body: Any = None) -> Any:
    """Look at the environment, or act in it."""
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(os.environ["TURNGYM_ENV_URL"], data, headers)) as response:
        return json.load(response)


def main() -> None:
    """Play one episode."""
    client = OpenAI()
    seen = environment()
    messages: list[Any] = [{"role": "system", "content": seen["instructions"]}]
    while not seen["done"]:
        messages.append({"role": "user", "content": seen["observation"]})
        answer = client.chat.completions.create(model="turngym", messages=messages).choices[0].message
        messages.append(answer)
        found = re.search(r"<action>(.*?)</action>", answer.content or "", re.DOTALL)
        seen = environment({"action": found[1] if found else ""})


if __name__ == "__main__":
    main()
