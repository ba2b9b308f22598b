"""Facts of a W&B transaction log: settings, the machine, the run and versions; nothing names a person or a folder."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from forensics.dialects.settings.command_lines import options
from forensics.errors import InputError
from forensics.formats.rows.out import Out
from forensics.formats.rows.secrets import HIDDEN, masked, without_forms
from forensics.formats.wandb._define import Definition
from forensics.formats.wandb._items import flat, items
from forensics.formats.wandb._marks import stamp_ns
from forensics.io.records.protobuf import BYTES, FIXED64, VARINT, fields, signed, varint
from forensics.io.tolerant_json import dumps, loads

_RUN = {1: "run_id", 3: "project", 6: "group", 7: "job_type", 8: "display_name", 12: "sweep_id"}
_RUN_NUMBERS = {14: "starting_step", 18: "resumed", 20: "runtime_s", 22: "forked"}
_RUN_CONFIG, _RUN_SUMMARY, _RUN_HOST, _RUN_START, _RUN_TELEMETRY, _RUN_GIT, _RUN_BRANCH = 4, 5, 13, 17, 19, 21, 23
_ENVIRONMENT = {1: "os", 2: "python", 4: "docker", 6: "program", 18: "gpu_type", 25: "cuda_version"}
_ARGUMENTS, _COUNTS = 5, {16: "cpu_count", 17: "cpu_count_logical", 19: "gpu_count"}
_GIT, _HOST, _MEMORY, _GPUS, _SLURM = 9, 12, 21, 24, 27
SLURM_KEYS = re.compile(
    r"(?i)(?:slurm_)?(?:job_?id|job_?name|node_?list|n?nodes|num_nodes|ntasks|partition|restart_count)\Z"
)
_SECRET = re.compile(r"(?i)(--?[\w.-]*(?:key|token|secret|passw)[\w.-]*)(=.*)?\Z", re.DOTALL)
_MOST, _CHARS = 20_000, 10_000
_FLOAT64 = struct.Struct("<d")
#: Keys that a config or summary record deletes.
_REMOVE = 2


@dataclass(slots=True)
class Facts:
    """What is known, by family and key; a later value replaces an earlier one."""

    known: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    version: str = ""
    _summary: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])

    def put(self, family: str, key: str, value: object) -> None:
        """Note one value, as JSON."""
        if len(self.known) < _MOST or (family, key) in self.known:
            self.known[family, key] = dumps(value, compact=True).decode()[:_CHARS]

    def config(self, data: bytes, at: int, end: int) -> None:
        """Note the settings of a config record."""
        for name, value in items(data, at, end):
            self._setting(name.decode("utf-8", "replace"), value)

    def summary(self, data: bytes, at: int, end: int) -> None:
        """Take the values of a summary record, less what the writer adds for itself; a later one replaces a whole key.

        Raises:
            WireError: when the bytes are no such message.
        """
        for key, value in items(data, at, end):
            if not key.startswith(b"_") and (key in self._summary or len(self._summary) < _MOST):
                self._summary[key] = value if len(value) <= _CHARS else b""
        for key, _ in items(data, at, end, _REMOVE):
            self._summary.pop(key, None)

    def _summed_up(self) -> None:
        for key, value in self._summary.items():
            try:
                document = loads(value)
            except InputError:
                continue
            for inner, cell in flat(f"summary.{key.decode('utf-8', 'replace')}", document):
                if not isinstance(cell, list):
                    self.put("progress", inner, cell)

    def _setting(self, name: str, value: bytes) -> None:
        try:
            document = loads(value)
        except InputError:
            return
        if name == "_wandb" or name.startswith("_wandb."):
            inner = cast("dict[str, object]", document) if isinstance(document, dict) else {}
            self._writer(inner.get("cli_version"))
            return
        for key, cell in flat(name, document):
            self.put("config", key, masked(key, cell))

    def _writer(self, version: object) -> None:
        if isinstance(version, str) and version:
            self.version = version
            self.put("versions", "wandb", version)

    def run(self, data: bytes, at: int, end: int) -> tuple[int, str]:
        """Note a run record, its settings included; give the first step and `resumed`, `forked` or nothing."""
        numbers = dict.fromkeys(_RUN_NUMBERS.values(), 0)
        for number, kind, start, stop in fields(data, at, end):
            if kind == VARINT and number in _RUN_NUMBERS:
                numbers[_RUN_NUMBERS[number]] = signed(varint(data, start)[0])
            elif kind == BYTES and number in _RUN:
                self.put("env", f"wandb.{_RUN[number]}", _text(data, start, stop))
            elif kind == BYTES:
                self._run_part(number, data, start, stop)
        for key, value in numbers.items():
            if value:
                self.put("env", f"wandb.{key}", value != 0 if key in {"resumed", "forked"} else value)
        goes_on = numbers["resumed"] or numbers["starting_step"]
        return numbers["starting_step"], "forked" if numbers["forked"] else "resumed" if goes_on else ""

    def _run_part(self, number: int, data: bytes, start: int, stop: int) -> None:
        if number == _RUN_CONFIG:
            self.config(data, start, stop)
        elif number == _RUN_SUMMARY:
            self.summary(data, start, stop)
        elif number == _RUN_HOST:
            self.put("host", "host", _text(data, start, stop))
        elif number == _RUN_START and (began_ns := stamp_ns(data, start, stop)):
            self.put("env", "wandb.start_time_ns", began_ns)
        elif number == _RUN_TELEMETRY:
            self.telemetry(data, start, stop)
        elif number == _RUN_GIT:
            self._git(data, start, stop)
        elif number == _RUN_BRANCH:
            self._branch(data, start, stop)

    def _branch(self, data: bytes, at: int, end: int) -> None:
        for number, kind, start, stop in fields(data, at, end):
            if kind == BYTES and number in {1, 3}:
                self.put("env", f"wandb.branch_point.{'run' if number == 1 else 'metric'}", _text(data, start, stop))
            elif kind == FIXED64 and number == 2:
                self.put("env", "wandb.branch_point.value", _float64(data, start))

    def _git(self, data: bytes, at: int, end: int) -> None:
        for number, kind, start, stop in fields(data, at, end):
            if number == 2 and kind == BYTES:  # the remote may hold a name or a password
                self.put("versions", "git_commit", _text(data, start, stop))

    def environment(self, data: bytes, at: int, end: int) -> None:
        """Note an environment record, without user, mail and folders."""
        arguments: list[str] = []
        gpus: list[dict[str, object]] = []
        for number, kind, start, stop in fields(data, at, end):
            if kind == VARINT and number in _COUNTS:
                self.put("env", _COUNTS[number], varint(data, start)[0])
            elif kind != BYTES:
                continue
            elif number in _ENVIRONMENT:
                text = _text(data, start, stop)
                self.put("env", _ENVIRONMENT[number], _base_name(text) if number == 6 else text)
            elif number == _ARGUMENTS and len(arguments) < 1000:
                arguments.append(_text(data, start, stop))
            elif number == _GPUS and len(gpus) < 1000:
                gpus.append(_gpu(data, start, stop))
            else:
                self._environment_part(number, data, start, stop)
        if arguments:
            self.arguments(arguments)
        if gpus:
            self.put("host", "gpus", gpus)

    def arguments(self, words: list[str]) -> None:
        """Note the command line, and each of its options as a setting, without secrets."""
        self.put("env", "args", without_secrets(words))
        for option in options(words):
            if ("config", option.key) not in self.known:
                self.put("config", option.key, masked(option.key, option.value))

    def _environment_part(self, number: int, data: bytes, start: int, stop: int) -> None:
        if number == _HOST:
            self.put("host", "host", _text(data, start, stop))
        elif number == _GIT:
            self._git(data, start, stop)
        elif number == _MEMORY:
            for inner, kind, at, _ in fields(data, start, stop):
                if inner == 1 and kind == VARINT:
                    self.put("host", "memory_bytes", varint(data, at)[0])
        elif number == _SLURM:
            cells = dict[int, str]()
            for inner, kind, at, end in fields(data, start, stop):
                if kind == BYTES and inner in {1, 2}:
                    cells[inner] = _text(data, at, end)
            if SLURM_KEYS.match(cells.get(1, "")):
                self.put("host", f"slurm.{cells[1].lower()}", cells.get(2, ""))

    def telemetry(self, data: bytes, at: int, end: int) -> None:
        """Note the versions of a telemetry record."""
        for number, kind, start, stop in fields(data, at, end):
            if kind != BYTES:
                continue
            if number == 5:
                self._writer(_text(data, start, stop))
            elif number in {4, 6} and stop > start:
                self.put("versions", "python" if number == 4 else "transformers", _text(data, start, stop))

    def header(self, data: bytes, at: int, end: int) -> None:
        """Note the version of the writer."""
        for number, kind, start, stop in fields(data, at, end):
            if number == 1 and kind == BYTES:
                for inner, inner_kind, a, b in fields(data, start, stop):
                    if inner == 1 and inner_kind == BYTES:
                        self._writer(_text(data, a, b))

    def define(self, what: Definition) -> None:
        """Note what a metric is drawn against and how it is summed up."""
        key = f"define_metric.{what.name}"
        if what.step_metric:
            self.put("config", f"{key}.step_metric", what.step_metric)
        if what.goal:
            self.put("config", f"{key}.goal", what.goal)
        if what.summary:
            self.put("config", f"{key}.summary", list(what.summary))

    def write(self, out: Out) -> None:
        """Hand everything to the sink."""
        self._summed_up()
        if self.known:
            families, keys, values = zip(*_rows(self.known), strict=True)
            out.rows("facts", {"key": keys, "value": values, "family": families})


def without_secrets(arguments: list[str]) -> list[str]:
    """Command-line arguments, with the values of keys, tokens and passwords left out."""
    kept: list[str] = []
    hide = False
    for argument in arguments:
        found = _SECRET.match(argument)
        if hide and not argument.startswith("-"):
            kept.append(HIDDEN)
        else:
            kept.append(f"{found[1]}={HIDDEN}" if found and found[2] else without_forms(argument))
        hide = found is not None and found[2] is None
    return kept


def _gpu(data: bytes, at: int, end: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for number, kind, start, stop in fields(data, at, end):
        if number == 1 and kind == BYTES:
            found["name"] = _text(data, start, stop)
        elif number == 2 and kind == VARINT:
            found["memory_bytes"] = varint(data, start)[0]
        elif number == 4 and kind == BYTES:
            found["architecture"] = _text(data, start, stop)
    return found


def _rows(known: dict[tuple[str, str], str]) -> Iterator[tuple[str, str, str]]:
    for (family, key), value in known.items():
        yield family, key, value


def _base_name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _text(data: bytes, at: int, end: int) -> str:
    return data[at:end].decode("utf-8", "replace")


def _float64(data: bytes, at: int) -> float:
    return float(_FLOAT64.unpack_from(data, at)[0])
