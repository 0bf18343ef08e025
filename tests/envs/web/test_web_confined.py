"""What a page may not reach: sockets of other servers, peers, and files beside its own."""

import asyncio
import http.server
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from turngym.envs.web.driver.chromium import PROGRAMS
from turngym.envs.web.driver.tab import BrowserFault
from turngym.envs.web.driver.thread import BrowserThread

if not any(map(shutil.which, PROGRAMS)):
    pytest.skip("there is no Chromium: apt-get install chromium-headless-shell", allow_module_level=True)
pytest.importorskip("playwright")
pytestmark = pytest.mark.integration

REACH = """<body><script>
window.told = [];
const socket = new WebSocket("ws://127.0.0.1:PORT/"), blob = new Blob([
  'const s = new WebSocket("ws://127.0.0.1:PORT/"); s.onopen = s.onerror = e => postMessage(e.type);']);
socket.onopen = socket.onerror = event => told.push(event.type);
new Worker(URL.createObjectURL(blob)).onmessage = event => told.push(event.data);
try {
  const peer = new RTCPeerConnection({ iceServers: [
    { urls: "turn:127.0.0.1:PORT?transport=tcp", username: "a", credential: "b" }] });
  peer.createDataChannel("x");
  peer.createOffer().then(offer => peer.setLocalDescription(offer));
} catch (error) { told.push(error.name); }
</script></body>"""


@pytest.fixture(scope="module")
def thread() -> Iterator[BrowserThread]:
    started = BrowserThread()
    yield started
    started.stop()


@pytest.mark.parametrize("is_served", [False, True])
def test_no_web_socket_or_peer_connection_leaves_a_page(thread: BrowserThread, tmp_path: Path, is_served: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        page = tmp_path / "page.html"
        page.write_text(REACH.replace("PORT", str(other.getsockname()[1])))

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *given: object) -> None:
                super().__init__(*given, directory=str(tmp_path))  # type: ignore[arg-type]

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        start = f"http://127.0.0.1:{server.server_port}/" if is_served else f"{tmp_path.as_uri()}/"

        async def visit() -> list[str]:
            tab = await thread.pool.open([start])
            try:
                await tab.goto(f"{start}page.html")
                for _ in range(200):
                    told: list[str] = await tab.ask("told")
                    if len(told) == 3:
                        break
                    await asyncio.sleep(0.05)
                return told
            finally:
                await thread.pool.release(tab)

        try:
            assert sorted(thread.run(visit())) == ["ReferenceError", "error", "error"]
        finally:
            server.shutdown()
            server.server_close()
        other.settimeout(0.2)
        with pytest.raises(TimeoutError):
            other.accept()


def test_a_frame_that_shows_a_file_beside_those_allowed_is_a_fault(thread: BrowserThread, tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "hidden.html").write_text("<body>hidden</body>")
    source = f'<body><iframe src="{(tmp_path / "hidden.html").as_uri()}"></iframe></body>'
    (tmp_path / "pages" / "page.html").write_text(source)

    async def visit() -> None:
        start = f"{(tmp_path / 'pages').as_uri()}/"
        tab = await thread.pool.open([start])
        try:
            await tab.goto(f"{start}page.html")
            tab.require_home()
        finally:
            await thread.pool.release(tab)

    with pytest.raises(BrowserFault, match=r"the page went to .*hidden\.html"):
        thread.run(visit())
