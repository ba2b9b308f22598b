"""Facts of a W&B transaction log: settings, the machine, the run and versions; nothing names a person or host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from forensics.errors import InputError
from forensics.ingest._out import Out
from forensics.ingest._tf_wire import BYTES, VARINT, fields, varint
from forensics.ingest._wandb_items import flat, items
from forensics.io.tolerant_json import dumps, loads

_RUN = {1: "run_id", 3: "project", 6: "group", 7: "job_type", 8: "display_name", 12: "sweep_id"}
_RUN_CONFIG = 4
_ENVIRONMENT = {1: "os", 2: "python", 4: "docker", 6: "program", 18: "gpu_type", 25: "cuda_version"}
_ARGUMENTS, _COUNTS = 5, {16: "cpu_count", 19: "gpu_count"}
_MOST, _CHARS = 20_000, 10_000


@dataclass(slots=True)
class Facts:
    """What is known, by family and key; a later value replaces an earlier one."""

    known: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def put(self, family: str, key: str, value: object) -> None:
        """Note one value, as JSON."""
        if len(self.known) < _MOST:
            self.known[family, key] = dumps(value, compact=True).decode()[:_CHARS]

    def config(self, data: bytes, at: int, end: int) -> None:
        """Note the settings of a config record."""
        for name, value in items(data, at, end):
            self._setting(name.decode("utf-8", "replace"), value)

    def _setting(self, name: str, value: bytes) -> None:
        try:
            document = loads(value)
        except InputError:
            return
        if name == "_wandb" or name.startswith("_wandb."):
            inner = cast("dict[str, object]", document) if isinstance(document, dict) else {}
            if isinstance(version := inner.get("cli_version"), str):
                self.put("versions", "wandb", version)
            return
        for key, cell in flat(name, document):
            self.put("config", key, cell)

    def run(self, data: bytes, at: int, end: int) -> None:
        """Note a run record, its settings included."""
        for number, kind, start, stop in fields(data, at, end):
            if kind == BYTES and number in _RUN:
                self.put("env", f"wandb.{_RUN[number]}", _text(data, start, stop))
            elif kind == BYTES and number == _RUN_CONFIG:
                self.config(data, start, stop)

    def environment(self, data: bytes, at: int, end: int) -> None:
        """Note an environment record, without user, host, mail and folders."""
        arguments: list[str] = []
        for number, kind, start, stop in fields(data, at, end):
            if kind == BYTES and number in _ENVIRONMENT:
                text = _text(data, start, stop)
                self.put(
                    "env", _ENVIRONMENT[number], text.replace("\\", "/").rsplit("/", 1)[-1] if number == 6 else text
                )
            elif kind == BYTES and number == _ARGUMENTS and len(arguments) < 1000:
                arguments.append(_text(data, start, stop))
            elif kind == VARINT and number in _COUNTS:
                self.put("env", _COUNTS[number], varint(data, start)[0])
        if arguments:
            self.put("env", "args", arguments)

    def header(self, data: bytes, at: int, end: int) -> None:
        """Note the version of the writer."""
        for number, kind, start, stop in fields(data, at, end):
            if number == 1 and kind == BYTES:
                for inner, inner_kind, a, b in fields(data, start, stop):
                    if inner == 1 and inner_kind == BYTES and b > a:
                        self.put("versions", "wandb", _text(data, a, b))

    def write(self, out: Out) -> None:
        """Hand everything to the sink."""
        if self.known:
            families, keys, values = zip(*_rows(self.known), strict=True)
            out.rows("facts", {"key": keys, "value": values, "family": families})


def _rows(known: dict[tuple[str, str], str]) -> Iterator[tuple[str, str, str]]:
    for (family, key), value in known.items():
        yield family, key, value


def _text(data: bytes, at: int, end: int) -> str:
    return data[at:end].decode("utf-8", "replace")
