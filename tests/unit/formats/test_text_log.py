"""The text-log ingester: what is a log, what is read of it, and that every byte is accounted for."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass

import polars as pl
import pytest

from forensics.dialects.handover import Stream
from forensics.errors import NotMine
from forensics.formats.text import log as text_log
from forensics.formats.text import sample
from forensics.io.blocks import Block
from forensics.io.discover import attempt_of, rank_of
from forensics.io.reading import opened_bytes
from forensics.model import FileCoverage, Issue
from forensics.store.schema import TABLES
from forensics.store.sink import SourceSink
from forensics.values import replace

METRICS = "".join(
    f"[rank 0] INFO     [step {s}] loss={9 - s / 100:.4f} | lr=3.00e-04 | grad_norm=1.250 | tok/s=41,000 | mfu=17.5% | "
    f"mem=2.5/80GB | step_time=0.25s\n"
    for s in range(10, 210, 10)
)


@dataclass(frozen=True, slots=True)
class Wrote:
    frames: dict[str, pl.DataFrame]
    issues: list[Issue]
    coverage: FileCoverage

    def table(self, name: str) -> pl.DataFrame:
        return self.frames.get(name, pl.DataFrame(schema=dict(TABLES[name])))

    def points(self, name: str) -> list[tuple[int, float]]:
        return self.table("metrics").filter(pl.col("name") == name).select("step", "value").rows()


def read(data: str | bytes, path: str = "train.log") -> Wrote:
    opened = opened_bytes(path, data.encode() if isinstance(data, str) else data)
    opened.source = replace(opened.source, rank=rank_of(path), attempt=attempt_of(path))
    sink = SourceSink(opened.source)
    text_log.read(opened, sink)
    return Wrote(sink.frames(), sink.issues, sink.coverage("text_log"))


def codes(wrote: Wrote) -> list[str]:
    return wrote.table("events")["code"].to_list()


def test_metrics_of_a_known_trainer_are_read_with_their_places() -> None:
    wrote = read("banner\n" + METRICS)
    rows = wrote.table("metrics").filter(pl.col("name") == "loss")
    assert wrote.coverage.format == "kempnerforge"
    assert rows.select("line", "step", "rank").rows()[:2] == [(2, 10, 0), (3, 20, 0)]
    assert rows["byte"].to_list()[0] == 7


def test_every_byte_is_accounted_for() -> None:
    data = METRICS.encode() + b"\xff\xfe broken \x08\x08 tail without end"
    wrote = read(data)
    assert (wrote.coverage.read_bytes, wrote.coverage.skipped_bytes) == (len(data), 0)


def test_a_compressed_log_reads_like_a_plain_one() -> None:
    plain, packed = read(METRICS), read(gzip.compress(METRICS.encode()), "train.log.gz")
    assert packed.table("metrics").drop("source").equals(plain.table("metrics").drop("source"))


def test_a_log_in_utf_16_is_read() -> None:
    assert read(METRICS.encode("utf-16")).points("loss")[0] == (10, 8.9)


def test_the_folder_of_a_launcher_gives_rank_and_attempt() -> None:
    wrote = read(METRICS.replace("[rank 0] ", ""), "attempt_2/5/stdout.log")
    assert set(wrote.table("metrics")["rank"].to_list()) == {5}
    assert set(wrote.table("metrics")["attempt"].to_list()) == {2}


def test_two_dialects_in_one_file_are_both_read() -> None:
    launcher = ":::MLLOG " + json.dumps(
        {"namespace": "", "time_ms": 1900000000000, "event_type": "POINT_IN_TIME", "key": "train_loss", "value": 2.5,
         "metadata": {"samples_count": 10}}
    )  # fmt: skip
    wrote = read((launcher + "\n") * 3 + METRICS)
    assert set(wrote.coverage.format.split("+")) >= {"kempnerforge"}


def test_an_unknown_format_is_learned_from_its_lines() -> None:
    text = "".join(f"step {n} :: loss {5 - n / 50:.3f} :: gnorm {1 + n % 3:.2f}\n" for n in range(1, 80))
    wrote = read(text)
    assert "generic" in wrote.coverage.format
    assert wrote.points("loss")[:2] == [(1, 4.98), (2, 4.96)]


def test_an_evaluation_that_a_program_prints_beside_its_trainer_is_learned() -> None:
    own = "".join(f"step {s} eval_loss {2 + s / 100:.3f}\n" for s in range(20, 220, 20))
    wrote = read(METRICS + own)
    assert wrote.coverage.format == "kempnerforge+generic"
    assert wrote.points("eval_loss")[:2] == [(20, 2.2), (40, 2.4)]
    assert len(wrote.points("loss")) == 20


def test_other_numbers_beside_the_lines_of_a_trainer_are_not_learned() -> None:
    own = "".join(f"step {s} loss {2 + s / 100:.3f} of the auxiliary head\n" for s in range(20, 220, 20))
    assert read(METRICS + own).coverage.format == "kempnerforge"


def test_prose_and_program_text_give_no_metrics() -> None:
    text = "loss = criterion(x)\nthe loss is 3 times\n" * 40 + "def loss(step: int = 3):\n    return 0.5\n" * 40
    assert read(text).table("metrics").height == 0


def test_frames_of_tracebacks_are_no_lines_to_learn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(sample, "learn", lambda lines, *_, **__: asked.extend(lines))
    frame = '  File "/srv/env4/site-packages/pkg7/loop3.py", line 31, in step_2'
    read(f"Traceback (most recent call last):\n{frame}\n    return next(batch_3)\nValueError: batch 3")
    assert frame not in asked
    assert asked[-2:] == ["    return next(batch_3)", "ValueError: batch 3"]


def test_errors_tracebacks_and_the_last_line_become_events() -> None:
    trace = "Traceback (most recent call last):\n  File \"a.py\", line 3, in go\n    x()\nKeyError: 'ids'\n"
    wrote = read(METRICS + trace + "\n\n")
    events = wrote.table("events")
    last = events.filter(pl.col("code") == "last_line").row(0, named=True)
    assert "traceback" in codes(wrote)
    assert (last["text"], last["line"]) == ("KeyError: 'ids'", 24)


def test_a_success_marker_is_an_event() -> None:
    assert "success" in codes(read(METRICS + "Training finished successfully\n"))


def test_events_carry_their_time_when_the_line_has_one() -> None:
    wrote = read("2031-05-06 07:08:09,500 ERROR OSError: [Errno 28] No space left on device\n")
    event = wrote.table("events").filter(pl.col("code") == "enospc").row(0, named=True)
    assert event["t_ns"] == 1_935_817_689_500_000_000


def test_a_flood_is_stated_as_an_issue() -> None:
    wrote = read("OSError: [Errno 28] No space left on device\n" * 400)
    flood = [i for i in wrote.issues if i.code == "flood" and i.message.startswith("enospc")]
    assert [i.count for i in flood] == [150]


def test_an_empty_file_is_an_empty_log() -> None:
    wrote = read(b"")
    assert wrote.table("metrics").height == wrote.table("events").height == 0


def test_a_hole_of_nuls_does_not_hide_the_lines_around_it() -> None:
    wrote = read(METRICS.encode() + b"\0" * 70_000 + b"\n" + METRICS.encode())
    assert len(wrote.points("loss")) == 40


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("model.log", b"\x7fELF" + bytes(range(256)) * 40),
        ("weights.out", bytes(range(256)) * 400),
        ("zeros.log", b"\0" * 4096),
        ("train.py", METRICS.encode()),
        ("config.yaml", b"loss: 3\n"),
        ("state.json", b'{"loss": 1}'),
        ("notes.md", b"# Plan\n\n1. loss of 3 at step 4\n2. look at epoch 5\n"),
        ("README.md", b"| epoch | loss |\n|---|---|\n" + b"".join(b"| %d | 0.%d |\n" % (n, 99 - n) for n in range(20))),
    ],
)
def test_what_is_no_log_is_left_to_others(path: str, data: bytes) -> None:
    with pytest.raises(NotMine):
        read(data, path)


def test_a_table_of_markdown_that_counts_is_a_log() -> None:
    rows = "".join(f"| {n} | 0.{99 - n} |\n" for n in range(20))
    found = read(f"# Journal\n\n| epoch | loss |\n|---|---|\n{rows}".encode(), "journal.md").table("metrics")
    assert found["step"].to_list() == list(range(20))


def test_pieces_of_a_block_are_the_block() -> None:
    data = METRICS.encode() * 9000
    pieces = list(text_log.pieces(Block(data, 100, 7)))
    assert b"".join(p.data for p in pieces) == data
    assert len(pieces) > 2
    assert [p.offset for p in pieces[:2]] == [100, 100 + len(pieces[0].data)]
    assert pieces[1].first_line == 7 + pieces[0].data.count(b"\n")


def test_a_line_without_end_is_one_piece() -> None:
    assert len(list(text_log.pieces(Block(b"x" * (20 << 20), 0, 1)))) == 1


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ("node_rank=1 nnodes=2 nproc_per_node=4", 4),
        ("[default] Rendezvous complete for workers: group_rank=1 global_ranks=[8, 9, 10, 11]", 8),
        ("node_rank=0 nnodes=2 nproc_per_node=4", 0),
        ("up", 0),
    ],
)
def test_torchruns_tags_count_on_from_the_first_rank_of_the_node_that_the_log_names(said: str, first: int) -> None:
    steps = [f"[default{local}]:step {step} loss 2.5" for step in range(9) for local in range(4)]
    raised = "[default2]:[rank9]: ValueError: no more shards"
    wrote = read("\n".join([said, *steps, raised, ""]))
    assert set(wrote.table("metrics")["rank"]) == {first, first + 1, first + 2, first + 3}
    assert 9 in wrote.table("events")["rank"].to_list()


def test_ranks_of_the_job_and_ranks_that_a_line_names_do_not_count_on() -> None:
    lines = [
        "node_rank=1 nnodes=2 nproc_per_node=4",
        "[default0]:step 1 loss 2.5",
        "[default0]:[rank4]: ValueError: no more shards",
        "STRAGGLER DETECTION WARNING: Some GPUs are slow. Affected ranks: {StragglerId(rank=2, node='a')}",
        "",
    ]
    events = read("\n".join(lines)).table("events").filter(pl.col("code") != "last_line")
    assert dict(events.select("line", "rank").rows()) == {1: None, 3: 4, 4: 2}


@pytest.mark.parametrize(("rank", "counted"), [(-1, -1), (0, 4), (3, 7), (4, 4), (9, 9)])
def test_the_stream_of_a_rank_is_handed_over_by_its_number_in_the_job(rank: int, counted: int) -> None:
    stream = Stream(rank, None, 0, None, (), ())
    assert text_log.Speakers(None, 0, first=4).counted(stream).rank == counted
    assert text_log.Speakers(None, 0).counted(stream) == stream
