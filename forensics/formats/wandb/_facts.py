"""Facts of a W&B transaction log: settings, the machine, the run and versions; nothing names a person or a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from msgspec import field

from forensics.dialects.settings.command_lines import options
from forensics.errors import InputError
from forensics.formats.rows.facts import KEYED_CHARS, MOST_KEYED, KeyedFacts
from forensics.formats.rows.out import Out
from forensics.formats.rows.secrets import HIDDEN, masked, without_forms
from forensics.formats.wandb._define import Definition
from forensics.formats.wandb._items import Leaf, Names, flat, items, leaves, parts
from forensics.formats.wandb._marks import stamp_ns
from forensics.io.tolerant_json import as_object, loads
from forensics.patterns import lazily

#: Family and key of the facts of a message, by the numbers of its fields; a remote may hold a name or a password.
_GIT: Names = {2: "versions git_commit"}
_TELEMETRY: Names = {4: "versions python", 5: "versions wandb", 6: "versions transformers"}
_HEADER: Names = {1: {1: "versions wandb"}}
_BRANCH: Names = {
    1: "env wandb.branch_point.run",
    2: "env wandb.branch_point.value",
    3: "env wandb.branch_point.metric",
}
_RUN: Names = {
    1: "env wandb.run_id", 3: "env wandb.project", 6: "env wandb.group", 7: "env wandb.job_type",
    8: "env wandb.display_name", 12: "env wandb.sweep_id", 13: "host host", 19: _TELEMETRY, 21: _GIT, 23: _BRANCH,
}  # fmt: skip
_RUN_NUMBERS: Names = {14: "starting_step", 18: "resumed", 20: "runtime_s", 22: "forked"}
_RUN_CONFIG, _RUN_SUMMARY, _RUN_START = 4, 5, 17
_ENVIRONMENT: Names = {
    1: "env os", 2: "env python", 4: "env docker", 6: "env program", 9: _GIT, 12: "host host", 16: "env cpu_count",
    17: "env cpu_count_logical", 18: "env gpu_type", 19: "env gpu_count", 21: {1: "host memory_bytes"},
    25: "env cuda_version",
}  # fmt: skip
_ARGUMENTS, _GPUS, _SLURM = 5, 24, 27
_GPU: Names = {1: "name", 2: "memory_bytes", 4: "architecture"}
_MOST_PARTS = 1000
SLURM_KEYS = lazily(
    r"(?i)(?:slurm_)?(?:job_?id|job_?name|node_?list|n?nodes|num_nodes|ntasks|partition|restart_count)\Z"
)
_SECRET = lazily(r"(?i)(--?[\w.-]*(?:key|token|secret|passw)[\w.-]*)(=.*)?\Z", re.DOTALL)
#: Keys that a config or summary record deletes.
_REMOVE = 2


class Facts(KeyedFacts):
    """What is known of a run, its summary apart until it is complete."""

    version: str = ""
    _summary: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])

    def config(self, data: bytes, at: int, end: int) -> None:
        """Note the settings of a config record."""
        for name, value in items(data, at, end):
            self._setting(name.decode("utf-8", "replace"), value)

    def summary(self, data: bytes, at: int, end: int) -> None:
        """Take the values of a summary record, less what the writer adds for itself; a later one replaces a whole key.

        Raises `WireError` when the bytes are no such message.
        """
        for key, value in items(data, at, end):
            if not key.startswith(b"_") and (key in self._summary or len(self._summary) < MOST_KEYED):
                self._summary[key] = value if len(value) <= KEYED_CHARS else b""
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
            self._writer(as_object(document).get("cli_version"))
            return
        for key, cell in flat(name, document):
            self.put("config", key, masked(key, cell))

    def _writer(self, version: object) -> None:
        if isinstance(version, str) and version:
            self.version = version
            self.put("versions", "wandb", version)

    def run(self, data: bytes, at: int, end: int) -> tuple[int, str]:
        """Note a run record, its settings included; give the first step and `resumed`, `forked` or nothing."""
        numbers = dict.fromkeys(_RUN_NUMBERS.values(), 0) | dict(leaves(data, at, end, _RUN_NUMBERS))
        self._found(leaves(data, at, end, _RUN))
        for start, stop in parts(data, at, end, _RUN_CONFIG):
            self.config(data, start, stop)
        for start, stop in parts(data, at, end, _RUN_SUMMARY):
            self.summary(data, start, stop)
        for start, stop in parts(data, at, end, _RUN_START):
            if began_ns := stamp_ns(data, start, stop):
                self.put("env", "wandb.start_time_ns", began_ns)
        for key, value in numbers.items():
            if value:
                self.put("env", f"wandb.{key}", value != 0 if key in {"resumed", "forked"} else value)
        step = numbers["starting_step"]
        goes_on = numbers["resumed"] or step
        how = "forked" if numbers["forked"] else "resumed" if goes_on else ""
        return step if isinstance(step, int) else 0, how

    def _found(self, told: Iterable[tuple[str, Leaf]]) -> None:
        """Note the content under the names of a table."""
        for name, value in told:
            family, _, key = name.partition(" ")
            if name == "versions wandb":
                self._writer(value)
            elif value != "":
                self.put(family, key, str(value).replace("\\", "/").rsplit("/", 1)[-1] if key == "program" else value)

    def environment(self, data: bytes, at: int, end: int) -> None:
        """Note an environment record, without user, mail and folders."""
        self._found(leaves(data, at, end, _ENVIRONMENT))
        for start, stop in parts(data, at, end, _SLURM):
            cells = dict(leaves(data, start, stop, {1: "key", 2: "value"}))
            if SLURM_KEYS.match(key := str(cells.get("key", ""))):
                self.put("host", f"slurm.{key.lower()}", cells.get("value", ""))
        if words := [str(word) for _, word in islice(leaves(data, at, end, {_ARGUMENTS: "word"}), _MOST_PARTS)]:
            self.arguments(words)
        if gpus := [dict(leaves(data, *one, _GPU)) for one in islice(parts(data, at, end, _GPUS), _MOST_PARTS)]:
            self.put("host", "gpus", gpus)

    def arguments(self, words: list[str]) -> None:
        """Note the command line, and each of its options as a setting, without secrets."""
        self.put("env", "args", without_secrets(words))
        for option in options(words):
            if ("config", option.key) not in self.known:
                self.put("config", option.key, masked(option.key, option.value))

    def telemetry(self, data: bytes, at: int, end: int) -> None:
        """Note the versions of a telemetry record."""
        self._found(leaves(data, at, end, _TELEMETRY))

    def header(self, data: bytes, at: int, end: int) -> None:
        """Note the version of the writer."""
        self._found(leaves(data, at, end, _HEADER))

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
        super().write(out)


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
