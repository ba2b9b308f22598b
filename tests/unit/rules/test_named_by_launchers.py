"""Whose rank it is that a launcher, a heading, a stack or a detector speaks of."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.api import triage

_STEPS = "".join(f"step {n} | loss {2 + 3 / n:.4f} | lr 3.0e-04\n" for n in range(1, 30))
_RAISED = 'Traceback (most recent call last):\n  File "/job/mill.py", line 7, in grind\n    sack["grain"]\n'
_RAISED += "KeyError: 'grain'\n"


def _culprits(folder: Path, **files: str) -> tuple[int, ...]:
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return tuple(triage(folder).verdict.culprits)


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ("ERROR:composer.cli.launcher:Rank 2 crashed with exit code -6.\n", (2,)),
        ("[rank: 2] Child process with PID 3012 terminated with code -9. Forcefully terminating all others\n", (2,)),
        ("launcher: rank 2 (pid 411) exited with exit code -11\n", (2,)),
        ("Global rank 2 (PID 411) exited with code 0\n", ()),
        ("Global rank 2 (PID 411) exited with code -15\n", ()),
    ],
    ids=["Composer", "Lightning", "own", "done", "asked"],
)
def test_the_exit_code_of_a_rank_names_it(line: str, ranks: tuple[int, ...], tmp_path: Path) -> None:
    assert _culprits(tmp_path, train=_STEPS + line) == ranks


def _stack(*calls: str) -> str:
    return "".join(f'  File "/job/{call.partition(":")[0]}.py", line 3 in {call.partition(":")[2]}\n' for call in calls)


_WAITS = ("torch/distributed/distributed_c10d:barrier", "mill:main")
