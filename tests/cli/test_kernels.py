"""`forensics kernels` from files to text and exit codes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from forensics import pipeline

from .conftest import Call


def trace(path: Path, *, rank: int = 0, gemm_us: int = 60, device: bool = True) -> Path:
    def event(cat: str, name: str, ts: int, dur: int, tid: int | str = 7, **args: object) -> dict[str, object]:
        return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}

    events = [
        event("user_annotation", "ProfilerStep#3", 1000, 500),
        event("cuda_runtime", "cudaLaunchKernel", 1010, 4, correlation=11),
        event("cuda_runtime", "cudaLaunchKernel", 1020, 4, correlation=12),
    ]
    if device:
        events += [
            event("kernel", "toy_gemm_f32", 1030, gemm_us, 0, correlation=11, device=0, stream=0),
            event("kernel", "toy_add", 1200, 20, 0, correlation=12, device=0, stream=0),
        ]
    text = json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": rank}, "traceEvents": events}, indent=2)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_one_trace_gives_its_table(call: Call, tmp_path: Path) -> None:
    done = call("kernels", trace(tmp_path / "a.json"))
    assert done.code == 0
    for words in ("KERNELS  1 trace, 1 step", "toy_gemm_f32", "matmul", "0.190  100.0 %  span"):
        assert words in done.out


def test_two_traces_give_a_comparison(call: Call, tmp_path: Path) -> None:
    base, cand = trace(tmp_path / "a.json"), trace(tmp_path / "b.json.gz", gemm_us=90)
    done = call("kernels", base, cand, "--format", "json")
    assert done.code == 0
    assert done.document["schema"] == "forensics.kernels/1"
    change = done.document["diff"]["kernels"][0]
    assert (change["name"], change["state"]) == ("toy_gemm_f32", "grew")
    assert change["change_s"] == pytest.approx(30e-6)
    assert {f["source"] for f in done.document["coverage"]["files"]} == {str(base), str(cand)}


def test_a_folder_and_a_list_of_its_traces_are_the_same_job(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    traces = [trace(folder / f"rank{rank}.json", rank=rank) for rank in range(3)]
    listed, whole = call("kernels", *traces, "-f", "json").document, call("kernels", folder, "-f", "json").document
    assert [r["rank"] for r in listed["ranks"]] == [r["rank"] for r in whole["ranks"]] == [0, 1, 2]
    assert [r["busy_s"] for r in listed["ranks"]] == [r["busy_s"] for r in whole["ranks"]]


def test_the_same_file_name_in_three_folders_is_three_traces(call: Call, tmp_path: Path) -> None:
    paths: list[Path] = []
    for rank in range(3):
        (tmp_path / str(rank)).mkdir()
        paths.append(trace(tmp_path / str(rank) / "t.json", rank=rank))
    assert len({r["source"] for r in call("kernels", *paths, "-f", "json").document["ranks"]}) == 3


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_a_trace_without_device_work_cannot_say(call: Call, tmp_path: Path, form: str) -> None:
    assert call("kernels", trace(tmp_path / "a.json", device=False), "-f", form).code == 3


def test_a_run_without_a_trace_cannot_say_unless_told_to_pass(call: Call, good_run: Path) -> None:
    assert call("kernels", good_run).code == 3
    assert call("kernels", good_run, "--exit-zero").code == 0


def test_wrong_names_are_usage_errors(call: Call, tmp_path: Path) -> None:
    path = trace(tmp_path / "a.json")
    assert call("kernels", tmp_path / "none").code == 2
    assert call("kernels", path, "--like", "x").code == 2
    assert call("kernels", path, "--format", "x").code == 2
    assert call("kernels", path, "--top", "-1").code == 2
    assert call("kernels").code == 2


def test_a_cut_trace_says_what_was_lost_and_strict_fails(call: Call, tmp_path: Path) -> None:
    path = trace(tmp_path / "a.json")
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"toy_add")])
    done = call("kernels", path)
    assert done.code == 0
    assert "lost" in done.out
    assert call("kernels", path, "--strict").code == 4


@pytest.mark.parametrize(("options", "kept"), [((), {"-device"}), (("--store", "STORE"), {""})])
def test_only_a_store_that_was_asked_for_holds_the_whole_trace(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], kept: set[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(pipeline, "IN_MEMORY_BYTES", 1)
    place = tmp_path / "kept" if options else tmp_path / "cache" / "forensics" / "runs"
    asked = [str(place) if one == "STORE" else one for one in options]
    done = call("kernels", trace(tmp_path / "a.json"), *asked)
    assert done.code == 0
    assert "toy_gemm_f32" in done.out
    assert {one.name[16:] for one in place.iterdir()} == kept
