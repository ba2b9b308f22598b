"""A run that is slower than it could be: what each step loses, and what mends it under these settings."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.unit.symptoms.kit import report, told, written

if TYPE_CHECKING:
    from pathlib import Path


def rows(**values: float) -> str:
    """Records of 60 steps with a falling loss; a value has a hundredth of noise."""
    return "".join(
        json.dumps({"step": n, "loss": 3 - n / 100, **{k: v * (1 + 0.01 * (n % 3 - 1)) for k, v in values.items()}})
        + "\n"
        for n in range(1, 61)
    )


def test_a_wait_for_data_in_each_step_names_the_loader_and_its_workers(tmp_path: Path) -> None:
    files = {"metrics.jsonl": rows(step_time=0.5, data_time=0.225), "config.yaml": "num_workers: 2\n"}
    page = told(written(tmp_path, files))
    assert "SUSPECT slowdown" in page
    assert "The wait for data is 45 % of each step" in page
    assert "prefetch_factor, pin_memory and persistent_workers: the device waits for data (now num_workers = 2" in page
    assert "pack sequences" in page


@pytest.mark.parametrize("line", ["time: {step:.4f}  data: {data:.4f}", "step_time {step:.4f} | data_time {data:.4f}"])
def test_the_wait_is_read_from_log_lines(tmp_path: Path, line: str) -> None:
    lines = (
        f"Epoch: [0]  [{n:4d}/1000]  eta: 0:08:11  lr: 0.000300  loss: {3 - n / 900:.4f} ({3 - n / 900:.4f})  "
        f"{line.format(step=0.5, data=0.2 + n % 7 / 1000)}  max mem: 15821\n"
        if line.startswith("time")
        else f"step {n} | loss {3 - n / 900:.4f} | {line.format(step=0.5, data=0.2 + n % 7 / 1000)}\n"
        for n in range(10, 610, 10)
    )
    assert "of each step (median 0.20" in told(written(tmp_path, {"train.log": "".join(lines)}))


@pytest.mark.parametrize("wait_s", [0.01, 0.09])
def test_a_loader_that_keeps_up_is_no_warning(tmp_path: Path, wait_s: float) -> None:
    said = report(written(tmp_path, {"metrics.jsonl": rows(step_time=0.5, data_time=wait_s)}))
    assert "warning" not in {f.severity.value for f in said.findings}


def test_the_wait_is_found_where_each_number_is_a_record_of_its_own(tmp_path: Path) -> None:
    lines = (
        json.dumps({"step": n, name: value}) + "\n"
        for n in range(1, 61)
        for name, value in (("loss", 3 - n / 100), ("step_time", 0.7), ("data_time", 0.2 + n % 3 / 1000))
    )
    assert "The wait for data is 29 % of each step" in told(written(tmp_path, {"metrics.jsonl": "".join(lines)}))


@pytest.mark.parametrize(("percent", "warns"), [(55, True), (9, False)])
def test_padding_is_read_in_per_cent(tmp_path: Path, percent: int, *, warns: bool) -> None:
    said = report(written(tmp_path, {"metrics.jsonl": rows(pad_pct=percent)}))
    assert ("padding" in {f.cause for f in said.findings}) is warns


@pytest.mark.parametrize(("name", "of_padding", "warns"), [("pad_tokens", 4100, True), ("padding_tokens", 700, False)])
def test_padding_is_read_in_tokens(tmp_path: Path, name: str, of_padding: int, *, warns: bool) -> None:
    said = report(written(tmp_path, {"metrics.jsonl": rows(tokens_per_step=8192, **{name: of_padding})}))
    assert ("padding" in {f.cause for f in said.findings}) is warns


def test_padding_in_tokens_without_those_of_the_batch_is_no_share(tmp_path: Path) -> None:
    said = report(written(tmp_path, {"metrics.jsonl": rows(pad_tokens=1)}))
    assert "padding" not in {f.cause for f in said.findings}


def test_padding_asks_for_packing(tmp_path: Path) -> None:
    files = {
        "metrics.jsonl": rows(tokens_per_step=8192, non_pad_tokens=4100),
        "config.yaml": "base_model: m\nsample_packing: false\n",
    }
    page = told(written(tmp_path, files))
    assert "50 % of the tokens of each step are padding" in page
    assert "fix Pack several samples into one sequence" in page
    assert "(now sample_packing = false, config.yaml:2)" in page


def test_sequences_that_are_nearly_full_are_not_told_of(tmp_path: Path) -> None:
    said = report(written(tmp_path, {"metrics.jsonl": rows(tokens_per_step=8192, non_pad_tokens=7000)}))
    assert said.findings == ()


def test_a_count_from_the_start_is_no_whole_of_the_tokens_of_one_step(tmp_path: Path) -> None:
    lines = (
        json.dumps({"step": n, "loss": 3 - n / 100, "tokens": 8192 * n, "non_pad_tokens": 8000 + n % 7}) + "\n"
        for n in range(1, 61)
    )
    assert report(written(tmp_path, {"metrics.jsonl": "".join(lines)})).findings == ()


def test_steps_that_became_slow_ask_for_a_profile_of_steady_steps(tmp_path: Path) -> None:
    lines = (
        f"[2025-11-20 08:{n // 60:02}:{n % 60:02}] INFO kempnerforge: [step {n}] loss={3 - n / 900:.4f} | "
        f"step_time={(0.5 if n < 200 else 1.0) * (1 + 0.01 * (n % 3 - 1)):.3f}s\n"
        for n in range(1, 401)
    )
    page = told(written(tmp_path, {"train.log": "".join(lines)}))
    assert "FAILED slowdown" in page
    assert "--profiling.enable=true --profiling.start_step=100 --profiling.end_step=108" in page
    assert report(tmp_path).verdict.culprits == ()


def trace(first: int, *work: tuple[str, int], ranges: int = 4) -> str:
    """A Chrome trace of some steps of 1000 µs; `work` is the kernels of a step, each after the one before."""
    events: list[dict[str, object]] = []
    for n in range(first, first + ranges):
        start = 1_000_000 + 1000 * (n - first)
        events.append(
            {
                "ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 7, "tid": 7, "ts": start,
                "dur": 1000, "args": {},
            }
        )  # fmt: skip
        for name, dur in work:
            device = {"device": 0, "stream": 7}
            events.append(
                {
                    "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": dur,
                    "args": device,
                }
            )  # fmt: skip
            start += dur
    return json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H100"}], "traceEvents": events})


GEMM, NCCL, FULL = "sm90_xmma_gemm_bf16bf16_bf16f32", "ncclDevKernel_AllReduce_Sum_bf16", "ampere_sgemm_128x64_tn"


def test_a_device_that_idles_for_no_proven_cause_is_told(tmp_path: Path) -> None:
    page = told(written(tmp_path, {"trace.json": trace(100, (GEMM, 650))}))
    assert "SUSPECT slowdown" in page
    assert "The device is idle for" in page
    assert "ui.perfetto.dev" in page


def test_a_device_that_is_nearly_always_busy_is_not_told_as_idle(tmp_path: Path) -> None:
    said = report(written(tmp_path, {"trace.json": trace(100, (GEMM, 950))}))
    assert said.findings == ()


@pytest.mark.parametrize("first", [0, 5])
def test_a_trace_of_the_first_steps_is_one_of_the_warm_up(tmp_path: Path, first: int) -> None:
    page = told(written(tmp_path, {"trace.json": trace(first, (GEMM, 1000))}))
    assert "the profile is of the warm-up, and its shares are not those of the run" in " ".join(
        f.title for f in report(tmp_path).findings
    )
    assert "skip_first=20" in page


def test_advice_from_a_trace_of_the_warm_up_begins_with_a_later_trace(tmp_path: Path) -> None:
    early = told(written(tmp_path / "a", {"trace.json": trace(0, (GEMM, 500), (NCCL, 400))}))
    late = told(written(tmp_path / "b", {"trace.json": trace(100, (GEMM, 500), (NCCL, 400))}))
    assert "fix Take the trace again at steady steps (start_step 100, skip_first)" in early
    assert "fix Overlap communication" in late


def test_steps_that_axolotl_is_told_to_profile_are_judged_alike(tmp_path: Path) -> None:
    early = report(written(tmp_path / "a", {"config.yaml": "base_model: m\nprofiler_steps: [1, 2, 3]\n"}))
    late = report(written(tmp_path / "b", {"config.yaml": "base_model: m\nprofiler_steps: [21, 22, 23]\n"}))
    assert [f.cause for f in early.findings] == ["trace_of_warmup"]
    assert late.findings == ()


@pytest.mark.parametrize(
    ("enable", "end", "causes"),
    [("true", 8, ["trace_of_warmup"]), ("true", 108, []), ("false", 8, [])],
)
def test_a_profiler_that_ends_in_the_warm_up_is_told_where_it_is_on(
    tmp_path: Path, enable: str, end: int, causes: list[str]
) -> None:
    files = {"config.toml": f"[profiling]\nenable = {enable}\nstart_step = 2\nend_step = {end}\n"}
    assert [f.cause for f in report(written(tmp_path, files)).findings] == causes


def test_matrix_products_in_fp32_ask_for_the_fast_path(tmp_path: Path) -> None:
    page = told(written(tmp_path, {"trace.json": trace(100, (FULL, 500), (GEMM, 500))}))
    assert "50 % of the device's time is matrix products in fp32, without tensor cores" in page
    assert 'torch.set_float32_matmul_precision("high")' in page
    assert "multiples of 8" in page


def slowed(at: int = 300) -> str:
    return "".join(
        json.dumps({"step": n, "loss": 3 - n / 900, "step_time": (0.5 if n < at else 1.0) * (1 + 0.01 * (n % 3 - 1))})
        + "\n"
        for n in range(1, 601)
    )


def test_what_grew_between_two_traces_is_the_cause_of_a_slowdown_between_them(tmp_path: Path) -> None:
    files = {
        "metrics.jsonl": slowed(),
        "trace_100.json": trace(100, (GEMM, 900), (NCCL, 50)),
        "trace_500.json": trace(500, (GEMM, 500), (NCCL, 450)),
    }
    page = told(written(tmp_path, files))
    assert "FAILED slowdown" in page
    assert "onset step 300" in page
    assert "(communication_grew, confidence" in page
    assert "error counters of the links" in page


@pytest.mark.parametrize(
    ("kernel", "cause", "remedy"),
    [
        (NCCL, "communication_grew", "error counters of the links"),
        ("void at::native::elementwise_kernel<128, 4>", "other_kernels_grew", "graph breaks"),
    ],
)
def test_traces_whose_clocks_begin_alike_are_ordered_by_their_steps(
    kernel: str, cause: str, remedy: str, tmp_path: Path
) -> None:
    files = {
        "metrics.jsonl": slowed(),
        "good/trace.json": trace(100, (GEMM, 900), (kernel, 50)),
        "bad/trace.json": trace(500, (GEMM, 500), (kernel, 450)),
    }
    page = told(written(tmp_path, files))
    assert f"({cause}, confidence" in page
    assert remedy in page


@pytest.mark.parametrize(("busy", "cause"), [(450, "idle_grew"), (930, "slow_steps")])
def test_idle_time_that_grew_between_two_traces_is_the_cause_of_a_slowdown(
    tmp_path: Path, busy: int, cause: str
) -> None:
    files = {
        "metrics.jsonl": slowed(),
        "trace_100.json": trace(100, (GEMM, 950)),
        "trace_500.json": trace(500, (GEMM, busy)),
    }
    page = told(written(tmp_path, files))
    assert f"({cause}, confidence" in page
    assert ("Open the later trace at its longest gaps" in page) == (cause == "idle_grew")


def test_traces_that_were_both_taken_before_a_slowdown_do_not_explain_it(tmp_path: Path) -> None:
    files = {
        "metrics.jsonl": slowed(),
        "trace_100.json": trace(100, (GEMM, 900), (NCCL, 50)),
        "trace_200.json": trace(200, (GEMM, 500), (NCCL, 450)),
    }
    assert report(written(tmp_path, files)).verdict.cause == "slow_steps"


@pytest.mark.parametrize(
    ("settings", "mfu", "outcome"),
    [
        ("attn_implementation: eager\nbf16: true\n", 9.0, "SUSPECT slowdown"),
        ("bf16: false\n", 9.0, "SUSPECT slowdown"),
        ("attn_implementation: flash_attention_2\nbf16: true\n", 9.0, "HEALTHY"),
        ("attn_implementation: eager\nbf16: false\n", 41.0, "HEALTHY"),
    ],
)
def test_a_low_use_of_the_device_warns_where_the_settings_keep_the_fast_path_off(
    tmp_path: Path, settings: str, mfu: float, outcome: str
) -> None:
    log = "".join(f"step={n} loss={3 - n / 100:.3f} step_time=0.5 mfu={mfu + n % 3 / 10}\n" for n in range(1, 61))
    files = {"train.log": log + "Training complete.\n", "config.yaml": settings}
    assert told(written(tmp_path, files)).startswith(outcome)


@pytest.mark.parametrize(
    ("before", "after", "slower"),
    [
        ("world_size: 64", "world_size: 32", False),
        ("using world size: 64, data-parallel size: 8", "using world size: 32, data-parallel size: 4", False),
        ("Num processes: 64", "Num processes: 32", False),
        ("Distributed: 64 GPUs", "Distributed: 32 GPUs", False),
        ("world_size: 64", "world_size: 64", True),
        ("world_size: 64", "world_size: 48", True),
        ("world_size: 32", "world_size: 64", True),
    ],
)
def test_steps_that_fewer_devices_share_are_not_slower(
    tmp_path: Path, before: str, after: str, *, slower: bool
) -> None:
    lines = [
        f"step={n} loss={3 - n / 300:.4f} dt={(0.4 if n <= 150 else 0.8) * (1 + 0.01 * (n % 3 - 1)):.4f}s"
        for n in range(1, 301)
    ]
    again = ["Resuming from checkpoint ckpt/step_150", after]
    log = "\n".join([before, *lines[:150], *again, *lines[150:]]) + "\n"
    verdict = report(written(tmp_path, {"train.log": log})).verdict
    assert (verdict.shape == "slowdown") is slower


@pytest.mark.parametrize(("is_clock", "shape"), [(False, "slowdown"), (True, None)])
def test_a_bare_time_is_that_of_a_step_where_it_is_measured_anew(
    is_clock: bool, shape: str | None, tmp_path: Path
) -> None:
    took_s, clock_s, lines = [(0.5 if n <= 100 else 1.0) * (1 + 0.01 * (n % 3 - 1)) for n in range(1, 181)], 0.0, ""
    for n, seconds in enumerate(took_s, 1):
        clock_s += 0.5
        record = {"iteration": n, "total_loss": 3 - n / 100, "time": clock_s if is_clock else seconds}
        lines += json.dumps(record) + "\n"
    verdict = report(written(tmp_path, {"metrics.json": lines})).verdict
    assert verdict.shape == shape
    assert is_clock or verdict.onset.step == 101


def boxes(slow_from: int) -> str:
    """Fifty tables of Stable-Baselines3, 64 steps of 2 ms each, then of 5 ms; `fps` is a mean since the start."""
    lines, passed_s = [], 0.0
    for table in range(1, 51):
        passed_s += 64 * (0.005 if table >= slow_from else 0.002) * (1 + 0.02 * (table % 3 - 1))
        row = "|    {:<19} | {:<8} |\n".format
        said = {"fps": f"{table * 64 / passed_s:.0f}", "total_timesteps": str(table * 64), "loss": f"{1 / table:.4f}"}
        lines.append("-" * 36 + "\n" + "".join(row(*pair) for pair in said.items()) + "-" * 36 + "\n")
    return "Using cpu device\n" + "".join(lines)


def test_a_mean_rate_since_the_start_is_taken_apart_to_find_where_it_became_slower(tmp_path: Path) -> None:
    page = told(written(tmp_path, {"train.log": boxes(slow_from=30)}))
    assert "SUSPECT slowdown" in page
    took_s, before_s = map(float, re.findall(r"takes ([\d.]+) s instead of ([\d.]+) s", page)[0])
    assert took_s == pytest.approx(0.005, rel=0.05)
    assert before_s == pytest.approx(0.002, rel=0.05)
    assert "from step 1920 on" in page


def test_a_steady_mean_rate_is_no_slowdown(tmp_path: Path) -> None:
    assert "SUSPECT" not in told(written(tmp_path, {"train.log": boxes(slow_from=99)}))


def test_numbers_that_jump_as_no_mean_does_are_no_mean_since_the_start(tmp_path: Path) -> None:
    page = boxes(slow_from=99)
    jumping = (f"{900 + 20 * (n % 3 - 1)}" for n in range(99))
    page = re.sub(r"(\| +fps +\| )\d+", lambda row: row[1] + next(jumping), page)
    assert "SUSPECT" not in told(written(tmp_path, {"train.log": page}))


@pytest.mark.parametrize(
    ("names", "is_slow"), [(("compute_s", "allreduce_s"), True), (("compute_ms", "sync_ms"), True), (("depth",), False)]
)
def test_the_parts_of_a_step_are_its_clock_where_no_whole_time_is_printed(
    tmp_path: Path, names: tuple[str, ...], *, is_slow: bool
) -> None:
    lines = (
        json.dumps({"step": n, "loss": 3 - n / 100} | dict.fromkeys(names, (1 + 3 * (n > 60)) * (0.1 + n % 3 / 1000)))
        + "\n"
        for n in range(1, 121)
    )
    said = report(written(tmp_path, {"metrics.jsonl": "".join(lines)}))
    assert [f.onset.step for f in said.findings if f.rule == "SLO001"] == [61] * is_slow


@pytest.mark.parametrize(("grown", "cause"), [(0.2, "dataloader"), (0.02, "slow_steps")])
def test_the_wait_beside_a_rate_is_why_where_it_grew_by_more_than_all(tmp_path: Path, grown: float, cause: str) -> None:
    lines = (
        f"{n:06d} || ce {3 - n / 100 + n % 3 / 20:.3f} || load {(0.01 if n <= 60 else grown) + n % 3 / 1000:.3f}s || "
        f"{(2000 if n <= 60 else 300) + n % 5} img/s\n"
        for n in range(1, 121)
    )
    said = report(written(tmp_path, {"train.log": "".join(lines)}))
    assert [f.cause for f in said.findings if f.rule == "SLO001"] == [cause]
