"""One request to a real server on the loopback: every way to fail has a kind of its own, and none is a crash."""

import json
import shutil
import socket
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from chat_servers import Reply, chat_server

from turngym.agents.chat_client.client import CallFailed, ChatServer, read_answer, retry_after
from turngym.agents.chat_client.config import read_address
from turngym.seeding import stream

KEY = "secret-key-of-the-tests"
BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def failure_of(reply: Reply, timeout: float = 5.0, key: str = "") -> CallFailed:
    """Return how a request fails that is answered so."""
    with chat_server(lambda body: reply) as server:
        with pytest.raises(CallFailed) as caught:
            ChatServer(read_address(server.url), key).ask(BODY, timeout)
        assert len(server.requests) == 1, "one request is one request"
    return caught.value


def test_an_answer_comes_back_with_its_tokens() -> None:
    with chat_server(lambda body: Reply(body["messages"][0]["content"] * 2, usage=(7, 2))) as server:
        client = ChatServer(read_address(server.url), KEY)
        assert client.ask(BODY, 5.0)[:3] == ("hellohello", (7, 2), "")
        assert server.requests == [BODY] and server.paths == ["/v1/chat/completions"]
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_without_a_key_no_key_is_sent() -> None:
    with chat_server(lambda body: Reply()) as server:
        ChatServer(read_address(server.url)).ask(BODY, 5.0)
        assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize(
    ("reply", "kind", "is_retried"),
    [
        (Reply(drop="before"), "connection", True),
        (Reply(drop="middle"), "connection", True),
        (Reply(raw=b"<html>"), "malformed", True),
        (Reply(raw=b""), "malformed", True),
        (Reply(raw=b"[1]"), "malformed", True),
        (Reply(raw=b"\xff\xfe"), "malformed", True),
        (Reply(raw=b'{"choices": [{"message": "up"}]}'), "malformed", True),
        (Reply(raw=b"[" * 100_000), "malformed", True),
        (Reply(text=7), "malformed", True),
        (Reply(text=None), "empty", True),
        (Reply(text=" \n"), "empty", True),
        (Reply(status=500, raw=b"oops"), "http_500", True),
        (Reply(status=429, raw=b"wait"), "http_429", True),
        (Reply(status=408, raw=b""), "http_408", True),
        (Reply(status=400, raw=b"no such field"), "http_400", False),
        (Reply(status=401, raw=b"who are you"), "http_401", False),
        (Reply(status=404, raw=b"no such model"), "http_404", False),
        (Reply(status=302, raw=b"", headers={"Location": "/elsewhere"}), "http_302", False),
    ],
)
def test_each_mishap_has_its_kind(reply: Reply, kind: str, is_retried: bool) -> None:
    failure = failure_of(reply)
    assert (failure.kind, failure.is_retried) == (kind, is_retried)


def test_nobody_listening_is_a_failed_connection() -> None:
    with chat_server(lambda body: Reply()) as server:
        url = server.url
    with pytest.raises(CallFailed) as caught:
        ChatServer(read_address(url)).ask(BODY, 5.0)
    assert caught.value.kind == "connection"


def test_a_host_name_that_cannot_be_is_a_failed_connection() -> None:
    with pytest.raises(CallFailed) as caught:
        ChatServer(read_address("http://a..b/v1")).ask(BODY, 5.0)
    assert caught.value.kind == "connection"


def test_a_server_that_says_nothing_in_time_is_a_timeout() -> None:
    assert failure_of(Reply(delay=30.0), timeout=0.2).kind == "timeout"


def test_a_server_that_says_a_little_again_and_again_is_a_timeout_too() -> None:
    """The timeout of a socket begins anew with each byte: an answer that drips would hold up a turn for hours."""
    assert failure_of(Reply(drip=0.05), timeout=0.4).kind == "timeout"


def test_who_waits_for_an_answer_can_be_cut_off() -> None:
    with chat_server(lambda body: Reply(delay=30.0)) as server:
        client = ChatServer(read_address(server.url))
        kinds: list[str] = []

        def ask() -> None:
            try:
                client.ask(BODY, 60.0)
            except CallFailed as failure:
                kinds.append(failure.kind)

        thread = threading.Thread(target=ask)
        thread.start()
        while not server.requests:
            thread.join(0.01)
        client.abort()
        thread.join(120.0)
        assert kinds == ["connection"]
        client.abort()  # with nobody waiting it does nothing


def test_what_the_server_asks_to_wait_is_told() -> None:
    assert failure_of(Reply(status=503, raw=b"", headers={"Retry-After": "17"})).retry_after == 17.0
    date = {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}
    assert failure_of(Reply(status=503, raw=b"", headers=date)).retry_after == 0.0, "long past"


@pytest.mark.parametrize("value", ["", "soon", "-3", "1e9", "nan", "inf", "9" * 400, "Wed, 99 Oct 2026 07:28:00 GMT"])
def test_a_wait_that_makes_no_sense_is_none(value: str) -> None:
    assert retry_after({"Retry-After": value}) == 0.0


def test_an_answer_that_failed_still_tells_its_tokens() -> None:
    assert failure_of(Reply(text="", usage=(50, 8))).tokens == (50, 8), "they have to be paid"


@pytest.mark.parametrize(
    "usage",
    [
        *(None, {}, "many", {"prompt_tokens": 3}, {"prompt_tokens": -1, "completion_tokens": 1}, [1, 2]),
        {"prompt_tokens": 10**30, "completion_tokens": 1},
    ],
)
def test_numbers_of_tokens_that_make_no_sense_are_unknown(usage: Any) -> None:
    content = {"choices": [{"message": {"content": "up"}}], "usage": usage}
    assert read_answer(json.dumps(content).encode())[:3] == ("up", None, "")


def test_an_answer_in_parts_is_put_together() -> None:
    parts = [{"type": "text", "text": "go "}, {"type": "other"}, {"type": "text", "text": "up"}, "?"]
    content = {"choices": [{"message": {"content": parts}}]}
    assert read_answer(json.dumps(content).encode())[:3] == ("go up", None, "")


def test_a_key_that_the_server_says_is_hidden_wherever_it_would_be_kept() -> None:
    with chat_server(lambda body: Reply(f"your key is {KEY}")) as server:
        text, *_ = ChatServer(read_address(server.url), KEY).ask(BODY, 5.0)
    assert text == "your key is [key]"
    assert KEY not in str(failure_of(Reply(status=401, raw=f"bad key {KEY}".encode()), key=KEY))


def test_a_word_that_serves_as_key_is_no_secret() -> None:
    with chat_server(lambda body: Reply("the box is EMPTY")) as server:
        text, *_ = ChatServer(read_address(server.url), "EMPTY").ask(BODY, 5.0)
    assert text == "the box is EMPTY"


def failure_of_bytes(content: bytes) -> CallFailed:
    """Return how a request fails that is answered with these bytes and the end of the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                received = b""
                while not received.endswith(b'"hello"}]}'):
                    received += connection.recv(65536)
                connection.sendall(content)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(CallFailed) as caught:
            ChatServer(read_address(f"http://127.0.0.1:{listener.getsockname()[1]}")).ask(BODY, 10.0)
        thread.join()
    return caught.value


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "connection"),
        (b"garbage\r\n\r\n", "malformed"),
        (b"HTTP/1.1 abc\r\n\r\n", "malformed"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}", "malformed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}", "malformed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n{}", "connection"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "connection"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", "connection"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "connection"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "http_204"),
        (b"HTTP/1.1 999 Odd\r\n\r\n", "http_999"),
    ],
)
def test_whatever_bytes_come_back_it_is_a_failure_that_is_counted(content: bytes, kind: str) -> None:
    assert failure_of_bytes(content).kind == kind


def test_no_json_whatever_its_shape_breaks_the_reader() -> None:
    """Build random values out of the words of the protocol: each is a completion or a failure that is counted."""
    generator = stream("answers")
    words = ["choices", "message", "content", "usage", "prompt_tokens", "completion_tokens", "text"]
    leaves: list[Any] = [None, True, 0, -1, 1.5, "", "up", [], {}]

    def value(depth: int) -> Any:
        kind = generator.integers(4) if depth else 0
        if kind == 0:
            return leaves[generator.integers(len(leaves))]
        children = [value(depth - 1) for _ in range(generator.integers(1, 4))]
        if kind == 1:
            return children
        return {words[generator.integers(len(words))]: child for child in children}

    kinds = set()
    for _ in range(3000):
        content = {"choices": [{"message": {"content": value(2)}}]} if generator.random() < 0.5 else value(4)
        try:
            text, *_ = read_answer(json.dumps(content).encode())
            assert text.strip()
            kinds.add("answer")
        except CallFailed as failure:
            kinds.add(failure.kind)
    assert kinds == {"answer", "malformed", "empty"}


def test_an_encrypted_server_is_reached_if_its_certificate_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key)]
    subprocess.run(words, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with chat_server(lambda body: Reply(), context) as server:
        address = read_address(server.url.replace("http:", "https:"))
        with pytest.raises(CallFailed, match="CERTIFICATE_VERIFY_FAILED") as caught:
            ChatServer(address).ask(BODY, 10.0)
        assert caught.value.kind == "connection" and not server.requests, "nobody unknown is told anything"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert ChatServer(address).ask(BODY, 10.0)[0] == "<action>up</action>"
        server.answer = lambda body: Reply(delay=30.0)
        with pytest.raises(CallFailed) as late:
            ChatServer(address).ask(BODY, 0.3)
        assert late.value.kind == "timeout"
