"""Facts of experiment trackers: settings, versions and the end of runs; nothing that names a person, host or folder."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from forensics.formats.rows.out import Out
from forensics.io.tolerant_json import dumps
from forensics.patterns import lazily

_MOST, _CHARS = 20_000, 10_000
_WITHHELD = lazily(
    r"(?i)mlflow\.(?:user|note\.|log-model\.|source\.git\.(?:repo|branch)|databricks\.|docker\.)"
    r"|(?:^|[._/])(?:user|user_?name|e-?mail|host_?name|password|secret|token|api_?key)$"
)
_FAMILIES = {"mlflow.source.git.commit": "versions", "mlflow.source.name": "env", "mlflow.source.type": "env"}
#: Status of a run in the file store, as the tracking service's protocol numbers it.
STATUS = ("", "RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED")


class TrackerFacts(Struct):
    """What is known; facts of any run but the last go under `runs.<n>.`, so that one run's settings are never mixed."""

    known: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def setting(self, key: str, value: object, under: str = "") -> None:
        """Note a parameter of a run."""
        if not _WITHHELD.search(key):
            self.put("config", f"{under}{key}", value)

    def tag(self, key: str, value: str, under: str = "") -> None:
        """Note a tag of a run; of a program, only its name."""
        if _WITHHELD.search(key):
            return
        text = value.replace("\\", "/").rsplit("/", 1)[-1] if key == "mlflow.source.name" else value
        self.put(_FAMILIES.get(key, "env"), f"{under}{key}" if key in _FAMILIES else f"{under}tag.{key}", text)

    def put(self, family: str, key: str, value: object) -> None:
        """Note one value, as JSON."""
        if len(self.known) < _MOST:
            self.known[family, key] = dumps(value, compact=True).decode()[:_CHARS]

    def write(self, out: Out) -> None:
        """Hand everything to the sink."""
        rows = list(self._rows())
        if rows:
            families, keys, values = zip(*rows, strict=True)
            out.rows("facts", {"key": keys, "value": values, "family": families})
        if self.known.get(("exit", "mlflow.status")) == '"KILLED"':
            out.rows("events", self._killed())

    def _killed(self) -> dict[str, list[str | int | None]]:
        """The event of a run that somebody ended; a service writes this word when it is told to stop the run."""
        end_ms = self.known.get(("progress", "mlflow.end_time"), "")
        attrs = {"role": "root", "shape": "stopped", "family": "tracker", "cause": "external_termination"}
        return {
            "seq": [0],
            "t_ns": [int(end_ms) * 1_000_000 if end_ms.isdecimal() and len(end_ms) < 14 else None],
            "level": ["error"],
            "code": ["mlflow.killed"],
            "text": ["the tracker recorded that the run was killed (mlflow.status = KILLED)"],
            "attrs": [dumps(attrs, compact=True).decode()],
        }

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        for (family, key), value in self.known.items():
            yield family, key, value
