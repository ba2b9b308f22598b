"""The reference pages are what the code says: `make docs` writes them anew."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from forensics import config
from forensics.cli import _overview, commands
from forensics.errors import ExitCode
from forensics.io.limits import DEFAULT
from forensics.pipeline import IN_MEMORY_BYTES
from forensics.registry import load
from forensics.store.schema import TABLES

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import make_site  # noqa: E402 - the folder is no package
from reference_tables import columns, tables  # noqa: E402 - same

REFERENCE = ROOT / "docs/reference"
GENERATED = ("cli.md", "documents.md", "tables.md")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run([sys.executable, str(ROOT / "docs/make_reference.py"), str(folder / "new")], cwd=folder, check=True)
    return folder / "new"


@pytest.mark.parametrize("name", GENERATED)
def test_a_reference_page_is_up_to_date(written: Path, name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == (written / name).read_text(encoding="utf-8"), "make docs"


def test_every_generated_page_is_known_here(written: Path) -> None:
    assert sorted(path.name for path in written.glob("*.md")) == sorted(GENERATED)


def test_every_command_has_its_section() -> None:
    page = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    assert re.findall(r"^## forensics (\S+)$", page, re.MULTILINE) == list(_overview.names(list(commands.__path__)))


def test_every_table_dialect_and_format_has_its_section() -> None:
    def sections(lines: Iterable[str]) -> list[str]:
        return re.findall(r"^## (\S+)$", "\n".join(lines), re.MULTILINE)

    found, built = load("ingesters", "dialects"), make_site.pages(())
    assert sections(tables()) == list(TABLES)
    assert sections(built["reference/formats.md"]) == [one.name for one in found.ingesters]
    assert sections(built["reference/dialects.md"]) == [one.name for one in found.dialects]


def test_every_column_of_the_store_has_its_words_and_no_other() -> None:
    told = columns()
    assert {name: list(one) for name, one in told.items()} == {name: list(one) for name, one in TABLES.items()}
    assert all(words for one in told.values() for words in one.values())


def test_the_configuration_page_names_every_key_and_every_exit_code() -> None:
    page = (REFERENCE / "configuration.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in page for key in config.KEYS)
    assert all(f"`{value}`" in page for value in config.FAIL_ON)
    codes = (REFERENCE / "exit-codes.md").read_text(encoding="utf-8")
    assert all(f"| {code.value} |" in codes for code in ExitCode)


def test_the_page_of_limits_states_the_bounds_that_hold() -> None:
    page = (ROOT / "docs/explanation/limits.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE))
    assert rows["files of a run"] == f"{DEFAULT.files:,}"
    assert rows["depth of folders"] == str(DEFAULT.depth)
    assert rows["length of a text line"] == f"{DEFAULT.line_bytes >> 20} MiB"
    assert rows["a quote"] == f"{DEFAULT.quote_chars} characters"
    assert rows["a compressed file expands to"] == (
        f"{DEFAULT.expanded_bytes >> 30} GiB, and {DEFAULT.expanded_ratio:,} times its size"
    )
    assert rows["a JSON document"] == f"{DEFAULT.json_bytes >> 20} MiB, {DEFAULT.json_depth} levels"
    assert rows["a framed record"] == f"{DEFAULT.record_bytes >> 20} MiB"
    assert rows["issues of a file"].startswith(f"{DEFAULT.issues:,};")
    assert f"above {IN_MEMORY_BYTES >> 20} MB" in page
