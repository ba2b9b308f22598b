"""The page in a real browser: nothing is loaded, nothing complains, all is drawn, at any width and in the dark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forensics import pipeline
from forensics.report.html.page import render, render_many

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
if CHROMIUM is None:
    pytest.skip("no chromium on this machine", allow_module_level=True)

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
NAMES = ("nan-blowup-kempnerforge", "nan-bad-sample-torchtitan", "oom-then-hang-torchrun", "healthy-nanogpt")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module", params=NAMES)
def page_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = pipeline.ingest_run(RUNS / request.param)
    report = pipeline.with_figures(run, pipeline.report_of(run))
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text("\n".join(render(report)), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_a_page_opens_without_a_complaint_a_request_or_a_sideways_scroll(
    browser: Any, page_file: Path, width: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file.as_uri())
    assert said == []
    assert asked == [page_file.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    assert dark is (scheme == "dark")
    assert page.locator("svg.chart").count() > 0
    for chart in page.locator("svg.chart").all():
        assert chart.locator("polyline, .cell, .part, circle").count() > 0
        assert (chart.bounding_box() or {"height": 0})["height"] > 20
    context.close()


def test_tables_behind_charts_open_by_keyboard(browser: Any, page_file: Path) -> None:
    page = browser.new_page()
    page.goto(page_file.as_uri())
    first = page.locator("details").first
    first.locator("summary").focus()
    page.keyboard.press("Enter")
    assert first.locator("td").first.is_visible()
    page.close()


def test_what_is_printed_is_black_on_white_even_in_the_dark(browser: Any, page_file: Path) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(page_file.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    context.close()


def test_an_interactive_page_draws_every_chart_again_and_loads_nothing(browser: Any, tmp_path: Path) -> None:
    run = pipeline.ingest_run(RUNS / NAMES[1])
    report = pipeline.with_figures(run, pipeline.report_of(run))
    path = tmp_path / "live.html"
    path.write_text("\n".join(render_many([report], live=True)), encoding="utf-8")
    page = browser.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector(".live .scatterlayer .js-line")
    assert said == []
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [path.as_uri()]
    assert page.locator(".live .main-svg").count() > 0
    assert page.locator("svg.chart.still").first.is_hidden()
    page.close()
