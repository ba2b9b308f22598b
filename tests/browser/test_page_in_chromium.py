"""The page in a real browser: nothing is loaded, nothing complains, all is drawn, at any width and in the dark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics import pipeline, triage
from forensics.compare.baseline import against
from forensics.model import Report
from forensics.report.html.page import render, render_many
from forensics.store.run import Run, run_of
from tests.golden.runs import unpacked
from tests.unit.report.test_html_page import PAYLOADS, filled, long

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
if CHROMIUM is None:
    pytest.skip("no chromium on this machine", allow_module_level=True)

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
#: Memory, kernels, collectives, and a page of several runs beside the runs with logs.
MORE = {"memory": "memory_snapshot/ok-leak-2.12", "kernels": "chrome_trace/ok-2026"}
AXE = os.environ.get("AXE_CORE_JS", "")
#: Of each shape a run of the golden pack, and the first figure that its page shows.
SHAPES = {
    "bundled-nan-blowup-kempnerforge": "loss",
    "bundled-oom-then-hang-torchrun": "memory-at-oom",
    "edge-memory-slope-clear": "mem_allocated_gib",
    "hang-one-rank-skips-a-collective": "collectives",
    "slow-stalls-begin": "seconds-per-step",
    "eval-accuracy-falls": "eval/accuracy",
    "learning-rate-jumps": "lr",
    "crash-key-error-at-step-90": "loss",
    "bundled-stopped-time-limit": "loss",
}
OPEN = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
NAMES = ("nan-blowup-kempnerforge", "nan-bad-sample-torchtitan", "oom-then-hang-torchrun", "healthy-nanogpt")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def report_of(name: str, base: str | None = None) -> Report:
    run = pipeline.ingest_run(RUNS.parent / MORE[name] if name in MORE else RUNS / name)
    if base is not None:
        run = against(run, pipeline.ingest_run(RUNS / base))
    return pipeline.with_figures(run, pipeline.report_of(run))


def stalled() -> Run:
    """Four ranks, of which one entered no collective any more after the thirtieth."""
    rows = [
        {"source": f"dump_{rank}", "rank": rank, "group": "0", "group_size": 4, "seq": seq, "op": "all_reduce",
         "state": "completed" if seq < 30 else "started", "created_ns": 1_790_000_000_000_000_000 + seq * 10**9}
        for rank in range(4) for seq in range(31) if (rank, seq) != (2, 30)
    ]  # fmt: skip
    return run_of("stalled", {"collectives": pl.DataFrame(rows)})


@pytest.fixture(scope="module", params=[*NAMES, *MORE, "ranks", "several", "baseline"])
def page_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    if request.param == "several":
        page = render_many([report_of(name) for name in (*NAMES, NAMES[0])])
    elif request.param == "ranks":
        run = stalled()
        page = render(pipeline.with_figures(run, pipeline.report_of(run)))
    elif request.param == "baseline":
        page = render(report_of(NAMES[0], NAMES[3]))
    else:
        page = render(report_of(request.param))
    path.write_text("\n".join(page), encoding="utf-8")
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
    page.evaluate(OPEN)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    assert dark is (scheme == "dark")
    assert page.locator("svg.chart").count() > 0
    for chart in page.locator("svg.chart").all():
        assert chart.locator("polyline, .cell, .part, .block, circle").count() > 0
        assert (chart.bounding_box() or {"height": 0})["height"] > 20
    context.close()


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("golden")
    unpacked(place)
    return place


def page_of(golden: Path, name: str) -> str:
    run = pipeline.ingest_run(golden / name)
    return "\n".join(render(pipeline.with_figures(run, pipeline.report_of(run))))


@pytest.mark.parametrize("name", SHAPES)
def test_the_chart_that_decides_and_the_fix_end_above_the_fold(
    browser: Any, golden: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "page.html").write_text(page_of(golden, name), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((tmp_path / "page.html").as_uri())
    figure = page.locator("figure").first
    box, fix = figure.bounding_box(), page.locator(".fix").bounding_box()
    assert figure.get_attribute("id") == SHAPES[name]
    page.close()
    assert box["y"] + box["height"] <= 900
    assert fix["y"] + fix["height"] <= 900
    assert fix["x"] + fix["width"] <= box["x"]


def test_five_runs_are_five_rows_of_which_a_link_opens_one(browser: Any, tmp_path: Path) -> None:
    reports = [report_of(name) for name in (*NAMES, NAMES[0])]
    (tmp_path / "page.html").write_text("\n".join(render_many(reports)), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((tmp_path / "page.html").as_uri())
    assert page.evaluate("document.documentElement.scrollHeight") <= 2500
    assert page.locator("details.one:visible").count() == 5
    assert page.locator("figure:visible").count() == 0
    page.locator("#run3 > summary").click()
    assert page.locator("#run3 figure").first.is_visible()
    assert page.locator("figure:visible").count() == page.locator("#run3 figure").count()
    page.close()


@pytest.mark.parametrize("width", [1280, 360])
def test_words_beside_marks_stay_inside_their_drawing(browser: Any, page_file: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(page_file.as_uri())
    page.evaluate(OPEN)
    outside = page.evaluate("""
        [...document.querySelectorAll('svg.chart .said, svg.chart .tick')].filter(e => {
            const word = e.getBoundingClientRect(), box = e.closest('svg').getBoundingClientRect();
            return word.width && (word.left < box.left - 8 || word.right > box.right + 8);
        }).map(e => e.textContent)""")
    page.close()
    assert outside == []


def test_tables_behind_charts_open_by_keyboard(browser: Any, page_file: Path) -> None:
    page = browser.new_page()
    page.goto(page_file.as_uri())
    run = page.locator("details.one > summary").first
    if run.count():
        run.focus()
        page.keyboard.press("Enter")
    first = page.locator("figure > details").first
    first.locator("> summary").focus()
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


def test_a_page_has_no_serious_violation_of_accessibility(browser: Any, page_file: Path) -> None:
    if not Path(AXE).is_file():
        pytest.skip("AXE_CORE_JS names no file of axe-core")
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 360)):
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
        page = context.new_page()
        page.goto(page_file.as_uri())
        page.add_script_tag(path=AXE)
        for is_open in (False, True):
            page.evaluate(OPEN if is_open else "0")
            found = page.evaluate("axe.run()")
            bad = [v for v in found["violations"] if v["impact"] in {"serious", "critical"}]
            assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in bad] == []
        context.close()


def test_what_an_input_says_makes_no_element_in_a_real_browser(browser: Any, tmp_path: Path) -> None:
    def elements(word: str) -> list[str]:
        log = "".join(f"step {n} | loss {5 - n / 50:.4f}\n" for n in range(1, 60)) + "".join(
            f"step {n} | loss nan | {word}\n" for n in range(60, 70)
        )
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        (folder / "train.log").write_text(log + f"RuntimeError: {word}\n", encoding="utf-8", errors="replace")
        run = pipeline.ingest_run(folder)
        path = tmp_path / "page.html"
        made = pipeline.with_figures(run, pipeline.report_of(run))
        path.write_text("\n".join(render(made)), encoding="utf-8")
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        said: list[str] = []
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.on("console", lambda message: said.append(message.text))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        names = page.evaluate("[...document.querySelectorAll('*')].map(e => e.tagName)")
        context.close()
        assert said == []
        assert asked == [path.as_uri()]
        return names

    for payload in ("<img src=x onerror=alert(1)>", "</pre><script>alert(1)</script>", "</svg><svg onload=alert(1)>"):
        assert elements(payload) == elements(payload.replace("<", "(").replace(">", ")"))


@pytest.mark.parametrize("live", [False, True], ids=["static", "interactive"])
def test_a_payload_in_every_text_and_drawing_makes_no_element_of_its_own(
    browser: Any, tmp_path: Path, live: bool
) -> None:
    report = report_of(NAMES[0])
    page = browser.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    path = tmp_path / "page.html"
    count = "[...document.querySelectorAll('body *:not(.live *)')].map(e => e.tagName).join()"
    foreign = "document.querySelectorAll('.live img, .live iframe, .live script, .live b, .live foreignObject').length"

    def elements(word: str) -> str:
        path.write_text("\n".join(render_many([filled(report, long(word))], live=live)), encoding="utf-8")
        page.goto(path.as_uri())
        if live:
            page.wait_for_selector("#flame p.note.live", state="attached")
        assert page.evaluate(foreign) == 0
        return page.evaluate(count)

    plain = elements("x")
    for payload in PAYLOADS[::8] if live else PAYLOADS:
        assert elements(payload) == plain, payload
    assert said == []
    assert {url for url in asked if not url.startswith(("data:", "blob:"))} == {path.as_uri()}
    page.close()


def test_an_interactive_page_draws_every_chart_again_and_loads_nothing(browser: Any, tmp_path: Path) -> None:
    report = report_of(NAMES[1])
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


def test_the_flame_graph_of_memory_zooms_into_the_block_that_is_clicked(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "live.html"
    path.write_text("\n".join(render_many([report_of("memory")], live=True)), encoding="utf-8")
    assert path.stat().st_size < 6_000_000
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    blocks = page.locator("#memory-peak-1 .live g.slice")
    blocks.first.wait_for()
    before = blocks.count()
    narrow = blocks.nth(before - 1)
    width = (narrow.locator("path").bounding_box() or {"width": 0})["width"]
    narrow.locator("path").click()
    page.wait_for_timeout(1500)
    widest = max(
        (b.bounding_box() or {"width": 0})["width"] for b in page.locator("#memory-peak-1 .live g.slice path").all()
    )
    assert widest > 2 * width
    assert page.locator("#memory-timeline-1 .live .scatterlayer .js-line").count() == 2
    assert page.locator("#memory-timeline-1 p.live").inner_text().startswith("Zoomable; holds ")
    assert said == []
    page.close()


def test_the_report_in_a_notebook_leaves_the_page_around_it_as_it_is(browser: Any) -> None:
    shown = triage(RUNS / NAMES[1])._repr_html_()
    page = browser.new_page()
    page.set_content("<h1>mine</h1><p>mine</p><pre>mine</pre>")
    outside = "[...document.querySelectorAll('body > h1, body > p, body > pre')]"
    ask = f"{outside}.map(e => JSON.stringify({{...getComputedStyle(e)}}))"
    before = page.evaluate(ask)
    page.set_content(f"<h1>mine</h1><p>mine</p><pre>mine</pre>{shown}")
    assert page.evaluate(ask) == before
    assert page.locator(".forensics-report svg.chart polyline").count() > 0
    page.close()
