"""The site: every rule has a page, every link of what it is built from leads somewhere, it builds, it loads nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forensics.registry import load

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import make_site  # noqa: E402 - the folder is no package

LINK = re.compile(r"\]\((?P<target>[^)\s#]+)(?:#[^)\s]+)?\)")
FENCE = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
#: What a browser would load by itself; a link that a reader may click is none.
LOADED = re.compile(r"<(?:script|img|iframe|link(?![^>]*rel=\"?canonical))[^>]*(?:src|href)=\"?(?:https?:)?//[^\">]*")
OWN = ROOT / "build/site-env/bin/zensical"
BUILDER = str(OWN) if OWN.is_file() else shutil.which("zensical")


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    make_site.stage(ROOT / "docs", place / "build/docs")
    return place


def test_every_rule_has_a_page_with_its_sections_and_thresholds(staged: Path) -> None:
    for rule in load("rules").rules:
        page = (staged / f"build/docs/reference/rules/{rule.id}.md").read_text(encoding="utf-8")
        titles = re.findall(r"^##? (.+)$", FENCE.sub("", page), re.MULTILINE)
        assert titles[0] == f"{rule.id} {rule.slug}"
        assert titles[1:7] == [
            "What it detects",
            "Why it matters",
            "How it decides",
            "What else looks like this",
            "What to do next",
            "References",
        ]
        assert {"Example", "Not this", "Thresholds"} <= set(titles[7:])
        assert "Result: `" in page


def test_the_list_of_rules_links_to_every_page(staged: Path) -> None:
    page = (staged / "build/docs/reference/rules/index.md").read_text(encoding="utf-8")
    assert all(f"[{rule.id}]({rule.id}.md)" in page for rule in load("rules").rules)


def test_every_link_of_the_staged_pages_leads_somewhere(staged: Path) -> None:
    for path in (staged / "build/docs").rglob("*.md"):
        for link in LINK.finditer(re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text(encoding="utf-8")))):
            if not link["target"].startswith("http"):
                assert (path.parent / link["target"]).exists(), f"{path.name}: {link['target']}"


def test_a_rule_that_a_page_names_becomes_a_link_and_code_does_not() -> None:
    text = "# NAN001\nSee `NAN001` and NAN002.\n```sh\nforensics explain NAN001\n```\n`--ignore NAN001` [NAN001](x)"
    link = make_site.linked(text, Path("how-to/x.md"), frozenset({"NAN001"}))
    assert link == text.replace("See `NAN001`", "See [`NAN001`](../reference/rules/NAN001.md)")


@pytest.mark.skipif(BUILDER is None, reason="zensical is not installed: make site installs it")
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(staged: Path) -> None:
    shutil.copy(ROOT / "mkdocs.yml", staged)
    done = subprocess.run(
        [str(BUILDER), "build", "--strict", "-f", "mkdocs.yml"], cwd=staged, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    pages = sorted((staged / "build/site").rglob("*.html"))
    assert len(pages) > len(load("rules").rules)
    for page in pages:
        assert not LOADED.findall(page.read_text(encoding="utf-8")), page.name
