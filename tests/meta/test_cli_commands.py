"""A command is one file of forensics/cli: what each must be, and what `--help` may cost."""

from __future__ import annotations

import ast
import importlib
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from forensics.cli import _overview, commands

ROOT = Path(__file__).parents[2]
NAMES = _overview.names(list(commands.__path__))
HEAVY = {"polars", "pandas", "plotly", "wandb", "tensorboard", "numpy", "rich", "orjson", "zstandard", "google"}
LIGHT = {"typer", "forensics", "__future__", *sys.stdlib_module_names}
SUMMARY_CHARS = 66


def python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_command_has_a_page_whose_first_line_fits_the_overview(name: str) -> None:
    module = importlib.import_module(_overview.module_of(name))
    assert callable(module.command)
    assert module.__doc__
    assert module.__doc__.split("\n")[0].rstrip(".") == _overview.summary(name)
    assert len(_overview.summary(name)) <= SUMMARY_CHARS


@pytest.mark.parametrize("name", NAMES)
def test_a_command_imports_nothing_heavy_until_it_is_called(name: str) -> None:
    path = ROOT / "forensics" / "cli" / "commands" / f"{name.replace('-', '_')}.py"
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= LIGHT
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] in LIGHT


def test_importing_every_command_loads_nothing_heavy() -> None:
    imports = "; ".join(f"import {_overview.module_of(name)}" for name in NAMES)
    done = python(f"import sys; {imports}; print(*{{m.split('.')[0] for m in sys.modules}})")
    assert not set(done.stdout.split()) & HEAVY


def test_help_loads_neither_a_table_engine_nor_typer() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "forensics", "--help"], capture_output=True, text=True, check=True
    )
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "forensics" in loaded
    assert not loaded & (HEAVY | {"typer", "click"})


def cpu_s(*args: str) -> float:
    """Least CPU time of ten processes: the machine may be busy, the least is what the work costs."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    times: list[float] = []
    for _ in range(10):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *args], env=env, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def test_help_costs_at_most_six_times_an_empty_program() -> None:
    assert cpu_s("-m", "forensics", "--help") <= 6 * cpu_s("-c", "pass")


def test_a_new_file_is_a_new_command(tmp_path: Path) -> None:
    code = '"""Say hi."""\nfrom forensics.cli._answer import Answer\ndef command() -> Answer: return Answer("hi\\n")\n'
    (tmp_path / "say_hello.py").write_text(code, encoding="utf-8")
    extended = f"from forensics.cli import commands; commands.__path__.append({str(tmp_path)!r})"
    add = f"{extended}; from forensics.cli.main import run"
    assert python(f"{add}; run(['say-hello'])").stdout == "hi\n"
    assert "say-hello" in _overview.names([*commands.__path__, str(tmp_path)])
