"""The recording of one device as exact accounts: the state at the end less what the events changed gives the start."""

from __future__ import annotations

import polars as pl
from msgspec import Struct

_ALLOCATED = pl.col("state").str.starts_with("active")
_RESERVED_UP, _RESERVED_DOWN = ("segment_alloc", "segment_map"), ("segment_free", "segment_unmap")


class Accounts(Struct, frozen=True):
    """Bytes at each event of one device, and what ties events to each other and to the blocks at the end.

    `events`: seq, action, addr, size, stack, allocated, reserved (after the event; requested and segment bytes).
    `lives`: one row per recorded allocation: seq, addr, size, stack, end (seq of its release or null), end_stack.
    `freed_before`: releases of blocks whose allocation was not recorded: seq, addr, size.
    `ghosts`: active blocks at the end that the recording never saw: addr, size, stack.
    `blocks`: active blocks at the end: addr, size (requested), stack, with the allocation's stack where it has none.
    """

    events: pl.DataFrame
    lives: pl.DataFrame
    freed_before: pl.DataFrame
    ghosts: pl.DataFrame
    blocks: pl.DataFrame
    start_allocated: int
    start_reserved: int
    allocated: int
    reserved: int
    wrong: tuple[str, ...]


def by_address(rows: pl.DataFrame) -> pl.DataFrame:
    """One row for each address, the last: damaged files repeat addresses, and a join of n with n rows makes n²."""
    return rows.unique("addr", keep="last", maintain_order=True)


def accounts(events: pl.DataFrame, segments: pl.DataFrame, blocks: pl.DataFrame, *, complete: bool) -> Accounts:
    """Close the books of one device; `wrong` says which identity does not hold, as sentences.

    Without the end of the recording (not `complete`) the start cannot be counted back, and is taken as nothing.
    """
    active = blocks.filter(_ALLOCATED).select("addr", "stack", size=pl.coalesce("requested_size", "size"))
    names = set(events["action"].unique().cast(pl.String))
    release = release_of(names)
    moves = _moves(events.filter(pl.col("action").is_in(["alloc", release])), release)
    lives = moves.filter(pl.col("is_alloc")).select("seq", "addr", "size", "stack", "end", "end_stack")
    live = lives.filter(pl.col("end").is_null())
    born = by_address(live.select("addr", born="size", at="stack"))
    held = active.join(born, on="addr", how="left", maintain_order="left")
    ghosts = held.filter(pl.col("born").is_null()).select("addr", "size", "stack")
    change = changes(release)
    allocated, reserved = _total(active["size"]), _total(segments["total_size"])
    up = events.select(a=change[0].sum(), r=change[1].sum()).row(0)
    start = (allocated - int(up[0]), reserved - int(up[1])) if complete else (0, 0)
    lines = events.with_columns(
        allocated=change[0].cum_sum() + start[0], reserved=change[1].cum_sum() + start[1]
    ).select("seq", "action", "addr", "size", "stack", "t_ns", "allocated", "reserved")
    wrong = (*_state_wrong(segments, blocks), *_trace_wrong(moves, live, active, lines, start)) if complete else ()
    return Accounts(
        events=lines,
        lives=lives,
        freed_before=moves.filter(~pl.col("is_alloc") & pl.col("before").is_null()).select("seq", "addr", "size"),
        ghosts=ghosts,
        blocks=held.select("addr", "size", stack=pl.coalesce("stack", "at")),
        start_allocated=start[0],
        start_reserved=start[1],
        allocated=allocated if complete else _last(lines, "allocated"),
        reserved=reserved if complete or reserved else _last(lines, "reserved"),
        wrong=wrong,
    )


def _total(values: pl.Series) -> int:
    return int(values.fill_null(0).sum())


def _last(lines: pl.DataFrame, name: str) -> int:
    return int(lines[name][-1]) if lines.height else 0


def release_of(names: set[str]) -> str:
    """Give the action by which bytes are given back, of the actions that were recorded; the others only announce it."""
    return next((one for one in ("free_completed", "free_requested", "free") if one in names), "free_completed")


def changes(release: str) -> tuple[pl.Expr, pl.Expr]:
    """The change by each event: allocated and reserved bytes."""
    action, size, none = pl.col("action").cast(pl.String), pl.col("size"), pl.lit(0, dtype=pl.Int64)
    allocated = pl.when(action == "alloc").then(size).when(action == release).then(-size).otherwise(none)
    reserved = (
        pl.when(action.is_in(_RESERVED_UP)).then(size).when(action.is_in(_RESERVED_DOWN)).then(-size).otherwise(none)
    )
    return allocated, reserved


def _moves(moves: pl.DataFrame, release: str) -> pl.DataFrame:
    """Allocations and releases in order, each with what came before and after at its address."""
    by_addr = moves.select("seq", "addr", "size", "stack", is_alloc=pl.col("action").cast(pl.String) != release)
    return (
        by_addr.sort("addr", "seq", maintain_order=True)
        .with_columns(
            same=pl.col("addr") == pl.col("addr").shift(-1),
            after=pl.col("addr") == pl.col("addr").shift(1),
            end=pl.col("seq").shift(-1),
            end_stack=pl.col("stack").shift(-1),
            next_is_alloc=pl.col("is_alloc").shift(-1),
            next_size=pl.col("size").shift(-1),
            before=pl.col("is_alloc").shift(1),
        )
        .with_columns(
            *(
                pl.when(pl.col("same")).then(pl.col(name))
                for name in ("end", "end_stack", "next_is_alloc", "next_size")
            ),
            before=pl.when(pl.col("after")).then(pl.col("before")),
        )
        .sort("seq")
    )


def _state_wrong(segments: pl.DataFrame, blocks: pl.DataFrame) -> list[str]:
    """Check the state at the end against itself."""
    sums = blocks.group_by("segment").agg(size=pl.col("size").sum(), active=pl.col("size").filter(_ALLOCATED).sum())
    both = segments.join(sums, left_on="seq", right_on="segment", how="left")
    sizes = both.filter(pl.col("size").fill_null(0) != pl.col("total_size")).height
    either = (pl.col("active").fill_null(0) != pl.col("allocated_size")) & (
        pl.col("active").fill_null(0) != pl.col("active_size")
    )
    known = pl.col("allocated_size").is_not_null() & pl.col("active_size").is_not_null()
    actives = both.filter(known & either).height
    return [
        *([f"the blocks of {sizes} segments do not add up to them"] if sizes else []),
        *([f"the active blocks of {actives} segments do not add up to their active size"] if actives else []),
    ]


def _trace_wrong(
    moves: pl.DataFrame, live: pl.DataFrame, active: pl.DataFrame, lines: pl.DataFrame, start: tuple[int, int]
) -> list[str]:
    """Check the events against each other and against the state at the end."""
    twice = moves.filter(pl.col("next_is_alloc") == pl.col("is_alloc")).height
    sizes = moves.filter(
        pl.col("is_alloc") & pl.col("next_is_alloc").not_() & (pl.col("next_size") != pl.col("size"))
    ).height
    found = live.join(by_address(active.select("addr", ends="size")), on="addr", how="left")
    missing = found.filter(pl.col("ends").is_null()).height
    other = found.filter(pl.col("ends").is_not_null() & (pl.col("ends") != pl.col("size"))).height
    above = lines.filter(pl.col("allocated") > pl.col("reserved")).height
    return [
        *([f"{twice} addresses are taken or given back twice in a row"] if twice else []),
        *([f"{sizes} blocks are given back in another size than they were taken"] if sizes else []),
        *([f"{missing} recorded allocations are live and no active block at the end"] if missing else []),
        *([f"{other} live allocations have another size at the end"] if other else []),
        *(["more was given back than there was"] if min(start) < 0 else []),
        *([f"more is allocated than reserved at {above} events"] if above else []),
    ]
