"""A service on the loopback interface: repair its configuration."""

from __future__ import annotations

from turngym.envs.tools.terminal.task import Draw, Probe, Task, file, folders

_SERVER = '''"""server.py: serve the routes of server.conf on 127.0.0.1."""
import http.server, pathlib
lines = [line.split("#")[0].strip() for line in open("server.conf")]
conf, routes = {}, {}
for line in filter(None, lines):
    key, _, value = line.partition("=")
    (routes if key.strip().startswith("/") else conf)[key.strip()] = value.strip()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = routes.get(self.path)
        path = pathlib.Path(conf["root"]) / (name or "")
        body = path.read_bytes() if name and path.is_file() else b"not found\\n"
        self.send_response(200 if name and path.is_file() else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
http.server.ThreadingHTTPServer.allow_reuse_address = True
http.server.ThreadingHTTPServer(("127.0.0.1", int(conf["port"])), Handler).serve_forever()
'''
_ASK = """import pathlib, socket, sys, time
pid, port, *paths = sys.argv[1:]
for _ in range(400):  # until it listens, on whatever port, or has ended
    listens = any(line.split()[3] == "0A" for line in open("/proc/net/tcp"))
    if listens or not pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
        break
    time.sleep(0.05)
for path in paths:
    with socket.create_connection(("127.0.0.1", int(port)), 5) as link:
        link.sendall(f"GET {path} HTTP/1.0\\r\\n\\r\\n".encode())
        head, _, body = link.makefile("rb").read(100_000).decode().partition("\\r\\n\\r\\n")
    code = head.split()[1]
    print(path, body.strip() if code == "200" else code)
"""
_GOAL = """`python3 server.py` serves files as server.conf says, which is wrong. Change server.conf alone, so that \
the server listens on port {port} of 127.0.0.1 and answers GET with the content of these files, and with 404 for \
other paths:
{routes}
Processes do not outlive a command, so start and ask it in one: `python3 server.py & sleep 1; curl -s URL; kill $!`."""


def server(draw: Draw) -> Task:
    """Draw a task of repairing the configuration of a server."""
    root, other, *names = draw.words(4 + 2 * draw.level)
    port = draw.number(2000, 9000)
    routes = {f"/{name}/{draw.number(1, 99)}": f"{name}.txt" for name in names}
    right = [f"port = {port}", f"root = {root}", *(f"{path} = {name}" for path, name in routes.items())]
    wrong = list(right)
    for place in draw.some(range(len(right)), 1 + draw.level):
        key, _, value = right[place].partition(" = ")
        if key == "port":
            wrong[place] = f"port = {port + draw.number(1, 900)}"
        elif key == "root":
            wrong[place] = f"root = {other}"
        else:
            swapped = f"{key} = {draw.pick([each for each in routes.values() if each != value])}"
            wrong[place] = draw.pick((f"# {right[place]}", swapped, f"{key}0 = {value}"))
    if draw.level > 1:
        wrong.append(f"/{other} = {names[0]}.txt")
    sides = [{f"{place}/{name}.txt": file(draw.text(2)) for place in (root, other) for name in names} for _ in range(2)]
    tools = {"server.py": file(_SERVER)}
    asked = [*routes, f"/{other}", *(f"{path}0" for path in routes)]
    answers = [
        f"{path} {sides[1][f'{root}/{routes[path]}'].data.decode().strip()}" if path in routes else f"{path} 404"
        for path in asked
    ]
    command = f"python3 server.py > /dev/null 2>&1 & python3 ask.py $! {port} {' '.join(asked)}; kill $!"
    hidden = folders({**sides[1], **tools, "ask.py": file(_ASK)})
    probe = Probe(("server.conf",), hidden, command, "".join(f"{line}\n" for line in answers))
    shown = [f"- {path}: {root}/{name}" for path, name in routes.items()]
    body = "\n".join(right)
    solution = f"cat > server.conf << 'END'\n{body}\nEND"
    files = folders({**tools, "server.conf": file("\n".join(wrong) + "\n"), **sides[0]})
    goal = _GOAL.format(port=port, routes="\n".join(shown))
    return Task(goal, files, {}, ("cat server.conf", solution), ("server.conf", "__pycache__"), (probe,))
