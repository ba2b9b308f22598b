"""Every command on every page is run: what it prints is compared, and what only writes files is run in a scratch place.

A page shows what a command prints in ```console blocks, and what a user types elsewhere in ```sh blocks. In the latter
`runs/a`, `runs/b`, … are copies of bundled runs, made here; a line may end in `# exits 3`.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from forensics import config
from forensics.cli import _overview, commands
from forensics.cli.main import run
from forensics.registry import load

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
from make_reference import answer, played  # noqa: E402 - the folder is no package

PLANS = ("architecture.md",)  # it shows what a rule looks like, not what a user types
PAGES = [ROOT / "README.md", *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.name not in PLANS)]
BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(forensics [a-z][^`\n]*)`")
OTHERS = ("make", "pip", "pytest", "tensorboard", "wandb", "python", "export")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(kind: str) -> list[object]:
    return [
        pytest.param(block["body"], id=f"{named(path)}-{number}")
        for path in PAGES
        for number, block in enumerate(BLOCK.finditer(path.read_text(encoding="utf-8")), 1)
        if block["kind"] == kind
    ]


@pytest.mark.parametrize("path", [p for p in PAGES if "```console" in p.read_text(encoding="utf-8")], ids=named)
def test_what_a_page_says_a_command_prints_is_what_it_prints(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("COLUMNS", raising=False)
    page = path.read_text(encoding="utf-8")
    assert played(page) == page, "make docs writes it anew"


def test_the_player_finds_a_wrong_output_and_a_wrong_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    right = played("```console\n$ forensics explain NAN999\n$ echo $?\n```")
    assert right == "```console\n$ forensics explain NAN999\n$ echo $?\n2\n```"
    assert played(right.replace("\n2\n", "\n0\n")) == right


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with runs of the names that pages use, in which commands may write."""
    here = tmp_path_factory.mktemp("scratch")
    bundled = {"a": "nan-blowup-kempnerforge", "b": "nan-hidden-hf", "hung": "oom-then-hang-torchrun"}
    for name, source in bundled.items():
        shutil.copytree(ROOT / "fixtures/runs" / source, here / "runs" / name)
    shutil.copytree(ROOT / "fixtures", here / "fixtures", ignore=shutil.ignore_patterns("make", "wandb_run"))
    for name, seed in (("main", 1), ("main-2", 2), ("main-3", 3), ("pull-request", 4)):
        steady_run(here / "runs" / name, seed)
    shutil.copytree(ROOT / "fixtures/chrome_trace/ok-2026", here / "runs/traced")
    shutil.copytree(ROOT / "fixtures/memory_snapshot/ok-leak-2.12", here / "runs/leaking")
    return here


def steady_run(folder: Path, seed: int) -> None:
    rnd = random.Random(seed)
    rows = [
        {"step": n, "loss": 4.0 - n / 200 + rnd.gauss(0, 0.01), "step_time_s": 0.4 * (1 + rnd.gauss(0, 0.01))}
        for n in range(1, 241)
    ]
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.parametrize("body", blocks("sh"))
def test_the_lines_of_a_shell_block_run(body: str, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(scratch)
    monkeypatch.setenv("RUN_DIR", "runs/a")
    monkeypatch.setenv("XDG_CACHE_HOME", str(scratch / "cache"))
    for line in body.replace("\\\n", " ").splitlines():
        words = shlex.split(os.path.expandvars(line), comments=True)
        if not words:
            continue
        if " | forensics " in line:
            piped(line)
            continue
        if words[0] != "forensics":
            assert words[0].split("=")[0] in OTHERS or "=" in words[0], line
            continue
        arguments = [str(one) for word in words[1:] for one in sorted(globbed(word))]
        wanted = re.search(r"# exits (\d+)", line)
        code = run([*arguments, "--force"] if "-o" in arguments or "--html" in arguments else arguments)
        assert code in ({int(wanted[1])} if wanted else {0, 1}), line


def piped(line: str) -> None:
    command = line.replace(" | forensics ", f" | {shlex.quote(sys.executable)} -m forensics ")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr


def globbed(word: str) -> list[str]:
    return [str(path) for path in Path().glob(word)] if "/*" in word and not word.startswith("-") else [word]


@pytest.mark.parametrize("body", blocks("python"))
def test_the_lines_of_a_python_block_run(body: str, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(scratch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(scratch / "cache"))
    exec(compile(body, "page", "exec"), {"__name__": "page"})


@pytest.mark.parametrize("body", blocks("toml"))
def test_a_configuration_that_a_page_shows_is_taken(body: str, tmp_path: Path) -> None:
    name = "pyproject.toml" if "[tool.forensics" in body else "forensics.toml"
    (tmp_path / name).write_text(body, encoding="utf-8")
    if "forensics" in tomllib.loads(body).get("tool", {"forensics": {}}):
        taken = config.load(cwd=tmp_path, env={}).checked(load("rules").rules)
        assert taken.origins["rules.LRN001" if "LRN001" in body else "fail-on"] != "default"


@pytest.mark.parametrize("body", blocks("yaml"))
def test_a_workflow_that_a_page_shows_gives_only_inputs_that_the_action_takes(body: str) -> None:
    takes = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    uses = [step for step in yaml.safe_load(body) if "forensics@" in step.get("uses", "")]
    assert uses
    assert all(set(step["with"]) <= set(takes) for step in uses)


def test_every_command_and_option_that_a_page_names_exists() -> None:
    helps = {name: answer(f"{name} --help")[1] for name in _overview.names(list(commands.__path__))}
    for path in PAGES:
        for text in INLINE.findall(path.read_text(encoding="utf-8")):
            words = text.split()
            assert words[1] in helps, f"{named(path)}: {text}"
            for option in re.findall(r"(?<=\s)--[a-z-]+", text):
                assert option in helps[words[1]], f"{named(path)}: {text}"


def test_every_command_has_a_page_that_tells_how_to_use_it() -> None:
    how_to = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/how-to").glob("*.md"))
    for name in _overview.names(list(commands.__path__)):
        assert re.search(rf"^(?:\$ )?forensics {name}\b", how_to, re.MULTILINE), name
