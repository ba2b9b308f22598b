"""A file may have any name: whatever command reads it and in whatever format, the answer is that of plain names."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from forensics import pipeline
from forensics.registry import renderer_named

from .conftest import Call
from .test_kernels import trace

pytestmark = pytest.mark.usefixtures("read_once")
FIXTURES = Path(__file__).parents[2] / "fixtures"
#: As bytes, because not every one is text; a slash is a folder.
NAMES = (
    b"n" * 251, "a\u202egol".encode(), "a\u2066b\u2069\u200f".encode(), b"[/x][red]", b"<img src=x onerror=alert(1)>",
    b"<script>alert(1)<", b"](javascript:alert(1))", b"![x](x", b"##[error]x", b"##vso[task.x]", b"::error::x", b"a|b",
    b"`a`", b"```", b"a\nb", b"a\n::stop-commands::x", b"a\r::error::x", b"%0A::error::x", b"\xff\xfe", b"\x1b[31m",
    "\x9b31m".encode(), "a\u2028b\u2029".encode(), b"=cmd|x", b"@SUM(1)", b"--x", b"'\"&", b"$(id)", b" lead", b"a:12",
    b"]]>", b"<!--", b"\\n", b"a\tb", b"\x7f", b"{{7*7}}", b"%s%n",
)  # fmt: skip
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
#: What a runner takes for a command, but for the one that the renderer `github` itself writes.
COMMAND = re.compile(r"^\s*::(?!(?:error|warning|notice) (?:file=[^\n]*,)?title=forensics)|##\[", re.MULTILINE)
REPORT = ("text", "json", "markdown", "github", "junit", "html")
PAGE = ("text", "json", "markdown")
FORMATS = {
    "triage": REPORT, "nan-origin": PAGE, "hang": PAGE, "memory": PAGE, "kernels": PAGE, "ingest": PAGE,
    "diff": ("text", "json", "markdown", "github", "junit"), "query": ("text", "csv", "json", "jsonl"),
}  # fmt: skip
SQL = "SELECT source, name, max(value) AS most FROM metrics GROUP BY source, name ORDER BY source, name"


def steps(shift: float = 0.0) -> str:
    return "".join(f"step {s} loss {'nan' if s > 50 else 3 + shift - s / 50} lr 0.1\n" for s in range(1, 80))


def named(folder: Path, names: tuple[bytes, ...], shift: float = 0.0) -> Path:
    """A run of a log, a trace, a snapshot and settings under each of some names."""
    for name in names:
        place = os.path.join(os.fsencode(folder), name)  # noqa: PTH118 - a name that is no text
        os.makedirs(os.path.dirname(place), exist_ok=True)  # noqa: PTH103, PTH120 - same
        with open(place + b".log", "w", encoding="utf-8") as file:  # noqa: PTH123 - same
            file.write(steps(shift))
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Two runs with hostile names in folders with such names, and the same with plain ones."""
    top = tmp_path_factory.mktemp("names")
    few = NAMES[1::5]  # each alone is told below
    plain = tuple(f"log{n}".encode() for n in range(len(few)))
    both = {}
    for kind, names, first, second in (
        ("hostile", few, "::error::[x](y) <b>\u202e`|", "##[error]%0A\x1b[31m"), ("plain", plain, "one", "two"),
    ):  # fmt: skip
        pair = named(top / first, names), named(top / second, names, 0.1)
        for run in pair:
            mark = "<b>\u202e##[x]" if kind == "hostile" else "a"
            trace(run / f"{mark}.pt.trace.json")
            snapshot = (FIXTURES / "memory_snapshot/ok-json/memory_snapshot.json").read_text(encoding="utf-8")
            (run / f"{mark}memory_snapshot.json").write_text(snapshot, encoding="utf-8")
        both[kind] = pair
    return both


class Tags(HTMLParser):
    """Elements and their attributes' names."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        assert not any((value or "").startswith("javascript:") for name, value in attrs if name in ("href", "src"))


def check(text: str, form: str) -> None:
    """Raise unless a document is valid and holds nothing that directs whoever shows it."""
    assert not RAW.search(text), RAW.search(text)
    assert form == "html" or not COMMAND.search(text), COMMAND.search(text)
    if form == "json":
        json.loads(text)
    elif form == "jsonl":
        assert all(isinstance(json.loads(line), dict) for line in text.split("\n") if line)
    elif form == "junit":
        ET.fromstring(text)
    elif form == "html":
        page = Tags()
        page.feed(text)
        assert not {"img", "iframe", "object", "embed", "link"} & set(page.seen)
    elif form == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        assert len({len(row) for row in rows}) == 1
        assert not [cell for row in rows for cell in row if cell[:1] in ("=", "+", "-", "@") and not number(cell)]


def number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(("name", "form"), [(name, form) for name, forms in FORMATS.items() for form in forms])
def test_a_command_answers_as_with_plain_names(
    call: Call, runs: dict[str, tuple[Path, Path]], name: str, form: str
) -> None:
    def asked(kind: str) -> list[object]:
        given = [*runs[kind]] if name == "diff" else [runs[kind][0]]
        return [name, *given, *([SQL, "--limit", 0] if name == "query" else ["--verbose"]), "-f", form]

    hostile = call(*asked("hostile"))
    if form == FORMATS[name][0]:  # the format has no part in the code
        assert hostile.code == call(*asked("plain")).code, hostile.err
        check(call(*asked("hostile"), "--redact").out, form)
    check(hostile.out, form)
    assert not RAW.search(hostile.err)


@pytest.mark.parametrize("target", ["csv", "jsonl", "pandas"])
def test_an_export_holds_them_as_text(
    call: Call, runs: dict[str, tuple[Path, Path]], tmp_path: Path, target: str
) -> None:
    out = tmp_path / "points"
    assert call("export", runs["hostile"][0], "--to", target, "-o", out).code == 0
    if target != "pandas":  # names there are exact: only pandas reads it
        check(out.read_text(encoding="utf-8"), target)


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:20]))
def test_the_place_of_the_evidence_is_never_cut(tmp_path: Path, name: bytes) -> None:
    """Each name in turn is that of the file that the verdict quotes."""
    run = pipeline.ingest_run(named(tmp_path / "run", (name,)))
    report = pipeline.with_figures(run, pipeline.report_of(run))
    place = report.verdict.onset
    assert (report.verdict.outcome.value, place.step) == ("failed", 51)
    for form in REPORT:
        renderer = renderer_named(form)
        assert renderer is not None
        text = "\n".join(renderer.render(report))
        check(text, form)
        if form in ("text", "markdown", "junit"):
            assert re.search(r"\.log:51\b", text), form
