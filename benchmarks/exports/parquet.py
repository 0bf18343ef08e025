"""Conversations as a Parquet file, written by pyarrow or polars."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turngym.benchmarks.exports import EXPORTS
from turngym.benchmarks.exports.conversations import conversations, replacing
from turngym.benchmarks.exports.source import Content, Source
from turngym.errors import ConfigError, MissingExtra

_BATCH = 1000


@EXPORTS.register("parquet")
def export_parquet(source: Source, out: Path) -> list[Path]:
    """Write conversations with their rewards as a table.

    Args:
        source: Folder of an evaluation or a training run.
        out: A file that ends with ``.parquet``.

    Raises:
        ConfigError: It ends otherwise, or there is no episode.
        MissingExtra: Neither pyarrow nor polars is installed.
    """
    if out.suffix != ".parquet":
        raise ConfigError(f"the export is a file that ends with .parquet, got {str(out)!r}.")
    write_table(conversations(source), out)
    return [out]


def write_table(rows: Iterator[Content], out: Path) -> None:
    """Write conversations as a Parquet file, with pyarrow a thousand at a time.

    Raises:
        MissingExtra: Neither pyarrow nor polars is installed.
    """
    library = _library()
    with replacing(out, "wb") as file:
        if library.__name__ == "polars":
            library.DataFrame(list(rows), schema=_polars_schema(library), orient="row").write_parquet(file)
            return
        schema = _arrow_schema(library)
        with importlib.import_module("pyarrow.parquet").ParquetWriter(file, schema) as writer:
            for batch in iter(lambda: list(itertools.islice(rows, _BATCH)), []):
                writer.write_table(library.Table.from_pylist(batch, schema=schema))


def _library() -> Any:
    for name in ("pyarrow", "polars"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise MissingExtra("Parquet files are written by pyarrow or polars: pip install pyarrow.")


def _arrow_schema(arrow: Any) -> Any:
    text, number, numbers = arrow.string(), arrow.float64(), arrow.list_(arrow.float64())
    message = arrow.struct([("role", text), ("content", text)])
    columns = [("id", text), ("env", text), ("seed", arrow.int64()), ("success", arrow.bool_()), ("score", number)]
    columns += [("return", number), ("messages", arrow.list_(message)), ("rewards", numbers)]
    return arrow.schema([*columns, ("valid", arrow.list_(arrow.bool_())), ("advantages", arrow.list_(numbers))])


def _polars_schema(polars: Any) -> dict[str, Any]:
    text, number, numbers = polars.String, polars.Float64, polars.List(polars.Float64)
    message = polars.Struct({"role": text, "content": text})
    columns = {"id": text, "env": text, "seed": polars.Int64, "success": polars.Boolean, "score": number}
    columns |= {"return": number, "messages": polars.List(message), "rewards": numbers}
    return {**columns, "valid": polars.List(polars.Boolean), "advantages": polars.List(numbers)}
