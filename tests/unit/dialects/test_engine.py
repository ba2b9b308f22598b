"""The engine on small made-up dialects: numbers, prefixes, steps, restarts, segments."""

from __future__ import annotations

import json
import math
import re

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from forensics.dialects import _layouts, _lines, _numbers, _times, prefixes
from forensics.dialects.clocks import Calendar
from forensics.dialects.engine import Matcher, parse_text
from forensics.dialects.spec import Dialect, Line, N, Name

KV = Dialect(
    "toy",
    "Toy",
    lines=(
        Line("metrics", "it ", r"^it (?P<step>\d+): (?P<tail>.+)$", tail="eq"),
        Line("saved", "wrote ", r"wrote (?P<path>\S+) at (?P<step>\d+)"),
        Line("nan", "bad loss", r"bad loss at (?P<step>\d+), last (?P<last>\S+)", step_offset=1),
    ),
)


def values(text: str | bytes, dialect: Dialect = KV) -> list[tuple[int | None, str, float]]:
    return parse_text(dialect, text)["metrics"].select("step", "name", "value").rows()


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("1.5", 1.5),
        ("1,234,567", 1234567.0),
        ("3.0E-04", 3e-4),
        ("12k", 12e3),
        ("4.5M", 4.5e6),
        ("2B", 2e9),
        ("-inf", float("-inf")),
        ("Infinity", float("inf")),
        ("infE", float("inf")),
        (".5", 0.5),
        ("-1e-5", -1e-5),
    ],
)
def test_a_printed_number_is_the_number_it_means(printed: str, value: float) -> None:
    assert _numbers.floats(pl.Series([printed, None])).to_list() == [value, None]


def test_nan_in_any_case_stays_nan_and_words_become_null() -> None:
    read = _numbers.floats(pl.Series(["nan", "NaN", "NAN", "none", "--"]))
    assert read.is_nan().to_list() == [True, True, True, None, None]


def test_what_python_prints_of_nan_with_an_exponent_is_nan_and_a_level_is_no_infinity() -> None:
    told = values(f"it 3: loss={float('nan'):.6E} gnorm={float('inf'):E} level=INFO")
    assert [(name, value) for _, name, value in told[1:]] == [("grad_norm", float("inf"))]
    assert told[0][1] == "loss"
    assert math.isnan(told[0][2])


def test_counts_are_whole_numbers() -> None:
    assert _numbers.integers(pl.Series(["1,000", "7", "12.0", "nan", "x"])).to_list() == [1000, 7, 12, None, None]


def test_a_tail_gives_one_row_for_each_key_in_printed_order() -> None:
    assert values("it 3: loss=2.5 | tok/s=1,500 | gnorm=0.5\n") == [
        (3, "loss", 2.5),
        (3, "tokens_per_sec", 1500.0),
        (3, "grad_norm", 0.5),
    ]


def test_a_key_that_the_dialect_drops_gives_no_row_and_a_scale_is_applied() -> None:
    line = Line(
        "metrics",
        "it ",
        r"^it (?P<step>\d+): (?P<tail>.+)$",
        tail="eq",
        names={"ms": Name("step_time_s", 0.001), "x": None},
    )
    assert values("it 1: ms=250 x=3", Dialect("t", "T", (line,))) == [(1, "step_time_s", 0.25)]


def test_optional_groups_that_are_absent_give_no_row() -> None:
    line = Line("metrics", "it ", rf"^it (?P<step>\d+) loss (?P<loss>{N})(?: lr (?P<lr>{N}))?")
    assert values("it 1 loss 2.0 lr 0.1\nit 2 loss nan\n", Dialect("t", "T", (line,)))[:2] == [
        (1, "loss", 2.0),
        (1, "lr", 0.1),
    ]


def test_each_carriage_return_and_backspace_begins_a_segment_but_lines_count_newlines() -> None:
    rows = parse_text(KV, b"bar 1%\rit 1: loss=4\rit 2: loss=3\n\x08\x08\x08it 3: loss=2\n")["metrics"]
    assert rows.select("line", "byte", "step").rows() == [(1, 7, 1), (1, 20, 2), (2, 36, 3)]
    assert rows["seq"].is_sorted()


def test_lines_with_windows_ends_keep_their_numbers() -> None:
    rows = parse_text(KV, b"hello\r\nit 1: loss=4\r\nit 2: loss=3\r\n")["metrics"]
    assert rows.select("line", "value").rows() == [(2, 4.0), (3, 3.0)]


def test_bytes_that_are_not_unicode_do_not_cost_their_line_or_move_the_next() -> None:
    rows = parse_text(KV, b"\xe2\x96 bar \xff\xfe\nit 1: loss=4 | na\xefve=2\nit 2: loss=3\n")["metrics"]
    assert rows.select("line", "byte", "step", "name").rows()[-1] == (3, 33, 2, "loss")
    assert _lines.repaired(b"a\xff\xe2\x96\xc3\xa9") == b"a???" + b"\xc3\xa9"


def test_colours_are_removed_before_matching() -> None:
    assert values("\x1b[32mit 5:\x1b[0m \x1b[1mloss=1.5\x1b[0m\n") == [(5, "loss", 1.5)]


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("[rank3]: it 1: loss=2", 3),
        ("[rank 3] it 1: loss=2", 3),
        ("7: [rank3]: it 1: loss=2", 3),
        ("worker-2: [rank20]: it 1: loss=2", 20),
        ("10.0.0.7: [rank20]:it 1: loss=2", 20),
        (" 3: it 1: loss=2", 3),
        ("[default3]:it 1: loss=2", 3),
        ("[1,3]<stdout>: it 1: loss=2", 3),
        ("[pod/train-0/main] [rank3]: it 1: loss=2", 3),
        ("(Worker pid=77, ip=10.0.0.1) it 1: loss=2", None),
        ("it 1: loss=2", None),
    ],
)
def test_a_launchers_prefix_is_taken_off_and_its_rank_kept(line: str, rank: int | None) -> None:
    rows = parse_text(KV, line)["metrics"]
    assert rows.select("rank", "step", "value").rows() == [(rank, 1, 2.0)]


def test_many_ranks_beyond_those_that_are_learned_are_still_told_apart() -> None:
    text = "".join(f"[rank{r}]: it {s}: loss=1\n" for s in range(3) for r in range(40))
    assert sorted(set(parse_text(KV, text)["metrics"]["rank"].to_list())) == list(range(40))


def test_a_longer_prefix_is_not_mistaken_for_a_shorter_one() -> None:
    rows = prefixes.strip(pl.DataFrame({"text": ["[rank1]:E0101 x", "[rank1]: y", "1: z", "1: [rank5]: w"]}))
    assert rows.select("text", "rank").rows() == [("E0101 x", 1), ("y", 1), ("z", 1), ("w", 5)]


def test_a_count_that_only_grows_is_not_a_task_number() -> None:
    growing = pl.Series([f"{n}: loss 2.0" for n in range(5)])
    assert not prefixes.numbers_tasks(growing)
    assert prefixes.numbers_tasks(pl.Series(["0: a", "1: b", "0: c", "1: d"]))
    assert not prefixes.numbers_tasks(pl.Series([f"[{n}] loss 2.0" for n in range(12000, 12050, 10)]))
    assert prefixes.numbers_tasks(pl.Series(["[12345] a", "[12399] b", "[12345] c"]))


def test_an_offset_moves_the_step_and_other_groups_stay_as_attributes() -> None:
    event = parse_text(KV, "bad loss at 11, last 2.25\n")["events"].row(0, named=True)
    assert (event["code"], event["step"]) == ("toy.nan", 12)
    assert json.loads(event["attrs"]) == {"role": "symptom", "shape": "nan", "last": "2.25"}


def test_checkpoint_lines_go_to_their_own_table() -> None:
    rows = parse_text(KV, "it 1: loss=2\nwrote out/step_1.pt at 1\n")["checkpoints"]
    assert rows.select("line", "step", "path", "kind").rows() == [(2, 1, "out/step_1.pt", "saved")]


def test_a_step_that_goes_back_begins_the_next_attempt() -> None:
    text = "".join(f"it {s}: loss=1\n" for s in (1, 2, 3, 4, 2, 3, 4, 5))
    rows = parse_text(KV, text)["metrics"]
    assert rows["attempt"].to_list() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_ranks_that_write_into_one_stream_without_a_prefix_do_not_restart_it() -> None:
    steps = [s for base in range(1, 30) for s in (base, base, base - 1 if base % 3 == 0 else base)]
    rows = parse_text(KV, "".join(f"it {s}: loss=1\n" for s in steps))["metrics"]
    assert rows["attempt"].max() == 0


def test_evaluation_lines_of_an_earlier_step_do_not_restart_training() -> None:
    dialect = Dialect("t", "T", (*KV.lines, Line("metrics", "eval ", rf"^eval (?P<step>\d+) (?P<eval_loss>{N})")))
    text = "".join(f"it {s}: loss=1\n" + (f"eval {s - 5} 2.0\n" if s % 10 == 0 else "") for s in range(1, 60))
    assert parse_text(dialect, text)["metrics"]["attempt"].max() == 0


def test_a_line_without_a_step_takes_that_of_the_progress_bar_before_it() -> None:
    bar = Line("progress", "it/s", r"(?P<step>\d+)/(?P<max_steps>\d+) \[")
    dialect = Dialect("t", "T", (bar, Line("metrics", "{'", r"(?P<tail>\{'loss.*\})", tail="pydict")))
    text = "3/9 [00:01, 2it/s]\r4/9 [00:02, 2it/s]{'loss': '2.5'}\n{'loss': nan}\n"
    steps = parse_text(dialect, text)["metrics"]["step"].to_list()
    assert steps == [4, 4]


def test_finish_derives_steps_from_what_was_printed() -> None:
    line = Line("metrics", "ep ", rf"^ep (?P<epoch>\d+) (?P<iter>\d+)/(?P<iters>\d+) loss (?P<loss>{N})")

    def finish(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(step=((pl.col("epoch") - 1) * pl.col("iters") + pl.col("iter")).cast(pl.Int64))

    text = "".join(f"ep {e} {i}/3 loss 1.0\n" for e in (1, 2) for i in (1, 2, 3))
    rows = parse_text(Dialect("t", "T", (line,), finish=finish), text)["metrics"]
    assert rows["step"].to_list() == [1, 2, 3, 4, 5, 6]
    assert rows["attempt"].max() == 0


def test_two_dialects_do_not_both_read_one_line() -> None:
    rows = parse_text([KV, Dialect("other", "Other", KV.lines)], "it 1: loss=2\n")["metrics"]
    assert rows.height == 1


@pytest.mark.parametrize(
    ("line", "stamp"),
    [
        ("2031-05-06 07:08:09,250 it 1", "2031-05-06T07:08:09.250"),
        ("[2031-05-06T07:08:09] it 1", "2031-05-06T07:08:09.000"),
        ("2031/05/06 07:08:09 it 1", "2031-05-06T07:08:09.000"),
        ("05/06/2031 07:08:09 it 1", "2031-05-06T07:08:09.000"),
        ("W0506 07:08:09.250000 it 1", "2029-05-06T07:08:09.250"),
        ("[E506 07:08:09.250000000 x.cpp:6] it 1", "2029-05-06T07:08:09.250"),
        ("[05/06 07:08:09 x]: it 1", "2029-05-06T07:08:09.000"),
        ("INFO 05-06 07:08:09 it 1", "2029-05-06T07:08:09.000"),
        ("May 06 07:08:09 gpu-1 it 1", "2029-05-06T07:08:09.000"),
        ("May  6 07:08:09 gpu-1 it 1", "2029-05-06T07:08:09.000"),
        ("06.05.2031 07:08:09 it 1", "2031-05-06T07:08:09.000"),
        ("1935817689.250 it 1", "2031-05-06T07:08:09.250"),
    ],
)
def test_times_are_read_in_the_forms_that_trainers_print(line: str, stamp: str) -> None:
    times = _times.read(pl.Series([line]), Calendar(2029)).cast(pl.Datetime("ns"))
    assert times.dt.strftime("%Y-%m-%dT%H:%M:%S%.3f").to_list() == [stamp]


@pytest.mark.parametrize(
    ("line", "elapsed_s"),
    [
        ("[   98.3s] it 1", 98.3),
        ("0:01:40.5 | it 1", 100.5),
        ("(125:00:01) it 1", 450_001),
        ("98.3 it 1", None),
        ("it 0:01:40 |", None),
    ],
)
def test_a_time_since_the_start_is_one_of_1970_in_a_log_without_a_date(line: str, elapsed_s: float | None) -> None:
    undated = _times.read(pl.Series([line]), Calendar(2029, is_undated=True)).to_list()
    assert undated == [None if elapsed_s is None else round(elapsed_s * 1e9)]
    assert _times.read(pl.Series([line]), Calendar(2029)).to_list() == [None]


def test_a_line_without_a_time_has_none() -> None:
    assert _times.read(pl.Series(["it 1: loss=2", "step 20240101 12"]), Calendar(2029)).to_list() == [None, None]


def test_a_learned_layout_reads_what_the_dialects_pattern_reads() -> None:
    def line(step: int) -> str:
        loss = ("nan", "inf", "-1.5e-3", "1,234.5", "2.25")[step % 5]
        extra = " | note=fine" if step % 17 == 0 else ""
        return f"it {step}: loss={loss} | tok/s={step * 7 % 50}k | mem={step % 9}/80GB | dt={step % 3}.5ms{extra}\n"

    text = "".join(line(step) for step in range(300)).encode()
    frames: list[pl.DataFrame] = []
    for learn_from in (1, 1_000_000):
        matcher = Matcher([KV], learn_from=learn_from)
        ready = matcher.feed(prefixes.strip(_lines.Cut(text).select(matcher.pattern))) + matcher.close()
        frames.append(pl.concat(t["metrics"] for t in ready).sort("seq", maintain_order=True))
    assert frames[0].height > 1000
    assert_frame_equal(frames[0], frames[1])


def test_a_value_that_few_lines_hold_is_read_behind_a_layout_of_the_others() -> None:
    line = Line(
        "metrics",
        "loss=",
        r"(?P<step>\d+)/\d+ .*?loss=(?P<loss>[\d.]+)(?:, eval_loss=(?P<eval_loss>[\d.]+))?",
        names={"loss": Name("loss"), "eval_loss": Name("eval_loss")},
    )
    layout = _layouts.learn(line, "12/90 [00:12, loss=2.5]")
    assert layout is not None
    assert re.search(layout.pattern, "13/90 [00:13, loss=2.25]") is not None
    assert re.search(layout.pattern, "13/90 [00:13, loss=2.25, eval_loss=1.5]") is None


def test_blanks_between_digits_stay_so_that_a_layout_never_has_to_choose() -> None:
    line = Line("metrics", "it ", r"it (?P<step>\d+)  4 (?P<loss>[\d.]+)", names={"loss": Name("loss")})
    layout = _layouts.learn(line, "2031-05-06 07:08:09  it 12  4 2.25 7")
    assert layout is not None
    assert layout.pattern.startswith(r"^[0-9]+-[0-9]+-[0-9]+ +[0-9]+:[0-9]+:[0-9]+ *it *(")
    assert ") +[0-9]+ +(" in layout.pattern
    assert re.search(layout.pattern, "2031-05-06 07:08:10 it13 4 2.5") is not None
    assert re.search(layout.pattern, "2031-05-06 07:08:10 it 13 42.5") is None


@pytest.mark.parametrize("begin", [b"x^2 and", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"x\x9c"])
def test_a_block_that_begins_like_compressed_data_is_text(begin: bytes) -> None:
    lines = _lines.strings(begin + b" a\nb\n").to_list()
    assert len(lines) == 2
    assert lines[0].endswith(" a")
    assert lines[1] == "b"


@given(
    st.lists(st.sampled_from([b"a", b"x^", b"\n", b"\n\n", b"\xff", b"\xc3", b"\xc3\xa9", b"\0", b"\x1f\x8b", b" "]))
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_few_bytes_are_cut_into_the_lines_that_many_are(monkeypatch: pytest.MonkeyPatch, parts: list[bytes]) -> None:
    data = b"".join(parts)
    few = _lines.strings(data)
    with monkeypatch.context() as patched:
        patched.setattr(_lines, "_FEW_BYTES", 0)
        assert few.to_list() == (_lines.strings(data).to_list() if data else [])
