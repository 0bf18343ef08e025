"""``turngym serve-search``: one search index for many environments, trainers and machines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import parse
from turngym.errors import ConfigError
from turngym.terminal.console import Console

TOKEN_VARIABLE = "TURNGYM_TOKEN"


@dataclass(frozen=True)
class Arguments:
    """Serve a search engine with the Search-R1 protocol: POST /retrieve.

    Use it in environments with `--option url=http://127.0.0.1:8000`.

    Args:
        corpus: JSON Lines file with id, title and text, optionally gzipped (default: the generated world).
        size: Number of entities in the generated world.
        world_seed: Seed of the generated world.
        engine: Search engine: auto, tantivy, bm25s or fts5; dense (MiniLM) or hybrid (both); qdrant:URL.
        host: Address to listen on; other than loopback requires a token.
        port: Port to listen on; 0 selects a free one.
        token: Token that clients send as `Authorization: Bearer TOKEN`; the variable TURNGYM_TOKEN is safer.
        max_connections: Maximum number of connections; excess ones get status 503.
    """

    corpus: Positional[Path | None] = None
    size: int = 1000
    world_seed: int = 0
    engine: str = "auto"
    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""
    max_connections: int = 1024


def main(argv: Sequence[str]) -> int:
    """Serve until interrupted."""
    from turngym.envs.search.documents import read_documents
    from turngym.envs.search.retriever import make_retriever
    from turngym.envs.search.server import SearchServer
    from turngym.envs.search.world import make_world

    arguments = parse(Arguments, argv, "serve-search")
    if not 0 <= arguments.port < 2**16:
        raise ConfigError(f"--port must be between 0 and {2**16 - 1}, got {arguments.port}.")
    if arguments.corpus is None:
        documents = make_world(arguments.size, arguments.world_seed).documents
    else:
        documents = read_documents(arguments.corpus)
    retriever = make_retriever(documents, arguments.engine)
    token = arguments.token or os.environ.get(TOKEN_VARIABLE, "")
    try:
        server = SearchServer(retriever, arguments.host, arguments.port, token, arguments.max_connections)
    except OSError as error:
        raise ConfigError(f"cannot listen on {arguments.host}:{arguments.port} ({error}): pass --port.") from error
    text = f"{len(documents)} passages (corpus {server.version}) at {server.url}/retrieve; Ctrl+C ends it"
    Console(highlight=False).print(text, markup=False, soft_wrap=True)
    with server:
        server.serve_forever()
    return 0
