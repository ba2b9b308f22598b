"""What a process does on its way out: nothing that costs time and gives nothing."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

from forensics.cli.main import run

_ROOT = Path(__file__).parents[2]
_PROGRAM = "import gc, sys; from forensics.cli.main import run; run(); sys.stderr.write(str(gc.get_freeze_count()))"


def test_a_process_that_ends_looks_for_no_more_cycles() -> None:
    command = [sys.executable, "-c", _PROGRAM, "rules"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=_ROOT)
    assert int(done.stderr) > 10_000


def test_a_program_that_calls_a_command_and_goes_on_still_collects_its_cycles() -> None:
    before = gc.get_freeze_count()
    run(["--help"])
    assert gc.get_freeze_count() == before
