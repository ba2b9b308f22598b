"""Rows of a table of knowledge: a JSON object for each line of a file of this package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, cast

import orjson


def rows_of(name: str) -> Iterator[dict[str, Any]]:
    """Give the rows of one file, or of every file of a folder in the order of their names.

    Raises:
        ValueError: for a line that holds no JSON object.
    """
    place = files("forensics.knowledge") / name
    every = sorted(place.iterdir(), key=lambda p: p.name) if place.is_dir() else [place]
    for file in every:
        if file.name.endswith(".jsonl"):
            yield from map(orjson.loads, file.read_bytes().splitlines())


def frozen(row: Mapping[str, Any]) -> dict[str, Any]:
    """Give the fields of a row as a frozen value takes them: lists are tuples."""
    return {key: tuple(cast("list[Any]", value)) if isinstance(value, list) else value for key, value in row.items()}
