"""What makes text logs fast never changes what is read: the sieve, and layouts that are read with their prefix."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from forensics.dialects import _lines, _sieve, prefixes
from forensics.dialects.engine import Matcher, Tables
from forensics.dialects.reader import Bounds, Reader
from forensics.dialects.spec import TAILS, Dialect, Line

LITERALS = st.sampled_from([(1, 9), (5, 12)]).flatmap(
    lambda sizes: st.lists(st.text("abcN%^ é", min_size=sizes[0], max_size=sizes[1]), min_size=1, max_size=6)
)
TOYS = [
    Dialect("toy", "Toy", (Line("metrics", "it ", r"^it (?P<step>\d+): (?P<tail>.+)$", tail="eq"),)),
    Dialect("b", "B", (Line("progress", "epoch ", r"epoch (?P<step>\d+)"), Line("metrics", "v=", r"v=(?P<loss>\S+)"))),
]  # fmt: skip
LONG = [
    Dialect("toy", "Toy", (Line("metrics", "step: ", r"^step: (?P<step>\d+) (?P<tail>.+)$", tail="eq"),)),
]
EVENTS = (
    "Traceback (most recent call last):",
    '  File "a.py", line 3, in f',
    "ValueError: x",
    "\x1b[31mRuntimeError\x1b[0m: CUDA \x1b[1mout\x1b[0m of memory. Tried to allocate 2 GiB",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "  rank      : 3 (local_rank: 3)",
    "  exitcode  : -9 (pid: 77)",
    "^C",
    "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2031-05-06T07:08:09 DUE TO TIME LIMIT ***",
    "[rank5]:[E506 07:08:09 ProcessGroupNCCL.cpp:616] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(",
    "SeqNum=7, OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=600000) ran for 600123 milliseconds before timing out.",
    "OSError: [Errno 28] No space left on device",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
    "Training complete",
    "loss is nan, stopping training",
)
WORDS = st.sampled_from(
    ["it 1: loss=2.5", "it 2: loss=nan | lr=1e-4", "[rank3]: it 4: loss=0.5", "epoch 7", "v=1.5", "^C", "NaN", "OOM",
     "Traceback (most recent call last):", '  File "a.py", line 3, in f', "ValueError: x", "", " ", "plain words",
     "OSError: [Errno 28] No space left on device", "2: [rank2]: NCCL communicator was aborted", "Training complete"]
)  # fmt: skip
LOGS = st.lists(st.tuples(WORDS, st.binary(max_size=4), st.sampled_from([b"\n", b"\n", b"\r", b"\x08"])), max_size=40)


@settings(max_examples=300, deadline=None)
@given(LITERALS, st.lists(st.text("abcN%^ é\n", max_size=12), max_size=12), st.binary(max_size=40))
def test_a_sieve_passes_every_place_where_a_literal_stands(
    literals: list[str], around: list[str], sample: bytes
) -> None:
    data = "".join(literals[i % len(literals)] + text for i, text in enumerate(around)).encode()
    places = set(_sieve.sieve_of(literals, sample).places(data).tolist())
    for text in (literal.encode() for literal in literals):
        at = data.find(text)
        while at >= 0:
            assert places & set(range(at, at + len(text))), (text, at)
            at = data.find(text, at + 1)


def read_all(log: bytes, sample: bytes | None, dialects: list[Dialect] = TOYS) -> dict[str, pl.DataFrame]:
    reader = Reader(dialects, Bounds(), sample=sample)
    ready = reader.feed(log, offset=0, first_line=1) + reader.close()[0]
    whole = {name: [t[name] for t in ready if name in t] for name in ("metrics", "events", "checkpoints")}
    order = {"metrics": ["seq", "raw_name", "value"], "events": ["seq", "code", "text"], "checkpoints": ["seq"]}
    return {name: pl.concat(f, how="diagonal").sort(order[name]) for name, f in whole.items() if f}


@settings(max_examples=100, deadline=None)
@given(LOGS, st.binary(max_size=50))
def test_a_sieve_changes_nothing(parts: list[tuple[str, bytes, bytes]], sample: bytes) -> None:
    log = b"".join(word.encode() + noise + end for word, noise, end in parts)
    plain, sieved = read_all(log, None), read_all(log, sample)
    assert plain.keys() == sieved.keys()
    for name, frame in plain.items():
        assert_frame_equal(frame, sieved[name], check_column_order=False)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(EVENTS), max_size=12), st.integers(0, 3), st.binary(max_size=50), st.booleans())
def test_a_sieve_of_every_fourth_place_changes_nothing_in_a_log_of_few_events(
    events: list[str], shift: int, sample: bytes, coloured: bool
) -> None:
    lines = ["-" * shift, *(f"step: {n} loss={n / 8}" for n in range(6)), *("some words of no account",) * 60]
    for number, event in enumerate(events):
        lines.insert((number * 7 + 3) % len(lines), event if coloured else event.replace("\x1b[", ""))
    log = "\n".join(lines).encode()
    plain, sieved = read_all(log, None, LONG), read_all(log, sample, LONG)
    assert plain.keys() == sieved.keys()
    assert plain["metrics"].height == 6
    for name, frame in plain.items():
        assert_frame_equal(frame, sieved[name], check_column_order=False)


FORMS = {
    "eq": "{k}={v}",
    "colon": "{k}: {v}",
    "pydict": "'{k}': {v}",
    "json": '"{k}": {v}',
    "tight": "{k}:{v}",
    "box": "| {k} | {v} |",
}


def read_in_two(dialects: list[Dialect], blocks: list[str], learn_from: int) -> pl.DataFrame:
    matcher = Matcher(dialects, learn_from=learn_from)
    ready: list[Tables] = []
    begin = 0
    for block in blocks:
        cut = _lines.Cut(block.encode(), first_seq=begin, first_line=begin + 1)
        rest, _ = matcher.take(cut.select(matcher.pattern))
        ready += matcher.feed(prefixes.strip(rest))
        begin += cut.height
    ready += matcher.close()
    return pl.concat(t["metrics"] for t in ready).sort("seq", maintain_order=True) if ready else pl.DataFrame()


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(TAILS)), st.data())
def test_a_layout_read_with_its_prefix_changes_nothing(kind: str, data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.sampled_from(["loss", "lr", "gnorm", "tok/s"]), min_size=1, unique=True))
    prefix = st.sampled_from(
        ["", "[rank 3] ", "[rank12]: ", " 4: ", "[1,2]<stdout>: ", "[default7]:", "7: [rank1]: ", "[12345] ",
         "2031-05-06 07:08:09,123 INFO ", "[rank0]: 2031-05-06 07:08:10,5 INFO ", "INFO ", "99: "]
    )  # fmt: skip
    number = st.sampled_from(["1.5", "nan", "-inf", "2e-5", "1,200", "0", "word", "7"])

    def line(step: int) -> str:
        pairs = ", ".join(FORMS[kind].format(k=k, v=data.draw(number)) for k in keys)
        return f"{data.draw(prefix)}it {step}: {pairs}\n"

    steps = data.draw(st.lists(st.integers(0, 10**6), min_size=2, max_size=16))
    blocks = ["".join(line(s) for s in steps), "".join(line(s) for s in reversed(steps))]
    dialects = [Dialect("t", "T", (Line("metrics", "it ", r"it (?P<step>\d+): (?P<tail>.+)$", tail=kind),))]
    quick, general = read_in_two(dialects, blocks, 1), read_in_two(dialects, blocks, 10**9)
    assert_frame_equal(quick, general)


def test_a_line_in_which_a_detector_speaks_too_is_never_read_by_layout_alone() -> None:
    metrics = Line("metrics", "it ", r"^it (?P<step>\d+): loss=(?P<loss>\S+)")
    dialect = Dialect("t", "T", (metrics, Line("nan", "skip=1", r"it (?P<step>\d+).*skip=1")))
    matcher = Matcher([dialect], learn_from=1)
    ready: list[Tables] = []
    for block in (b"it 1: loss=2.5 skip=0\n", b"it 2: loss=2.5 skip=1\n"):
        rest, _ = matcher.take(_lines.Cut(block).select(matcher.pattern))
        ready += matcher.feed(prefixes.strip(rest))
    ready += matcher.close()
    assert sum(t["events"].height for t in ready) == 1
