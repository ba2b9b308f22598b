"""Links lead somewhere, anchors too; pages name only rules that exist; pictures are small and up to date."""

from __future__ import annotations

import importlib.util
import re
import struct
import sys
from pathlib import Path

import pytest

from forensics.registry import load

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import make_site  # noqa: E402 - the folder is no package

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<target>[^)\s#]*)(?:#(?P<anchor>[^)\s]+))?\)")
IMAGE = re.compile(r"<img [^>]*src=\"([^\"]+)\"[^>]*alt=\"[^\"]+\"")
RULE = re.compile(r"(?<![\w-])(?:NAN|OOM|HNG|SLO|EVL|LRN|RLX|RSM|HST)\d{3}(?!\w)")
KIB = 1024


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_the_links_of_a_page_and_their_anchors_lead_somewhere(path: Path) -> None:
    for link in LINK.finditer(re.sub(r"`[^`\n]*`", "", prose(path))):
        if link["target"].startswith(("http:", "https:")):
            continue
        target = path.parent / link["target"] if link["target"] else path
        assert target.exists(), link["target"]
        if link["anchor"]:
            assert link["anchor"] in anchors(target), link[0]
    for picture in IMAGE.findall(prose(path)):
        assert (path.parent / picture).is_file(), picture


@pytest.mark.parametrize("path", [p for p in PAGES if "docs" in p.parts], ids=named)
def test_a_page_of_the_site_links_to_no_file_outside_of_it(path: Path) -> None:
    inside = (ROOT / "docs").resolve()
    targets = (link["target"] for link in LINK.finditer(prose(path)) if not link["target"].startswith("http"))
    assert all((path.parent / target).resolve().is_relative_to(inside) for target in targets if target)


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_a_page_names_only_rules_that_exist(path: Path) -> None:
    known = {rule.id for rule in load("rules").rules} | {"LRN900"}  # the example of add-a-rule
    assert set(RULE.findall(path.read_text(encoding="utf-8"))) - {"NAN999"} <= known


def test_the_start_page_and_the_navigation_reach_every_page() -> None:
    listed = set(re.findall(r"\s([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    docs = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    built = {name for name in make_site.pages(()) if name.endswith(".md")}
    assert listed == docs | built
    assert not docs & built


def test_the_picture_of_the_terminal_is_what_the_tool_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("COLUMNS", raising=False)
    spec = importlib.util.spec_from_file_location("make_pictures", ROOT / "docs/make_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawn = module.terminal(f"triage {module.RUN}")
    assert (ROOT / "docs/pictures/terminal.svg").read_text(encoding="utf-8") == drawn, "make pictures"


def test_the_pictures_are_small_and_whole() -> None:
    pictures = sorted((ROOT / "docs/pictures").iterdir())
    assert [path.name for path in pictures] == ["report.png", "terminal.svg"]
    assert all(path.stat().st_size < 300 * KIB for path in pictures)
    head = (ROOT / "docs/pictures/report.png").read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", head[16:24])
    assert width >= 600
    assert height >= 400
