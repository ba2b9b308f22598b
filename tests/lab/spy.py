"""py-spy on the ranks of a job that stands still, before it is ended: what a user who is logged in would do."""

from __future__ import annotations

import contextlib
import random
import subprocess
import time
from pathlib import Path

#: A job that noted nothing for so long stands still; its ranks give up after 8 s.
SILENT_S = 4.0
_LOOK_S = 0.25
_MOST_S = 10
#: Of a process that was given no rank: a launcher, or a job without one.
_LAUNCHER = -1


def spied(child: subprocess.Popen[bytes], python: str, place: Path, notes: Path, most_s: float) -> float:
    """Wait until a job ends or stands still, and dump the stacks of one that does; gives the seconds it took."""
    begin = time.monotonic()
    while time.monotonic() - begin < most_s and child.poll() is None:
        told = [path.stat().st_mtime for path in notes.parent.glob(f"{notes.stem}.[0-9]*")]
        if told and time.time() - max(told) > SILENT_S:
            _dump(python, place, notes)
            break
        time.sleep(_LOOK_S)
    return time.monotonic() - begin


def _dump(python: str, place: Path, notes: Path) -> None:
    folder = place / "py-spy"
    folder.mkdir(exist_ok=True)
    kinds = random.Random(place.name).choice([("txt",), ("json",), ("txt", "json")])
    running = []
    for rank, pid in sorted(ranks(notes).items()):
        for kind in kinds:
            line = [
                str(Path(python).with_name("py-spy")),
                "dump",
                "--pid",
                str(pid),
                *(["--json"] if kind == "json" else []),
            ]
            with (folder / f"rank{rank}.{kind}").open("wb") as out:
                running.append(subprocess.Popen(line, stdout=out, stderr=subprocess.DEVNULL))
    for one in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            one.wait(_MOST_S)
        one.kill()


def ranks(notes: Path) -> dict[int, int]:
    """Process ids of a job's ranks, the first process of each; of one that has none, its only process.

    They are known by their environment: where the notes go, and the rank that a launcher gave.
    """
    found: dict[int, int] = {}
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            environment = dict(one.split("=", 1) for one in (process / "environ").read_text().split("\0") if "=" in one)
            program = (process / "cmdline").read_text().split("\0")[0]
        except (OSError, UnicodeDecodeError):  # it ended, or is another user's
            continue
        if environment.get("LAB_NOTES") == str(notes) and "python" in program:
            found.setdefault(int(environment.get("RANK", _LAUNCHER)), int(process.name))
    launcher = found.pop(_LAUNCHER, None)
    return found or ({} if launcher is None else {0: launcher})
