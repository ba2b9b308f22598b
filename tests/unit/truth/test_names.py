"""Names: stems, units and the numbers themselves tell what a metric is; what is unknown is said to be read."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from forensics.cli.main import run as command
from forensics.dialects.names import measured, unit_of
from forensics.model import Outcome, Shape
from tests.unit.truth._runs import DONE, falling, judged, said, shape, write

NAN = (Outcome.FAILED, Shape.NAN)
LEAK = (Outcome.SUSPECT, Shape.OOM)


def growing(memory: str) -> list[str]:
    """A loss that falls beside a memory that grows by 120 units a step."""
    return [
        *(f"step {at} | loss {3 - at / 100:.4f} | " + memory.format(v=4000 + 120 * at) for at in range(200)),
        DONE,
    ]


@pytest.mark.parametrize(
    "memory",
    [
        *("rss {v}MB", "mem={v}MB", "memory: {v} MiB", "gpu_mem {v}MiB", "mem {v} MB", "mem_mb {v}", "rss_mb={v}"),
        *("gpu_mb {v}", "ram: {v} Mo", "ram_mo={v}", "mem {v}", "rss {v}"),
    ],
)
def test_memory_is_known_by_its_stem_and_a_unit_of_bytes_or_a_size_beyond_a_share(memory: str, tmp_path: Path) -> None:
    assert shape(said(tmp_path, growing(memory))) == LEAK


@pytest.mark.parametrize(
    "memory", ["memory={v}ms", "members {v}MB", "mem_per {v}", "gpu {v}", "ram_model={v}", "peak {v}"]
)
def test_a_stem_without_a_unit_of_bytes_is_no_memory(memory: str, tmp_path: Path) -> None:
    found = judged(tmp_path, {"train.log": growing(memory)})
    assert found.verdict.outcome is Outcome.HEALTHY


def test_a_cell_of_a_table_may_be_a_number_with_its_unit(tmp_path: Path) -> None:
    def table(unit: str, rows: int) -> list[str]:
        return ["step,loss,mem", *(f"{at},{3 - at / 1000:.4f},{4000 + 120 * at}{unit}" for at in range(rows))]

    for rows in (200, 2000):  # the second is read as columns
        found = judged(tmp_path / f"with {rows}", {"metrics.csv": table(" MB", rows)})
        (leak,) = [one for one in found.findings if one.shape is Shape.OOM]
        assert (leak.cause, found.coverage.unrecognised) == ("leak_per_step", ())
        assert leak.evidence[0].value == pytest.approx(4000e6 / 2**30)
    bare = judged(tmp_path / "without", {"metrics.csv": [line.replace(",4", ",0.4") for line in table("", 9)]})
    assert ([one for one in bare.findings if one.shape is Shape.OOM], bare.coverage.unrecognised) == ([], ("mem",))


@pytest.mark.parametrize("norm", ["||g||", "‖g‖", "Grad/norm", "gnorm", "gradnorm", "train/GradNorm"])
def test_a_norm_by_its_sign_or_its_words_shows_the_blow_up_before_a_nan(norm: str, tmp_path: Path) -> None:
    lines = [
        *(f"step {at} | loss {2.5 - at / 100:.4f} | {norm} {0.5 + at % 3 / 100:.3f}" for at in range(60)),
        *(f"step {at} | loss 1.9 | {norm} {900 * (at - 58)}" for at in range(60, 63)),
        *(f"step {at} | loss nan | {norm} nan" for at in range(63, 70)),
    ]
    verdict = said(tmp_path, lines)
    assert (verdict.cause, verdict.onset.step) == ("optimization_blowup", 63)


def test_a_norm_of_something_else_is_no_gradient_norm(tmp_path: Path) -> None:
    lines = [
        *(f"step {at} | loss {2.5 - at / 100:.4f} | ||x|| {0.5 + at % 3 / 100:.3f}" for at in range(60)),
        *(f"step {at} | loss 1.9 | ||x|| {900 * (at - 58)}" for at in range(60, 63)),
        *(f"step {at} | loss nan | ||x|| 900" for at in range(63, 70)),
    ]
    found = judged(tmp_path, {"train.log": lines})
    assert (found.verdict.cause, found.coverage.unrecognised) == ("unknown", ("x",))


@pytest.mark.parametrize("name", ["ce", "xent", "objective", "obj"])
def test_what_is_made_small_is_the_loss_under_other_names(name: str, tmp_path: Path) -> None:
    lines = [f"step {at} {name} {3 - at / 50:.3f}" for at in range(40)] + [
        f"step {at} {name} nan" for at in range(40, 45)
    ]
    verdict = said(tmp_path, lines)
    assert (*shape(verdict), verdict.onset.step) == (*NAN, 40)


def test_an_objective_that_is_made_large_is_no_loss(tmp_path: Path) -> None:
    lines = [f"step {at} objective {1 + at / 50:.3f}" for at in range(40)]
    found = judged(tmp_path, {"train.log": [*lines, DONE]})
    assert found.coverage.unrecognised == ("objective",)


def printed(row: str) -> list[str]:
    """What a loop prints each step, and the last five steps with NaN in place of all numbers."""
    return [
        *(row.format(at=at, tens=at * 10, loss=3 - at / 50, norm=0.8 + at % 4 / 100) for at in range(40)),
        *(row.format(at=at, tens=at * 10, loss=math.nan, norm=math.nan) for at in range(40, 45)),
    ]


@pytest.mark.parametrize(
    "row",
    [
        "{at} {loss:.4f}",
        "{tens}, {loss}",
        "{at} {loss:.4f} {norm:.4f}",
        "{at} tensor({loss:.4f}, grad_fn=<NllLossBackward0>)",
        "({at}, {loss}, {norm})",
        "{at}: {loss:.3f}",
        "{at}\t{loss:.3f}",
    ],
)
def test_a_loop_that_prints_numbers_without_a_name_is_read(row: str, tmp_path: Path) -> None:
    verdict = said(tmp_path, printed(row))
    assert (*shape(verdict), verdict.onset.step) == (*NAN, 400 if "{tens}" in row else 40)


def test_a_third_number_that_turns_nan_with_the_loss_is_the_gradient_norm(tmp_path: Path) -> None:
    assert said(tmp_path, printed("{at} {loss:.4f} {norm:.4f}")).cause == "data_or_numerics"


def test_a_third_number_that_stays_finite_is_read_and_not_recognised(tmp_path: Path) -> None:
    found = judged(tmp_path, {"train.log": [*printed("{at} {loss:.4f} {norm:.4f}")[:40], DONE]})
    assert (found.verdict.outcome, found.coverage.unrecognised) == (Outcome.HEALTHY, ("value_3",))


@pytest.mark.parametrize(
    "row",
    [
        "{at} {rising:.3f}",  # a frequency, a distance
        "{at} {whole}",  # counts
        "{at} {below:.3f}",  # a coordinate
        "{square} {loss:.3f}",  # the first does not count
    ],
)
def test_columns_of_numbers_that_behave_like_no_loss_are_none(row: str, tmp_path: Path) -> None:
    lines = [
        row.format(at=at, rising=at * at / 7, whole=400 - at, below=1 - at / 20, square=at * at, loss=3 - at / 50)
        for at in range(40)
    ]
    assert said(tmp_path, [*lines, DONE]).outcome is Outcome.CANNOT_SAY


@pytest.mark.parametrize(("count", "read"), [(12, False), (13, True)])
def test_a_dozen_lines_of_numbers_enumerate_something(count: int, *, read: bool, tmp_path: Path) -> None:
    verdict = said(tmp_path, [*printed("{at} {loss:.4f}")[:count], DONE])
    assert (verdict.outcome is Outcome.HEALTHY) is read


def test_a_loop_of_numbers_that_began_again_is_read_whole(tmp_path: Path) -> None:
    lines = [*printed("{at} {loss:.4f}")[:30], *printed("{at} {loss:.4f}")[20:]]
    verdict = said(tmp_path, lines)
    assert (*shape(verdict), verdict.onset.step) == (*NAN, 40)


@pytest.mark.parametrize(("count", "name"), [(5, "objective"), (6, "loss")])
def test_six_numbers_show_whether_a_quantity_falls(count: int, name: str) -> None:
    values = [3 - at / 10 for at in range(count)]
    assert measured("objective", (), lambda: values).canonical == name
    assert measured("objective", (), lambda: [*values, math.nan]).canonical == name
    assert measured("objective", (), lambda: values[::-1]).canonical == "objective"


@pytest.mark.parametrize(
    ("printed_as", "unit", "name", "scale"),
    [
        ("mem", "MB", "mem_allocated_gib", 1e6 / 2**30),
        ("mem", "MiB", "mem_allocated_gib", 1 / 1024),
        ("mem", "ms", "mem (ms)", 1.0),
        ("Mem (GiB)", "", "mem_allocated_gib", 1.0),
        ("train/rss_mb", "", "process_rss_gib", 1 / 1024),
        ("sys/RSS_GB", "", "process_rss_gib", 1.0),
        ("sys/loss", "", "sys/loss", 1.0),
        ("host_rss_kb", "", "process_rss_gib", 1 / 2**20),
        ("disk/total_gb", "", "disk/total_gb", 1.0),
        ("step_time", "ms", "step_time_s", 1e-3),
        ("step_time", "s", "step_time_s", 1.0),
        ("elapsed_time_per_iteration_ms", "ms", "step_time_s", 1e-3),
    ],
)
def test_a_unit_gives_the_factor_to_the_unit_of_the_name(printed_as: str, unit: str, name: str, scale: float) -> None:
    means = measured(printed_as, (unit,), lambda: (1.0, 2.0))
    assert (means.canonical, means.scale) == (name, pytest.approx(scale))


@pytest.mark.parametrize(
    ("cell", "unit"),
    [("4100MB", "MB"), ("0.5 ms", "ms"), ("1e3 KiB", "KiB"), ("4100", ""), ("12xyz", ""), ("MB", ""), ("nan", "")],
)
def test_the_unit_of_a_cell_is_one_of_bytes_or_time(cell: str, unit: str) -> None:
    assert unit_of(cell) == unit


def test_a_table_whose_last_rows_are_nan_alone_keeps_them(tmp_path: Path) -> None:
    lines = ["epoch\ttrain_loss\tgrad_norm", *(f"{at}\t{3 - at / 50:.3f}\t0.5" for at in range(30))]
    lines += [f"{at}\tnan\tnan" for at in range(30, 40)]
    verdict = said(tmp_path, lines)
    assert (*shape(verdict), verdict.onset.step) == (*NAN, 30)


def test_a_metric_that_nothing_knows_is_read_and_not_recognised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [*falling(1, 60, "step {at} | loss: {loss:.4f} | lr: 1e-4 | zorg: {loss:.3f} | reward: 0.5"), DONE]
    place = write(tmp_path / "run", {"train.log": lines})
    command(["triage", str(place), "--format", "json"])
    assert json.loads(capsys.readouterr().out)["coverage"]["unrecognised"] == ["zorg"]
    command(["ingest", str(place), "--store", str(tmp_path / "store")])
    assert "1 metric read and not recognised: zorg" in " ".join(capsys.readouterr().out.split())
    page = tmp_path / "page.html"
    command(["report", str(place), "-o", str(page)])
    assert "1 metric read and not recognised: zorg" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([8192.0, 8192.0, 16.0, 1.0, 0.5], "loss_scale"),
        ([16.0, 1.0], "loss_scale"),
        ([8.0, 4.0, 1.0], "scale"),
        ([24.0, 12.0], "scale"),
        ([32.0, 0.0], "scale"),
        ([32.0, -16.0], "scale"),
        ([], "scale"),
    ],
)
def test_a_scale_of_powers_of_two_is_that_of_the_loss_however_far_it_fell(values: list[float], name: str) -> None:
    assert measured("scale", (), lambda: values).canonical == name


def test_a_scale_that_collapses_under_its_short_name_is_told_as_the_cause(tmp_path: Path) -> None:
    scales = [*[8192] * 60, *(max(1, 8192 >> n) for n in range(1, 25))]
    lines = [f"step {at} | loss {4 - at / 90:.4f} | scale {scale}" for at, scale in enumerate(scales, 1)]
    verdict = said(tmp_path, [*lines, "FloatingPointError: Minimum loss scale reached"])
    assert verdict.cause == "loss_scale_collapse"


def test_a_size_is_shown_with_the_unit_that_it_was_made_to(tmp_path: Path) -> None:
    (leak,) = [one for one in judged(tmp_path, {"train.log": growing("mem_mb {v}")}).findings if one.shape is Shape.OOM]
    assert leak.evidence[0].quote == "mem_mb = 3.90625 GiB at step 0"
