"""What forensics does to the machine while it reads a run: it opens the run's own files, and changes none."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"
WATCHED = """
import json, sys
from pathlib import Path
events = []
def hook(name, args):
    if name == "open" and isinstance(args[0], (str, bytes)):
        events.append(("open", str(args[0]), str(args[1])))
    elif name.startswith(("socket.", "subprocess.", "os.fork", "os.exec", "os.posix_spawn", "pickle.find_class")):
        events.append((name, str(args)[:80], ""))
    elif name in {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.utime", "os.link", "os.symlink"}:
        events.append((name, str(args[0]), ""))
from forensics.pipeline import triage
from forensics import registry
registry.load()
sys.addaudithook(hook)
triage(Path(sys.argv[1]))
json.dump(events, sys.stdout)
"""


def tree(root: Path) -> dict[str, tuple[int, int, str]]:
    return {
        str(p.relative_to(root)): (s.st_mtime_ns, s.st_size, hashlib.sha256(p.read_bytes()).hexdigest())
        for p in sorted(root.rglob("*"))
        if p.is_file() and (s := p.stat())
    }


def watched(run: Path) -> list[tuple[str, str, str]]:
    done = subprocess.run([sys.executable, "-c", WATCHED, str(run)], capture_output=True, text=True, check=True)
    return [tuple(e) for e in json.loads(done.stdout)]


def trapped_run(tmp_path: Path) -> tuple[Path, Path]:
    """A run whose files name other files in every way a reader might follow."""
    bait = tmp_path / "bait.txt"
    bait.write_text("loss: 1.0\n")
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "train.log").write_text(
        f"Loading data from {bait}\nsaving checkpoint to {bait}\n"
        f'Traceback (most recent call last):\n  File "{bait}", line 1, in <module>\nValueError: see {bait}\n'
    )
    (run / "trainer_state.json").write_text(json.dumps({"best_model_checkpoint": str(bait), "log_history": []}))
    (run / "checkpoints" / "latest").write_text(str(bait))
    (run / "link.log").symlink_to(bait)
    (run / "up").symlink_to(tmp_path)
    os.mkfifo(run / "pipe.log")
    return run, bait


def test_a_run_is_left_as_it_was(tmp_path: Path) -> None:
    run, _ = trapped_run(tmp_path)
    fifo = run / "pipe.log"
    fifo.unlink()
    before = tree(run)
    watched(run)
    assert tree(run) == before


def test_nothing_outside_the_run_is_opened_because_an_input_names_it(tmp_path: Path) -> None:
    run, bait = trapped_run(tmp_path)
    events = watched(run)
    assert not [e for e in events if str(bait) in e[1]]
    assert not [e for e in events if e[0] != "open"]
    assert not [e for e in events if e[0] == "open" and set(e[2]) & set("wax+")]


def test_a_bundled_run_is_read_without_network_process_or_write() -> None:
    events = watched(RUNS / "nan-blowup-kempnerforge")
    assert not [e for e in events if e[0] != "open"]
    assert not [e for e in events if e[0] == "open" and set(e[2]) & set("wax+")]
