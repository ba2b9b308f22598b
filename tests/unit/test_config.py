"""The configuration: where values come from, which one wins, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from forensics import config
from forensics.errors import UsageError
from forensics.model import Shape
from forensics.registry import Rule


@dataclass(frozen=True, slots=True)
class Thresholds:
    ratio: float = 5.0
    window_steps: int = 20
    names: tuple[str, ...] = ("grad_norm",)
    strict: bool = False


def rule(thresholds: type | None = Thresholds) -> Rule:
    return Rule("NAN001", "nan-first", Shape.NAN, ("metrics",), print, thresholds, "", "here")


def write(folder: Path, text: str, name: str = "forensics.toml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def load(cwd: Path, env: dict[str, str] | None = None, **options: object) -> config.Config:
    return config.load(cwd=cwd, env=env or {}, options={k.replace("_", "-"): v for k, v in options.items()})


def test_without_a_file_every_value_is_a_default(tmp_path: Path) -> None:
    found = load(tmp_path)
    assert (found.ignore, found.fail_on) == ((), "error")
    assert set(found.origins.values()) == {"default"}


def test_an_option_wins_over_the_environment_over_the_file(tmp_path: Path) -> None:
    cwd = write(tmp_path, 'fail-on = "info"\nignore = ["NAN001"]')
    assert load(cwd).fail_on == "info"
    assert load(cwd, {"FORENSICS_FAIL_ON": "warning"}).fail_on == "warning"
    found = load(cwd, {"FORENSICS_FAIL_ON": "warning"}, fail_on="never")
    assert found.fail_on == "never"
    assert dict(found.origins) == {"fail-on": "option", "ignore": "forensics.toml"}


def test_the_table_of_pyproject_is_read(tmp_path: Path) -> None:
    cwd = write(tmp_path, '[tool.forensics]\nfail-on = "oom"', "pyproject.toml")
    assert load(cwd).origins["fail-on"] == "pyproject.toml"


def test_a_pyproject_without_the_table_is_nothing(tmp_path: Path) -> None:
    assert load(write(tmp_path, "[project]\nname = 'x'", "pyproject.toml")).fail_on == "error"


def test_the_environment_lists_rules_with_commas_or_blanks(tmp_path: Path) -> None:
    assert load(tmp_path, {"FORENSICS_IGNORE": "NAN001, OOM001"}).ignore == ("NAN001", "OOM001")


@pytest.mark.parametrize("inside", [".", "sub"])
def test_a_file_inside_the_run_never_configures_the_tool(tmp_path: Path, inside: str) -> None:
    cwd = tmp_path / inside
    cwd.mkdir(exist_ok=True)
    write(cwd, 'fail-on = "never"')
    found = config.load(cwd=cwd, runs=[tmp_path], env={})
    assert found.fail_on == "error"
    assert "lies inside the run" in found.notes[0]


def test_a_run_that_is_a_link_to_itself_is_no_folder_that_a_file_lies_in(tmp_path: Path) -> None:
    write(tmp_path, 'fail-on = "never"')
    (tmp_path / "run").symlink_to("run")
    assert config.load(cwd=tmp_path, runs=[tmp_path / "run"], env={}).fail_on == "never"


def test_a_broken_file_inside_the_run_is_not_even_parsed(tmp_path: Path) -> None:
    assert config.load(cwd=write(tmp_path, "]["), runs=[tmp_path], env={}).fail_on == "error"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fail_on = 'info'", "did you mean 'fail-on'"),
        ("fail-on = 'eror'", "did you mean 'error'"),
        ("fail-on = 3", "is not one of"),
        ("ignore = 'NAN001'", "is not a tuple"),
        ("ignore = [1]", r"ignore\[0\]: 1 is not a str"),
        ("rules = 3", "rules: 3 is not a dict"),
        ("[rules]\nNAN001 = 3", r"rules\.NAN001: 3 is not a dict"),
        ("][", "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_a_usage_error(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load(write(tmp_path, text))


def test_thresholds_are_the_defaults_overlaid_with_the_table(tmp_path: Path) -> None:
    cwd = write(tmp_path, "[rules.NAN001]\nratio = 3\nnames = ['gn']\nstrict = true")
    assert load(cwd).for_rule(rule()) == Thresholds(3.0, 20, ("gn",), strict=True)


def test_a_rule_may_be_named_by_its_slug(tmp_path: Path) -> None:
    found = load(write(tmp_path, "ignore = ['nan-first']\n[rules.nan-first]\nwindow_steps = 9")).checked([rule()])
    assert found.ignore == ("NAN001",)
    assert found.for_rule(rule()).window_steps == 9


def test_a_rule_without_thresholds_has_none(tmp_path: Path) -> None:
    assert load(tmp_path).for_rule(rule(None)) is None
    with pytest.raises(UsageError, match="unknown name 'x'"):
        load(write(tmp_path, "[rules.NAN001]\nx = 1")).for_rule(rule(None))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ratoi = 3", "did you mean 'ratio'"),
        ("ratio = 'big'", "'big' is not a finite float"),
        ("ratio = nan", "nan is not a finite float"),
        ("ratio = true", "True is not a finite float"),
        ("window_steps = 2.5", r"2\.5 is not a int"),
        ("window_steps = true", "True is not a int"),
        ("strict = 1", "1 is not a bool"),
        ("names = 'gn'", "is not a tuple"),
    ],
)
def test_a_wrong_threshold_is_a_usage_error(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load(write(tmp_path, f"[rules.NAN001]\n{line}")).for_rule(rule())


def test_an_unknown_rule_is_a_usage_error_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'NAN001'"):
        load(write(tmp_path, "[rules.NAN01]\nratio = 3")).checked([rule()])
    with pytest.raises(UsageError, match="did you mean 'NAN001'"):
        load(tmp_path, ignore=("nan01",)).checked([rule()])
