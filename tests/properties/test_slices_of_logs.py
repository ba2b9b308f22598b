"""A log that is read in slices gives the rows of the log, whatever it prints and wherever it is cut."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from forensics.formats.text import log, slices
from forensics.io.limits import Limits
from forensics.io.reading import Opened, opened_bytes
from forensics.io.slices import Cutting, Slice
from forensics.store.sink import SourceSink

LIMITS = Limits(block_bytes=4096)
CUTTING = Cutting(slices.CUTTING.joints, step_bytes=5000, before_bytes=2500, after_bytes=200, line_bytes=2000)
WINDOWS = slices.Windows(head_bytes=3000, before_bytes=1500)
PLACE = ["seq", "line", "byte", "code", "raw_name", "name", "label"]
HEAD = b"Traceback (most recent call last)"
CALM, RESTARTED, BROKEN, BARS = "calm", "restarted", "broken", "bars"

TRACEBACK = (
    'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\n'
    '  File "b.py", line 9, in g\nValueError: batch {n} is empty\n'
)
DISK = "OSError: [Errno 28] No space left on device (file {n})\n"


def learned(step: int) -> str:
    at = f"00:{step // 60 % 60:02d}:{step % 60:02d}"
    return f"[2026-01-01 {at}] step: {step} | loss: {2 + step % 7 / 10} | lr: 3e-04\n"


def torchtitan(step: int) -> str:
    head = f"[rank0]:[titan] 2026-01-01 00:00:{step % 60:02d},000 - root - INFO - "
    return f"{head}step: {step:2}  loss:  {4 + step % 5 / 8:.4f}  memory: 30.1GiB(40.2%)  tps: 5,120  mfu: 31.0%\n"


def megatron(step: int) -> str:
    head = f" iteration {step:8d}/   10000 | consumed samples: {step * 8:12d} | "
    rest = f"learning rate: 1.0E-04 | lm loss: {6 - step % 9 / 10:.6E} | loss scale: 1.0 | grad norm: 1.234 |\n"
    return f"{head}elapsed time per iteration (ms): 512.3 | {rest}"


def ranked(step: int) -> str:
    return f"[rank{step % 3}]: it {step // 3}: loss=2.{step % 10} gnorm=0.{step % 7}\n"


def with_evaluations(step: int) -> str:
    return learned(step) + (f"evaluation: step {step} val_loss {3 - step % 11 / 10}\n" if step % 9 == 0 else "")


def boxed(step: int) -> str:
    rows = (
        ("rollout/", ""),
        ("   ep_rew_mean", step % 9),
        ("   total_timesteps", step * 64),
        ("   loss", 1 + step % 5),
    )
    return "".join(f"| {key:<18} | {cell:<8} |\n" for key, cell in rows).join(["-" * 33 + "\n"] * 2)


def row_of_a_table(step: int) -> str:
    return f"| {step} | 2.5 |\n"


TRAINERS = (learned, torchtitan, megatron, ranked, with_evaluations, boxed)


def lines(trainer: Callable[[int], str], rng: random.Random, count: int, kinds: set[str]) -> Iterator[str]:
    """A log of so many steps in which things happen now and then."""
    step = 0
    for n in range(count):
        step += 1
        if RESTARTED in kinds and rng.random() < 0.01:
            step = max(step - 40, 1)
        yield trainer(step)
        chance = rng.random()
        if BROKEN in kinds and chance < 0.03:
            yield rng.choice((TRACEBACK, DISK)).format(n=n)
        if BARS in kinds and chance > 0.97:
            yield "".join(f"\r{n % 100:3d}%|##  | {n}/{count} [00:0{at}<01:00, 1.00it/s]" for at in range(3)) + "\n"


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    kinds = {CALM, *draw(st.sets(st.sampled_from((RESTARTED, BROKEN, BARS))))}
    rng = random.Random(draw(st.integers(0, 10_000)))
    text = "".join(lines(draw(st.sampled_from(TRAINERS)), rng, draw(st.integers(150, 400)), kinds))
    data = text.encode()
    if draw(st.booleans()):
        data = data.replace(b"\n", b"\r\n")
    if draw(st.booleans()):
        data = data.replace(b"loss", b"lo\xffss", 3) + b"\xfe\xff half a line"
    return draw(st.sampled_from((b"", b"\xef\xbb\xbf"))) + data


def rows_of(opened: Opened, read: Callable[[SourceSink], object]) -> dict[str, pl.DataFrame]:
    sink = SourceSink(opened.source, LIMITS, budget=opened.budget)
    read(sink)
    return sink.frames()


def in_slices(opened: Opened, parts: tuple[Slice, ...]) -> dict[str, pl.DataFrame]:
    """The rows of a log from those of its slices, put right."""
    states: list[str] = []

    def read(part: Slice) -> Callable[[SourceSink], object]:
        return lambda sink: states.append(slices.read(opened, sink, LIMITS, part, WINDOWS))

    frames = [rows_of(opened, read(part)) for part in parts]
    join = slices.joined(states)
    assert join is not None
    found: dict[str, list[pl.DataFrame]] = {}
    for number, tables in enumerate(frames):
        for table, rows in tables.items():
            changes = join.changes(number, table)
            found.setdefault(table, []).append(join.changed(number, table, rows, 0) if changes else rows)
    return {table: whole for table, parts in found.items() if (whole := pl.concat(parts)).height}


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sort([name for name in PLACE if name in rows.columns], maintain_order=True)


@settings(max_examples=25, deadline=None)
@given(logs())
def test_slices_of_a_log_give_the_rows_of_the_log(data: bytes) -> None:
    opened = opened_bytes("train.log", data, LIMITS)
    parts = slices.cut(opened, {}, CUTTING)
    if not parts:
        return
    whole = rows_of(opened, lambda sink: log.read(opened, sink, LIMITS))
    sliced = in_slices(opened, parts)
    assert sliced.keys() == {table for table, rows in whole.items() if rows.height}
    for table, rows in sliced.items():
        assert_frame_equal(in_order(rows), in_order(whole[table]))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.sampled_from([b"word", b"\n", b"\n", b"\r", b"\x08", b"Traceback (most recent call last)"]), max_size=99
    )
)
def test_slices_follow_one_another_and_know_what_stands_before(words: list[bytes]) -> None:
    data = b"".join(words)
    cutting = Cutting(slices.CUTTING.joints, step_bytes=64, before_bytes=40, after_bytes=9, line_bytes=64)
    parts = slices.cut(opened_bytes("train.log", data), {}, cutting)
    if not parts:
        return
    assert [part.begin for part in parts[1:]] == [part.end for part in parts[:-1]]
    assert (parts[0].begin, parts[-1].end) == (0, len(data))
    for part in parts[1:]:
        before = data[: part.begin]
        assert before.endswith(b"\n")
        assert part.lines_before == before.count(b"\n")
        assert part.breaks_before == before.count(b"\r") + before.count(b"\x08")
        assert HEAD not in data[max(part.begin - 40, 0) : part.begin + 9]


@pytest.mark.parametrize(("form", "within"), [(boxed, False), (row_of_a_table, True)])
def test_no_slice_begins_within_a_box_but_where_all_is_one(*, form: Callable[[int], str], within: bool) -> None:
    data = "".join(map(form, range(1, 2000))).encode()
    parts = slices.cut(opened_bytes("train.log", data, LIMITS), {}, CUTTING)
    assert len(parts) > 2
    assert {data[part.begin : part.begin + 1] == b"|" for part in parts[1:]} == {within}
