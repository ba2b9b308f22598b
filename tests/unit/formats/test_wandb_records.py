"""The rarer records of a W&B log, written by wandb's own message classes; and rows read together as one by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.formats.wandb import run as wandb_run
from forensics.formats.wandb._facts import without_secrets
from forensics.formats.wandb.run import read
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.io.records.leveldb_frame import frame
from forensics.store.sink import SourceSink

HEADER = b":W&B\xe1\xbe\x00"
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def pb() -> Any:
    return pytest.importorskip("wandb.proto.wandb_internal_pb2")


def history(pb: Any, cells: list[tuple[str, str]]) -> bytes:
    record = pb.Record(num=7)
    for key, value in cells:
        record.history.item.add(nested_key=[key], value_json=value)
    return record.SerializeToString()


def log(run: Run, *records: Any) -> Any:
    payloads = [one if isinstance(one, bytes) else one.SerializeToString() for one in records]
    return run(read, "run-a.wandb", frame(payloads, HEADER))


def facts(wrote: Any) -> dict[str, str]:
    return dict(wrote.table("facts").select("key", "value").iter_rows())


def test_system_metrics_have_their_time_and_the_unit_of_their_name(run: Run, pb: Any) -> None:
    record = pb.Record()
    record.stats.timestamp.seconds = 1_750_000_000
    record.stats.item.add(key="gpu.1.memoryAllocatedBytes", value_json=str(3 * 2**29))
    record.stats.item.add(key="gpu.1.gpu", value_json="97.5")
    rows = log(run, record).table("metrics").select("name", "raw_name", "value", "t_ns", "step").rows()
    assert rows == [
        ("gpu_mem_used_gib", "system.gpu.1.memoryAllocatedBytes", 1.5, 1_750_000_000_000_000_000, None),
        ("gpu_util_pct", "system.gpu.1.gpu", 97.5, 1_750_000_000_000_000_000, None),
    ]


def test_the_defined_axis_of_the_row_or_the_last_one_is_the_optimizer_step(run: Run, pb: Any) -> None:
    star, own = pb.Record(), pb.Record()
    star.metric.glob_name, star.metric.step_metric = "train/*", "train/global_step"
    own.metric.name, own.metric.step_metric = "train/seen", "tokens"
    rows = [
        history(pb, [("train/global_step", "80"), ("train/loss", "2"), ("train/seen", "5"), ("_step", "4")]),
        history(pb, [("train/loss", "1"), ("other", "3"), ("_step", "5")]),
    ]
    found = log(run, star, own, *rows).table("metrics").sort("seq", "raw_name").select("raw_name", "step", "gstep")
    assert found.rows() == [
        ("train/global_step", 4, 80),
        ("train/loss", 4, 80),
        ("train/seen", 4, 4),
        ("other", 5, 5),
        ("train/loss", 5, 80),
    ]


@pytest.mark.parametrize(("count", "star"), [(1, False), (1, True), (100, False), (100, True)])
def test_where_no_axis_is_defined_the_step_of_the_trainer_counts(run: Run, pb: Any, count: int, star: bool) -> None:
    own = pb.Record()
    own.metric.glob_name, own.metric.step_metric = "*", "epoch"
    rows = [
        history(pb, [("train/global_step", f"{8 * at}"), ("train/loss", "2"), ("_step", f"{at}")])
        for at in range(1, count + 1)
    ]
    rows += [history(pb, [("eval/loss", "1"), ("_step", f"{count + 1}")])]
    found = log(run, *([own] if star else []), *rows).table("metrics").filter(pl.col("raw_name") != "train/global_step")
    every = [*range(1, count + 2)]
    assert found.sort("seq")["gstep"].to_list() == (every if star else [*(8 * at for at in every[:-1]), 8 * count])


def test_a_resumed_run_says_where_it_goes_on(run: Run, pb: Any) -> None:
    record = pb.Record()
    record.run.run_id, record.run.starting_step, record.run.resumed = "ab12cd34", 400, True
    record.run.host, record.run.entity = "node-7", "someone"
    record.run.telemetry.cli_version = "0.15.12"
    record.run.git.commit, record.run.git.remote_url = "5d1f0c2", "https://someone@example.org/x"
    wrote = log(run, record)
    event = wrote.table("events").row(0, named=True)
    assert (event["code"], json.loads(event["attrs"])["starting_step"]) == ("wandb.resumed", "400")
    known = facts(wrote)
    assert (known["wandb.starting_step"], known["wandb.resumed"], known["wandb"]) == ("400", "true", '"0.15.12"')
    assert not any("someone" in value for value in known.values())


def test_preemption_alerts_and_the_closing_records_are_told(run: Run, pb: Any) -> None:
    preempting, alert, final, footer = (pb.Record() for _ in range(4))
    preempting.preempting.SetInParent()
    alert.alert.title, alert.alert.text, alert.alert.level = "Loss", "is high", "WARN"
    final.final.SetInParent()
    footer.footer.SetInParent()
    wrote = log(run, preempting, alert, final, footer)
    events = wrote.table("events").select("code", "level", "text").rows()
    assert events[0][:2] == ("wandb.preempting", "warning")
    assert events[1] == ("wandb.alert", "warning", "Loss: is high")
    assert {"final_record", "footer_record", "preempting"} <= set(facts(wrote))


def test_the_last_summary_is_kept_as_facts(run: Run, pb: Any) -> None:
    record = pb.Record()
    record.summary.update.add(nested_key=["best", "acc"], value_json="0.75")
    record.summary.update.add(key="_runtime", value_json="9")
    assert facts(log(run, record))["summary.best.acc"] == "0.75"
    assert "summary._runtime" not in facts(log(run, record))


def test_values_of_secrets_are_left_out_of_the_arguments() -> None:
    assert without_secrets(["--api-key", "abc", "--token=x", "--lr", "1"]) == [
        "--api-key",
        "***",
        "--token=***",
        "--lr",
        "1",
    ]


TEXTS = """1 -0.0 NaN Infinity -Infinity null true "x" "NaN" 1e-7 1152921504606846977 {"a":1,"b":{"c":2.5}}
{"_type":"histogram"} [1,2] 0.12345678901234568 5e-324"""
VALUES = st.sampled_from(["", *TEXTS.split()])
NAMES = st.sampled_from(["loss", "lr", "epoch", "é" * 3, "x" * 130, "train/global_step", "val/acc", "_runtime"])
ROWS = st.lists(st.tuples(st.integers(0, 300), st.dictionaries(NAMES, VALUES, max_size=6)), min_size=1, max_size=90)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.booleans())
def test_rows_read_together_are_rows_read_one_by_one(rows: list[tuple[int, dict[str, str]]], defined: bool) -> None:
    pb = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    star = pb.Record()
    star.metric.glob_name, star.metric.step_metric = "*", "train/global_step" if defined else "epoch"
    payloads = [star.SerializeToString()]
    for step, cells in rows:
        stamped = [*cells.items(), ("_step", str(step)), ("_timestamp", f"17500000{step:02}.25")]
        payloads.append(history(pb, stamped))
    frames: list[pl.DataFrame] = []
    for many, fewest in ((1 << 60, 64), (0, 1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(wandb_run, "_MANY_BYTES", many)
            patch.setattr("forensics.formats.wandb._history.FEWEST_RECORDS", fewest)
            patch.setattr("forensics.formats.wandb._history.BATCH_RECORDS", 37)
            opened = opened_bytes("a.wandb", frame(payloads, HEADER))
            sink = SourceSink(opened.source)
            read(opened, sink, DEFAULT)
            found = sink.frames().get("metrics", pl.DataFrame())
            frames.append(found.sort(found.columns) if found.width else found)
    assert frames[0].equals(frames[1])


def test_of_two_kinds_in_one_record_the_last_counts(run: Run, pb: Any) -> None:
    first, second, footer = pb.Record(), pb.Record(), pb.Record()
    first.exit.exit_code, second.exit.exit_code = 3, 1
    footer.footer.SetInParent()
    both = first.SerializeToString() + second.SerializeToString()
    wrote = log(run, both)
    assert wrote.table("events").select("code", "text").rows() == [
        ("wandb.exit", "exit record of the run: exit code 1")
    ]
    assert log(run, both + footer.SerializeToString()).table("events").is_empty()
