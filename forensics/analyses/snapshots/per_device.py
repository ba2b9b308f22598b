"""Memory snapshots as values: one per file and device, with exact accounting, fragmentation, leak sites and growth.

The rules, `forensics memory` and the reports read these; none of them touches the tables of a snapshot itself.
A stack is given innermost frame first, each frame as `file:line function`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import polars as pl
from msgspec import Struct

from forensics.analyses.snapshots._events import Accounts, accounts
from forensics.analyses.snapshots._shares import live_shares, peak_of, shares_at
from forensics.analyses.snapshots._stacks import Known, known_stacks, stack_of
from forensics.analyses.snapshots._steps import steps_of
from forensics.analyses.snapshots._values import Growth, Leak, Oom, Pool, Share, Snapshot, Stack, site_of
from forensics.analyses.snapshots.leaks import leaks_of
from forensics.store.run import Run, derived

__all__ = ["Growth", "Leak", "Oom", "Pool", "Share", "Snapshot", "Stack", "grown", "site_of", "snapshots"]
_PREFIX = "memory_snapshot."
#: Recordings are bounded by round numbers of entries; fewer events than this are not taken for a full ring.
_RING = 10_000
_ACTIVE = pl.col("state").str.starts_with("active")


@derived
def snapshots(run: Run) -> tuple[Snapshot, ...]:
    """Every memory snapshot of a run, one for each device that it says something of, by source and device."""
    found: list[Snapshot] = []
    tables = [run.scan(table) for table in ("allocs", "segments") if table in run.frames]
    named = (rows.select("source").unique().collect()["source"] for rows in tables)
    for source in sorted(set[str]().union(*named)):
        tables = _tables(run, source)
        rank = run.scan("sources").filter(pl.col("source") == source).select(pl.col("rank").first()).collect().item()
        devices = {*tables.events["device"].fill_null(0).unique(), *tables.segments["device"].fill_null(0).unique()}
        found += [_snapshot(tables, source, device, rank) for device in sorted(devices)]
    return tuple(found)


# Two snapshots of one run: the growth between them, by stack.


def grown(base: Snapshot, cand: Snapshot, *, steps: int | None = None) -> tuple[Growth, ...]:
    """Live bytes of each stack in `cand` beyond `base`, the largest first; negative growth is left out.

    `steps` is the number of steps between the two, when it is known.
    """
    before, after = _held(base), _held(cand)
    found = [
        Growth(stack, size - before.get(stack, (0, 0))[0], count - before.get(stack, (0, 0))[1])
        for stack, (size, count) in after.items()
        if size > before.get(stack, (0, 0))[0]
    ]
    found.sort(key=lambda g: (-g.bytes, g.stack))
    if steps:
        found = [Growth(g.stack, g.bytes, g.count, g.bytes / steps) for g in found]
    return tuple(found)


def _held(snapshot: Snapshot) -> dict[Stack, tuple[int, int]]:
    held: dict[Stack, tuple[int, int]] = {}
    for share in snapshot.live_by_stack:
        size, count = held.get(share.stack, (0, 0))
        held[share.stack] = size + share.bytes, count + share.count
    return held


# From the tables of memory snapshots to their values: one per source and device, with a verdict on the data.


class _Tables(Struct, frozen=True):
    """The tables of one source, and its own totals."""

    events: pl.DataFrame
    segments: pl.DataFrame
    blocks: pl.DataFrame
    annotations: pl.DataFrame
    known: Mapping[int, Known]
    told: Mapping[str, object]


def _tables(run: Run, source: str) -> _Tables:
    mine = pl.col("source") == source
    columns = ("seq", "device", "t_ns", "action", "addr", "size", "stack", "device_free")
    return _Tables(
        events=run.scan("allocs").filter(mine).select(columns).sort("seq").collect(),
        segments=run.scan("segments").filter(mine).collect(),
        blocks=run.scan("blocks").filter(mine).collect(),
        annotations=run.scan("annotations").filter(mine).collect(),
        known=known_stacks(run, source),
        told=_told(run.scan("facts").filter(mine & pl.col("key").str.starts_with(_PREFIX)).collect()),
    )


def _told(facts: pl.DataFrame) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in facts.select("key", "value").iter_rows():
        try:
            found[key.removeprefix(_PREFIX)] = json.loads(value)
        except (TypeError, ValueError):
            continue
    return found


def _snapshot(tables: _Tables, source: str, device: int, rank: int | None) -> Snapshot:
    here = pl.col("device").fill_null(0) == device
    events = tables.events.filter(here)
    segments, blocks = tables.segments.filter(here), tables.blocks.filter(here)
    complete = tables.told.get("complete") is not False
    books = accounts(events, segments, blocks, complete=complete)
    quality, notes = _quality(tables, books, device, complete=complete)
    steps = steps_of(books, tables.annotations.filter(pl.col("device").fill_null(device) == device), tables.known)
    seq, peak = peak_of(books)
    trusted = quality != "inconsistent"
    unreleasable, largest = free_of(segments, blocks)
    times = books.events["t_ns"].drop_nulls()
    at_peak = (
        books.events.filter(pl.col("seq") == seq)["reserved"] if seq is not None else pl.Series([], dtype=pl.Int64)
    )
    reserved_at_peak = int(at_peak[0]) if at_peak.len() else books.start_reserved or books.reserved
    expandable = tables.told.get("allocator_settings.expandable_segments")
    live = live_shares(books, tables.known)
    return Snapshot(
        source=source,
        device=device,
        rank=rank,
        quality=quality,
        notes=notes,
        events=books.events.height,
        start_allocated_bytes=books.start_allocated,
        start_reserved_bytes=books.start_reserved,
        allocated_bytes=books.allocated,
        reserved_bytes=books.reserved,
        peak_bytes=peak,
        gap_bytes=reserved_at_peak - peak,
        unreleasable_bytes=unreleasable,
        largest_piece_bytes=largest,
        fragmentation=unreleasable / books.reserved if books.reserved else 0.0,
        scatter=1 - largest / unreleasable if unreleasable else 0.0,
        expandable=expandable if isinstance(expandable, bool) else _mapped(segments, events),
        ooms=events.filter(pl.col("action") == "oom").height,
        oom=_oom(events, tables.known),
        stacked_events=int((events["stack"].fill_null(-1).is_in(list(tables.known))).sum()),
        steps=steps.count if steps.whole else 0,
        end_t_ns=int(times[-1]) if times.len() else None,
        leaks=leaks_of(books, tables.known, steps) if trusted else (),
        peak_by_stack=(shares_at(books, tables.known, seq) if books.events.height else live) if trusted else (),
        live_by_stack=live,
        pools=pools_of(segments, blocks),
    )


def _oom(events: pl.DataFrame, known: Mapping[int, Known]) -> Oom | None:
    """Give the last out-of-memory event."""
    found = events.filter(pl.col("action") == "oom").tail(1)
    if found.height == 0:
        return None
    row = found.row(0, named=True)
    after = events.filter((pl.col("seq") > row["seq"]) & (pl.col("action") != "snapshot")).height
    return Oom(row["seq"], row["t_ns"], row["size"], row["device_free"], stack_of(known, row["stack"]).frames, after)


def _mapped(segments: pl.DataFrame, events: pl.DataFrame) -> bool | None:
    """Whether segments are expandable where the settings are not in the file: some are, or none says that it is not."""
    if events.filter(pl.col("action") == "segment_map").height or segments["is_expandable"].any():
        return True
    return False if segments["is_expandable"].drop_nulls().len() else None


def _quality(tables: _Tables, books: Accounts, device: int, *, complete: bool) -> tuple[str, tuple[str, ...]]:
    notes = [*books.wrong]
    real = books.events.filter(pl.col("action") != "snapshot")
    wrapped = _wrapped(tables.told, real.height, books.events.height, device)
    if real.height == 0:
        notes.append(
            "no events: the history was switched on with the snapshot itself, off, or cleared"
            if tables.told.get("has_trace")
            else "no events: the file holds the state alone"
        )
    else:
        notes += _gaps(books, real, tables.known)
    if wrapped:
        notes.append(f"the recording is full at {real.height} events: {wrapped}")
    if not complete:
        notes.append("the file is cut: the recording has no end to count back from")
    kind = (
        "inconsistent" if books.wrong
        else "partial" if not complete
        else "state only" if real.height == 0
        else "wrapped" if wrapped
        else "exact"
    )  # fmt: skip
    return kind, tuple(notes)


def _wrapped(told: Mapping[str, object], real: int, all_events: int, device: int) -> str:
    over, most = (_of_device(told.get(f"trace_alloc_{name}"), device) for name in ("overflowed", "max_entries"))
    if over is True:
        return "older events were overwritten"
    if over is None and isinstance(most, int) and most > 0 and most in (real, all_events):
        return "it holds as many as it may, so older events were overwritten"
    round_number = any(n >= _RING and (n % _RING == 0 or n & (n - 1) == 0) for n in (real, all_events))
    if over is None and most is None and round_number:
        return "a round number, so older events were probably overwritten"
    return ""


def _of_device(value: object, device: int) -> object:
    if isinstance(value, list):
        return value[device] if device < len(value) else None  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]  # JSON
    return value


def _gaps(books: Accounts, real: pl.DataFrame, known: Mapping[int, Known]) -> list[str]:
    """Name the missing parts of the recording, and why."""
    bare = real.height - int(real["stack"].fill_null(-1).is_in(list(known)).sum())
    notes: list[str] = []
    if books.ghosts.height:
        notes.append(f"{books.ghosts.height} active blocks are older than the recording")
    if books.freed_before.height:
        notes.append(f"{books.freed_before.height} blocks were given back whose allocation is older than the recording")
    names = set(real["action"].unique().cast(pl.String))
    if "alloc" in names and not names & {"free_completed", "free_requested", "free"}:
        notes.append("no frees: they were left out on purpose (skip_actions), or nothing was freed")
    if bare == real.height:
        notes.append("no event has a stack: the history was recorded without context")
    elif bare:
        notes.append(
            f"{bare} of {real.height} events have no stack: from threads without Python frames, such as backward"
        )
    return notes


# Free memory of one device at the end of a recording: what empty_cache cannot give back, and the memory pools.


def free_of(segments: pl.DataFrame, blocks: pl.DataFrame) -> tuple[int, int]:
    """Bytes of free blocks in segments that an active block keeps, and of the largest of them.

    Those of expandable segments unmap page by page and count as releasable.
    """
    kept = blocks.filter(_ACTIVE)["segment"].unique()
    expandable = segments.filter(pl.col("is_expandable"))["seq"]
    free = blocks.filter(pl.col("state") == "inactive")
    stuck = free.filter(pl.col("segment").is_in(kept) & ~pl.col("segment").is_in(expandable))["size"]
    return int(stuck.sum()), int(stuck.max() or 0)  # pyright: ignore[reportArgumentType]  # a column of integers


def pools_of(segments: pl.DataFrame, blocks: pl.DataFrame) -> tuple[Pool, ...]:
    """Reserved and active bytes by pool, the default pool first; where no pool is named all is the default pool."""
    active = blocks.filter(_ACTIVE).group_by("segment").agg(active=pl.col("size").sum())
    rows = (
        segments.join(active, left_on="seq", right_on="segment", how="left")
        .group_by(pl.col("pool_owner").fill_null(0), pl.col("pool").fill_null(0))
        .agg(reserved=pl.col("total_size").sum(), active=pl.col("active").fill_null(0).sum())
        .sort("pool_owner", "pool")
    )
    return tuple(Pool((a, b), reserved, held) for a, b, reserved, held in rows.iter_rows())
