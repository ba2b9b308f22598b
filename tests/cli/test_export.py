"""`forensics export`: what it writes, where it never writes, and its exit codes."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from forensics.export import target as targets
from forensics.export import targets as folder

from .conftest import Call

TARGETS = ("csv", "jsonl", "pandas", "parquet", "tensorboard", "wandb")
FOLDERS = ("tensorboard", "wandb")


def tree(root: Path) -> dict[str, str]:
    return {
        str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else ""
        for p in sorted(root.rglob("*"))
    }


@pytest.mark.parametrize("to", TARGETS)
def test_every_target_writes_every_point_and_leaves_the_run_as_it_was(
    call: Call, nan_run: Path, tmp_path: Path, to: str
) -> None:
    before = tree(nan_run)
    done = call("export", nan_run, "--to", to, "-o", tmp_path / "out")
    assert done.code == 0
    assert done.out.splitlines()[0] == f"{to}: 160 points in 1 file: {tmp_path / 'out'}"
    assert tree(nan_run) == before
    if to in FOLDERS:
        about = json.loads((tmp_path / "out" / "forensics-export.json").read_bytes())
        assert (about["schema"], about["to"], about["points"]) == ("forensics.export/1", to, 160)
        again = call("query", tmp_path / "out", "SELECT count(*) AS n, count(DISTINCT step) AS s FROM metrics")
        assert again.out.split() == ["n", "s", "160", "80"]


@pytest.mark.parametrize("to", TARGETS)
def test_the_same_run_gives_the_same_bytes(call: Call, nan_run: Path, tmp_path: Path, to: str) -> None:
    call("export", nan_run, "--to", to, "-o", tmp_path / "one" / "x" if to not in FOLDERS else tmp_path / "one")
    for name in ("a", "b"):
        assert call("export", nan_run, "--to", to, "-o", tmp_path / name).code == 0
    if to in FOLDERS:
        assert tree(tmp_path / "a") == tree(tmp_path / "b")
    else:
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_nothing_is_ever_written_into_the_run(
    call: Call, nan_run: Path, tmp_path: Path, to: str, force: tuple[str, ...]
) -> None:
    (nan_run / "sub").mkdir()
    (tmp_path / "link").symlink_to(nan_run / "sub")
    before = tree(tmp_path)
    places = (nan_run, nan_run / "out", nan_run / "sub" / ".." / "out", tmp_path / "link" / "out")
    for place in (*places, nan_run / "metrics.jsonl"):
        done = call("export", nan_run, "--to", to, "-o", place, *force)
        assert (done.code, done.out) == (2, "")
        assert "the run, which is never written to" in done.err
    assert tree(tmp_path) == before


@pytest.mark.parametrize("to", TARGETS)
def test_a_run_of_one_file_is_not_overwritten(call: Call, nan_run: Path, tmp_path: Path, to: str) -> None:
    run = nan_run / "metrics.jsonl"
    (tmp_path / "hard").hardlink_to(run)
    before = run.read_bytes()
    for place in (run, tmp_path / "hard"):
        assert call("export", run, "--to", to, "-o", place, "--force").code == 2
    assert run.read_bytes() == before
    assert call("export", run, "--to", to, "-o", nan_run / "beside").code == 0


@pytest.mark.parametrize("to", FOLDERS)
def test_a_folder_around_the_run_is_not_replaced(call: Call, nan_run: Path, to: str) -> None:
    (nan_run.parent / "forensics-export.json").write_text("{}", encoding="utf-8")
    done = call("export", nan_run, "--to", to, "-o", nan_run.parent, "--force")
    assert done.code == 2
    assert "around the run" in done.err
    assert (nan_run / "metrics.jsonl").is_file()


@pytest.mark.parametrize("to", TARGETS)
def test_a_place_that_is_taken_needs_force(call: Call, nan_run: Path, tmp_path: Path, to: str) -> None:
    out = tmp_path / "out"
    assert call("export", nan_run, "--to", to, "-o", out).code == 0
    refused = call("export", nan_run, "--to", to, "-o", out, "--metrics", "loss")
    assert refused.code == 2
    assert "--force" in refused.err
    done = call("export", nan_run, "--to", to, "-o", out, "--metrics", "loss", "--force")
    assert (done.code, done.out.split(":")[1]) == (0, " 80 points in 1 file")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("export {} --to excel -o out", "not one of csv, jsonl,"),
        ("export {} --to csv", "--output"),
        ("export {} -o out", "--to"),
        ("export {} --to parquet --wide -o out", "has one form only"),
        ("export {} --to csv -o out --metrics nope", "nothing fits nope"),
        ("export nowhere --to csv -o out", "no such file"),
        ("export {} --to csv -o no/such/folder/out", "cannot be written"),
    ],
)
def test_a_usage_error_is_2_and_writes_nothing(call: Call, nan_run: Path, line: str, words: str) -> None:
    done = call(*line.format(nan_run).split())
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert "  help: " in done.err
    assert not list(Path.cwd().iterdir())


def test_links_in_a_circle_are_a_usage_error(call: Call, nan_run: Path, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for to in ("csv", "wandb"):
        assert call("export", nan_run, "--to", to, "-o", tmp_path / "a" / "out", "--force").code == 2


def test_a_run_without_metrics_is_3(call: Call, odd_run: Path, tmp_path: Path) -> None:
    done = call("export", odd_run, "--to", "csv", "-o", tmp_path / "out.csv")
    assert (done.code, done.out) == (3, "")
    assert "no metric in" in done.err
    assert not (tmp_path / "out.csv").exists()


def test_the_metrics_there_are_are_named_when_none_fits(call: Call, nan_run: Path) -> None:
    assert "the run has grad_norm, loss" in call("export", nan_run, "--to", "csv", "-o", "x", "--metrics", "z*").err


def test_a_loss_is_noted_and_strict_makes_it_4(call: Call, good_run: Path, tmp_path: Path) -> None:
    path = good_run / "metrics.jsonl"
    path.write_text(path.read_text(encoding="utf-8") + '{"step": 81, "lo', encoding="utf-8")
    done = call("export", good_run, "--to", "csv", "-o", tmp_path / "out.csv", "--strict")
    assert done.code == 4
    assert "bytes of the run could not be read" in done.err
    assert (tmp_path / "out.csv").is_file()


@pytest.mark.parametrize("to", FOLDERS)
def test_a_package_that_is_not_there_is_named(
    call: Call, nan_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == to]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, to, None)
    done = call("export", nan_run, "--to", to, "-o", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert f"pip install {to}" in done.err


def test_hostile_names_and_places_stay_out_of_the_terminal_and_of_the_tree(call: Call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "..x\x1b[31m").mkdir(parents=True)
    rows = [{"step": s, "../../loss\x1b[2J": 1.0, "\u202eevil": 2.0} for s in range(3)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    for name in ("..x\x1b[31m/metrics.jsonl", "-o.jsonl", "a;b.jsonl"):
        (run / name).write_text(text, encoding="utf-8")
    out = tmp_path / "out\x1b[31m"
    for to in TARGETS:
        done = call("export", run, "--to", to, "-o", f"{out}-{to}")
        assert (done.code, done.err.count("error")) == (0, 0)
        assert not set(done.out + done.err) & set("\x1b\u202e")
    named = [p.relative_to(f"{out}-tensorboard") for p in Path(f"{out}-tensorboard").rglob("*")]
    assert all(part.isascii() and part.isprintable() and part[0] not in ".-" for p in named for part in p.parts)
    assert len({p.parts[0] for p in named}) == 4


def test_a_new_file_is_a_new_target(call: Call, nan_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "tally.py").write_text(
        "from forensics.export.target import Export, File, Target\n"
        "def write(s): return Export((File('', str(s.points.height).encode()),))\n"
        "TARGET = Target('tally', write)\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(tmp_path / "plugins")])
    assert "tally" in targets.names()
    assert call("export", nan_run, "--to", "tally", "-o", tmp_path / "n").code == 0
    assert (tmp_path / "n").read_text(encoding="utf-8") == "160"


WATCHED = """
import sys
from pathlib import Path
from forensics.cli.main import run
seen = []
bad = ("socket.connect", "socket.bind", "subprocess.", "os.fork", "os.exec", "os.posix_spawn", "os.system", "pickle.")
sys.addaudithook(lambda name, args: seen.append(name) if name.startswith(bad) else None)
code = run(["export", sys.argv[1], "--to", sys.argv[2], "-o", sys.argv[3]])
print("SEEN", seen)
sys.exit(code)
"""


@pytest.mark.parametrize("to", TARGETS)
def test_no_process_is_started_and_no_network_spoken_to(nan_run: Path, tmp_path: Path, to: str) -> None:
    command = [sys.executable, "-c", WATCHED, str(nan_run), to, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("error")) == (0, 0)
    assert done.stdout.endswith("SEEN []\n")
