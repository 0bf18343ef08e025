"""An agent program that asks some times and prints each answer: ``python caller_program.py BASE_URL KEY CALLS``."""

import json
import sys
import urllib.request


def main(base_url: str, key: str, calls: str) -> None:
    history = [{"role": "user", "content": "go"}]
    for _ in range(int(calls)):
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        body = json.dumps({"messages": history}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{base_url}/chat/completions", body, headers)) as response:
            message = json.load(response)["choices"][0]["message"]
        print(message["content"], flush=True)
        history += [message, {"role": "user", "content": "and then?"}]


if __name__ == "__main__":
    main(*sys.argv[1:])
