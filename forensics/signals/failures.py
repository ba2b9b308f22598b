"""Errors of a run, judged: which events are failures, what each one is, and which were survived.

An error is cleared when the run went on after it (see `_survival`). Judging sets no severity; rules do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import polars as pl

from forensics.signals._classify import Weight, of_exception, of_signature
from forensics.signals._near_the_end import ends_the_log, last_lines, of_trackers_own, step_failed_before
from forensics.signals._survival import cleared, last_ends, recurring
from forensics.signals.endings import ending_of
from forensics.signals.hang_exits import NONZERO
from forensics.signals.hang_ranks import stated
from forensics.store.run import Run

_MAX_EVENTS = 20_000
_TRACEBACK_LINES = 400
#: A line of torchrun's failure blocks: the rank of the exit code that stands a line or two below it.
_BLOCK_RANK = "elastic-rank"
_BLOCK_EXIT = re.compile(r"^\W*(?:exitcode|traceback)\s*:")
_BLOCK_LINES = 4
#: A message of several lines is over after so many.
_MESSAGE_LINES = 6
#: A line's usual length, where a source knows bytes only.
_LINE_BYTES = 120
_NEAR_EVENTS = 12
#: Ranks say that they wait for others to start; only where nothing follows is it more than a slow start.
_STARTS_LATE = "store-barrier-wait"
#: Codes that are judged by more than their role.
_UNSIGNED = ("traceback", "py-exception-terminal", "wandb.exit", _BLOCK_RANK, _STARTS_LATE)
#: Codes whose following lines may say more, and the causes that say too little.
_TELLS_MORE = frozenset({"traceback", "py-exception-terminal", "cpp-terminate", "cpp-terminate-mac"})
_UNTOLD = frozenset({"uncaught_exception", "native_exception"})
#: CANN's error codes are further lines of the message of the exception that they explain.
_CODED = frozenset({"hccl-notify"})
#: XLA warns of a thread that may be stuck, and says so when it goes on.
_MAY_BE_STUCK = "xla-rendezvous"
#: A warning of Python's own: the program went on.
_WARNED = re.compile(r"^[^\"']{0,300}\b(?:User|Runtime|Future|Deprecation|Resource|Import)Warning: ")
#: Python prints these without a traceback when the program itself cannot be read.
_STARTUP = frozenset({"SyntaxError", "IndentationError", "TabError"})


@dataclass(frozen=True, slots=True)
class Failure:
    """One error of the run; `cleared` says why it is not the run's failure, and is empty when it may be.

    `progress`: it was caught; `earlier`: it ended an earlier run in the same file; `success`: the run's own success
    marker follows it; `recurring`: the program raised it again and again and printed on; `teardown`: it follows the
    success marker; `freed`: a warning that was taken back.
    """

    source: str
    line: int | None
    byte: int | None
    t_ns: int | None
    rank: int | None
    step: int | None
    code: str
    shape: str
    weight: Weight
    cause: str
    exception: str
    message: str
    quote: str
    where: str = ""
    aside: bool = False
    cleared: str = ""

    @property
    def at(self) -> int:
        """Place inside its source."""
        return self.line if self.line is not None else self.byte or 0


def failures(run: Run) -> tuple[Failure, ...]:
    """List the judged errors of a run in the order of their sources and lines, survived ones included."""
    return run.derived(_failures)


def _failures(run: Run) -> tuple[Failure, ...]:
    merged = _merge(_judged(run))
    if not merged:
        return ()
    end, freed = ending_of(run), _freed(run) if any(f.code == _MAY_BE_STUCK for f in merged) else {}
    last, again, ends = last_lines(run), recurring(merged), last_ends(merged, end)

    def why(failure: Failure) -> str:
        if failure.code == _MAY_BE_STUCK and failure.at < freed.get(failure.source, -1):
            return "freed"
        goes_on = not ends_the_log(failure.source, failure.line, last)
        return cleared(failure, end, ends[failure.source], goes_on=goes_on) or (
            "recurring" if goes_on and failure in again else ""
        )

    return tuple(replace(f, cleared=why(f)) for f in merged)


def _freed(run: Run) -> dict[str, int]:
    """Give the last place of each source where XLA takes its warning of a stuck thread back."""
    rows = run.scan("events").filter(pl.col("code") == "xla-freed").with_columns(
        at=pl.coalesce("line", "byte", "seq").fill_null(0)
    )  # fmt: skip
    return dict(rows.group_by("source").agg(pl.col("at").max()).collect().iter_rows())


def standing(run: Run) -> tuple[Failure, ...]:
    """List the errors that were not survived."""
    return tuple(failure for failure in failures(run) if not failure.cleared)


def _events(run: Run) -> pl.DataFrame:
    """Events that may be errors, in order, each with the last time that its source had printed.

    Of two events of one line that of the catalogue comes first: a dialect's own (`kempnerforge.nan`) knows less.
    """
    blamed = pl.col("attrs").str.contains(r'"role":\s*"(?:root|symptom)"').fill_null(value=False)
    return (
        run.scan("events")
        .with_columns(order=pl.coalesce("line", "byte", "seq").fill_null(0))
        .sort("source", "order", "seq", pl.col("code").str.contains(".", literal=True), maintain_order=True)
        .with_columns(t_ns=pl.col("t_ns").forward_fill().over("source"))
        .filter((pl.col("code").is_in(_UNSIGNED) | blamed) & ~of_trackers_own())
        .head(_MAX_EVENTS)
        .collect()
    )


def _judged(run: Run) -> Iterator[Failure]:
    block: dict[str, Any] | None = None
    known, last = stated(run), last_lines(run)
    events = _events(run)
    told = set(events.filter(pl.col("code") == "traceback").select("source", "line").iter_rows())
    for row in events.iter_rows(named=True):
        block = row if row["code"] == _BLOCK_RANK else block
        attrs = _attrs(row["attrs"])
        exception, message = attrs.get("exc", ""), attrs.get("message", attrs.get("msg", ""))
        at_end = (row["source"], row["line"]) not in told and ends_the_log(row["source"], row["line"], last)
        judged = _judge(str(row["code"]), attrs, row["text"] or "", at_end=at_end)
        if judged is None:
            continue
        weight, shape, cause = judged
        yield Failure(
            source=row["source"],
            line=row["line"],
            byte=row["byte"],
            t_ns=row["t_ns"],
            rank=known.get(row["source"], row["rank"]) if row["rank"] is not None else _rank_of_block(row, block),
            step=row["step"],
            code=row["code"],
            shape=shape,
            weight=weight,
            cause=cause,
            exception=exception,
            message=message,
            quote=row["text"] or (f"{exception}: {message}" if message else exception),
            where=attrs.get("frame", ""),
            aside="aside" in attrs,
        )


def _rank_of_block(row: dict[str, Any], block: dict[str, Any] | None) -> int | None:
    """Give the rank of the torchrun failure block in which an exit code stands."""
    if block is None or block["source"] != row["source"] or _BLOCK_EXIT.match(row["text"] or "") is None:
        return None
    return block["rank"] if 0 < row["order"] - block["order"] <= _BLOCK_LINES else None


def _judge(code: str, attrs: dict[str, str], text: str, *, at_end: bool) -> tuple[Weight, str, str] | None:
    role, exception = attrs.get("role", ""), attrs.get("exc", "")
    if role == "benign" or (code != "traceback" and _WARNED.search(text)):
        return None
    if code == "traceback":
        return _of_chain(attrs) if exception else _of_head(text)
    if code == "py-exception-terminal":
        return _of_lone_line(exception, attrs.get("msg", ""), at_end=at_end)
    if code == "wandb.exit":
        return _of_exit(attrs.get("exit_code", ""))
    slug = attrs.get("cause", "")
    if code == "exit137" and "OOMKilled" in text:
        return Weight.OWN, "oom", slug
    waits = code == _STARTS_LATE and at_end
    found = of_signature(code, "symptom" if waits else role, attrs.get("shape", ""), slug)
    return (*found, slug or code.replace("-", "_")) if found else None


def _of_head(text: str) -> tuple[Weight, str, str]:
    """Judge a traceback without its last line: what the terminal echoed before it tells who began it."""
    if "^C" in text.partition("Traceback")[0]:
        return Weight.STOP, "stopped", "interrupted_by_user"
    return Weight.WRAPPER, "crash", "traceback_cut_short"


def _of_lone_line(exception: str, message: str, *, at_end: bool) -> tuple[Weight, str, str] | None:
    """Judge an exception's line that has no traceback: it counts if it ends a log or kept a program from starting."""
    if exception.rsplit(".", 1)[-1] in _STARTUP:
        return Weight.OWN, "crash", "program_did_not_start"
    if not at_end:
        return None
    weight, shape, cause = of_exception(exception, message)
    return (Weight.ECHO if cause == "uncaught_exception" else weight), shape, cause


def _of_exit(code: str) -> tuple[Weight, str, str]:
    """Judge the code in a W&B exit record, which is 255 after an interrupt; others only say that something failed."""
    if code in {"130", "255"}:
        return Weight.STOP, "stopped", "interrupted_by_user"
    if code == "143":
        return Weight.STOP, "stopped", "external_termination"
    return Weight.WRAPPER, "crash", NONZERO


def _of_chain(attrs: dict[str, str]) -> tuple[Weight, str, str]:
    """Judge by the last exception of a chain, or by the first when only that one is telling."""
    last = of_exception(attrs["exc"], attrs.get("message", ""))
    if last[2] == "uncaught_exception" and "root_exc" in attrs:
        return of_exception(attrs["root_exc"], attrs.get("root_message", ""))
    return last


def _attrs(text: str | None) -> dict[str, str]:
    try:
        found: Any = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(key): str(value) for key, value in cast("dict[object, object]", found).items()}


def _merge(found: Iterator[Failure]) -> tuple[Failure, ...]:
    """Give a traceback the judgement of a signature that stands in its own last line, and drop that signature."""
    rows = list(found)
    taken: set[int] = set()
    named = {i: _with_signature(f, i, rows, taken) for i, f in enumerate(rows) if f.code in _TELLS_MORE}
    return tuple(_placed(named.get(i, failure), rows) for i, failure in enumerate(rows) if i not in taken)


def _placed(failure: Failure, rows: list[Failure]) -> Failure:
    """Take a cancelled step for an echo where a task of it had failed before."""
    if failure.code != "slurm-cancel":
        return failure
    exits = [(f.at, f.quote) for f in rows if f.code == "srun-exit" and f.source == failure.source]
    followed = step_failed_before(failure.quote, failure.at, exits)
    return replace(failure, shape="crash", weight=Weight.WRAPPER, cause="step_aborted") if followed else failure


def _with_signature(failure: Failure, i: int, rows: list[Failure], taken: set[int]) -> Failure:
    said = (failure.message or failure.exception)[:60]
    for j in range(max(0, i - _NEAR_EVENTS), min(i + _NEAR_EVENTS, len(rows))):
        other = rows[j]
        if j in taken or j == i or other.source != failure.source or other.code == "traceback":
            continue
        if _within(failure, other, _TRACEBACK_LINES) and (other.at == failure.at or (said and said in other.quote)):
            taken.add(j)
            if failure.cause in _UNTOLD and other.weight >= Weight.CLOSED:
                failure = _judged_as(failure, other)
        elif failure.cause in _UNTOLD and _goes_on(failure, other):
            taken.add(j)
            failure = _judged_as(failure, other)
    return failure


def _judged_as(failure: Failure, other: Failure) -> Failure:
    return replace(failure, shape=other.shape, weight=other.weight, cause=other.cause, code=other.code)


def _within(failure: Failure, other: Failure, lines: int) -> bool:
    if failure.line is None or other.line is None:
        return abs((failure.byte or 0) - (other.byte or 0)) <= lines * _LINE_BYTES
    return abs(other.at - failure.at) <= lines


def _goes_on(failure: Failure, other: Failure) -> bool:
    """Whether a signature stands in the lines that an exception's message goes on with, by the same rank."""
    after = other.at > failure.at and other.rank == failure.rank and _within(failure, other, _MESSAGE_LINES)
    return after and (other.weight == Weight.OWN or other.code in _CODED)
