"""The page of `kernels`: its tables, its document, and that nothing of a hostile trace acts in it."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import jsonschema
import polars as pl
import pytest

from forensics.analyses.traces.kernel_categories import like_kempnerforge
from forensics.compare.kernel_profile import KernelProfile, profile
from forensics.compare.kernels import KernelDiff, diff
from forensics.report.pages.kernels import LAYOUT, Page, has_work
from forensics.store.run import Run, run_of

HOSTILE = "\x1b]0;x\x07 <b>|`##[error]` \u202e void gemm\nsecond line"
MS = 1_000_000


def spans(*rows: tuple[str, str, int, int], rank: int = 0, steps: int = 1, step_ms: int = 100) -> pl.DataFrame:
    marks = [("user_annotation", f"ProfilerStep#{n}", n * step_ms, step_ms) for n in range(steps)]
    launches = [("cuda_runtime", "cudaLaunchKernel", row[2], 0) for row in rows]
    frame = [
        {
            "source": f"r{rank}.json",
            "rank": rank,
            "seq": seq,
            "category": category,
            "name": name,
            "start_ns": start * MS,
            "dur_ns": dur * MS,
            "step": int(name[13:]) if name.startswith("ProfilerStep#") else None,
            "correlation": None if seq < steps else 1 + (seq - steps) % max(1, len(rows)),
            "thread": "1/1" if category in {"user_annotation", "cuda_runtime"} else None,
        }
        for seq, (category, name, start, dur) in enumerate([*marks, *launches, *rows])
    ]
    return pl.DataFrame(frame, infer_schema_length=None)


def traced(name: str, *frames: pl.DataFrame) -> Run:
    return run_of(name, {"spans": pl.concat(frames)})


GEMM, NCCL, COPY = (
    ("kernel", "sm90_xmma_gemm_bf16", 0, 40),
    ("kernel", "ncclDevKernel_AllReduce", 30, 20),
    (
        "gpu_memcpy",
        "Memcpy HtoD (Pageable -> Device)",
        60,
        10,
    ),
)
BASE = traced("base", spans(GEMM, NCCL, COPY))
CAND = traced("cand", spans(GEMM, NCCL, ("kernel", "triton_poi_fused_add", 60, 30), steps=2))


def said(page: Page, form: str = "text") -> str:
    return "\n".join(LAYOUT.render(page, form))


def schema() -> dict[str, Any]:
    return json.loads((files("forensics.report") / "_schema/kernels-1.schema.json").read_text(encoding="utf-8"))


def document(page: Page) -> dict[str, Any]:
    found = json.loads(said(page, "json"))
    jsonschema.validate(found, schema())
    return found


def compared() -> tuple[KernelDiff, Page]:
    found = diff(BASE, CAND)
    return found, Page(found.cand, found)


def test_the_shipped_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_the_document_has_times_in_seconds_and_shares_of_one() -> None:
    rank = document(Page(profile(BASE)))["ranks"][0]
    times = {key: rank[key] for key in ("span_s", "busy_s", "idle_s", "compute_s", "comm_s", "memory_s")}
    assert times == pytest.approx(
        {"span_s": 0.07, "busy_s": 0.06, "idle_s": 0.01, "compute_s": 0.04, "comm_s": 0.02, "memory_s": 0.01}
    )
    assert rank["overlap_share"] == pytest.approx(0.5)
    assert [(c["name"], c["share"], c["count"]) for c in rank["categories"]] == [
        ("matmul", pytest.approx(4 / 7), 1),
        ("communication", pytest.approx(2 / 7), 1),
        ("memory", pytest.approx(1 / 7), 1),
    ]
    assert rank["steps"][0]["busy_s"] == pytest.approx(0.06)


def test_a_run_without_traces_cannot_say_and_keeps_to_the_schema() -> None:
    page = Page(profile(Run("empty")))
    assert document(page)["ranks"] == []
    assert said(page).startswith("CANNOT SAY  no profiler trace")
    assert not has_work(page.profile)


def test_a_trace_of_the_host_only_has_its_steps_and_no_table_of_zeros() -> None:
    page = Page(profile(traced("cpu", spans())), per_step=True)
    assert said(page).startswith("CANNOT SAY  the traces have no work of a device")
    assert "TIME" not in said(page)
    assert document(page)["ranks"][0]["steps"][0]["dur_s"] == pytest.approx(0.1)


def test_two_traces_are_compared_per_step_so_a_longer_window_is_no_growth() -> None:
    found, page = compared()
    assert (found.per, found.base_units, found.cand_units) == ("step", 1, 1), "the second step launched nothing"
    twice = traced("twice", spans(GEMM, NCCL, COPY, ("kernel", "sm90_xmma_gemm_bf16", 100, 40), steps=2))
    changes = {c.name: c for c in diff(BASE, twice).kernels}
    assert changes["sm90_xmma_gemm_bf16"].state == "same"
    assert changes["ncclDevKernel_AllReduce"].change_ns == -10 * MS
    assert document(page)["diff"]["per"] == "step"


def test_what_is_new_and_what_is_gone_is_told_by_category_and_by_kernel() -> None:
    found, page = compared()
    assert {c.name: c.state for c in found.kernels} == {
        "triton_poi_fused_add": "new",
        "Memcpy HtoD (Pageable -> Device)": "gone",
        "sm90_xmma_gemm_bf16": "same",
        "ncclDevKernel_AllReduce": "same",
    }
    assert found.kernels[0].name == "triton_poi_fused_add", "the largest change stands first"
    assert {c.name: c.change_ns for c in found.categories}["memory"] == -10 * MS
    assert re.search(r"\+30\.000 .* new +triton_poi_fused_add", said(page))


def test_without_steps_on_both_sides_a_trace_is_the_unit() -> None:
    bare = traced("bare", spans(GEMM, steps=0))
    assert diff(bare, CAND).per == "trace"


def test_the_four_rows_of_kempnerforge() -> None:
    names = {c.name for c in profile(CAND, like_kempnerforge).ranks[0].categories}
    assert names == {"MatMul/GEMM", "Communication (NCCL)", "Other kernels"}


def test_several_ranks_have_a_line_each_and_by_themselves_a_section_each() -> None:
    found = profile(traced("job", spans(GEMM, NCCL), spans(GEMM, NCCL, rank=1)))
    assert [r.rank for r in found.ranks] == [0, 1]
    assert "RANKS" in said(Page(found))
    assert "TIME OF RANK 1" not in said(Page(found))
    assert "TIME OF RANK 1" in said(Page(found, per_rank=True))


def test_top_limits_the_kernels_and_zero_shows_all() -> None:
    found = profile(BASE)
    assert [len(document(Page(found, top=top))["ranks"][0]["top"]) for top in (1, 2, 0)] == [1, 2, 3]


def test_work_from_before_the_window_is_named() -> None:
    frame = spans(GEMM, COPY).with_columns(
        correlation=pl.when(pl.col("name") == GEMM[1]).then(None).otherwise("correlation"),
        stream=pl.when(pl.col("category") == "user_annotation").then(None).otherwise(pl.lit("7")),
    )
    page = Page(profile(traced("early", frame)))
    assert "1 piece of device work (40.000 ms: 1 x sm90_xmma_gemm_bf16)" in " ".join(said(page).split())
    assert document(page)["ranks"][0]["before_window"]["count"] == 1


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_nothing_of_a_hostile_trace_reaches_the_reader_raw(form: str) -> None:
    hostile = traced(HOSTILE, spans(("kernel", HOSTILE, 0, 40), ("kernel", "a|b`c", 50, 5)))
    found: KernelProfile = profile(hostile)
    for page in (Page(found, per_step=True, per_rank=True), Page(found, diff(hostile, CAND))):
        text = said(page, form)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)
        assert "second line" not in text.split("\n")


def test_text_fits_eighty_columns() -> None:
    long = ("kernel", "void at::native::" + "vectorized_elementwise_kernel<" * 20, 70, 5)
    _, page = compared()
    for text in (said(Page(profile(traced("long", spans(GEMM, long))), per_step=True)), said(page)):
        assert max(len(line) for line in text.split("\n")) <= 80
