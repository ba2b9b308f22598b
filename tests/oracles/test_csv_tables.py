"""Delimited tables against the csv module: every number of every cell, with its step, line and byte."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forensics import pipeline
from forensics.formats.metrics import monitor as monitor_csv
from forensics.formats.metrics import table as metrics_csv
from forensics.formats.rows.delimited import Sizes, rows_of
from forensics.formats.wandb.exports import chart_csv as wandb_chart_csv
from forensics.formats.wandb.exports import history_csv as wandb_history_csv
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink

from .tables import BATCH_ROWS, BLOCK_BYTES, NUMBER, classed, read, rows, shown

pytestmark = pytest.mark.usefixtures("only_owned_columns")
TEXT = st.text(st.sampled_from("ab\"',;\t \nü5"), max_size=8)
CELL = st.one_of(NUMBER.map(repr), st.just(""), st.sampled_from(["nan", "NaN", "inf", "-Infinity", "1e999"]), TEXT)
STEP = st.integers(0, 9) | st.integers(-(1 << 63), (1 << 63) - 1)
Table = list[tuple[int, list[str]]]


def written(header: Sequence[str], table: Table, delimiter: str, end: str) -> tuple[bytes, list[int], list[int]]:
    """The text that the csv module writes, and the line and byte at which each row below the header begins."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerow(header)
    lines, offsets = [], []
    for step, cells in table:
        lines.append(text.getvalue().count("\n") + 1)
        offsets.append(len(text.getvalue().encode()))
        writer.writerow([step, *cells])
    return text.getvalue().encode(), lines, offsets


def by_csv(data: bytes, delimiter: str) -> Iterator[list[str]]:
    yield from csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=delimiter)


def as_number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


@given(
    table=st.lists(st.tuples(STEP, st.lists(CELL, min_size=3, max_size=3)), min_size=1, max_size=40),
    delimiter=st.sampled_from([",", "\t", ";"]),
    end=st.sampled_from(["\n", "\r\n"]),
    bom=st.booleans(),
    batch_rows=BATCH_ROWS,
    block_bytes=BLOCK_BYTES,
)
def test_every_number_of_a_table_is_the_one_that_the_csv_module_gives(
    *, table: Table, delimiter: str, end: str, bom: bool, batch_rows: int, block_bytes: int
) -> None:
    data, lines, offsets = written(["step", "m0", "m1", "m2"], table, delimiter, end)
    data = b"\xef\xbb\xbf" + data if bom else data
    sink = read(metrics_csv.read, "m.csv", data, batch_rows=batch_rows, block_bytes=block_bytes)
    _, *peer = by_csv(data, delimiter)
    expected = [
        (seq, int(cells[0]), lines[seq], offsets[seq] + 3 * bom, name, shown(value), classed(value))
        for seq, cells in enumerate(peer)
        for name, cell in zip(("m0", "m1", "m2"), cells[1:], strict=True)
        if (value := as_number(cell)) is not None
    ]
    assert rows(sink, "seq", "step", "line", "byte", "raw_name", "value", "value_class") == expected
    assert sink.issues == []
    assert sink.coverage("x").skipped_bytes == 0


@given(
    st.lists(st.text(st.sampled_from('a",\n'), max_size=12), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
)
@example(['5" disk', "1,2", '6" disk'], "\n")
@example(['a"b,"', 'a"b,"', '"'], "\n")
def test_the_lines_of_a_row_are_those_that_the_csv_module_joins(parts: list[str], end: str) -> None:
    """Any text, not only what a writer of tables makes; up to a quote that never closes."""
    text = end.join("\n".join(parts).split("\n"))
    if _is_open_at_its_end(text):
        text += '"'
    if _is_open_at_its_end(text):
        return
    found = [row.cells for row in rows_of(opened_bytes("t.csv", text.encode()))]
    peer = csv.reader(io.StringIO(text, newline=""))
    assert found == [[cell.replace("\r\n", "\n") for cell in row] for row in peer if row]


def _is_open_at_its_end(text: str) -> bool:
    return list(csv.reader(io.StringIO(f"{text}\nend", newline="")))[-1] != ["end"]


@pytest.mark.parametrize("lines", [150, 250])
def test_a_quote_that_does_not_close_within_the_bounds_is_a_letter_and_is_stated(lines: int) -> None:
    data = b'step,loss\n1,0.5\n2,"0.75\n' + b"".join(b"%d,0.25\n" % i for i in range(3, lines)) + b'999,"\n'
    sink = read(metrics_csv.read, "m.csv", data)
    closes = lines < 200
    assert [(issue.code, issue.line) for issue in sink.issues] == (
        [] if closes else [("quote-open", 3), ("quote-open", lines + 1)]
    )
    steps = [1] if closes else list(range(1, lines))
    assert [step for step, _ in rows(sink, "step", "value")] == steps
    if not closes:
        assert rows(sink, "value")[1] == ("0.75",)


def test_cells_behind_an_open_quote_keep_their_columns() -> None:
    data = b'step,a,b\n1,"0.5,0.75\n' + b"2,1,2\n" * 300
    assert rows(read(metrics_csv.read, "m.csv", data), "raw_name", "value")[:2] == [("a", "0.5"), ("b", "0.75")]


def test_looking_behind_quotes_is_paid_for_by_the_file() -> None:
    """Every line opens a quote that the next one does not close: what is looked at grows with the file, no faster."""
    from forensics.formats.rows import delimited as csv_rows  # noqa: PLC0415

    looked = []
    for count in (20_000, 40_000):
        line = b'a"b,"\n'
        lines = csv_rows._Lines(opened_bytes("t.csv", line * count).blocks())
        assert sum(1 for _ in csv_rows._rows(lines, ",", None)) == count
        looked.append(lines.looked_bytes / (len(line) * count))
    assert max(looked) < 20
    assert looked[1] < looked[0]


PIECE = st.sampled_from(
    [*map(str, range(12)), "0.5", "-1e-3", "nan", "-inf", "1e999", "x5", "5x", "1_0", " 7 ", "\r", "", "-", "\u0661",
     "9007199254740993", "-9223372036854775808", "9223372036854775808", "1e19", "0" * 70, "1750000000.25", "1.75e12",
     "step", "# step", "loss", "train", "val", '"', "\0", "\x1c", "\t", "\u635f", "\ufeff", *",,,,,,;", *"\n\n\n\n\n\n"]
)  # fmt: skip
HEADERS = (
    "step,loss,gn", "step,loss,loss,config/lr,config/lr", "epoch,time,loss,lr", ",step,a,b", "epoch,step,val_loss",
    "timestamp,step,tokens_per_sec,x", "step;a;b", "step\ta\tb", '"step","a b",c', "损失,step,a", "loss,epoch",
    "epoch,batch,loss", "step,phase,loss,acc", "epoch,iter,phase,loss",
)  # fmt: skip


@given(
    header=st.sampled_from(HEADERS),
    rows=st.lists(st.lists(PIECE, min_size=1, max_size=9).map("".join), max_size=12),
    regular=st.lists(st.lists(NUMBER.map(repr) | STEP.map(str) | PIECE, min_size=3, max_size=5), max_size=12),
    most_bytes=st.sampled_from([1, 40, 4096]),
    least_lines=st.integers(1, 4),
    batch_rows=BATCH_ROWS,
    block_bytes=BLOCK_BYTES,
)
@example("step\ta\tb", ["\t\t", " \t \t\r", "5\t\t7"], [], 4096, 1, 5, 4096)
@example("step,a", ["x^", "x^,1", "5,1"], [], 4096, 1, 5, 4096)
@example("step,loss,gn", ["5,1,2", "3,1,", "4,,2", "step,loss", "1,2", "7,8,9"], [], 4096, 1, 5, 4096)
@example("epoch,batch,loss", ["1,2,5", "2,1,4", "2,2,3", "1,1,2"], [], 4096, 1, 5, 4096)
@example("epoch,iter,phase,loss", ["1,2,train,5", "1,1,val,4", "2,1,train,3", "2,1,odd,2"], [], 4096, 1, 5, 4096)
@example("step,loss,gn", ["8,,2", "5,1,", "6,,2", "9,1,1", "3,1", ",4"], [], 4096, 2, 5, 4096)
def test_columns_of_plain_lines_are_the_rows_that_are_read_one_by_one(  # noqa: PLR0917 - `example` gives them by place
    header: str,
    rows: list[str],
    regular: list[list[str]],
    most_bytes: int,
    least_lines: int,
    batch_rows: int,
    block_bytes: int,
) -> None:
    """Damage of every kind between them: each point, place, attempt, issue and byte of the account is the same."""
    delimiter = next(mark for mark in ",;\t" if mark in header)
    first = ["val" if name == "phase" else "1" for name in header.split(delimiter)]
    lines = [header, delimiter.join(first), *rows, *map(delimiter.join, regular)]
    data = "\n".join(lines).encode()
    sizes = Sizes(least_bytes=1, most_bytes=most_bytes, least_lines=least_lines)
    one_by_one = Sizes(least_bytes=len(data) + 1)
    bounds = {"batch_rows": batch_rows, "block_bytes": block_bytes}
    ways = [read(partial(metrics_csv.read, sizes=way), "m.csv", data, **bounds) for way in (sizes, one_by_one)]
    columns, expected = [(s.issues, s.coverage("x"), _facts(s), rows_of_all(s)) for s in ways]
    assert columns == expected


def _facts(sink: SourceSink) -> object:
    frame = sink.frames().get("facts")
    return None if frame is None else frame.rows()


def rows_of_all(sink: SourceSink) -> list[tuple[object, ...]]:
    frame = sink.frames().get("metrics")
    return [] if frame is None else [tuple(map(shown, row)) for row in frame.rows()]


def test_a_header_longer_than_the_head_is_read_whole() -> None:
    names = [f"layer_{i:04d}/weights/gradient_norm" for i in range(4000)]
    data = (",".join([*names, "step"]) + "\n" + ",".join(["0.5"] * 4000 + ["3"]) + "\n").encode()
    sink = read(metrics_csv.read, "m.csv", data)
    assert rows(sink, "step", "raw_name") == [(3, name) for name in names]


@given(st.lists(st.lists(st.just("") | NUMBER.map(repr), min_size=2, max_size=2), min_size=1, max_size=40), BATCH_ROWS)
def test_every_cell_of_a_wandb_history_is_read(cells: list[list[str]], batch_rows: int) -> None:
    data, lines, offsets = written(["_step", "m0", "m1"], list(enumerate(cells)), ",", "\n")
    sink = read(wandb_history_csv.read, "h.csv", data, batch_rows=batch_rows)
    assert rows(sink, "step", "line", "byte", "raw_name", "value") == [
        (step, lines[step], offsets[step], name, repr(float(cell)))
        for step, row in enumerate(cells)
        for name, cell in zip(("m0", "m1"), row, strict=True)
        if cell
    ]


@given(st.lists(st.lists(st.just("") | NUMBER.map(repr), min_size=2, max_size=2), min_size=1, max_size=40), BATCH_ROWS)
def test_every_point_of_a_wandb_chart_is_read(cells: list[list[str]], batch_rows: int) -> None:
    names = ["run-a - m0", "run-b - m0"]
    data, lines, offsets = written(["Step", *names], list(enumerate(cells)), ",", "\n")
    sink = read(wandb_chart_csv.read, "c.csv", data, batch_rows=batch_rows)
    assert rows(sink, "step", "line", "byte", "raw_name", "value") == [
        (step, lines[step], offsets[step], name, repr(float(cell)))
        for step, row in enumerate(cells)
        for name, cell in zip(names, row, strict=True)
        if cell
    ]


@given(st.lists(st.tuples(NUMBER, st.integers(1, 999)), min_size=1, max_size=40), BATCH_ROWS)
def test_every_episode_of_a_monitor_is_read(episodes: list[tuple[float, int]], batch_rows: int) -> None:
    begin = '#{"t_start": 1750000000.0, "env_id": "x"}\n'
    data, _, _ = written(["l", "r"], [(length, [repr(reward)]) for reward, length in episodes], ",", "\n")
    body = data.replace(b"l,r", b"l,r,t").decode().splitlines()
    text = begin + "\n".join([body[0], *(f"{row},{seq}.5" for seq, row in enumerate(body[1:]))]) + "\n"
    sink = read(monitor_csv.read, "monitor.csv", text.encode(), batch_rows=batch_rows)
    expected = []
    at = len(begin) + len("l,r,t\n")
    for seq, (reward, length) in enumerate(episodes):
        t_ns = 1_750_000_000 * 10**9 + seq * 10**9 + 500_000_000
        place = (seq + 1, t_ns, seq + 3, at)
        expected += [(*place, "l", repr(float(length))), (*place, "r", repr(reward))]
        at += len(f"{length},{reward!r},{seq}.5\n")
    assert rows(sink, "step", "t_ns", "line", "byte", "raw_name", "value") == expected


@pytest.mark.parametrize("stored_on_disk", [False, True])
def test_half_a_million_points_of_a_table(tmp_path: Path, true_size: None, stored_on_disk: bool) -> None:
    del true_size
    path = tmp_path / "run" / "metrics.csv"
    path.parent.mkdir()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "m0", "m1", "m2"])
        writer.writerows([i, i / 7, "nan" if i == 123_456 else -i / 3, "" if i % 5 else i] for i in range(250_000))
    run = pipeline.ingest_run(path.parent, store=tmp_path / "store" if stored_on_disk else None)
    read_back = run.collect("metrics").select("step", "line", "raw_name", "value").rows()
    with path.open(newline="") as file:
        _, *peer = csv.reader(file)
    expected = [
        (int(row[0]), number, name, float(cell))
        for number, row in enumerate(peer, start=2)
        for name, cell in zip(("m0", "m1", "m2"), row[1:], strict=True)
        if cell
    ]
    assert len(expected) == 550_000
    assert [tuple(map(shown, row)) for row in read_back] == [tuple(map(shown, row)) for row in expected]
