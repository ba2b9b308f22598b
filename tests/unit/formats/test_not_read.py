"""Files that are not read are named with the reason, by bytes before names; text of such a name is left to others."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.not_read import read, table
from forensics.pipeline import ingest_run

Run = Callable[..., Any]
BINARY = bytes(range(256)) * 4


@pytest.mark.parametrize(
    ("path", "data", "what"),
    [
        ("profile.nsys-rep", BINARY, "Nsight Systems report"),
        ("profile.qdrep", BINARY, "Nsight Systems report"),
        ("kernels.ncu-rep", b"NVR\0" + BINARY, "Nsight Compute report"),
        ("core.812", b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x04\0" + b"\0" * 40, "core dump of a process"),
        ("x", b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x04\0" + b"\0" * 40, "core dump of a process"),
        ("lib.so", b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x03\0" + b"\0" * 40, "program or shared library"),
        ("state.pkl", b"\x80\x04\x95\0\0", "pickle"),
        ("whatever", b"\x80\x04\x95\0\0", "pickle"),
        ("5e" * 16 + ".zip", b"PK\x03\x04\x14\0\0\0", "offline experiment of Comet"),
        ("data.zip", b"PK\x03\x04\x14\0\0\0", "zip archive"),
        ("data.jar", b"PK\x03\x04\x14\0\0\0", "zip archive"),
        ("a.db", b"SQLite format 3\0" + b"\0" * 84, "SQLite database"),
        ("a.db-wal", b"\x37\x7f\x06\x83" + b"\0" * 28, "write-ahead log of a SQLite database"),
        ("model.safetensors", BINARY, "weights (safetensors)"),
        ("profile.dcgm", BINARY, "DCGM recording"),
        (".aim/meta/chunks/7f/LOG", b"2025/07/09 RocksDB version: 8\n", "store of Aim"),
        ("run/.neptune/offline/x", b"text", "offline data of Neptune"),
        ("000012.sst", BINARY[:40] + b"\xf7\xcf\xf4\x85\xb7\x41\xe2\x88", "key-value store (RocksDB, LevelDB)"),
    ],
)
def test_a_known_file_is_named_and_all_its_bytes_are_accounted_for(run: Run, path: str, data: bytes, what: str) -> None:
    wrote = run(read, path, data)
    assert wrote.coverage.format == what
    assert wrote.coverage.skipped_bytes == len(data)
    assert wrote.coverage.reason.startswith(f"{what}, not read: ")


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("model.safetensors", b"version https://example.org\n"),
        ("GIF89 of a log", b"GIF89 loss 2.5\n"),
        ("core.txt", b"step 1 loss 2.5\n"),
        ("empty.pkl", b""),
        ("notes.dat", "\ufeffloss 2".encode("utf-16")),
        ("unknown", BINARY),
    ],
)
def test_text_and_unknown_bytes_are_left_to_others(run: Run, path: str, data: bytes) -> None:
    with pytest.raises(NotMine):
        run(read, path, data)


def test_what_is_packed_is_named_with_its_packing(run: Run) -> None:
    assert run(read, "x.pkl.gz", gzip.compress(b"\x80\x04\x95\0\0")).coverage.format == "pickle (gzip)"


def test_the_table_names_each_kind_with_a_reason() -> None:
    for known in table():
        assert known.what
        assert known.why
        assert known.globs or known.magics


def test_a_run_with_such_files_says_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "train.nsys-rep").write_bytes(BINARY)
    (tmp_path / "log_of_a_core").write_bytes(b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x04\0" + b"\0" * 4000)
    (tmp_path / ".aim").mkdir()
    (tmp_path / ".aim" / "LOG").write_bytes(b"Traceback (most recent call last):\nValueError: x\n")
    run = ingest_run(tmp_path)
    frame = run.scan("sources").collect().sort("path")
    assert set(frame["ingester"]) == {"not_read"}
    assert set(frame["status"]) == {"skipped"}
    assert run.scan("events").collect().is_empty()
