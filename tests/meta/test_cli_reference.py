"""The reference pages are what the code says: `make docs` writes them anew."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from forensics import cli, config
from forensics.cli import _overview
from forensics.cli._reference import played
from forensics.errors import ExitCode

ROOT = Path(__file__).parents[2]
DOCS = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run([sys.executable, "-m", "forensics.cli._reference", str(folder / "new")], cwd=folder, check=True)
    return folder / "new"


@pytest.mark.parametrize("name", ["cli.md", "documents.md"])
def test_a_reference_page_is_up_to_date(written: Path, name: str) -> None:
    assert (ROOT / "docs/reference" / name).read_text(encoding="utf-8") == (written / name).read_text(encoding="utf-8")


def test_every_command_has_its_section() -> None:
    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    assert re.findall(r"^## forensics (\S+)$", page, re.MULTILINE) == list(_overview.names(list(cli.__path__)))


@pytest.mark.parametrize("path", DOCS, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_pages_name_only_commands_that_exist(path: Path) -> None:
    if path.name == "architecture.md":  # the plan names commands that are still to come
        pytest.skip("a plan")
    used = set(re.findall(r"^\$ forensics ([a-z][a-z-]*)", path.read_text(encoding="utf-8"), re.MULTILINE))
    assert used <= set(_overview.names(list(cli.__path__)))


@pytest.mark.parametrize("path", DOCS, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_links_between_pages_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_the_configuration_page_names_every_key_and_every_exit_code() -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in page for key in config.KEYS)
    assert all(f"`{value}`" in page for value in config.FAIL_ON)
    codes = (ROOT / "docs/reference/exit-codes.md").read_text(encoding="utf-8")
    assert all(f"| {code.value} |" in codes for code in ExitCode)


PLAYED = [path for path in DOCS if "```console" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", PLAYED, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_a_page_says_a_command_prints_is_what_it_prints(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("NO_COLOR", "1")
    page = path.read_text(encoding="utf-8")
    assert played(page) == page, "make docs writes it anew"
