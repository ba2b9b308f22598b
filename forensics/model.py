"""The values that travel through forensics: frozen, slotted, and free of any I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from types import MappingProxyType

from forensics.action import Action, Check, Gap, Restart
from forensics.identity import Identity, bare, entity_of, root_of

Number = float | int | str
_EMPTY: Mapping[str, Number] = MappingProxyType({})
#: How the reason of a file begins that may not, or can no longer, be read.
UNREADABLE = "unreadable"
#: Why a regular file without a byte is skipped.
EMPTY = "empty"
#: Why weights are skipped: they are known and never read, so nothing is missing.
WEIGHTS = "weights, not read"


class Shape(StrEnum):
    """The kind of failure that a finding reports; the first five are the failure shapes."""

    NAN = "nan"
    OOM = "oom"
    HANG = "hang"
    SLOWDOWN = "slowdown"
    BAD_EVAL = "bad_eval"
    LEARNING = "learning"
    CRASH = "crash"
    STOPPED = "stopped"


class _Ordered(StrEnum):
    """Words that are written from the least on."""

    @property
    def rank(self) -> int:
        """Its place among them: 0 for the least."""
        return tuple(type(self)).index(self)


class Severity(_Ordered):
    """How bad it is if true; `rank` orders them."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Confidence(_Ordered):
    """How sure the rule is; kept apart from severity."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Outcome(StrEnum):
    """The answer in one word; never healthy by default.

    `suspect`: the run went on, or reached its end, but something in it costs quality, time or the next run.
    """

    FAILED = "failed"
    SUSPECT = "suspect"
    HEALTHY = "healthy"
    CANNOT_SAY = "cannot_say"


class EvidenceRole(StrEnum):
    """How a piece of evidence bears on its finding."""

    PRIMARY = "primary"
    RELATED = "related"
    CONTRADICTS = "contradicts"


class Causal(StrEnum):
    """The place of a finding on the causal line: a root explains symptoms; context explains neither."""

    ROOT = "root"
    SYMPTOM = "symptom"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class Locator:
    """A place inside a source; lines are 1-based and counted by newline, bytes and records are 0-based."""

    line: int | None = None
    byte: int | None = None
    record: int | None = None
    path: str | None = None

    def __str__(self) -> str:
        """Render what follows the file name: `:412`, `@1024`, `#17`, `[a.b]`, or nothing."""
        if self.line is not None:
            return f":{self.line}"
        if self.record is not None:
            return f"#{self.record}"
        return f"@{self.byte}" if self.byte is not None else f"[{self.path}]" if self.path else ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that can be looked up in the run: its place, and the quote from there.

    `apart` tells a failure from another in the same words: the code that raised it, the phase, what changed.
    """

    source: str
    locator: Locator = field(default_factory=Locator)
    quote: str = ""
    step: int | None = None
    rank: int | None = None
    t_ns: int | None = None
    name: str | None = None
    value: float | int | None = None  # a whole number stays one between processes
    role: EvidenceRole = EvidenceRole.PRIMARY
    apart: str = ""

    @property
    def place(self) -> str:
        """`file:line`, as an editor understands it."""
        return f"{self.source}{self.locator}"


@dataclass(frozen=True, slots=True)
class Onset:
    """Where it started; `step_lo` is the last step known to be good when only a bracket is known."""

    step: int | None = None
    t_ns: int | None = None
    rank: int | None = None
    step_lo: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim of one rule, with what proves it; without evidence it raises ValueError.

    `decides`: it weighed all evidence of a failure of several ranks, so findings that rest on one kind give way.
    """

    rule: str
    shape: Shape
    severity: Severity
    confidence: Confidence
    title: str
    because: str
    evidence: tuple[Evidence, ...]
    onset: Onset = field(default_factory=Onset)
    culprits: tuple[int, ...] = ()
    cause: str = ""
    causal: Causal = Causal.ROOT
    numbers: Mapping[str, Number] = field(default_factory=lambda: _EMPTY)
    likely: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    decides: bool = False

    def __post_init__(self) -> None:
        """Refuse a claim without evidence."""
        if not self.evidence:
            msg = f"{self.rule}: a finding needs evidence"
            raise ValueError(msg)

    @property
    def is_noise(self) -> bool:
        """Whether it is only reported beside a verdict: context, unless it warns of the run itself."""
        return self.causal is Causal.CONTEXT and self.severity is not Severity.WARNING

    @property
    def fingerprint(self) -> str:
        """Stable over runs in which the rule found the same: rule, cause and the words of its evidence (12 digits)."""
        return root_of(self.rule, self.cause, *self._words)

    @property
    def identity(self) -> Identity:
        """The identity of this failure, over runs, and what it is bound to."""
        return Identity(root_of(self.shape.value, self.cause, *self._words), entity_of(self.evidence[0].quote))

    @property
    def _words(self) -> tuple[str, str]:
        """What the first evidence says (of ranks weighed against each other none is first); of a number, its name.

        And what tells it apart from others that say the same.
        """
        proof = min(self.evidence, key=lambda e: (bare(e.quote), bare(e.apart))) if self.decides else self.evidence[0]
        return proof.quote if proof.value is None else proof.name or "", proof.apart


@dataclass(frozen=True, slots=True)
class Issue:
    """Something of the input that could not be read, as a row: the loss is stated, never silent."""

    source: str
    code: str
    message: str
    byte: int = 0
    line: int | None = None
    count: int = 1


class FileStatus(StrEnum):
    """What became of a file."""

    READ = "read"
    PARTIAL = "partial"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Source:
    """A file of the run as discovered; `path` is relative to the run, with `/`, and always valid Unicode.

    `disk_path` is the name on disk where that is not valid Unicode (surrogate-escaped), else None. `rank` and
    `attempt` come from the path where a launcher puts them there (torchrun's per-rank folders).
    """

    path: str
    size_bytes: int
    mtime_ns: int = 0
    rank: int | None = None
    attempt: int | None = None
    disk_path: str | None = None


@dataclass(frozen=True, slots=True)
class FileCoverage:
    """How much of one file was understood; `read_bytes + skipped_bytes == size_bytes`, always."""

    source: str
    size_bytes: int
    read_bytes: int
    skipped_bytes: int
    status: FileStatus
    ingester: str = ""
    reason: str = ""
    records: int = 0
    format: str = ""


def _is_lost(file: FileCoverage) -> bool:
    """Whether bytes are missing that an ingester claimed, or that may not be read; what nobody knows is not lost."""
    return file.reason.startswith(UNREADABLE) or (file.status is FileStatus.PARTIAL and file.skipped_bytes > 0)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A signal that the run recorded: the source that holds most of it, its records and the steps that they cover."""

    signal: str
    label: str
    source: str
    records: int
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """Every file, the signals that were seen and those that were not, and the metrics that nobody knows.

    `absent` are the labels of signals that such a run could have recorded.
    """

    files: tuple[FileCoverage, ...] = ()
    absent: tuple[str, ...] = ()
    unrecognised: tuple[str, ...] = ()
    signals: tuple[Recorded, ...] = ()

    @property
    def lost_bytes(self) -> int:
        """Bytes of files that an ingester claimed but could not understand."""
        return sum(f.skipped_bytes for f in self.files if f.status is FileStatus.PARTIAL)

    @property
    def lost(self) -> tuple[FileCoverage, ...]:
        """Files that were not read whole although they should have been, the largest loss first."""
        return tuple(sorted((f for f in self.files if _is_lost(f)), key=lambda f: -f.skipped_bytes))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint to start from; `path` is as the run wrote it, or relative to the run when found on disk."""

    step: int
    path: str | None


@dataclass(frozen=True, slots=True)
class SeenBefore:
    """How many other runs of a history failed for the same reason; when first and last, in nanoseconds since 1970."""

    count: int
    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer; `lead` and `chain_findings` are places in the findings, `confidence` is that of outcome and shape."""

    outcome: Outcome
    headline: str
    shape: Shape | None = None
    onset: Onset = field(default_factory=Onset)
    culprits: tuple[int, ...] = ()
    cause: str = ""
    confidence: Confidence = Confidence.LOW
    chain: tuple[str, ...] = ()
    runner_up: str | None = None
    against: tuple[Evidence, ...] = ()
    identity: Identity | None = None
    checkpoint: Checkpoint | None = None
    lead: int | None = None
    chain_findings: tuple[int, ...] = ()
    onset_confidence: Confidence | None = None
    cause_confidence: Confidence | None = None
    actions: tuple[Action, ...] = ()
    restart: Restart | None = None
    missing: tuple[Gap, ...] = ()
    playbook: tuple[Check, ...] = ()
    seen_before: SeenBefore | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """What every figure has; a renderer finds how to draw it by its type (`figure.py` has them).

    `key` is unique among the figures of a run: words and hyphens. `rules` are those whose findings it illustrates;
    `note` says how its points were chosen, empty where all are shown.
    """

    key: str
    title: str
    caption: str
    _: KW_ONLY
    rules: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a renderer may show of one run; `figures` only where a renderer that draws asked for them."""

    run: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)
    issues: tuple[Issue, ...] = ()
    suppressed: int = 0
    plugins: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
