"""An agent program that tries to leave its sandbox and prints what it found: ``caught_agent.py WAY [WORD ...]``."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request


def status(url: str, key: str, body: object = None) -> str:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return str(response.status)
    except urllib.error.HTTPError as error:
        return str(error.code)
    except OSError as error:
        return type(error).__name__


def readable(*paths: str) -> list[str]:
    found = []
    for path in paths:
        try:
            os.listdir(path) if os.path.isdir(path) else open(path, "rb").close()
            found.append(path)
        except OSError:
            pass
    return found


def reached(*addresses: str) -> list[str]:
    found = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            if host:
                socket.create_connection((host, int(port)), timeout=5).close()
            else:
                with socket.socket(socket.AF_UNIX) as near:
                    near.connect(address)
            found.append(address)
        except OSError:
            pass
    return found


def forked() -> int:
    born = 0
    try:
        while born < 5000:
            if os.fork() == 0:
                time.sleep(300)
                os._exit(0)
            born += 1
    except OSError:
        pass
    return born


def filled(*folders: str) -> list[int]:
    sizes = []
    for folder in folders:
        written = 0
        try:
            for number in range(100):
                with open(f"{folder}/big{number}", "wb") as file:
                    written += file.write(bytes(2**22))
        except OSError:
            pass
        sizes.append(written)
    return sizes


def seen() -> dict[str, object]:
    return {
        "root": sorted(os.listdir("/")),
        "home": [name for _, _, names in os.walk("/root") for name in names][:5],
        "processes": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
        "files": sorted(os.listdir("/proc/self/fd")),
        "first": readable("/proc/1/mem", "/proc/1/environ", "/proc/1/fd"),
        "variables": sorted(os.environ),
        "work": sorted(os.listdir(".")),
    }


def main(way: str, *words: str) -> None:
    base, key = os.environ["ANTHROPIC_BASE_URL"], os.environ["OPENAI_API_KEY"]
    if way == "seen":
        found: object = seen()
    elif way == "read":
        found = readable(*words[0].split())
    elif way == "episode":
        own = base.rpartition("/")[2]
        others = [base.replace(own, word) for word in words]
        ask = {"messages": [{"role": "user", "content": "go"}], "max_tokens": 2}
        paths = ("/v1/chat/completions", "/env", "/reward", "/finish", "/trajectory")
        found = [
            status(f"{base}/v1/chat/completions", key, ask),
            [status(other + path, key, ask) for other in others for path in paths],
            status(base.partition("/episode")[0] + "/episodes", key, {}),
        ]
    elif way == "sockets":
        found = reached(*words)
    elif way == "fork":
        found = forked()
    elif way == "fill":
        found = filled(*words)
    elif way == "memory":
        kept: list[bytearray] = []
        try:
            while len(kept) < 400:
                kept.append(bytearray(2**23))
        except MemoryError:
            pass
        found = len(kept) * 8
    elif way == "survive":
        code = "import time; open('/tmp/work/alive', 'w'); time.sleep(300)"
        subprocess.Popen([sys.executable, "-c", code, words[0]], start_new_session=True)
        while not os.path.exists("/tmp/work/alive"):
            time.sleep(0.01)
        found = "left"
    elif way == "kernel":
        failed = []
        for command in (["unshare", "-r", "true"], ["mount", "-t", "tmpfs", "x", "/mnt"], ["kill", "-9", "1"]):
            failed.append(subprocess.run(command, capture_output=True).returncode != 0)
        found = [*failed, os.path.exists("/proc/1")]
    else:
        while True:
            print("x" * 10**6)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
