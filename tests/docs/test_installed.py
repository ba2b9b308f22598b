"""The source archive is whole, the wheel built from it is that of the checkout, and pages hold for who installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [path for path in (ROOT / "docs").rglob("*.md") if "```console" in path.read_text(encoding="utf-8")]
#: The first of May 2026: the year that the pages show.
PACKED_S = 1_777_593_600
#: Run with an installed package and no checkout: the blocks of a page are played in their order.
PLAYER = """
import sys
from pathlib import Path
sys.path.append(sys.argv[2])
import forensics
from make_reference import played
assert Path(forensics.__file__).is_relative_to(sys.argv[1]), forensics.__file__
for page in sys.argv[3:]:
    text = Path(page).read_text(encoding="utf-8")
    if played(text) != text:
        print(page)
"""


def built(kind: str, source: Path, into: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    subprocess.run(command, cwd=source, capture_output=True, check=True)
    (made,) = into.iterdir()
    return made


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("archive")
    with tarfile.open(built("sdist", ROOT, place / "dist")) as archive:
        archive.extractall(place, filter="data")
    return next(path for path in place.iterdir() if path.name != "dist")


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(built("wheel", unpacked, tmp_path_factory.mktemp("wheel") / "dist"))


def test_the_source_archive_holds_all_that_builds_and_tests_it(unpacked: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("an archive keeps no list of its files")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    left_out = [name for name in tracked if name and (ROOT / name).exists() and not (unpacked / name).exists()]
    assert left_out == []


def test_the_wheel_from_the_archive_holds_what_the_checkout_does(wheel: zipfile.ZipFile) -> None:
    packed = {name: wheel.read(name) for name in wheel.namelist() if name.startswith("forensics/")}
    own = {path for path in (ROOT / "forensics").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert packed == {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in own}
    assert "forensics/py.typed" in packed


def test_the_pages_hold_outside_of_the_checkout(unpacked: Path, wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path / "installed")
    shutil.copytree(unpacked / "fixtures", tmp_path / "work/fixtures")
    for path in (tmp_path / "work/fixtures").rglob("*"):
        os.utime(path, (PACKED_S, PACKED_S))  # logs that print no year are of the year of their file
    removed = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "FORCE_COLOR"}}
    environ = {**removed, "PYTHONPATH": str(tmp_path / "installed"), "NO_COLOR": "1", "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", PLAYER, str(tmp_path / "installed"), str(ROOT / "docs"), *map(str, sorted(PAGES))]
    done = subprocess.run(
        command, cwd=tmp_path / "work", env=environ, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
