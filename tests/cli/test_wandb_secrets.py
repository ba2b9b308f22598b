"""A secret in the settings, the arguments or the summary of a W&B run is neither stored nor printed."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics.io.records.leveldb_frame import frame
from forensics.pipeline import ingest_run

from .conftest import Call

pb: Any = import_module("wandb.proto.wandb_internal_pb2")
HEADER = b":W&B\xe1\xbe\x00"
MARK = "PlAnTeD"
SECRETS = {
    "api_key": f"{MARK}-one",
    "db": {"password": f"{MARK}-two", "url": f"https://rowan:{MARK}@store.example/x"},
    "hub_token": f"hf_{MARK}qWeRtYuIoPaSdF",
    "note": f"log in with ghp_{MARK}0123456789abcdef",
    "keys": [f"sk-proj-{MARK}0123456789abc", "plain"],
    "listed": [f"hf_{MARK}qWeRtYuIoPaSdF", {"client_secret": f"{MARK}-three"}],
}
SETTINGS = {"lr": 0.0625, "eos_token": "</s>", "max_tokens": 512, "optimizer": {"name": "adamw"}, **SECRETS}
ARGUMENTS = ["--lr", "0.0625", "--api-key", f"{MARK}-four", f"--hub_token=hf_{MARK}qWeRtYuIoPaSdF", f"password={MARK}5"]


def wandb_run(folder: Path, shift: float = 0.0) -> Path:
    """A run with its log, its metadata and its settings, each with secrets in it."""
    run, header, history, end = (pb.Record() for _ in range(4))
    header.header.version_info.producer = "0.28.1"
    run.run.run_id, run.run.display_name = "q7", f"try with token=ghp_{MARK}0123456789abcdef"
    for key, value in {**SETTINGS, "lr": 0.0625 + shift}.items():
        run.run.config.update.add(key=key, value_json=json.dumps(value))
    run.run.summary.update.add(key="best", value_json=json.dumps({"api_key": f"{MARK}-six", "acc": 0.5}))
    environment = pb.Record()
    environment.environment.args.extend(ARGUMENTS)
    environment.environment.program = "/srv/train.py"
    history.history.step.num = 1
    history.history.item.add(key="loss", value_json="2.5")
    end.exit.exit_code = 0
    records = [header, run, environment, history, end]
    files = folder / "wandb" / "run-20330102_030405-q7"
    (files / "files").mkdir(parents=True)
    (files / "run-q7.wandb").write_bytes(frame([record.SerializeToString() for record in records], HEADER))
    meta = {"program": "train.py", "args": ARGUMENTS, "git": {"remote": f"https://{MARK}@host/x", "commit": "5d1f0c2"}}
    (files / "files" / "wandb-metadata.json").write_text(json.dumps(meta), encoding="utf-8")
    summary = {"best": {"api_key": f"{MARK}-six", "acc": 0.5}, "note": f"token=ghp_{MARK}0123456789abcdef"}
    (files / "files" / "wandb-summary.json").write_text(json.dumps(summary), encoding="utf-8")
    config = "".join(f"{k}:\n  value: {json.dumps(v)}\n" for k, v in SETTINGS.items())
    (files / "files" / "config.yaml").write_text(config, encoding="utf-8")
    return folder


def test_the_facts_hold_the_settings_and_no_secret(tmp_path: Path) -> None:
    facts = ingest_run(wandb_run(tmp_path / "run")).collect("facts")
    for source, own in facts.group_by("source"):
        assert not own.filter(pl.col("value").str.contains(MARK) | pl.col("key").str.contains(MARK)).height, source
    log = facts.filter(pl.col("source").str.ends_with(".wandb"))
    kept = dict(log.filter(pl.col("family") == "config").select("key", "value").iter_rows())
    assert {key: json.loads(kept[key]) for key in ("lr", "eos_token", "max_tokens", "optimizer.name")} == {
        "lr": 0.0625,
        "eos_token": "</s>",
        "max_tokens": 512,
        "optimizer.name": "adamw",
    }
    assert json.loads(kept["api_key"]) == json.loads(kept["db.password"]) == "***"
    assert "--api-key" in "".join(log.filter(pl.col("key") == "args")["value"])


def test_no_part_of_the_store_holds_one(tmp_path: Path) -> None:
    ingest_run(wandb_run(tmp_path / "run"), store=tmp_path / "store")
    parts = list((tmp_path / "store").rglob("*.parquet"))
    assert parts
    for part in parts:
        assert MARK not in "".join(map(str, pl.read_parquet(part).rows())), part


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs that no test changes."""
    top = tmp_path_factory.mktemp("runs")
    return wandb_run(top / "good"), wandb_run(top / "bad", 0.5)


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("form", ["text", "csv", "json", "jsonl"])
def test_no_query_prints_one(call: Call, runs: tuple[Path, Path], form: str) -> None:
    for table in ("facts", "events", "issues"):
        assert MARK not in call("query", runs[0], f"SELECT * FROM {table}", "-f", form, "--limit", 0).out


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("form", ["text", "json", "markdown", "github", "junit"])
def test_neither_a_verdict_nor_a_comparison_prints_one(call: Call, runs: tuple[Path, Path], form: str) -> None:
    good, bad = runs
    for asked in (("triage", bad), ("diff", good, bad), ("triage", bad, "--baseline", good)):
        done = call(*asked, "-f", form, "-v")
        assert MARK not in done.out + done.err
