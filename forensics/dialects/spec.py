r"""What a dialect is: lines that a trainer prints, as patterns with named groups, and what each group means.

Patterns are run over millions of lines at once by the Rust regex engine, so they keep to its subset: no look-around, no
back-references, named groups as `(?P<name>…)`. They are applied to one printed segment (text between `\n`, `\r` or
a run of backspaces; ANSI sequences and rank prefixes removed), and are searched, not anchored, unless they begin
with `^`.

Names of groups with a fixed meaning: `step epoch epochs iter iters max_steps rank path t`. Every other group of a
`metrics` line is a metric; its printed name is canonicalised by `names.canonical` unless `Line.names` says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

if TYPE_CHECKING:
    import polars as pl

#: A printed number: sign, thousands separators, exponents, nan and inf. Use it inside a group: `(?P<loss>{N})`.
_EXPONENT = r"(?:[eE][-+]?\d+|[dD][-+]\d+)?"  # Fortran writes 0.21D+01
N = (
    rf"[-+]?(?:\d[\d,]*(?:\.\d*)?{_EXPONENT}|\.\d+{_EXPONENT}"
    r"|[nN]a[nN](?:\.0)?|[iI]nf(?:inity)?(?:\.0|E)?|(?:NAN|INF)\b)"  # NAN is what `{:.6E}` prints, INF no INFO
)
#: The same with a magnitude suffix (k K M G B T P E), as human_format writers print it.
NS = N + r"[kKMGBTPE]?"
#: A whole cell whose comma parts decimals; `1,234` may be a thousand and shows nothing.
DECIMAL_COMMA = r"^[-+]?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))(?:[eE][-+]?\d+)?$"

RESERVED = ("step", "epoch", "epochs", "iter", "iters", "max_steps", "rank", "path", "t", "tail")

#: Key-value tails, each a pattern with the groups `key` and `value`, applied repeatedly to the group `tail`.
TAILS: Mapping[str, str] = MappingProxyType(
    {
        "eq": rf"(?P<key>[A-Za-z_][\w./%()-]*)\s*=\s*(?P<value>{NS})",
        "colon": rf"(?P<key>[A-Za-z_][\w ./%()-]*?)\s*:\s*(?P<value>{NS})",
        "pydict": rf"'(?P<key>[^']+)': (?:np\.float\d+\(|tensor\()?'?(?P<value>{N})",
        "json": rf'"(?P<key>[^"]+)"\s*:\s*"?(?P<value>{N})',
        "box": rf"\|\s*(?P<key>[A-Za-z_%](?:[\w/. %]*[\w%])?)\s*\|\s*(?P<value>{N})\s*\|",
        "tight": rf"(?P<key>[A-Za-z_][\w./@%-]*):(?:np\.float\d+\(|tensor\()?(?P<value>{NS})",
    }
)

Meaning = Literal[
    "metrics",
    "clock",
    "progress",
    "section",
    "saved",
    "committed",
    "removed",
    "resumed",
    "started",
    "ended",
    "overflow",
    "nan",
]


class Name(Struct, frozen=True):
    """A printed name's canonical name, and the factor that brings its number to the unit in that name."""

    canonical: str
    scale: float = 1.0


class Line(Struct, frozen=True):
    """One kind of line.

    `needle` is a literal of every such line (case-sensitive); it decides speed, so choose a rare one. `meaning` says
    what a match is: `metrics` rows; `clock` is how fast a bar says it goes, beside what else its line says and without
    a step; `progress` only gives the step to lines that have none; `section` says whether the metrics below it are of
    training or of an evaluation, up to the next line that counts; `saved` … `resumed` go to the checkpoints table;
    `started`, `ended`, `overflow` (a skipped update) and `nan` (a detector's own message) become events with the code
    `<dialect>.<meaning>`; `step_offset` is added to the printed step, batch and number of batches, so that `step`
    counts optimizer updates the way the metric lines of the same dialect do. `names` overrides the canonical names of
    groups and tail keys; a key mapped to None is dropped. `carry`: a match without a step takes the step of the nearest
    earlier match of this dialect that has one. `comma`: decimals are behind a comma; `points`: points part thousands
    beside it.
    """

    meaning: Meaning
    needle: str
    pattern: str
    tail: str | None = None
    names: Mapping[str, Name | None] = field(default_factory=dict[str, "Name | None"])
    step_offset: int = 0
    carry: bool = False
    comma: bool = False
    points: bool = False


class Nan(Struct, frozen=True):
    """What a trainer makes of NaN, so that rules know what its log hides.

    `prints`: `nan` where the loss is; `number` where the writer's own filter puts a zero or a stale loss in its place;
    `gap` where the column of the loss is missing beside others.
    `skips`: the update is skipped, so that the weights stay as they were, where the `loss` or the `gradient` is bad.
    `show`: the setting with which the log shows the NaN.
    """

    prints: Literal["nan", "number", "gap"] = "nan"
    skips: Literal["", "loss", "gradient"] = ""
    show: str = ""


class Dialect(Struct, frozen=True):
    """The lines of one trainer, and what is known of it.

    `sniff`: patterns, any of which marks a sampled line as this dialect's; by default the patterns of `metrics` lines.
    `finish`: frame → frame over all matches of one file in order (columns: seq, line, meaning, step, epoch, epochs,
    iter, iters, max_steps, rank, all Int64 but epoch Float64; null where not printed); it returns the frame with `step`
    filled where the dialect derives it (`(epoch-1)*iters+iter`, or from the progress bar beside it). `nan`: what it
    makes of NaN. `restart`: options that make it start from a checkpoint: `{path}` the checkpoint, `{parent}` its
    folder, `{step}` its step. `option`: how an option sets a setting beside them: `{key}` its dotted name, `{name}` the
    last part of it, `{dashed}` that with dashes, `{value}`. `stores`: formats of files that this trainer alone leaves.
    `times_one_step`: the time in a line is that of its step alone, not the mean of those since the line before.
    """

    name: str
    title: str
    lines: tuple[Line, ...]
    sniff: tuple[str, ...] = ()
    finish: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    nan: Nan = Nan()
    restart: str = ""
    option: str = ""
    stores: tuple[str, ...] = ()
    times_one_step: bool = False
    doc: str = ""
