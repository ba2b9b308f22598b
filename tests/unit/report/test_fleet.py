"""Several runs at once: counted by shape, the same failures together, with the first and the last time of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.model import Evidence, Finding, Onset, Outcome, Report, Shape
from forensics.report import _many, json_v1, markdown, text
from forensics.report.html.page import MOST_WHOLE, render_many, with_room
from forensics.values import replace

from .conftest import T_NS
from .test_github_and_junit import report_of
from .test_html_page import figures, parsed

DAY_NS = 86_400_000_000_000


def at(report: Report, t_ns: int | None, run: str = "runs/a") -> Report:
    """The same failure at another time; without one nothing of it has a time."""
    onset = replace(report.verdict.onset, t_ns=t_ns)
    found = tuple(
        replace(f, onset=onset, evidence=tuple(replace(e, t_ns=t_ns) for e in f.evidence)) for f in report.findings
    )
    return replace(report, run=run, verdict=replace(report.verdict, onset=onset), findings=found)


def test_a_failure_is_dated_by_its_onset_else_by_its_evidence_else_not_at_all(failed: Report, healthy: Report) -> None:
    assert _many.failed_at(failed) == T_NS
    no_onset = replace(failed, verdict=replace(failed.verdict, onset=Onset(step=412)))
    assert _many.failed_at(no_onset) == T_NS
    assert _many.failed_at(at(failed, None)) is None
    assert _many.failed_at(healthy) is None


def test_runs_that_failed_the_same_way_have_a_first_and_a_last_time(failed: Report, healthy: Report) -> None:
    reports = [healthy, at(failed, T_NS + DAY_NS, "b"), at(failed, T_NS, "a"), at(failed, None, "c")]
    group = _many.groups(reports)[0]
    assert [r.run for r in group.reports] == ["b", "a", "c"]
    assert group.places == (1, 2, 3)
    assert (group.seen.first, group.seen.last) == ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    assert group.seen.words == "first 2026-01-01T00:00:00Z, last 2026-01-02T00:00:00Z; time not known of 1 of 3 runs"


def test_failures_without_any_time_say_so_in_every_format(failed: Report, healthy: Report) -> None:
    reports = [at(failed, None), healthy]
    assert "time not known" in "\n".join(text.render_many(reports))
    assert "| time not known | time not known | 1 |" in "\n".join(markdown.render_many(reports))
    assert "time not known" in "\n".join(render_many(reports))
    fleet = json.loads("".join(json_v1.render_many(reports)))["fleet"]
    assert fleet["failures"][0]["first_seen"] is None
    assert fleet["failures"][0]["undated"] == 1


def test_shapes_are_counted_with_the_number_of_ways_they_failed(
    failed: Report, healthy: Report, silent: Report, make_finding: Callable[..., Finding]
) -> None:
    another = make_finding(evidence=(Evidence("x", quote="another way"),))
    verdict = replace(failed.verdict, identity=another.identity)
    other = replace(failed, verdict=verdict, findings=(another,))
    rows = _many.by_shape([healthy, failed, other, silent, failed])
    told = [(r.outcome, r.shape, r.runs, r.failures) for r in rows]
    assert told == [(Outcome.FAILED, "nan", 3, 2), (Outcome.HEALTHY, "-", 1, 0), (Outcome.CANNOT_SAY, "-", 1, 0)]
    assert (
        _many.tally([healthy, failed, other, silent, failed]) == "5 runs: 3 failed in 2 ways, 1 healthy, 1 cannot say"
    )


def test_suspect_runs_of_one_weakness_stand_together_after_failures_and_are_none(
    failed: Report, healthy: Report
) -> None:
    verdict = replace(failed.verdict, outcome=Outcome.SUSPECT, headline="first")
    first = replace(failed, verdict=verdict)
    second = replace(failed, verdict=replace(verdict, headline="second"))
    reports = [first, second, failed, healthy]
    told = [(len(g.reports), g.headline, g.seen.runs) for g in _many.groups(reports)]
    assert told == [(1, failed.verdict.headline, 1), (2, "first", 0), (1, healthy.verdict.headline, 0)]
    assert _many.tally(reports) == "4 runs: 1 failed, 2 suspect, 1 healthy"
    assert [(r.outcome, r.failures) for r in _many.by_shape(reports)][:2] == [
        (Outcome.FAILED, 1),
        (Outcome.SUSPECT, 1),
    ]
    assert len(json.loads("".join(json_v1.render_many(reports)))["fleet"]["failures"]) == 1


def test_the_fleet_of_a_document_keeps_to_the_schema_and_points_into_its_runs(
    failed: Report, healthy: Report, silent: Report
) -> None:
    found = json.loads("".join(json_v1.render_many([healthy, failed, silent, failed])))
    schema = json.loads((files("forensics.report") / "_schema" / "report-1.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(found, schema)
    (failure,) = found["fleet"]["failures"]
    assert failure["runs"] == [1, 3]
    assert {found["runs"][n]["verdict"]["headline"] for n in failure["runs"]} == {failure["headline"]}
    assert sum(row["runs"] for row in found["fleet"]["shapes"]) == 4


def test_a_single_run_has_no_fleet(failed: Report) -> None:
    assert "fleet" not in json.loads("".join(json_v1.render_many([failed])))


@given(
    st.lists(st.tuples(st.sampled_from(list(Outcome)), st.sampled_from(list(Shape)), st.none() | st.integers(0, 2**62)))
)
def test_every_run_is_counted_once_and_stands_in_one_group(rows: list[tuple[Outcome, Shape, int | None]]) -> None:
    reports = [
        replace(
            (base := report_of(f"w{n % 3}", 1, outcome)),
            verdict=replace(base.verdict, shape=shape, onset=Onset(t_ns=t_ns)),
        )
        for n, (outcome, shape, t_ns) in enumerate(rows)
    ]
    groups = _many.groups(reports)
    assert sorted(p for g in groups for p in g.places) == list(range(len(reports)))
    assert sum(row.runs for row in _many.by_shape(reports)) == len(reports)
    for group in groups:
        times = [t for p in group.places if (t := rows[p][2]) is not None and rows[p][0] is Outcome.FAILED]
        assert (group.seen.first_ns, group.seen.last_ns) == (min(times, default=None), max(times, default=None))


def test_a_page_of_very_many_runs_shows_one_of_each_failure_whole_and_the_verdict_of_all(
    failed: Report, healthy: Report
) -> None:
    drawn = replace(failed, figures=figures("x"))
    reports = [drawn] * 40 + [replace(healthy, figures=figures("y"))]
    assert len(with_room(reports)) == MOST_WHOLE
    assert 41 in with_room(reports)
    tree = parsed("\n".join(render_many(reports)))
    assert sum(name == "details" and "id" in attributes for name, attributes in tree.tags) == 41
    assert sum(i.endswith("-chart") for i in tree.ids) == MOST_WHOLE
    assert any(f"{MOST_WHOLE} runs are shown whole" in said for said in tree.texts)
    assert {link[1:] for link in tree.links} <= set(tree.ids)


def test_the_page_of_several_runs_has_a_row_for_each_that_opens_to_its_page(failed: Report, healthy: Report) -> None:
    page = "\n".join(render_many([failed, healthy, failed]))
    assert "3 runs: 2 failed in the same way, 1 healthy" in page
    assert 'aria-label="Runs by shape"' in page
    assert page.count('<details class="one"') == 3
    assert page.count("2 runs of the same failure") == 1


@pytest.mark.parametrize("count", [1, 2])
def test_a_fleet_of_healthy_runs_has_no_failures(healthy: Report, count: int) -> None:
    page = "\n".join(render_many([healthy] * count))
    assert "runs of the same failure" not in page


def test_healthy_runs_stand_together_and_what_cannot_be_said_apart_by_its_reason(
    healthy: Report, silent: Report
) -> None:
    other = replace(healthy, verdict=replace(healthy.verdict, headline="another end"))
    lost = replace(silent, verdict=replace(silent.verdict, headline="another reason"))
    groups = _many.groups([healthy, silent, other, lost])
    assert sorted(len(g.reports) for g in groups) == [1, 1, 2]
    assert [g.headline for g in groups if len(g.reports) == 2] == [""]
    assert "another end" not in "\n".join(text.render_many([healthy, other]))


def test_the_table_by_shape_fits_on_a_terminal(failed: Report, healthy: Report) -> None:
    slow = replace(failed, verdict=replace(failed.verdict, shape=Shape.SLOWDOWN))
    lines = list(text.render_many([at(failed, T_NS + 123_456_789), slow, healthy]))
    assert all(len(line) <= 80 for line in lines[:7])
    assert "2026-01-01T00:00Z" in next(line for line in lines if line.startswith("failed "))
    assert any("last 2026-01-01T00:00:00.123456Z" in line for line in lines)
