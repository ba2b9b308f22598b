"""Names of people and machines and secrets that stand everywhere in a run leave by no command and in no format."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

from .conftest import Call
from .test_kernels import trace

pytestmark = pytest.mark.usefixtures("read_once")
FIXTURES = Path(__file__).parents[2] / "fixtures"
USER, HOST, TOKEN = "mwinter", "atlas-07", "hf_a1B2a1B2a1B2a1B2a1B2"
#: Parts of the planted words, so that one of them that was cut or wrapped is found, too.
PLANTED = ("winter", "atlas", "10.21.3", "lab.example", TOKEN[:7])
SAID = (
    f"RuntimeError: cannot reach {HOST} at 10.21.3.44 as m.winter@lab.example.org with {TOKEN} from /home/{USER}/data"
)
REPORT = ("text", "json", "markdown")
FORMATS = {
    "hang": REPORT,
    "memory": REPORT,
    "kernels": REPORT,
    "nan-origin": REPORT,
    "ingest": REPORT,
    "diff": ("text", "markdown", "github", "junit", "json"),
    "query": ("text", "csv", "json", "jsonl"),
}
CASES = [(name, form, more) for name, forms in FORMATS.items() for form in forms for more in ("", "--verbose")]
#: Formats that show neither the name of a run nor one of its texts; they are looked through all the same.
SAYS_NO_NAME = {("diff", "junit"), ("ingest", "markdown")}


def steps(step_s: float) -> str:
    return "".join(
        json.dumps({
            "step": n,
            "loss": math.nan if n > 60 else 3 - n / 90,
            "step_time": step_s + n % 7 / 1000,
            f"/home/{USER}/mem_gb": 20.0 + n / 20,
        })
        + "\n"
        for n in range(1, 90)
    )  # fmt: skip


def told(folder: Path, step_s: float = 0.4) -> Path:
    """A run under a home folder in whose every file something is planted."""
    shutil.copytree(FIXTURES / "runs/oom-then-hang-torchrun", folder)
    for log in folder.rglob("stderr.log"):
        log.write_text(f"{log.read_text(encoding='utf-8')}[{HOST}:1:3] {SAID}\n", encoding="utf-8")
    (folder / "metrics.jsonl").write_text(steps(step_s), encoding="utf-8")
    log = "".join(f"2026-01-01 10:00:{n:02d},000 - INFO - step {n} loss nan on host={HOST}\n" for n in range(1, 40))
    (folder / f"train-{HOST}.log").write_text(
        f"{log}Saved checkpoint to /home/{USER}/ckpt/step-3\n"
        f'Traceback (most recent call last):\n  File "/home/{USER}/train.py", line 12, in main\n{SAID}\n',
        encoding="utf-8",
    )
    meta = {"host": HOST, "username": USER, "email": "m.winter@lab.example.org", "args": ["--token", TOKEN]}
    (folder / "wandb-metadata.json").write_text(json.dumps(meta), encoding="utf-8")
    (folder / "hparams.yaml").write_text(
        f"output_dir: /home/{USER}/{step_s}\nmaster_addr: {HOST}\nnode_list: atlas-[07-09]\nhub_token: {TOKEN}\n"
        f"lr: {step_s}\n",
        encoding="utf-8",
    )
    stack = (FIXTURES / "stack_dump/ok-pyspy/pyspy_rank1.txt").read_text(encoding="utf-8")
    (folder / "pyspy_rank1.txt").write_text(stack.replace("loop.py", f"/home/{USER}/loop.py"), encoding="utf-8")
    snapshot = (FIXTURES / "memory_snapshot/ok-json/memory_snapshot.json").read_text(encoding="utf-8")
    (folder / "memory_snapshot.json").write_text(snapshot.replace("/srv/job", f"/home/{USER}/job"), encoding="utf-8")
    made = trace(folder / f"{HOST}_4242.1786.pt.trace.json")
    made.write_text(
        made.read_text(encoding="utf-8").replace("toy_add", f"/home/{USER}/add.cu {HOST}"), encoding="utf-8"
    )
    shutil.copy(next((FIXTURES / "tfevents/ok-torch").iterdir()), folder / "events.out.tfevents.17.atlas.4242.0")
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    home = tmp_path_factory.mktemp("disk") / "home" / USER
    return told(home / f"{USER}-sweep"), told(home / f"{USER}-again", 0.6)


def args(name: str, form: str, more: str, runs: tuple[Path, Path]) -> list[object]:
    given: dict[str, list[object]] = {
        "diff": [*runs],
        "memory": [*runs] if more else [runs[0]],
        "kernels": [*runs] if more else [runs[0], "--per-rank", "--per-step"],
        "query": [runs[0], "SELECT * FROM facts" if more else "SELECT source, text, attrs FROM events", "--limit", 0],
    }
    options = [more] if more and name != "query" else []
    return [name, *given.get(name, [runs[0]]), "-f", form, *options]


@pytest.mark.parametrize(("name", "form", "more"), CASES)
def test_no_planted_word_leaves(call: Call, runs: tuple[Path, Path], name: str, form: str, more: str) -> None:
    asked = args(name, form, more, runs)
    seen, hidden = call(*asked), call(*asked, "--redact")
    assert any(word in seen.out for word in PLANTED) or (name, form) in SAYS_NO_NAME
    assert hidden.code == seen.code
    assert not [(word, line) for line in (hidden.out + hidden.err).splitlines() for word in PLANTED if word in line]
    assert "Traceback" not in hidden.err


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_command_that_reads_runs_can_be_quiet_and_shows_no_progress_in_a_pipe(
    call: Call, runs: tuple[Path, Path], name: str
) -> None:
    asked = args(name, "json", "", runs)
    loud, quiet = call(*asked), call(*asked, "--quiet")
    assert (loud.out, loud.err) == (quiet.out, quiet.err)
    assert "reading" not in loud.err


def test_progress_of_every_command_goes_to_a_terminal(
    call: Call, runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    class Watched:
        def __init__(self, *, quiet: bool) -> None:
            asked.append(quiet)

        def __enter__(self) -> None:
            return None

        def __exit__(self, *_: object) -> None:
            return None

    monkeypatch.setattr("forensics.cli._progress.watched", Watched)
    for name in FORMATS:
        call(*args(name, "json", "", runs), "--quiet")
        assert asked
        assert all(asked)
        asked.clear()
