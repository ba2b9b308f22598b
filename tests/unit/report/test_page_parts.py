"""A new kind of figure, drawing or section is one new file: each is found by a walk over its folder."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from forensics import figures, registry
from forensics.figures import curves
from forensics.figures import kind as figure_kinds
from forensics.model import Report
from forensics.report.html import _drawings, _elements, _figures, _section, _sections
from forensics.report.html.page import render
from forensics.store.run import run_of


def modules(package: ModuleType) -> set[str]:
    return {p.stem for p in Path(str(package.__file__)).parent.glob("*.py") if not p.stem.startswith("_")}


def test_every_file_of_the_folders_is_a_part() -> None:
    assert {s.make.__module__.rpartition(".")[2] for s in _section.sections()} == modules(_sections)
    assert len(_figures.drawings()) == len(modules(_drawings))
    assert {k.make.__module__.rpartition(".")[2] for k in figure_kinds.kinds()} == modules(figures) - {"kind"}


def test_no_two_parts_claim_the_same_place_or_type() -> None:
    orders = [s.order for s in _section.sections()]
    assert len(orders) == len(set(orders))
    assert len({k.order for k in figure_kinds.kinds()}) == len(figure_kinds.kinds())
    assert len({d.kind for d in _figures.drawings()}) == len(_figures.drawings())


def test_a_section_that_is_put_into_the_folder_stands_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: Report
) -> None:
    (tmp_path / "greeting.py").write_text(
        '"""A greeting."""\n'
        "from forensics.report.html._elements import tag\n"
        "from forensics.report.html._section import Section\n"
        'SECTIONS = (Section(15, lambda shown: tag("p", "hello " + shown.report.run), column="answer"),)\n'
    )
    monkeypatch.setattr(_sections, "__path__", [*_sections.__path__, str(tmp_path)])
    _section.sections.cache_clear()
    try:
        page = "\n".join(render(failed))
    finally:
        _section.sections.cache_clear()
        sys.modules.pop("forensics.report.html._sections.greeting", None)
    assert "<p>hello runs/a</p>" in page
    assert page.index("hello") < page.index("<h2>Evidence</h2>")


def test_a_figure_of_a_type_that_nothing_draws_is_left_out_and_nothing_links_to_it(failed: Report) -> None:
    class Strange:
        key, title, caption, rules, note = "strange", "Strange", "", ("NAN001",), ""

    page = "\n".join(render(Report(**{**{f: getattr(failed, f) for f in failed.__slots__}, "figures": (Strange(),)})))
    assert "strange" not in page.lower()


def test_a_walk_leaves_out_private_modules_and_values_of_another_type() -> None:
    assert registry.values("forensics.report.html", "_SELECTORS", object) == ()  # it is of `_css`
    assert registry.values("forensics.figures", "FIGURES", str) == ()


@pytest.mark.parametrize(("records", "drawn"), [(1, []), (2, ["loss over steps"])])
def test_a_single_record_is_no_curve(silent: Report, records: int, drawn: list[str]) -> None:
    one = {"source": "a.log", "name": "loss", "raw_name": "loss", "value": 1.25, "value_class": "finite"}
    run = run_of("short", {"metrics": pl.DataFrame([{**one, "seq": n, "step": n} for n in range(records)])})
    assert [chart.title for chart in curves.curves(run, silent)] == drawn


def test_the_figures_of_an_empty_run_are_none_of_any_kind(silent: Report) -> None:
    run = run_of("empty", {})
    assert [f for kind in figure_kinds.kinds() for f in kind.make(run, silent)] == []
    assert isinstance(_elements.join(), _elements.Markup)
