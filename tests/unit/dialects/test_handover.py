"""Parts of a log that are read apart: restarts and floods of the whole follow from what the parts say."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest

from forensics.dialects import _lines, prefixes
from forensics.dialects.events import floods, heads, signatures, tracebacks
from forensics.dialects.events.floods import Flood
from forensics.dialects.handover import NO_RANK, Drained, Handover, Stream, joined
from forensics.values import replace

ROWS = pl.DataFrame({"seq": [10, 11, 12], "rank": pl.Series([None] * 3, dtype=pl.Int32), "attempt": [0, 0, 0]})


def stream(*steps: int, at: int | None = 0, restarts: int = 0, rank: int = NO_RANK, kind: int = 0) -> Stream:
    return Stream(rank, kind if steps else None, restarts, at if steps else None, steps, steps)


def part(*streams: Stream, table: str = "metrics") -> Handover:
    return Handover(streams=(streams,), drained=(Drained(table, 0, 3),))


def attempts(first: Handover, *others: Handover, rows: pl.DataFrame = ROWS, table: str = "metrics") -> list[int]:
    """The attempts of three rows of the last part."""
    whole = joined([first, *others])
    assert whole is not None
    rows = rows.with_columns(pl.col("attempt").cast(pl.Int32))
    last = len(others)
    return (whole.changed(last, table, rows, 0) if whole.changes(last, table) else rows)["attempt"].to_list()


def test_a_part_goes_on_in_the_attempt_in_which_the_one_before_it_ends() -> None:
    assert attempts(part(stream(1, 2, 1, 2, restarts=1)), part(stream(3, 4, at=10))) == [1, 1, 1]
    assert attempts(part(stream(1, 2)), part(stream(3, 4, at=10))) == [0, 0, 0]


def test_a_step_that_falls_from_one_part_to_the_next_is_a_restart_at_its_line() -> None:
    assert attempts(part(stream(1, 2, 3)), part(stream(1, 2, at=11))) == [0, 1, 1]


def test_a_part_without_a_step_keeps_what_was_before_it() -> None:
    parts = part(stream(5, 6)), part(stream()), part(stream(2, 3, at=10))
    assert attempts(*parts) == [1, 1, 1]


def test_each_rank_counts_its_own_restarts_where_rows_name_it() -> None:
    first = part(stream(1, 2, 1, restarts=1, rank=0), stream(1, 2, rank=1))
    second = part(stream(2, at=10, rank=0), stream(3, at=11, rank=1))
    ranks = ROWS.with_columns(rank=pl.Series([0, 1, 0], dtype=pl.Int32))
    assert attempts(first, second, rows=ranks) == [1, 0, 1]
    assert joined([first, replace(second, ranked=False)]) is None
    assert joined([first, part(*second.streams[0], table="checkpoints")]) is None


def test_rows_count_by_the_dialect_that_gave_them() -> None:
    streams = ((stream(1, 2, 1, restarts=1),), (stream(7, 8),))
    first = Handover(streams=streams)
    drained = (Drained("metrics", 1, 2), Drained("events", 0, 9), Drained("metrics", 0, 1))
    second = Handover(streams=((stream(2, at=10),), (stream(9, at=10),)), drained=drained)
    assert attempts(first, second) == [0, 0, 1]


def test_rows_are_put_right_in_pieces() -> None:
    whole = joined([part(stream(1, 2, 1, restarts=1)), part(stream(2, at=10))])
    assert whole is not None
    rows = ROWS.with_columns(pl.col("attempt").cast(pl.Int32))
    pieces = [whole.changed(1, "metrics", rows[at : at + 1], at)["attempt"].item() for at in range(3)]
    assert pieces == [1, 1, 1]


@pytest.mark.parametrize(
    "parts",
    [
        [part(stream(1, 2)), part(stream(3, kind=1, at=10))],
        [replace(part(), tracebacks=tracebacks.MOST), replace(part(), tracebacks=1)],
        [replace(part(), heads=(heads.MOST,)), replace(part(), heads=(1,))],
        [part(), replace(part(), ends=False)],
    ],
    ids=["restarts are counted by another line", "tracebacks", "heads", "the last part is blank"],
)
def test_parts_that_do_not_fit_together_are_read_as_one(parts: list[Handover]) -> None:
    assert joined(parts) is None


@pytest.mark.parametrize(
    "parts",
    [
        [part(stream(1, 2)), part(stream(3, at=10))],
        [replace(part(), tracebacks=tracebacks.MOST - 1), replace(part(), tracebacks=1)],
        [replace(part(), heads=(heads.MOST - 1,)), replace(part(), heads=(1,))],
        [replace(part(), ends=False), part()],
    ],
)
def test_parts_at_the_limit_fit(parts: list[Handover]) -> None:
    assert joined(parts) is not None


def lines(count: int, first: int = 0) -> list[str]:
    """Complaints of a few ranks, and of a new one now and then."""
    said = "OSError: [Errno 28] No space left on device"
    ranks = (n // 40 + 8 if n % 40 == 39 else n % 5 for n in range(first, first + count))
    return [f"[rank{rank}]: {said}" if rank != 4 else said for rank in ranks]


def heard(texts: list[str], first_seq: int = 0) -> Flood:
    scanner = signatures.Scanner()
    cut = _lines.Cut("\n".join(texts).encode(), first_seq=first_seq)
    scanner.feed(prefixes.strip(cut.select(signatures.pattern())))
    return next(flood for flood in scanner.floods() if flood.code == "enospc")


def places(flood: Flood) -> list[tuple[int, int | None]]:
    return [(hit.seq, hit.rank) for hit in flood.kept]


@pytest.mark.parametrize("cuts", [(100,), (199,), (200,), (201,), (30, 60, 90, 250, 251), (600, 640), (10, 690)])
def test_what_is_kept_of_a_flood_follows_from_what_is_kept_of_its_parts(cuts: tuple[int, ...]) -> None:
    every = lines(700)
    whole = heard(every)
    edges = (0, *cuts, len(every))
    apart = floods.joined(heard(every[a:b], a) for a, b in pairwise(edges))
    assert places(apart) == places(whole)
    assert (apart.count, apart.left_out) == (whole.count, whole.left_out)
    assert whole.left_out == len(every) - len(whole.kept) > 400


def test_what_the_flood_takes_is_no_event_of_a_part_any_more() -> None:
    every = lines(500)
    parts = [Handover(floods=(heard(every[a : a + 250], a),)) for a in (0, 250)]
    whole = joined(parts)
    assert whole is not None
    seqs = [hit.seq for hit in parts[1].floods[0].kept]
    events = pl.DataFrame({"code": ["enospc"] * len(seqs) + ["other"], "seq": [*seqs, seqs[0]]})
    left = whole.changed(1, "events", events, 0)
    assert left.height == events.height - len(whole.taken[1]) > 50
    assert "other" in left["code"].to_list()
    assert not whole.changes(1, "metrics")
