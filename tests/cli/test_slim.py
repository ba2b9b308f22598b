"""Without pandas, plotly, tensorboard and wandb every command works, or says in one line what it lacks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from forensics.cli import _overview, commands

ROOT = Path(__file__).parents[2]
RUN = "fixtures/runs/nan-blowup-kempnerforge"
EVENTS = "fixtures/tfevents/ok-tensors-text-hparams"
ABSENT = ("pandas", "plotly", "tensorboard", "wandb", "google")
DRIVER = """
import contextlib, io, json, sys
absent, lines = json.loads(sys.argv[1]), json.loads(sys.argv[2])
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from forensics.cli.main import run
answers = {}
for line in lines:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = run(line)
    answers[" ".join(line)] = (code, out.getvalue(), err.getvalue())
print(json.dumps(answers))
"""
WORK = {
    "triage": (RUN, "--format", "json"),
    "nan-origin": (RUN,),
    "memory": (RUN,),
    "hang": (RUN,),
    "restart": (RUN,),
    "history": ("fixtures",),
    "kernels": ("fixtures/chrome_trace/ok-2026",),
    "diff": (RUN, RUN, "--force"),
    "report": (RUN, "-o", "page.html"),
    "ingest": (EVENTS, "--store", "store"),
    "query": (RUN, "select name from metrics"),
    "export": (RUN, "--to", "parquet", "-o", "points.parquet"),
    "explain": ("NAN001",),
    "rules": (),
    "formats": (),
    "doctor": (),
}
LACKING = {
    ("report", RUN, "--interactive", "-o", "live.html"): "plotly",
    ("export", RUN, "--to", "tensorboard", "-o", "events"): "tensorboard",
    ("export", RUN, "--to", "wandb", "-o", "offline"): "wandb",
}
Answers = dict[str, tuple[int, str, str]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    place = tmp_path_factory.mktemp("slim")
    (place / "fixtures").symlink_to(ROOT / "fixtures")
    lines = [[name, *args] for name, args in WORK.items()] + [list(line) for line in LACKING]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(place / "cache")}
    command = [sys.executable, "-c", DRIVER, json.dumps(ABSENT), json.dumps(lines)]
    done = subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_every_command_is_tried() -> None:
    assert set(WORK) == set(_overview.names(list(commands.__path__)))


@pytest.mark.parametrize("name", WORK)
def test_a_command_works_without_the_packages_that_it_does_not_need(name: str, answers: Answers) -> None:
    code, out, err = answers[" ".join((name, *WORK[name]))]
    assert code in {0, 1}, err
    assert out or "Wrote" in err


@pytest.mark.parametrize("line", LACKING, ids=lambda line: f"{line[0]} {line[2]}")
def test_what_needs_a_package_that_is_missing_says_so_in_one_line(line: tuple[str, ...], answers: Answers) -> None:
    code, _, err = answers[" ".join(line)]
    message, helps = err.strip().splitlines()
    assert code == 2
    assert f"{LACKING[line]}, which is not installed" in message
    assert helps.strip() == f"help: pip install {LACKING[line]}"


def test_text_of_event_files_that_is_not_read_for_want_of_a_package_is_accounted_for(answers: Answers) -> None:
    _, out, _ = answers[" ".join(("ingest", *WORK["ingest"]))]
    said = " ".join(out.split())
    assert "text and hyperparameters: this needs tensorboard, which is not installed" in said
    assert "needs tensorboard" in said
    assert "metrics 30" in said


def pins(name: str) -> dict[str, str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def test_the_slim_lock_pins_what_the_whole_one_does_and_leaves_out_what_may_be_absent() -> None:
    slim, whole = pins("requirements-slim.lock"), pins("requirements.lock")
    assert slim.items() <= whole.items()
    assert not {"pandas", "plotly", "tensorboard", "wandb", "protobuf"} & slim.keys()
    assert len(slim) <= len(whole) / 4
