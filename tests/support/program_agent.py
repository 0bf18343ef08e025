"""An agent program without packages: asks the model for each move; ``python program_agent.py [WAY]``."""

import json
import os
import sys
import urllib.request


def post(url: str, body: object) -> dict[str, object]:
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as response:
        found: dict[str, object] = json.loads(response.read())
        return found


def main(way: str) -> None:
    model, env = os.environ["OPENAI_BASE_URL"], os.environ["TURNGYM_ENV_URL"]
    seen = post(env, None)
    history = [{"role": "system", "content": seen["instructions"]}]
    while not seen["done"]:
        history.append({"role": "user", "content": seen["observation"]})
        answer = post(f"{model}/chat/completions", {"messages": history})
        said = answer["choices"][0]["message"]["content"]  # type: ignore[index]
        history.append({"role": "assistant", "content": said})
        if way == "crash":
            raise SystemExit(3)
        if way == "hang":
            sys.stdin.close()
            while True:
                pass
        seen = post(env, {"action": str(said).replace("<action>", "").replace("</action>", "")})


if __name__ == "__main__":
    main("".join(sys.argv[1:]))
