"""The interface for notebooks: cheap to import, lazy tables, pandas without pyarrow, a report that shows itself."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from math import inf, isnan, nan
from pathlib import Path

import polars as pl
import pytest

import forensics
from forensics.errors import UsageError
from forensics.export.frames import pandas_of
from forensics.report.html import notebook
from forensics.report.html._css import scoped

from .report.test_html_page import PAYLOADS, parsed

pandas = pytest.importorskip("pandas", reason="pandas is not installed")
RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
NAN_RUN = RUNS / "nan-bad-sample-torchtitan"


def test_importing_the_package_loads_no_table_library() -> None:
    code = "import sys, forensics; print([m for m in ('polars','pandas','numpy','plotly','typer') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_judging_a_run_loads_neither_pandas_nor_what_few_runs_and_pages_need() -> None:
    code = (
        "import io, sys, contextlib, forensics; from forensics.cli.main import run\n"
        "with contextlib.redirect_stdout(io.StringIO()): run(['triage', sys.argv[1]])\n"
        "told = [m for m in ('numpy.ma','statistics','html','forensics.figure') if m in sys.modules]\n"
        "forensics.triage(sys.argv[1])._repr_html_()\n"
        "print(told + [m for m in ('pandas','pyarrow','plotly','matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(NAN_RUN)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_name_that_is_not_there_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'judge'"):
        forensics.judge  # noqa: B018 - the access is what is tested
    assert {"triage", "open_run"} <= set(dir(forensics))


def test_triage_gives_the_report_of_the_command() -> None:
    report = forensics.triage(NAN_RUN)
    assert report.verdict.shape is not None
    assert report.verdict.shape.value == "nan"
    assert report.findings
    assert report.figures
    assert repr(report).startswith(f"<Report of {str(NAN_RUN)!r}: failed nan: ")
    assert str(report).startswith("FAILED  nan")


def test_a_report_without_figures_costs_none_and_says_the_same() -> None:
    report = forensics.triage(str(NAN_RUN), figures=False)
    assert report.figures == ()
    assert report.verdict == forensics.triage(NAN_RUN).verdict


def test_an_ignored_rule_is_counted_and_an_unknown_one_is_refused() -> None:
    assert forensics.triage(NAN_RUN, ignore=["NAN001"]).suppressed >= 1
    with pytest.raises(UsageError, match="did you mean 'NAN0"):
        forensics.triage(NAN_RUN, ignore=["NAN01"])


def test_a_path_that_is_not_there_is_refused_with_the_next_command() -> None:
    with pytest.raises(UsageError, match="no such file"):
        forensics.open_run(RUNS / "nowhere")


def test_a_notebook_shows_the_verdict_its_evidence_and_a_chart_and_runs_nothing() -> None:
    shown = forensics.triage(NAN_RUN)._repr_html_()
    tree = parsed(shown)
    names = {name for name, _ in tree.tags}
    assert tree.tags[0] == ("div", ("class",))
    assert not names & {"script", "img", "link", "iframe", "object", "embed", "base", "form", "html", "body", "meta"}
    assert all(link.startswith("#") for link in tree.links)
    assert 1 <= shown.count('class="chart"') <= 3
    assert "FAILED nan" in shown
    assert len(shown) < 100_000


def test_a_notebook_s_sheet_touches_nothing_outside_of_its_box() -> None:
    sheet = scoped("box")
    selectors = re.findall(r"(?<=[{}\n])([^@{}\n][^{}\n]*)\{(?=[^{}]*\})", "}" + sheet)
    assert len(selectors) > 40
    assert all(one.strip().startswith(".box") for each in selectors for one in each.split(","))
    assert "url(" not in sheet


def test_two_reports_in_one_notebook_share_no_id() -> None:
    first, second = (parsed(forensics.triage(RUNS / n)._repr_html_()).ids for n in ("nan-hidden-hf", NAN_RUN.name))
    assert not set(first) & set(second)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_in_a_name_of_a_run_stays_text_in_a_notebook(payload: str) -> None:
    hostile, plain = notebook.of_tables(payload, {"metrics": 1}), notebook.of_tables("x", {"metrics": 1})
    assert parsed(hostile).tags == parsed(plain).tags


def test_the_tables_of_a_run_are_lazy_frames_by_name_and_as_attributes() -> None:
    run = forensics.open_run(NAN_RUN)
    assert isinstance(run.metrics, pl.LazyFrame)
    assert run["metrics"].collect().equals(run.metrics.collect())
    assert "metrics" in run.tables
    assert "metrics" in dir(run)
    assert run.collectives.collect().height == 0
    assert run.sql("SELECT count(*) AS n FROM metrics").item() == run.metrics.collect().height
    assert repr(run).startswith(f"<Run {str(NAN_RUN)!r}: sources")
    assert "metrics" in run._repr_html_()
    with pytest.raises(AttributeError, match="did you mean 'metrics'"):
        run.metric  # noqa: B018 - the access is what is tested
    with pytest.raises(UsageError, match="did you mean 'metrics'"):
        run["metric"]


def test_an_open_run_is_judged_without_being_read_again() -> None:
    run = forensics.open_run(NAN_RUN)
    assert run.triage().verdict == forensics.triage(NAN_RUN).verdict


def test_a_baseline_adds_the_comparison() -> None:
    report = forensics.triage(NAN_RUN, baseline=RUNS / "healthy-nanogpt")
    assert any(f.key.startswith("against-") for f in report.figures)
    two = forensics.triage(NAN_RUN, baseline=[RUNS / "healthy-nanogpt", RUNS / "nan-hidden-hf"])
    assert any("healthy-nanogpt and 1 more" in f.title for f in two.figures)


def test_names_can_be_hidden(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "/home/ada/net.py", line 3\nValueError: no /home/ada/x\n'
    )
    assert "ada" not in repr(forensics.triage(log, redact=True).findings)


def test_metrics_come_to_pandas_with_nan_as_nan_and_null_as_na() -> None:
    run = forensics.open_run(NAN_RUN)
    frame = run.to_pandas("metrics")
    assert len(frame) == run.metrics.collect().height
    assert frame["seq"].dtype == "int64"
    assert any(isnan(v) for v in frame["value"])
    assert int(frame["value"].isna().sum()) == sum(isnan(v) for v in run.metrics.collect()["value"])
    picked = run.to_pandas(run.metrics.filter(pl.col("name") == "loss").select("step", "value"))
    assert list(picked.columns) == ["step", "value"]


def test_floats_keep_nan_infinities_and_nulls_apart() -> None:
    column = pandas_of(pl.DataFrame({"v": [1.5, nan, inf, -inf, None]}))["v"]
    assert str(column.dtype) == "Float64"
    assert column.array._mask.tolist() == [False, False, False, False, True]
    assert isnan(column.array._data[1])
    assert column.iloc[2:4].tolist() == [inf, -inf]
    assert column.iloc[4] is pandas.NA
    plain = pandas_of(pl.DataFrame({"v": [1.5, nan, inf]}))["v"]
    assert str(plain.dtype) == "float64"
    assert isnan(plain.iloc[1])


def test_integers_stay_exact_with_and_without_nulls() -> None:
    big = 2**63 - 1
    frame = pandas_of(
        pl.DataFrame({"a": [big, None], "b": [big, 1], "c": pl.Series([2**64 - 1, None], dtype=pl.UInt64)})
    )
    assert [str(d) for d in frame.dtypes] == ["Int64", "int64", "UInt64"]
    assert (frame["a"].iloc[0], frame["b"].iloc[0], frame["c"].iloc[0]) == (big, big, 2**64 - 1)
    assert frame["a"].iloc[1] is pandas.NA


def test_text_flags_and_categories_keep_their_missing_values() -> None:
    frame = pandas_of(
        pl.DataFrame(
            {
                "s": ["a", None, "", "NaN"],
                "b": [True, None, False, True],
                "c": pl.Series(["x", None, "y", "x"], dtype=pl.Categorical()),
                "e": pl.Series(["lo", "hi", None, "lo"], dtype=pl.Enum(["lo", "hi"])),
            }
        )
    )
    assert [str(d) for d in frame.dtypes] == ["string", "boolean", "category", "category"]
    assert frame["s"].isna().tolist() == [False, True, False, False]
    assert frame["s"].iloc[3] == "NaN"
    assert frame["b"].iloc[1] is pandas.NA
    assert frame["c"].tolist()[2] == "y"
    assert list(frame["e"].cat.categories) == ["lo", "hi"]


def test_dates_come_as_datetimes_with_their_zone() -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    frame = pandas_of(
        pl.DataFrame(
            {
                "t": pl.Series([when, None], dtype=pl.Datetime("ns", "UTC")),
                "l": pl.Series([when.replace(tzinfo=None), None], dtype=pl.Datetime("us")),
                "d": [date(2026, 1, 2), None],
                "p": [timedelta(seconds=1.5), None],
                "z": pl.Series([when, None], dtype=pl.Datetime("us", "Asia/Tokyo")),
            }
        )
    )
    assert frame["t"].iloc[0] == pandas.Timestamp(when)
    assert frame["l"].iloc[0] == pandas.Timestamp(when.replace(tzinfo=None))
    assert frame["d"].iloc[0] == pandas.Timestamp("2026-01-02")
    assert frame["p"].iloc[0] == pandas.Timedelta("1.5s")
    assert frame["z"].iloc[0] == pandas.Timestamp(when)
    assert str(frame["z"].dt.tz) == "Asia/Tokyo"
    assert frame.isna().iloc[1].tolist() == [True] * 5


def test_nested_and_empty_columns_come_too() -> None:
    frame = pandas_of(pl.DataFrame({"n": [[1, 2], None]}))
    assert frame["n"].iloc[0] == [1, 2]
    empty = pandas_of(pl.DataFrame(schema={"a": pl.Int64, "s": pl.String, "t": pl.Datetime("ns")}))
    assert empty.shape == (0, 3)
    assert pandas_of(pl.DataFrame()).shape == (0, 0)


def test_columns_of_the_same_name_in_other_letters_and_odd_names_stay() -> None:
    frame = pandas_of(pl.DataFrame({"a": [1], "A": [2], "": [3], "index": [4]}))
    assert list(frame.columns) == ["a", "A", "", "index"]


def test_what_comes_to_pandas_can_be_written_to_without_reaching_the_frame() -> None:
    source = pl.DataFrame({"a": [1.0, 2.0]})
    frame = pandas_of(source)
    frame.loc[0, "a"] = 9.0
    assert source["a"].to_list() == [1.0, 2.0]


def test_the_number_of_processes_changes_nothing_and_none_of_them_is_refused() -> None:
    assert repr(forensics.triage(NAN_RUN, jobs=2)) == repr(forensics.triage(NAN_RUN))
    with pytest.raises(UsageError, match="0 is no number of processes"):
        forensics.triage(NAN_RUN, jobs=0)
