"""The page: it stands alone, runs nothing, shows every text of an input as text, and is the same every time."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Literal

import pytest

from forensics.action import Action, Check, Restart, Setting
from forensics.action import Gap as Unrecorded
from forensics.figure import Bar, Bars, Block, Chart, Curve, Figure, Flame, Gap, Heat, Lanes, Level, Mark, Moment, Rows
from forensics.knowledge.causes import causes
from forensics.model import Checkpoint, Coverage, Evidence, FileCoverage, FileStatus, Issue, Locator, Report
from forensics.report.html._live import scripts
from forensics.report.html.page import render, render_many
from forensics.values import replace

from .conftest import HOSTILE

VOID = {"meta", "br"}
PAYLOADS = (
    HOSTILE,
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</svg><svg onload=alert(1)>",
    "</desc></svg><iframe src=//evil.example>",
    "--><script>alert(1)</script><!--",
    "]]><script>alert(1)</script>",
    "<svg/onload=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;",
    "\x00<script\x00>alert(1)</script>",
    '<img src="https://evil.example/p.png">',
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href=//evil.example>",
    "<form action=//evil.example><input>",
    "`${alert(1)}`",
    "{{constructor.constructor('alert(1)')()}}",
    "@import url(//evil.example)",
    "x\u2028<b>y</b>\u2029",
    "\u202e<b>rtl</b>",
    "\ud800<b>lone</b>",
    "\x1b[31m<b>red</b>",
    "<details open ontoggle=alert(1)>",
    "<math><mtext></p><style><img src=x onerror=alert(1)>",
    "\r\n\r\n<b>new</b>",
    "<body onload=alert(1)>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><a xlink:href=javascript:alert(1)><text x=20 y=20>x</text></a></svg>",
    "<foreignObject><iframe srcdoc='<script>alert(1)</script>'></iframe></foreignObject>",
    "<use href=data:image/svg+xml;base64,PHN2Zz4=#x>",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "<input autofocus onfocus=alert(1)>",
    "<plaintext>",
    "<textarea></textarea><script>alert(1)</script>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<template><script>alert(1)</script></template>",
    "<xmp></xmp><script>alert(1)</script>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml-stylesheet href='javascript:alert(1)'?>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    "';alert(1)//",
    '\\";alert(1)//',
    "</script ><script>alert(1)</script>",
    "\u2028alert(1)\u2029",
    "javascript:alert(1)",
    "=cmd|'/c calc'!A1",
    "\ufeff<b>bom</b>",
    "\U000e0001<b>tag</b>\U000e007f",
    "x" * 5000 + "<b>",
    "a\u0300" * 400 + "<i>",
)


class Tree(HTMLParser):
    """The tags of a page with the names of their attributes, in order, and what was left open."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def parsed(page: str) -> Tree:
    tree = Tree()
    tree.feed(page)
    tree.close()
    assert tree.open == []
    return tree


def figures(word: str) -> tuple[Figure, ...]:
    two, cells = (word, word), ((0.5, None), (None, 1.0))
    curve = Curve(word, (1.0, 2.0, 3.0, 6.0), (4.0, 3.0, 9.0, 2.0), (Gap(4.0, 5.0, word, 2),), 6)
    ahead = Curve(word, (6.0, 9.0), (2.0, 8.0), records=0, projected=True)
    marks = (
        Mark(3.0, word, "onset"),
        Mark(2.0, word, "clean"),
        Mark(1.0, word, "checkpoint"),
        Mark(9.0, word, "limit"),
    )
    flame = (Block(word, 3.0, 0, (Block(word, 2.0, 1), Block(word, 1.0, 0))), Block(word, 1.0, 1))
    moments = (
        Moment(None, word, word, word, word, primary=True),
        Moment(0.0, word, word, word, word),
        Moment(2.5, word, word, word, word),
    )
    return (
        Lanes("lanes", word, word, moments, (word,), note=word),
        Chart(
            "chart",
            word,
            word,
            word,
            word,
            (curve, ahead),
            marks,
            (Level(1.0, 3.0, 4.0, word),),
            rules=(word,),
            note=word,
        ),
        Heat(
            "heat",
            word,
            word,
            word,
            ((0.0, word), (1.0, word)),
            two,
            cells,
            3.0,
            word,
            two,
            (word,),
            flagged=((0, 0), (1, 1)),
            flag=word,
            ends=two,
            marks=(Mark(0.5, word, "onset"),),
        ),
        Bars(
            "bars",
            word,
            word,
            word,
            two,
            (Bar(word, (1.0, 2.0)), Bar(word, (0.0, 4.0))),
            rules=(word,),
            limit=Mark(3.0, word, "limit"),
        ),
        Flame("flame", word, word, word, 4.0, (word, word), flame, two, (two,), rules=(word,), note=word),
        Rows("rows", word, word, (two,), (word,), two, (two,), rules=(word,), note=word),
    )


STATES: tuple[Literal["done", "missing", "next"], ...] = ("done", "missing", "next")


def filled(report: Report, word: str) -> Report:
    """The report with `word` in every text that comes from an input."""
    evidence = Evidence(word, Locator(line=3), quote=word, step=1, name=word, value=1.0)
    found = tuple(
        replace(
            f, rule=word, title=word, because=word, evidence=(evidence,), cause=word, likely=(word,),
            next=("forensics " + word,),
            numbers={word: word},
        )
        for f in report.findings[:1]
    )  # fmt: skip
    verdict = replace(
        report.verdict, headline=word, cause=word, chain=(word, word), runner_up=word, against=(evidence,), lead=0,
        actions=(Action(word, word, word, Setting(word, word, word)),),
        restart=Restart("elsewhere", word, 2, word, word, (word,)), checkpoint=Checkpoint(7, word),
        missing=(Unrecorded(word, word, word, word, word, word),) * 2,
        playbook=tuple(Check(word, f"{state} {word}", state, word, word, word, (word,)) for state in STATES),
    )  # fmt: skip
    file = FileCoverage(word, 9, 4, 5, FileStatus.PARTIAL, word, word, 1, word)
    coverage = Coverage((file,), (word,))
    return Report(word, verdict, found, coverage, (Issue(word, word, word),), 0, (word,), figures(word))


def page_of(*reports: Report) -> str:
    return "\n".join(render_many(reports))


def long(payload: str) -> str:
    """As long as every other payload, so that cells of a table wrap alike."""
    return payload + " padding" * 8


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_in_every_text_gives_the_tree_of_a_plain_word(failed: Report, payload: str) -> None:
    plain, hostile = parsed(page_of(filled(failed, long("x")))), parsed(page_of(filled(failed, long(payload))))
    assert hostile.tags == plain.tags
    assert hostile.ids == plain.ids
    assert hostile.links == plain.links


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_in_one_of_several_runs_does_not_reach_the_others(failed: Report, payload: str) -> None:
    plain = parsed(page_of(failed, filled(failed, long("x"))))
    assert parsed(page_of(failed, filled(failed, long(payload)))).tags == plain.tags


def test_nothing_directing_or_invisible_reaches_the_page(failed: Report) -> None:
    page = page_of(filled(failed, HOSTILE))
    assert not re.search("[\x00-\x09\x0b-\x1f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page)


def test_the_page_runs_nothing_and_loads_nothing(failed: Report) -> None:
    tree = parsed(page_of(filled(failed, "x y")))
    names = {name for name, _ in tree.tags}
    attributes = {a for _, every in tree.tags for a in every}
    assert not names & {"script", "img", "link", "iframe", "object", "embed", "base", "form", "use", "image"}
    assert not {a for a in attributes if a.startswith("on") or a in {"src", "style", "srcset", "xlink:href"}}
    assert all(link.startswith("#") for link in tree.links)


def test_the_policy_names_the_style_sheet_by_its_hash_and_nothing_else(failed: Report) -> None:
    page = page_of(failed)
    (sheet,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy.split("; ")[0] == "default-src &#x27;none&#x27;"
    assert f"sha256-{digest}" in policy
    assert "unsafe" not in policy
    assert "url(" not in sheet
    assert "@import" not in sheet


def test_every_link_leads_somewhere_and_no_id_comes_twice(failed: Report) -> None:
    tree = parsed(page_of(filled(failed, "x y"), filled(failed, "x y")))
    assert len(tree.ids) == len(set(tree.ids))
    assert {link[1:] for link in tree.links} <= set(tree.ids)


def test_every_drawing_has_a_role_a_title_and_a_description(failed: Report) -> None:
    page = page_of(filled(failed, "x y"))
    charts = re.findall(r'<svg class="chart"[^>]*>|<svg[^>]*class="chart"[^>]*>', page)
    assert len(charts) == 5
    for chart in charts:
        (labels,) = re.findall(r'aria-labelledby="([^"]+)"', chart)
        assert 'role="img"' in chart
        assert all(f'id="{label}"' in page for label in labels.split())


def test_every_chart_has_marks_and_a_table_of_the_same(failed: Report) -> None:
    page = page_of(filled(failed, "x y"))
    assert page.count("<polyline") >= 2
    assert page.count('class="cell') >= 2
    assert page.count(', as a table"') == 4
    assert page.count('class="block') == 4
    assert page.count('class="flag"') >= 2
    assert '<rect class="gap"' in page


def test_the_same_report_gives_the_same_bytes(failed: Report) -> None:
    assert len({page_of(filled(failed, "x y")) for _ in range(10)}) == 1


def test_what_a_record_says_is_whole_at_the_head_of_the_page(failed: Report) -> None:
    said = f"151 ms without work before {'k' * 80}"
    evidence = (Evidence("trace.json", Locator(record=17), said),)
    page = "".join(render(replace(failed, findings=(replace(failed.findings[0], evidence=evidence),))))
    assert page.count(said) == 2  # there and among the evidence


def test_a_likely_cause_that_the_page_names_as_the_cause_is_not_listed_again(failed: Report) -> None:
    own = replace(failed.findings[0], likely=(causes()["no_gradient_path"].says, "a bad batch"))
    said = replace(failed.verdict, cause="no_gradient_path", lead=0)
    page = "".join(render(replace(failed, verdict=said, findings=(own,))))
    listed = page.partition("<h2>Likely causes</h2>")[2].partition("</ol>")[0]
    assert listed == "<ol><li>a bad batch</li>"


def test_several_runs_are_listed_and_linked(failed: Report) -> None:
    page = page_of(failed, failed)
    assert "2 runs" in page
    assert page.count('<details class="one"') == 2
    assert 'id="run2"' in page


def test_a_page_without_figures_says_the_verdict_all_the_same(failed: Report) -> None:
    page = "\n".join(render(failed))
    assert "FAILED nan" in page
    assert "logs/rank_3/stdout.log:1031" in page


@pytest.mark.parametrize(
    "values",
    [(), (5.0,), (2.0, 2.0, 2.0), (1e308, -1e308), (1e-320, 2e-320), (0.6123, 0.6123 + 1e-12), (-1.0, 0.0, 1e30)],
)
def test_odd_values_never_break_a_drawing(failed: Report, values: tuple[float, ...]) -> None:
    xs = tuple(float(i) for i in range(len(values)))
    for log in (False, True):
        chart = Chart("c", "t", "c", "x", "y", (Curve("a", xs, values, (Gap(0.0, 1.0, "NaN"),)),), log=log)
        page = page_of(replace(failed, figures=(chart,)))
        assert "nan" not in re.sub(r">[^<]*<", "><", page).lower().replace("nan001", "")
        parsed(page)


def test_an_interactive_page_allows_its_own_scripts_by_hash_and_still_loads_nothing(failed: Report) -> None:
    page = "\n".join(render_many([filled(failed, "x y")], live=True))
    found = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(found) == 2
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    for script in found:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy
    assert "showSendToCloud" in found[1]
    assert len(page) < 6_000_000


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_in_an_interactive_page_stays_inside_its_string(failed: Report, payload: str) -> None:
    _, ours = scripts([(f.key, f) for f in filled(failed, payload).figures])
    assert not set("<>&\u2028\u2029") & set(ours.split(";\n(function")[0])
    given = json.loads(ours.removeprefix("var GIVEN=").split(";\n(function")[0])
    assert {f["id"] for f in given["figures"]} == {"chart", "bars", "flame"}
    words = [w for figure in given["figures"] for w in strings([figure["data"], figure["layout"]])]
    # what Plotly itself puts between a label and its value is the only markup
    assert not [w for w in words if "<" in w.replace("<br>", "").replace("<extra></extra>", "")]


def strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [word for one in inside for word in strings(one)]


def test_an_interactive_page_is_given_at_most_twenty_thousand_points() -> None:
    values = tuple(float(i % 97) for i in range(5000))
    long = Curve("a", tuple(float(i) for i in range(5000)), values, records=5000)
    charts = [(f"c{n}", Chart(f"c{n}", "t", "c", "x", "y", (long, long))) for n in range(10)]
    _, ours = scripts(charts)
    given = json.loads(ours.removeprefix("var GIVEN=").split(";\n(function")[0])
    assert len(given["figures"]) == 10
    assert sum(len(t["x"]) for f in given["figures"] for t in f["data"]) <= 20_000
    assert "Zoomable; holds 1,992 points: " in given["figures"][0]["note"]


def test_decimation_keeps_every_spike_and_every_hole() -> None:
    values = [2.0 + (i % 13) / 100 for i in range(6000)]
    for at, value in ((1234, 90.0), (4321, -70.0)):
        values[at] = value
    gaps = tuple(Gap(float(at), float(at), "NaN") for at in (777, 3333, 5432))
    kept = [i for i in range(6000) if i not in {777, 3333, 5432}]
    curve = Curve("a", tuple(map(float, kept)), tuple(values[i] for i in kept), gaps, 6000)
    charts = [(f"c{n}", Chart(f"c{n}", "t", "c", "x", "y", (curve,))) for n in range(40)]
    _, ours = scripts(charts)
    given = json.loads(ours.removeprefix("var GIVEN=").split(";\n(function")[0])
    assert sum(len(t["x"]) for f in given["figures"] for t in f["data"]) <= 20_000
    for figure in given["figures"]:
        (trace,) = figure["data"]
        assert {(1234.0, 90.0), (4321.0, -70.0)} <= set(zip(trace["x"], trace["y"], strict=True))
        holes = [x for x, y in zip(trace["x"], trace["y"], strict=True) if y is None]
        assert len(holes) == 3
        assert [s["x0"] for s in figure["layout"]["shapes"] if s["type"] == "rect"] == [777.0, 3333.0, 5432.0]
        assert "of 5,997 finite records are drawn" in figure["note"]


def test_charts_for_which_no_point_is_left_stay_still_drawings() -> None:
    curve = Curve("a", tuple(map(float, range(900))), (1.0,) * 900, records=900)
    many = [(f"c{n}", Chart(f"c{n}", "t", "c", "x", "y", (curve,) * 8)) for n in range(400)]
    _, ours = scripts(many)
    given = json.loads(ours.removeprefix("var GIVEN=").split(";\n(function")[0])
    assert sum(len(t["x"]) for f in given["figures"] for t in f["data"]) <= 20_000
