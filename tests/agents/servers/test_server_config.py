"""How a server is used: addresses, keys and prices, and what is said where they cannot be used."""

import json
from pathlib import Path
from typing import Any

import pytest

from turngym.agents.chat_client.agent import ServerAgent
from turngym.agents.chat_client.config import Address, Prices, ServerConfig, read_address, read_key, read_prices
from turngym.agents.players import AgentSettings, make_agent
from turngym.agents.players.openai import split_argument
from turngym.errors import ConfigError

LOCAL = read_address("http://localhost:8000/v1")
OPENAI = read_address("https://api.openai.com/v1")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "TURNGYM_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:8000", Address(False, "localhost", 8000, "/v1/chat/completions")),
        ("http://localhost:8000/v1/", Address(False, "localhost", 8000, "/v1/chat/completions")),
        ("https://example.org/api/chat/completions", Address(True, "example.org", 443, "/api/chat/completions")),
        ("http://example.org/openai", Address(False, "example.org", 80, "/openai/chat/completions")),
        ("http://[::1]:8000/v1", Address(False, "::1", 8000, "/v1/chat/completions")),
    ],
)
def test_an_address_is_read_and_written_back(url: str, expected: Address) -> None:
    assert read_address(url) == expected
    assert read_address(expected.url) == expected


WHAT_IS_NO_ADDRESS_IS_EXPLAINED: list[str] = [
    "localhost:8000",
    "ftp://localhost/v1",
    "http://",
    "http://localhost:port/v1",
    "http://localhost:99999/v1",
    "http://local host/v1",
    "http://localhost/v1\r\nX-Evil: 1",
    "http://[::1/v1",
]


def test_what_is_no_address_is_explained() -> None:
    for url in WHAT_IS_NO_ADDRESS_IS_EXPLAINED:
        with pytest.raises(ConfigError, match="a server's URL"):
            read_address(url)


@pytest.mark.parametrize("url", ["https://me:secret@example.org/v1", "https://example.org/v1?key=secret"])
def test_a_secret_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    """The address is written to config.json and to the table of results."""
    with pytest.raises(ConfigError, match="put the key into an environment variable") as caught:
        read_address(url)
    assert "secret" not in str(caught.value)


def test_openais_key_is_shown_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key of openai".replace(" ", "-"))
    assert read_key(OPENAI, "") == "key-of-openai"
    assert read_key(LOCAL, "") == ""
    assert read_key(read_address("http://api.openai.com/v1"), "") == "", "not without encryption"
    assert read_key(read_address("https://api.openai.com.example.org/v1"), "") == ""
    assert read_key(LOCAL, "OPENAI_API_KEY") == "key-of-openai", "unless one says so"


def test_other_servers_are_shown_a_key_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGYM_API_KEY", " key\n")
    assert read_key(LOCAL, "") == "key"


def test_a_missing_key_is_told_where_one_is_needed() -> None:
    with pytest.raises(ConfigError, match="variable OPENAI_API_KEY is not set: put the server's key into it"):
        read_key(OPENAI, "")
    with pytest.raises(ConfigError, match="variable MY_KEY is not set"):
        read_key(LOCAL, "MY_KEY")


def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGYM_API_KEY", "se\ncret")
    with pytest.raises(ConfigError, match="characters that no key has") as caught:
        read_key(LOCAL, "")
    assert "cret" not in str(caught.value).replace("secret", "")


def test_prices_are_read_from_a_table_or_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"small": {"input": 1, "output": 2.5}}))
    assert read_prices(str(file), "small") == read_prices({"input": 1.0, "output": 2.5}, "any") == Prices(1.0, 2.5)
    assert read_prices(None, "small") is None
    with pytest.raises(ConfigError, match="has no price of 'large'"):
        read_prices(str(file), "large")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_prices(str(tmp_path / "absent.json"), "small")
    for wrong in (
        {},
        {"input": 1},
        {"input": -1, "output": 1},
        {"input": "1", "output": 1},
        {"input": True, "output": 1},
    ):
        with pytest.raises(ConfigError, match="prices must be like"):
            read_prices(wrong, "small")  # type: ignore[arg-type]


A_WRONG_SETTING_IS_EXPLAINED: list[tuple[dict[str, Any], str]] = [
    ({"concurrency": 0}, "concurrency of a server must be a whole number of at least 1, got 0"),
    ({"retries": -1}, "retries of a server must be a whole number of at least 0, got -1"),
    ({"retries": "many"}, "got 'many'"),
    ({"timeout": 0}, "timeout of a server must be a number above 0 and below 1000000, got 0"),
    ({"deadline": float("inf")}, "got inf"),
    ({"seed": 3}, "seed of a server must be True or False, got 3"),
    ({"body": 3}, "body of a server must be a mapping, got 3"),
    ({"body": {"messages": []}}, "may not set 'messages'"),
    ({"max_tokens_field": 3}, "max_tokens_field of a server must be text, got 3"),
    ({"key_variable": 3}, "key_variable of a server must be text, got 3"),
]


def test_a_wrong_setting_is_explained() -> None:
    for settings, message in A_WRONG_SETTING_IS_EXPLAINED:
        with pytest.raises(ConfigError, match=message):
            ServerConfig.build("a server", settings)


@pytest.mark.parametrize(
    ("agent", "server", "message"),
    [
        ("openai:@http://localhost/v1", {}, "the agent openai needs a model: write openai:MODEL@URL"),
        ("openai:", {}, "the agent openai needs a model"),
        ("openai:m@http://localhost/v1", {"retrys": 3}, "a server has no option 'retrys'. Did you mean 'retries'"),
        ("openai:m@gopher://localhost/v1", {}, "a server's URL must be like http://HOST:PORT/v1"),
        ("openai:gpt-5", {}, "OPENAI_API_KEY is not set"),
    ],
)
def test_a_wrong_agent_is_explained(agent: str, server: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_agent(agent, AgentSettings(server=server))


def test_the_details_hold_what_was_set_and_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "a-key-that-nobody-may-see")
    server = {"key_variable": "MY_KEY", "body": {"top_k": 20}, "prices": {"input": 1, "output": 2}, "retries": 2}
    settings = AgentSettings(temperature=0.5, top_p=0.9, max_new_tokens=77, server=server)
    agent = make_agent("openai:team/m@2@http://localhost:8000", settings)
    assert isinstance(agent, ServerAgent)
    found = agent.details()
    assert found["model"] == "team/m@2" and found["url"] == "http://localhost:8000/v1/chat/completions"
    assert found["request"] == {
        "model": "team/m@2",
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 77,
        "top_k": 20,
    }
    assert found["server"]["retries"] == 2 and found["server"]["timeout"] == ServerConfig().timeout
    assert "nobody" not in json.dumps(found)


@pytest.mark.parametrize(
    "place", ["127.0.0.1:18431/v1", "localhost", "LOCALHOST:8000", "example.org", "host/v1", "a:1"]
)
def test_an_address_without_its_scheme_is_not_openai_s_server(place: str) -> None:
    """The request, with the key, went to api.openai.com."""
    with pytest.raises(ConfigError, match="the URL after @ needs http:// or https://, got '" + place):
        make_agent(f"openai:fake@{place}")


@pytest.mark.parametrize("model", ["team/model@3", "model@2026-01-01", "ft:gpt:org@latest"])
def test_an_at_sign_in_the_name_of_a_model_is_no_address(model: str) -> None:
    assert split_argument(model) == (model, OPENAI.url.removesuffix(":443/v1/chat/completions") + "/v1")
