"""What is written as an offline run reads back as the same points, with our reader and with wandb's own classes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics.io.records import leveldb_log

from .conftest import HOSTILE, Back, bits, exported, made, points

T0 = round(1_750_000_000.25 * 1e9)


def messages(data: bytes) -> list[Any]:
    """The records, framed by the reader and parsed by wandb's own classes."""
    record = import_module("wandb.proto.wandb_internal_pb2").Record
    items = list(leveldb_log.records(data))
    assert not [item for item in items if isinstance(item, leveldb_log.Damage)]
    return [record.FromString(item.payload) for item in items if isinstance(item, leveldb_log.Record)]


def test_every_bit_of_a_value_comes_back_with_its_step_and_time(back: Back) -> None:
    values = (0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, math.nan, math.inf, -math.inf, None)
    run = made(
        [
            {"raw_name": "loss", "step": 3 * n, "t_ns": round((1.75e9 + n / 7) * 1e9), "value": v}
            for n, v in enumerate(values)
        ]
    )
    again = back(exported(run, "wandb"))
    columns = ("raw_name", "name", "step", "t_ns")
    assert points(again, *columns) == points(run, *columns)


def test_wandb_reads_its_own_messages_in_the_order_it_writes_them() -> None:
    run = made(
        [
            {"raw_name": n, "step": s, "epoch": 0.5, "t_ns": T0, "value": s + 0.1}
            for s in (1, 2)
            for n in ("loss", "lr")
        ],
        facts=pl.DataFrame(
            {
                "source": ["train.log"] * 3,
                "key": ["exit_code", "optim.lr", "note"],
                "value": ["3", "0.002", "no \x1b json"],
                "family": ["exit", "config", "config"],
            }
        ),
    )
    export = exported(run, "wandb")
    found = messages(export.files[0].data)
    kinds = [r.WhichOneof("record_type") for r in found]
    assert kinds == ["header", "run", "history", "history", "summary", "exit"]
    rows = [{i.nested_key[0]: json.loads(i.value_json) for i in r.history.item} for r in found[2:4]]
    seconds = 1_750_000_000.25
    assert rows == [{"loss": s + 0.1, "lr": s + 0.1, "epoch": 0.5, "_step": s, "_timestamp": seconds} for s in (1, 2)]
    assert [r.history.step.num for r in found[2:4]] == [1, 2]
    assert [(c.key, c.value_json) for c in found[1].run.config.update] == [
        ("optim.lr", "0.002"),
        ("note", r'"no \u001b json"'),
    ]
    assert found[1].run.display_name == "train.log"
    assert found[-1].exit.exit_code == 3
    assert export.files[0].path == f"offline-run-20250615_150640-{found[1].run.run_id}/run-{found[1].run.run_id}.wandb"


def test_the_reader_that_wandb_ships_lists_every_row(back: Back, tmp_path: Path) -> None:
    values = (0.1, 1 / 3, 5e-324, 1.7976931348623157e308, math.nan, math.inf, -math.inf)
    export = exported(made([{"raw_name": "loss", "step": 2 * n, "value": v} for n, v in enumerate(values)]), "wandb")
    back(export)
    command = [
        sys.executable,
        "-m",
        "wandb",
        "leet",
        "inspect",
        "--json",
        str(tmp_path / "back" / export.files[0].path),
    ]
    env = {**os.environ, "WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    if "No such command" in done.stderr:
        pytest.skip("this wandb cannot print a transaction log")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["type"] for row in rows] == ["header", "run", *["history"] * len(values), "summary"]
    told = [row["history"]["item"] for row in rows if row["type"] == "history"]
    assert [(row["_step"], bits(float(row["loss"]))) for row in told] == [
        (2 * n, bits(v)) for n, v in enumerate(values)
    ]


def test_an_exit_code_is_not_made_up() -> None:
    export = exported(made([{"raw_name": "loss", "step": 1, "value": 1.0}]), "wandb")
    assert "exit" not in {r.WhichOneof("record_type") for r in messages(export.files[0].data)}
    assert export.notes == ("1 run without an exit code: wandb sync will show failure",)


def test_points_of_one_step_share_a_row_and_a_repeated_one_gets_its_own(back: Back) -> None:
    cells = [(5, "loss", 1.0), (6, "loss", 2.0), (5, "eval_loss", 3.0), (6, "loss", 4.0)]
    run = made([{"raw_name": n, "step": s, "t_ns": T0 + i, "value": v} for i, (s, n, v) in enumerate(cells)])
    export = exported(run, "wandb")
    assert sum(r.WhichOneof("record_type") == "history" for r in messages(export.files[0].data)) == 3
    assert "1 point with the time of the first point of the same step" in export.notes
    again = points(back(export), "step", "raw_name")
    assert sorted(again) == sorted((s, n, bits(v)) for s, n, v in cells)
    assert [row[0] for row in again] == [5, 5, 6, 6]


def test_names_that_wandb_keeps_for_itself_are_moved_aside(back: Back) -> None:
    run = made([{"raw_name": n, "step": 1, "value": 1.0} for n in ("_runtime", "epoch", "_step")])
    names = {row[0] for row in points(back(exported(run, "wandb")), "raw_name")}
    assert names == {"metric/_runtime", "metric/epoch", "metric/_step"}


def test_hostile_names_are_data_and_come_back_as_they_are(back: Back) -> None:
    run = made([{"raw_name": name, "step": n, "value": 1.0} for n, name in enumerate(HOSTILE)])
    assert points(back(exported(run, "wandb")), "raw_name") == points(run, "raw_name")


def test_the_same_run_is_the_same_bytes_and_another_rank_another_run() -> None:
    run = made([{"raw_name": "loss", "step": 1, "rank": rank, "value": 1.0} for rank in (0, 1)])
    first, second = exported(run, "wandb"), exported(run, "wandb")
    assert first == second
    assert len({file.path for file in first.files}) == 2


def test_neither_a_service_nor_the_network_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    watched = ("socket.connect", "socket.bind", "subprocess.Popen", "os.fork", "os.exec", "os.posix_spawn")
    sys.addaudithook(lambda name, _: seen.append(name) if name.startswith(watched) else None)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    exported(made([{"raw_name": "loss", "step": 1, "value": 1.0}]), "wandb")
    assert seen == []
