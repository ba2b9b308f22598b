"""The manifests of the page on many machines: what a scheduler would start is a command that runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from forensics.cli.main import run
from forensics.scale import cluster
from forensics.scale.shard import Shard, parsed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/read-on-many-machines.md").read_text(encoding="utf-8")
NAN = ROOT / "fixtures/runs/nan-blowup-kempnerforge"


def block(kind: str, word: str) -> str:
    [found] = [b for b in re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) if word in b]
    return found


def job() -> dict[str, Any]:
    return yaml.safe_load(block("yml", "completionMode"))


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    shutil.copytree(NAN, tmp_path / "runs/a")
    return tmp_path


def test_each_task_of_the_indexed_job_reads_its_share(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = job()["spec"]
    [container] = spec["template"]["spec"]["containers"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 16, 16)
    assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in spec["template"]["spec"]["volumes"]}
    program, *args = [word.replace("/shared", str(shared)) for word in container["command"]]
    assert program == "forensics"
    for index in range(spec["completions"]):
        env = {"JOB_COMPLETION_INDEX": str(index)}
        assert parsed(args[args.index("--shard") + 1], env) == Shard(index, spec["completions"])
        monkeypatch.setenv("JOB_COMPLETION_INDEX", str(index))
        assert run(args) == 0


def test_each_task_of_the_array_reads_its_share(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = block("bash", "SBATCH")
    first, last = map(int, re.findall(r"--array=(\d+)-(\d+)", script)[0])
    [line] = [line for line in script.splitlines() if line.startswith("forensics ")]
    args = shlex.split(line.replace("/shared", str(shared)))[1:]
    for task in (first, last):
        told = {"ID": task, "MIN": first, "STEP": 1, "COUNT": last - first + 1}
        for name, value in told.items():
            monkeypatch.setenv(f"SLURM_ARRAY_TASK_{name}", str(value))
        assert parsed("auto", os.environ) == Shard(task, 16)
        assert run(args) == 0


def test_the_command_for_ray_asks_for_nothing_but_ray(
    shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda _: None)
    script = block("bash", "RAY_ADDRESS")
    line = script.splitlines()[-1].replace("/shared", str(shared))
    assert run(shlex.split(line)[1:]) == 2
    assert (
        capsys.readouterr().err
        == "error: this needs ray, which is not installed\n  help: " + script.splitlines()[0] + "\n"
    )
