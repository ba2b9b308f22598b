"""Faults of the machine are told as such: exit 2, one line that says what is refused, and one that helps; no bug.

What needs streams, limits or a disk of its own is a process; the rest is called in this one. Modes of files say nothing
to root, so a file in the way stands for a folder that may not be used.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from forensics import pipeline
from forensics.cli.main import run as run_line

FORENSICS = (sys.executable, "-m", "forensics")
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Place:
    """A folder with a run, a file of it and a file that stands in the way of folders."""

    folder: Path

    @property
    def words(self) -> dict[str, str]:
        here = str(self.folder)
        return {
            "run": f"{here}/run",
            "log": f"{here}/run/train.log",
            "file": f"{here}/file",
            "new": f"{here}/new",
            "here": here,
            "long": f"{here}/{'n' * 300}",
        }

    def environment(self, **changed: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        base = {"HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp"), "PYTHONPATH": str(ROOT)}
        # one thread each: a limit of the process is not to be met by threads that polars makes
        return kept | base | {"POLARS_MAX_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"} | changed


@pytest.fixture
def place(tmp_path: Path) -> Place:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "file").write_text("in the way\n", encoding="utf-8")
    rows = (json.dumps({"step": n, "loss": 4 - n / 50, "grad_norm": 0.8}) for n in range(1, 81))
    (run / "metrics.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    log = [*(f"step {n} loss {4 - n / 50}" for n in range(1, 81)), "Training complete."]
    (run / "train.log").write_text("".join(f"{line}\n" for line in log), encoding="utf-8")
    return Place(tmp_path)


def refused(done: subprocess.CompletedProcess[str], place: Place) -> str:
    """The one line that says why; everything that holds of each refusal is asserted."""
    assert done.returncode == 2, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    helps = [line for line in done.stderr.splitlines() if line.startswith("  help: ")]
    assert (len(errors), len(helps)) == (1, 1), done.stderr
    assert helps[0].removeprefix("  help: ").strip()
    assert "Traceback" not in done.stderr
    assert "a bug of forensics" not in done.stderr
    assert not list(place.folder.rglob("forensics-crash-*"))
    return errors[0]


def call(
    place: Place, line: str, *, shell: str = "", cwd: Path | None = None, **changed: str
) -> subprocess.CompletedProcess[str]:
    """Run a line of words, each with the names of the place filled in; `shell` is what follows it in a shell."""
    words = [word.format(**place.words) for word in line.split()]
    command = ["bash", "-c", f'exec "$@" {shell.format(**place.words)}', "bash", *FORENSICS, *words]
    environment = place.environment(**{k: v.format(**place.words) for k, v in changed.items()})
    return subprocess.run(
        command, cwd=cwd or place.folder, env=environment, capture_output=True, text=True, check=False
    )


#: The same in this process: what is told by words and variables alone needs none of its own.
Called = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def called(place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Called:
    def call_here(words: list[str], **changed: str) -> subprocess.CompletedProcess[str]:
        filled = [word.format(**place.words) for word in words]
        given = place.environment(**{k: v.format(**place.words) for k, v in changed.items()})
        for name in os.environ.keys() - given.keys():
            if name.startswith("XDG_"):
                monkeypatch.delenv(name)
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(place.folder)
        code = run_line(filled)
        return subprocess.CompletedProcess(filled, code, *capsys.readouterr())

    return call_here


def test_a_place_that_cannot_be_used_is_named_by_a_process(place: Place) -> None:
    assert str(place.folder / "file") in refused(call(place, "triage {run} --store {file}"), place)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ingest {run} --store {file}", "{file}"),
        ("ingest {run} --store {file}/below", "{file}/below"),
        ("triage {run} --store {file}", "{file}"),
        ("kernels {run} --store {file}/below", "{file}/below"),
        ("export {run} --to csv -o {new}.csv --store {file}/below", "{file}/below"),
        ("query {run} --store {file}", "{file}"),
        ("triage {run} -o {file}/report.txt", "'{file}/report.txt' cannot be written"),
        ("triage {run} -o {here}", "'{here}': is a folder"),
        ("triage {run} -o {here}/none/report.txt", "'{here}/none/report.txt' cannot be written"),
        ("triage {run} --html {file}/page.html", "'{file}/page.html' cannot be written"),
        ("report {run} -o {file}/page.html", "'{file}/page.html' cannot be written"),
        ("export {run} --to csv -o {file}/points.csv", "'{file}/points.csv' cannot be written"),
        ("export {run} --to tensorboard -o {file}/events", "'{file}/events' cannot be written"),
        ("triage {long}", "the name is too long"),
        ("triage {run} -o {long}", "the name is too long"),
        ("ingest {run} --store {long}", "the name is too long"),
        ("hang {long}", "the name is too long"),
        ("diff {run} {long}", "the name is too long"),
        ("triage {file}/below", "no such file or directory"),
    ],
)
def test_a_place_that_cannot_be_used_is_named(place: Place, called: Called, line: str, said: str) -> None:
    assert said.format(**place.words) in refused(called(line.split()), place)


@pytest.mark.parametrize(
    "words",
    [
        ["triage", ""],
        ["triage", "{run}", ""],
        ["report", ""],
        ["kernels", ""],
        ["memory", ""],
        ["hang", ""],
        ["nan-origin", ""],
        ["query", ""],
        ["diff", "", ""],
        ["ingest", ""],
        ["ingest", "{run}", "--store", ""],
        ["ingest", "{run}", "--store="],
        ["triage", "{run}", "-o", ""],
        ["triage", "{run}", "--html", ""],
        ["triage", "{run}", "--baseline", ""],
        ["export", "{run}", "--to", "csv", "-o", ""],
    ],
)
def test_an_empty_argument_is_refused_and_never_means_the_working_folder(
    place: Place, called: Called, words: list[str]
) -> None:
    before = sorted(place.folder.rglob("*"))
    done = called(words)
    assert "is empty: is a variable not set?" in refused(done, place)
    assert done.stdout == ""
    assert sorted(place.folder.rglob("*")) == before


def test_a_zero_byte_in_a_name_is_refused(capsys: pytest.CaptureFixture[str], place: Place) -> None:
    for words in (["triage", "a\0b"], ["triage", str(place.folder / "run"), "-o", "a\0b"]):
        assert run_line(words) == 2
        assert "no name holds a zero byte" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["triage {run}", "--help", "--version", "formats", "query {run}"])
@pytest.mark.parametrize(("shell", "said"), [(">&-", "is closed"), (">/dev/full", "the disk is full")])
def test_an_output_that_takes_nothing_is_said(place: Place, line: str, shell: str, said: str) -> None:
    assert f"standard output: {said}" in refused(call(place, line, shell=shell), place)


def test_a_closed_output_does_not_matter_where_a_file_takes_the_answer(place: Place) -> None:
    done = call(place, "triage {run} -o {new}", shell=">&-")
    assert (done.returncode, done.stdout) == (0, "")
    assert (place.folder / "new").read_text(encoding="utf-8").startswith("HEALTHY")


@pytest.mark.parametrize("shell", ["2>&-", "2>/dev/full", "<&-", "<&- 2>&-"])
def test_a_stream_that_is_not_needed_may_be_closed(place: Place, shell: str) -> None:
    done = call(place, "triage {run}", shell=shell)
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "HEALTHY", "")


@pytest.mark.parametrize("shell", ["2>&-", "2>/dev/full"])
def test_an_error_that_nobody_can_read_keeps_its_code(place: Place, shell: str) -> None:
    assert call(place, "triage {here}/none", shell=shell).returncode == 2


@pytest.mark.parametrize("shell", ["<&-", "0>/dev/null"])
@pytest.mark.parametrize("command", ["hang", "nan-origin"])
def test_an_input_that_cannot_be_read_is_said(place: Place, command: str, shell: str) -> None:
    assert "standard input: is closed" in refused(call(place, f"{command} -", shell=shell), place)


@pytest.mark.parametrize("line", ["ingest {run}", "ingest {log}"])
@pytest.mark.parametrize(
    "changed",
    [{"XDG_CACHE_HOME": "{file}"}, {"XDG_CACHE_HOME": "{file}/below"}, {"HOME": "{file}"}, {"HOME": "/dev/null"}],
    ids=["cache-a-file", "cache-below-a-file", "home-a-file", "home-null"],
)
def test_a_cache_that_cannot_be_used_is_named(place: Place, called: Called, line: str, changed: dict[str, str]) -> None:
    (used,) = (value.format(**place.words) for value in changed.values())
    assert used in refused(called(line.split(), **changed), place)


def test_a_home_that_is_missing_does_not_matter_to_a_verdict(place: Place) -> None:
    assert call(place, "triage {run}", HOME="{here}/none", XDG_CACHE_HOME="{file}").returncode == 0


def test_a_working_folder_that_was_removed_is_said(place: Place) -> None:
    gone = place.folder / "gone"
    for line in ("triage .", "kernels .", "triage run", "ingest ."):
        gone.mkdir()
        words = " ".join(line.split())
        done = subprocess.run(
            ["bash", "-c", f'rmdir ../gone; exec "$@" {words}', "bash", sys.executable, "-P", "-m", "forensics"],
            cwd=gone, env=place.environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "the working folder has been removed" in refused(done, place)


def limited(
    place: Place, line: str, kind: int, most: int, *, stdin: str | None = None, **changed: str
) -> subprocess.CompletedProcess[str]:
    """Run with a limit of the system, set when Python and the packages are loaded, as a full disk would come later."""
    code = (
        "import resource, sys, polars, numpy\nfrom forensics import pipeline\nfrom forensics.cli.main import run\n"
        "from forensics import registry\nregistry.load()\n"
        f"resource.setrlimit({kind}, ({most}, {most}))\nsys.exit(run())"
    )
    words = [word.format(**place.words) for word in line.split()]
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=place.folder, env=place.environment(**changed), input=stdin,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("line", ["ingest {run} --store {new}", "ingest {run}", "triage {run} --store {new}"])
def test_a_store_that_is_out_of_space_is_said_and_leaves_nothing(place: Place, line: str) -> None:
    error = refused(limited(place, line, resource.RLIMIT_FSIZE, 512), place)
    assert "the system allows no file of this size" in error
    assert str(place.folder / ("new" if "{new}" in line else ".cache")) in error
    assert not list(place.folder.rglob(".building-*"))


@pytest.mark.parametrize("line", ["triage {run} -o {new}", "report {run} -o {new}", "export {run} --to csv -o {new}"])
def test_a_result_that_is_out_of_space_is_said_and_leaves_nothing(place: Place, line: str) -> None:
    error = refused(limited(place, line, resource.RLIMIT_FSIZE, 64), place)
    assert f"'{place.folder}/new' cannot be written: the system allows no file of this size" in error
    assert not [path for path in place.folder.iterdir() if "new" in path.name]


def test_a_pipe_that_does_not_fit_is_said(place: Place) -> None:
    error = refused(limited(place, "hang -", resource.RLIMIT_FSIZE, 64, stdin="step 1 loss 2\n" * 100), place)
    assert f"the temporary folder {place.folder}/tmp" in error


def test_too_few_open_files_are_said_and_no_file_is_called_damaged_for_it(place: Place) -> None:
    error = refused(limited(place, "triage {run}", resource.RLIMIT_NOFILE, 3), place)
    assert "no more files" in error


def small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(folder)], check=False)
    if made.returncode:
        pytest.skip("only root may mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 kB that is full but for a page."""
    for folder in small_disk(tmp_path / "full"):
        (folder / "ballast").write_bytes(b"x" * 12_288)
        yield folder


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may mount a small disk")
@pytest.mark.parametrize(
    "line", ["ingest {run} --store {here}/full/store", "triage {run} -o {here}/full/r", "report {run} -o {here}/full/r"]
)
def test_a_full_disk_is_said(place: Place, full: Path, line: str) -> None:
    (full / "more").write_bytes(b"x" * 2_000)
    error = refused(call(place, line), place)
    assert "the disk is full" in error
    assert str(full) in error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "the memory of this machine"),
        (OSError(errno.EIO, "x", "/data/a"), "/data/a: the disk gives errors"),
        (OSError(errno.EROFS, "x", "/data/a"), "/data/a: the file system is read-only"),
        (OSError(errno.EDQUOT, "x", "/data/a"), "/data/a: the quota of the disk is used up"),
        (OSError(errno.ESTALE, "x", "/data/a"), "/data/a: the network file system has lost it"),
        (PermissionError(errno.EACCES, "x", "/data/a"), "/data/a: permission denied"),
        (OSError(errno.EUSERS, "Too many users", "/data/a"), "/data/a: Too many users"),
        (pl.exceptions.ComputeError("parquet: (os error 28)"), "the disk is full"),
    ],
    ids=repr,
)
def test_what_the_system_refuses_is_said_in_words(
    place: Place, called: Called, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(pipeline, "ingest_run", broken)
    assert said in refused(called(["triage", "run"]), place)


def python(place: Place, code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=place.folder, env=place.environment(), capture_output=True,
        text=True, check=False,
    )  # fmt: skip


BROKEN = """
import sys
from forensics import pipeline
from forensics.cli.main import run
def broken(*a, **k): raise {error}
pipeline.ingest_run = broken
sys.exit(run())
"""


def test_an_error_of_ours_is_still_a_bug(place: Place) -> None:
    done = python(place, BROKEN.format(error="ValueError('x')"), "triage", "run")
    assert done.returncode == 70
    assert len(list(place.folder.rglob("forensics-crash-*"))) == 1


def test_no_temporary_folder_is_said(place: Place) -> None:
    code = "import tempfile, sys, errno\nfrom forensics.cli.main import run\n"
    code += "def none(*a): raise FileNotFoundError(errno.ENOENT, 'no usable temporary directory')\n"
    code += "tempfile._get_default_tempdir = none\nsys.exit(run(['hang', '-']))"
    assert "a temporary file (TMPDIR)" in refused(python(place, code), place)


def test_a_folder_that_cannot_be_listed_is_said(place: Place) -> None:
    code = "import os, sys, errno\nfrom forensics.cli.main import run\n"
    code += "def shut(path): raise PermissionError(errno.EACCES, 'no', path)\n"
    code += "os.scandir = shut\nsys.exit(run(['triage', 'run']))"
    assert "run: permission denied" in refused(python(place, code), place)


def test_a_request_to_end_is_143_and_leaves_nothing_behind(place: Place) -> None:
    slow = (
        "import sys, time\nfrom forensics.store import unit\nfrom forensics.cli.main import run\n"
        "def wait(*a, **k): print('reading', file=sys.stderr, flush=True); time.sleep(60)\n"
        "unit.fill = wait\nsys.exit(run())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", slow, "ingest", "run", "--store", "new"], cwd=place.folder, env=place.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline() == "reading\n"
    assert list((place.folder / "new").rglob(".building-*"))
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (143, "")
    assert err.splitlines() == [
        "error: ended by SIGTERM; no verdict was reached", "  help: run the same command again",
    ]  # fmt: skip
    assert time.monotonic() - began < 20
    assert not list((place.folder / "new").rglob(".building-*"))
