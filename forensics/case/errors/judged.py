"""Events of a run that are errors: each once, judged by the table of error lines, survived or not.

Judging sets no severity; rules do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from forensics.case.end_markers import ends_the_log, last_lines
from forensics.case.errors._failure import ANY, Failure, merged
from forensics.case.errors.coded import codes, ending_with, events_telling
from forensics.case.errors.exits import NONZERO, Exit, exits
from forensics.case.errors.kinds import EXIT_RECORD, Weight, attributes, of_exception, of_line, of_lone_line
from forensics.case.errors.named import pods, rank_named
from forensics.case.series import keys_of
from forensics.case.steps import in_file
from forensics.dialects.prefixes import split
from forensics.knowledge.errors import final, telling
from forensics.knowledge.signals import signal_of
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.patterns import lazily
from forensics.store.run import Run, derived, nothing

_MAX_EVENTS = 20_000
_BLOCK_EXIT = lazily(r"^\W*(?:exitcode|traceback)\s*:")
_BLOCK_LINES = 4
_NUMBER = lazily(r"\d+")
#: A traceback begins below the heading of its rank, in Ray's message after a blank line at most.
_HEADED_LINES = 2
#: Behind every line of a file.
_ANY_LINE = 1 << 62
#: What W&B records after an interrupt from the keyboard, and the shell's code for it.
_INTERRUPTED = {"255": "130"}
#: The cause of a traceback without its last line.
CUT = "traceback_cut_short"


@derived
def judged(run: Run) -> tuple[Failure, ...]:
    """List the errors of a run in the order of their sources and lines."""
    return merged(_judged(run))


def _events(run: Run) -> pl.DataFrame:
    """Events that may be errors, in order, each with the last time that its source had printed."""
    exceptions = {"traceback", *telling("exception")}
    others = telling("rank_of_block") | final() | ending_with(run, EXIT_RECORD)
    raised, read = pl.col("code").is_in(exceptions), pl.col("code").is_in(others)
    trackers_own = pl.col("source").str.contains(words_for("log_of_a_tracker")) & raised
    blamed = pl.col("attrs").str.contains(r'"role":\s*"(?:root|symptom)"').fill_null(value=False)
    if codes(run).isdisjoint(exceptions | others) and not run.scan("events").select(blamed.any()).collect().item():
        return nothing("events")
    return (
        run.scan("events")
        .with_columns(order=in_file())
        .sort("source", "order", "seq", pl.col("code").str.contains(".", literal=True), maintain_order=True)
        .with_columns(t_ns=pl.col("t_ns").forward_fill().over("source"))
        .filter((raised | read | blamed) & ~trackers_own)
        .head(_MAX_EVENTS)
        .collect()
    )


def _judged(run: Run) -> Iterator[Failure]:
    block: dict[str, Any] | None = None
    last = last_lines(run)
    events = _events(run)
    if events.is_empty():
        return
    ends = tuple(exits(run).by_rank.values())
    raised, headed = _raised_by(run, events, ends), _headed(run)
    of_place = _alone((end.source, end.line, end.rank) for end in ends)
    tracebacks = set(events.filter(pl.col("code") == "traceback").select("source", "line").iter_rows())
    of_device = events.filter(pl.col("attrs").str.contains('"device":"', literal=True)).select(
        "source", "line", "attrs"
    )
    devices = {(source, line): attributes(attrs)["device"] for source, line, attrs in of_device.iter_rows()}
    for row in events.iter_rows(named=True):
        block = row if row["code"] in telling("rank_of_block") else block
        attrs = _inner(attributes(row["attrs"]))
        named = attrs | {"device": devices.get((row["source"], row["line"]), "")}
        exception, message = attrs.get("exc", ""), attrs.get("message", attrs.get("msg", ""))
        at_end = (row["source"], row["line"]) not in tracebacks and ends_the_log(row["source"], row["line"], last)
        judged = _judge(str(row["code"]), attrs, row["text"] or "", at_end=at_end)
        if judged is None:
            continue
        weight, shape, cause = judged
        below = _below(headed.get(row["source"], ()), _number(attrs, "head_line"), row["line"] or 0)
        own = raised.get((row["source"], row["line"], row["code"]), _first(row["rank"], below))
        said = _by_itself(message) if weight >= Weight.ECHO else None
        yield Failure(
            source=row["source"],
            line=row["line"],
            byte=row["byte"],
            t_ns=row["t_ns"],
            rank=own
            if own is not None
            else _rank_of_block(
                row,
                block,
                _first(rank_named(run, named, row["text"] or ""), of_place.get((row["source"], row["line"])), said),
            ),
            step=row["step"],
            code=row["code"],
            shape=shape,
            weight=weight,
            cause=cause,
            exception=exception,
            message=message,
            more=attrs.get("more", ""),
            quote=row["text"] or (f"{exception}: {message}" if message else exception),
            aside="aside" in attrs,
            stack=_stack(attrs),
            statement=attrs.get("statement", ""),
            caught="caught" in attrs,
            said=attrs.get("said", ""),
            said_at=_said_at(attrs),
            head=_number(attrs, "head_line"),
            told_line=_number(attrs, "told_line"),
        )


def _by_itself(message: str) -> int | None:
    """The one rank that the words of an exception name."""
    if "rank" not in message.lower():
        return None
    named = {
        int(number) for hit in re.finditer(words_for("names_its_rank"), message) for number in _NUMBER.findall(hit[0])
    }
    return named.pop() if len(named) == 1 else None


def _number(attrs: Mapping[str, str], name: str) -> int | None:
    return int(said) if (said := attrs.get(name, "")).isdigit() else None


def _said_at(attrs: Mapping[str, str]) -> int | None:
    head, above = _number(attrs, "head_line"), _number(attrs, "said_above")
    return head - above if head is not None and above is not None and above < head else None


def _first(*ranks: int | None) -> int | None:
    return next((rank for rank in ranks if rank is not None), None)


def _raised_by(run: Run, events: pl.DataFrame, ends: Sequence[Exit]) -> dict[tuple[str, int, str], int]:
    """Give the rank of the last traceback before the place where a launcher tells of the one worker that raised.

    Such a log holds the output of all workers: the rank that its other lines name is that of who logs. Where only
    rank 0 is told of, and no record has a rank, the job may have no other.
    """
    found: dict[tuple[str, int, str], int] = {}
    alone = {end.rank for end in ends} == {0} and not keys_of(run)["rank"].is_not_null().any()
    plain = [end for end in ends if end.code == 1 and end.line is not None and not alone]
    for (source, _), rank in _alone((end.source, None, end.rank) for end in plain).items():
        until = max(end.line or 0 for end in plain if end.source == source)
        own = (pl.col("source") == source) & (pl.col("code") == "traceback") & (pl.col("line") < until)
        for line, text in events.filter(own).sort("line").tail(1).select("line", "text").iter_rows():
            if split(text or "")[1] is None:
                found[source, line, "traceback"] = rank
    return found


def _headed(run: Run) -> dict[str, list[tuple[int, int, int]]]:
    """Give the lines of each source between which a heading names the rank: up to its end, else the first two below.

    What is said of a pod goes to the next one; its rank is that of its log. A process that is counted on its node is a
    rank where the log says which node that is, or where there is one such log.
    """
    found: dict[str, list[tuple[int, int, int]]] = {}
    rows = events_telling(run, "rank_of_lines", order=("source", "line"))
    if rows.is_empty():
        return found
    by_pod, first = pods(run), _first_ranks(run)
    nodes = {source for source, _, attrs in rows.select("source", "line", "attrs").iter_rows() if '"local"' in attrs}
    for source, line, attrs in rows.select("source", "line", "attrs").iter_rows():
        said, own = attributes(attrs), found.setdefault(source, [])
        if own:
            begin, end, before = own[-1]
            own[-1] = (begin, min(end, line) if "end" not in said else line, before)
        pod = by_pod.get(said.get("pod", ""))
        if pod is not None:
            own.append((line, _ANY_LINE, pod))
        elif "local" in said and (source in first or len(nodes) == 1):
            own.append((line, line + _HEADED_LINES + 1, first.get(source, 0) + int(said["local"])))
        elif "rank" in said:
            own.append((line, line + _HEADED_LINES + 1, int(said["rank"])))
    return found


def _first_ranks(run: Run) -> dict[str, int]:
    """Give the first rank of the node of which a source says so, or the number and how many processes each has."""
    rows = events_telling(run, "node_of_ranks").select("source", "attrs")
    nodes = [(source, attributes(attrs)) for source, attrs in rows.iter_rows()]
    counted = {source: int(said["node"]) * int(said["each"]) for source, said in nodes if "node" in said}
    return {source: int(said["first"]) for source, said in nodes if "first" in said} | counted


def _below(headed: Sequence[tuple[int, int, int]], head: int | None, line: int) -> int | None:
    """Give the rank of the heading above what is told in a line, or within the traceback that ends there."""
    first = line if head is None else head
    return next((rank for begin, end, rank in headed if begin < first < end or first < begin < line), None)


def _stack(attrs: Mapping[str, str]) -> tuple[str, ...]:
    """Give the frames of a traceback, innermost first; of a single one only the frame is kept."""
    text = attrs.get("stack", "")
    return tuple(json.loads(text)) if text.startswith("[") else tuple(filter(None, [attrs.get("frame")]))


def _alone(places: Iterable[tuple[str, int | None, int]]) -> dict[tuple[str, int | None], int]:
    """Give the rank of each place at which a launcher reports one rank."""
    ranked: dict[tuple[str, int | None], list[int]] = {}
    for source, line, rank in places:
        ranked.setdefault((source, line), []).append(rank)
    return {place: ranks[0] for place, ranks in ranked.items() if len(ranks) == 1}


def _rank_of_block(row: dict[str, Any], block: dict[str, Any] | None, of_process: int | None) -> int | None:
    """Give the rank of the torchrun failure block that contains an exit code, else the rank of the process it names."""
    if block is None or block["source"] != row["source"] or _BLOCK_EXIT.match(row["text"] or "") is None:
        return of_process
    return block["rank"] if 0 < row["order"] - block["order"] <= _BLOCK_LINES else None


def _judge(code: str, attrs: dict[str, str], text: str, *, at_end: bool) -> tuple[Weight, str, str] | None:
    role, exception = attrs.get("role", ""), attrs.get("exc", "")
    if role == "benign" or (code != "traceback" and stands_for("python_warning", text)):
        return None
    if code == "traceback":
        return _of_traceback(attrs, text)
    if code in telling("exception"):
        return of_lone_line(exception, attrs.get("msg", ""), ends_log=at_end)
    if code.endswith(EXIT_RECORD):
        return _of_exit(attrs.get("exit_code", ""))
    return of_line(code, attrs, ends_log=at_end)


def _of_traceback(attrs: dict[str, str], text: str) -> tuple[Weight, str, str] | None:
    said = attrs.get("exc", ""), attrs.get("message", "")
    if not said[0]:
        return _of_head(text)
    if "alone" in attrs:
        return of_lone_line(*said, ends_log=True, more=attrs.get("more", ""))
    return of_exception(*said, _stack(attrs), attrs.get("statement", ""), attrs.get("more", ""))


def _of_head(text: str) -> tuple[Weight, str, str]:
    """Judge a traceback without its last line: what the terminal echoed before it tells who began it."""
    if "^C" in text.partition("Traceback")[0]:
        return Weight.STOP, "stopped", "interrupted_by_user"
    return Weight.WRAPPER, "crash", CUT


def _of_exit(code: str) -> tuple[Weight, str, str]:
    """Judge the code in an exit record; one that is no signal's, or an abort's, only says that something failed."""
    meant = _INTERRUPTED.get(code, code)
    signal = signal_of(int(meant)) if meant.removeprefix("-").isdigit() else None
    if signal is not None and signal.way == "asked":
        return Weight.STOP, "stopped", signal.cause
    if signal is not None and signal.way == "killed":
        return Weight.ECHO, "crash", signal.cause
    return Weight.WRAPPER, "crash", NONZERO


def _inner(attrs: dict[str, str]) -> dict[str, str]:
    """Give the attributes of a traceback with those of the deciding exception of its chain.

    The first one does where it is telling: what follows wraps it, or handles it. Where the handling of an own error
    failed by a telling one, as a fallback may, that one does, unless it is only an echo (a file that was closed half
    written); so does what says more than that a peer is gone.
    """
    if "root_exc" not in attrs:
        return attrs
    last = of_exception(attrs.get("exc", ""), attrs.get("message", ""))
    first = of_exception(attrs["root_exc"], attrs.get("root_message", ""))
    fallback = "handling" in attrs and first[1] == "crash" and first[0] in {Weight.OWN, Weight.ECHO}
    fallback = fallback and last[0] > Weight.WRAPPER and last[0] >= first[0]
    says_more = first[0] <= Weight.CLOSED < last[0]
    if first[2] == ANY or ((fallback or says_more) and last[2] != ANY):
        return attrs
    root = {name: attrs.get(f"root_{name}", "") for name in ("exc", "message", "frame", "statement")}
    said = {
        "more": "",
        "stack": attrs.get("root_stack") or attrs.get("stack", ""),
        "told_line": attrs.get("root_line", ""),
    }
    return attrs | root | said
