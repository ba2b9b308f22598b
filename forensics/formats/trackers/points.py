"""Points and facts of experiment trackers; some keep many runs in one file.

Points have their attempts by run and restart, their records by run and step. A tracker may write late, from a queue: a
point with a lower step but an earlier time came late, and is no restart. Only a lower step at the same or a later time
is. Facts are settings, versions and the end of runs; nothing that names a person, host or folder.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from forensics.formats.rows.attempts import Attempts
from forensics.formats.rows.facts import KeyedFacts
from forensics.formats.rows.metrics import At, MetricRows, int64
from forensics.formats.rows.out import Out
from forensics.io.tolerant_json import dumps
from forensics.patterns import lazily

_WITHHELD = lazily(
    r"(?i)mlflow\.(?:user|note\.|log-model\.|source\.git\.(?:repo|branch)|databricks\.|docker\.)"
    r"|(?:^|[._/])(?:user|user_?name|e-?mail|host_?name|password|secret|token|api_?key)$"
)
_FAMILIES = {"mlflow.source.git.commit": "versions", "mlflow.source.name": "env", "mlflow.source.type": "env"}
#: Status of a run in the file store, as the tracking service's protocol numbers it.
STATUS = ("", "RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED")


class TrackerFacts(KeyedFacts):
    """What is known; facts of any run but the last go under `runs.<n>.`, so that one run's settings are never mixed."""

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

    def write(self, out: Out) -> None:
        """Hand everything to the sink."""
        super().write(out)
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


_SEVERAL = 2


def time_of(stamp: float | None) -> int | None:
    """A stored unix time, in milliseconds (seconds in the first versions), as nanoseconds, exactly."""
    whole = int64(stamp)
    if whole is None or not 10**9 < whole < 9 * 10**12:
        return None
    return whole * 10**6 if whole > 10**11 else whole * 10**9 if whole < 9 * 10**9 else None


class Point(Struct, frozen=True):
    """One value of one metric of one run, at its byte of the file."""

    run: str
    name: str
    value: float | None
    step: int | None
    t_ns: int | None
    byte: int | None
    line: int | None = None


class TrackedPoints(Struct):
    """Hands points to the sink; `base` is the first attempt.

    Attempts are numbered in the order of their first points in the file, over all its runs. Neighbours of the same run,
    step and time are one record.
    """

    rows: MetricRows
    rank: int | None
    base: int = 0
    records: int = 0
    runs: dict[str, Attempts] = field(default_factory=dict[str, Attempts])
    _numbers: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    _latest: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _record: tuple[object, ...] = ()

    def add(self, point: Point) -> None:
        """Add one point."""
        record = point.run, point.step, point.t_ns
        if record != self._record:
            self._record = record
            self.records += 1
        at = At(
            self.records - 1,
            attempt=self._attempt(point),
            rank=self.rank,
            line=point.line,
            byte=point.byte,
            step=point.step,
            t_ns=point.t_ns,
        )
        self.rows.add(at, point.name, point.value)

    def tell(self, facts: TrackerFacts, names: Mapping[str, str], under: Mapping[str, str]) -> None:
        """Note the run of each attempt, and the prefix of that run's facts, where there are several runs."""
        if len(self.runs) < _SEVERAL:
            return
        for (run, _), attempt in self._numbers.items():
            name = names.get(run, run)
            unique = sum(other == name for other in names.values()) < _SEVERAL
            told = {"run": name if unique else run, "under": under.get(run, "")}
            facts.put("progress", f"tracker.attempt.{attempt}", told)

    def attempt_of(self, run: str) -> int | None:
        """The first attempt of a run, None for a run without points."""
        return self._numbers.get((run, 0))

    def _attempt(self, point: Point) -> int:
        attempts = self.runs.setdefault(point.run, Attempts())
        series = point.run, point.name
        now, before = point.t_ns, self._latest.get(series)
        late = now is not None and before is not None and now < before
        local = attempts.current if late else attempts.see(point.name, point.step)
        if now is not None and not late:
            self._latest[series] = now
        return self._numbers.setdefault((point.run, local), self.base + len(self._numbers))
