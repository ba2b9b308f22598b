"""A reader that fails is a loss, and no answer hides it: first lines, JSON and --strict, alike for every command."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forensics import registry
from forensics.errors import InputError, LimitExceeded, PlaceError
from forensics.formats.rows.out import Out
from forensics.io.limits import Limits
from forensics.io.reading import Opened
from forensics.registry import Registry
from forensics.values import replace

from .conftest import Call

FIXTURES = Path(__file__).parents[2] / "fixtures"
FAILURE = IndexError("index 12 is out of bounds")
#: Each command with runs of which it has something to say, and that one reader reads.
COMMANDS = {
    "triage": ("metrics_jsonl", "{nan}"),
    "report": ("metrics_jsonl", "{nan}"),
    "nan-origin": ("metrics_jsonl", "{nan}"),
    "diff": ("metrics_jsonl", "{good} {nan}"),
    "ingest": ("metrics_jsonl", "{nan} --store {fresh}"),
    "query": ("metrics_jsonl", "{nan}"),
    "export": ("metrics_jsonl", "{nan} --to csv --force -o {out}"),
    "kernels": ("chrome_trace", "{fixtures}/chrome_trace/ok-2026"),
    "memory": ("memory_snapshot", "{fixtures}/memory_snapshot/ok-leak-2.12"),
    "hang": ("flight_recorder", "{fixtures}/flight_recorder/ok-json"),
}

Break = Callable[[str, BaseException], None]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Break:
    """Let a reader account for the whole file, hand over its rows, and raise before its end."""
    load = registry.load

    def patch(name: str, error: BaseException) -> None:
        def failing(real: Callable[..., None]) -> Callable[..., None]:
            def read(opened: Opened, out: Out, limits: Limits) -> None:
                out.account(read_bytes=opened.size_bytes, records=1)
                real(opened, out, limits)
                raise error

            return read

        def loaded(*kinds: Any) -> Registry:
            found = load(*kinds)
            assert "ingesters" not in kinds or any(one.name == name for one in found.ingesters)
            readers = tuple(
                replace(one, read=failing(one.read)) if one.name == name else one for one in found.ingesters
            )
            return replace(found, ingesters=readers)

        monkeypatch.setattr(registry, "load", loaded)

    return patch


@pytest.fixture
def line(nan_run: Path, good_run: Path, tmp_path: Path) -> Callable[[str], list[str]]:
    places = {"nan": nan_run, "good": good_run, "fixtures": FIXTURES, "out": tmp_path / "out.csv"}
    numbers = itertools.count()

    def filled(command: str) -> list[str]:
        places["fresh"] = tmp_path / f"store-{next(numbers)}"
        return [command, *(word.format(**places) for word in COMMANDS[command][1].split())]

    return filled


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("command", COMMANDS)
def test_with_strict_every_command_exits_4_where_a_reader_failed(
    call: Call, line: Callable[[str], list[str]], broken: Break, command: str
) -> None:
    whole = call(*line(command))
    assert whole.code in {0, 1, 3}
    assert call(*line(command), "--strict").code == whole.code
    broken(COMMANDS[command][0], FAILURE)
    assert call(*line(command)).code in {0, 1, 3}
    assert call(*line(command), "--strict").code == 4
    assert call(*line(command), "--strict", "--exit-zero").code == 0


@pytest.mark.parametrize("form", ["text", "markdown", "github", "junit", "html"])
@pytest.mark.parametrize("command", ["triage", "report", "nan-origin", "diff", "ingest", "kernels", "memory", "hang"])
def test_what_was_lost_is_in_the_first_lines(
    call: Call, line: Callable[[str], list[str]], broken: Break, command: str, form: str
) -> None:
    if form not in {"triage": FORMS, "diff": FORMS - {"html"}, "report": {"html"}}.get(command, {"text", "markdown"}):
        return
    form_words = () if command == "report" else ("--format", form)
    assert "IndexError" not in call(*line(command), *form_words).out
    broken(COMMANDS[command][0], FAILURE)
    said = call(*line(command), *form_words).out
    head = said.partition("<main")[2].partition("<dl")[0] if form == "html" else "\n".join(said.splitlines()[:6])
    head = " ".join(head.split())
    assert f"{COMMANDS[command][0]} failed: IndexError: index 12 is out of bounds" in head.replace("%3A", ":")


FORMS = {"text", "markdown", "github", "junit", "html"}


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in {"report", "export"}])
def test_json_states_the_loss_and_the_file_is_never_read(
    call: Call, line: Callable[[str], list[str]], broken: Break, command: str
) -> None:
    broken(COMMANDS[command][0], FAILURE)
    document = call(*line(command), "--format", "json").document
    lost = [file for file in document["coverage"]["files"] if file["status"] == "partial"]
    assert lost
    for file in lost:
        assert (file["read_bytes"], file["skipped_bytes"]) == (0, file["size_bytes"])
        assert "failed: IndexError: index 12 is out of bounds" in file["reason"]
    assert document["coverage"]["lost_bytes"] >= lost[0]["size_bytes"]
    assert "ingester-failed" in {issue["code"] for issue in document["issues"]}


@pytest.mark.parametrize("command", ["query", "export"])
def test_a_command_that_shows_rows_notes_the_loss(
    call: Call, line: Callable[[str], list[str]], broken: Break, command: str
) -> None:
    assert "could not be read" not in call(*line(command)).err
    broken(COMMANDS[command][0], FAILURE)
    assert "could not be read" in call(*line(command)).err


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (InputError("no more of it"), "no more of it"),
        (LimitExceeded("nodes", limit=3, actual=4), "nodes: 4 is over the limit of 3"),
        (MemoryError(), "metrics_jsonl failed: MemoryError"),
        (OSError(5, "Input/output error"), "metrics_jsonl failed: OSError"),
        (ValueError("bad"), "metrics_jsonl failed: ValueError: bad"),
        (RecursionError(), "metrics_jsonl failed: RecursionError"),
    ],
)
def test_whatever_ends_a_reader_costs_its_file_and_says_why(
    call: Call, nan_run: Path, broken: Break, error: BaseException, reason: str
) -> None:
    (nan_run / "train.log").write_text("".join(f"step {n} loss {4 - n / 50}\n" for n in range(1, 81)))
    broken("metrics_jsonl", error)
    done = call("triage", nan_run, "--format", "json")
    files = {file["source"]: file for file in done.document["coverage"]["files"]}
    assert files["metrics.jsonl"]["status"] == "partial"
    assert reason in files["metrics.jsonl"]["reason"]
    assert files["train.log"]["status"] == "read"


def test_a_panic_of_the_table_engine_costs_its_file(call: Call, nan_run: Path, broken: Break) -> None:
    import polars as pl  # noqa: PLC0415 - its panic is no Exception

    broken("metrics_jsonl", pl.exceptions.PanicException("index out of bounds"))
    assert "PanicException" in call("triage", nan_run).out


def test_a_place_of_our_own_that_is_refused_is_no_loss_of_a_file(call: Call, nan_run: Path, broken: Break) -> None:
    broken("metrics_jsonl", PlaceError("the store", OSError(28, "No space left")))
    done = call("triage", nan_run)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: the store: the disk is full\n  help: ")


def test_rows_before_the_failure_are_kept_and_only_their_bytes_count(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(opened: Opened, out: Out, limits: Limits) -> None:
        assert limits.batch_rows
        out.account(read_bytes=100, records=2)
        out.rows("metrics", {"name": ["loss"], "raw_name": ["loss"], "seq": [0], "byte": [0], "value": [1.5]})
        out.account(read_bytes=opened.size_bytes - 100)
        raise FAILURE

    load = registry.load
    reader = replace(load("ingesters").ingesters[0], name="own", read=read)
    monkeypatch.setattr(registry, "load", lambda *k: replace(load(*k), ingesters=(
        replace(reader, sniff=replace(reader.sniff, glob=("*",))),
    )))  # fmt: skip
    (tmp_path / "a.own").write_bytes(b"x" * 250)
    done = call("ingest", tmp_path / "a.own", "--format", "json")
    (file,) = done.document["coverage"]["files"]
    assert (file["status"], file["read_bytes"], file["skipped_bytes"]) == ("partial", 100, 150)
    assert done.document["tables"]["metrics"] == 1


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs links and modes")
def test_last_rows_that_are_no_rows_of_their_table_cost_their_file(
    call: Call, nan_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(opened: Opened, out: Out, limits: Limits) -> None:
        assert limits.batch_rows
        out.rows("metrics", {"name": ["loss"], "no_such_column": [1]})
        out.account(read_bytes=opened.size_bytes)

    load = registry.load
    (reader,) = (one for one in load("ingesters").ingesters if one.name == "text_log")
    own = replace(reader, read=read)
    monkeypatch.setattr(registry, "load", lambda *k: replace(load(*k), ingesters=(own,)))
    done = call("ingest", nan_run, "--format", "json")
    assert {file["status"] for file in done.document["coverage"]["files"]} == {"partial"}
    assert {issue["code"] for issue in done.document["issues"]} == {"ingester-failed"}


def test_a_file_that_cannot_be_opened_any_more_is_lost(
    call: Call, nan_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forensics import pipeline  # noqa: PLC0415 - patched

    (nan_run / "b.log").write_text("step 1 loss 2\n")
    discover = pipeline.discover

    def then_removed(*given: Any) -> Any:
        found = discover(*given)
        (nan_run / "b.log").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(pipeline, "discover", then_removed)
    assert call("triage", nan_run, "--strict").code == 4
    (nan_run / "b.log").write_text("step 1 loss 2\n")
    done = call("triage", nan_run, "--format", "json")
    (lost,) = [file for file in done.document["coverage"]["files"] if file["source"] == "b.log"]
    assert (lost["status"], lost["reason"].startswith("unreadable: ")) == ("skipped", True)
    assert json.loads(done.out)["verdict"]["outcome"] == "failed"
