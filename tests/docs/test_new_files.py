"""The how-to pages tell the truth: what each adds is found, and works, with no file edited."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE = re.compile(
    r'^````(?:python|toml|markdown) title="(?P<path>[^"]+)"\n(?P<code>.*?)^````$', re.MULTILINE | re.DOTALL
)
#: How many files each page shows: a rule is a module and its page.
PAGES = {"add-a-rule.md": 2, "add-a-trainer.md": 1, "add-a-format.md": 1, "add-a-renderer.md": 1}
#: Tests that each rule, trainer, format and plugin must pass, and the names of those that the pages show.
OWED = (
    "tests/meta/test_rule_examples.py",
    "tests/unit/dialects/test_dialect_examples.py",
    "tests/meta/test_registry.py",
    "tests/fuzz/test_truncation.py",
    "tests/unit/knowledge/test_error_lines.py",
    "tests/unit/knowledge/test_vocabulary.py",
)
SHOWN = ("LRN900", "tidewheel", "tide_table", "tidewheel-volume-full", "orangefs")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the files of each page, and with a fixture of the new format."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "forensics", folder / "forensics")  # with its compiled modules
    for page, files in PAGES.items():
        found = FILE.findall((ROOT / "docs/how-to" / page).read_text(encoding="utf-8"))
        assert len(found) == files, page
        for path, code in found:
            assert not (folder / path).exists()
            (folder / path).write_text(code, encoding="utf-8")
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    fixture = folder / "fixtures/tide_table/ok-plain"
    fixture.mkdir(parents=True)
    (fixture / "run.tide").write_text("#tide 1\n1\tloss\t4.0\n2\tloss\tnan\n", encoding="utf-8")
    return folder


def called(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, *args], cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )


def forensics(folder: Path, *args: str) -> dict:
    done = called(folder, "-m", "forensics", *args, "--format", "json")
    assert done.returncode in {0, 1}, done.stderr
    return json.loads(done.stdout)


def written(folder: Path, rows: list[dict]) -> Path:
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def appended(copy: Path, page: str) -> str:
    """Write the one row that a page shows at the end of its table; gives the row."""
    text = (ROOT / "docs/how-to" / page).read_text(encoding="utf-8")
    ((path, row),) = re.findall(r'^````(?:json|tsv) title="([^"]+)"\n(.*?)^````$', text, re.MULTILINE | re.DOTALL)
    with (copy / path).open("a", encoding="utf-8") as table:
        table.write(row)
    return row


def test_the_rule_of_the_page_is_listed_explained_and_fires(copy: Path) -> None:
    listed = {rule["id"]: rule for rule in forensics(copy, "rules")["rules"]}
    assert listed["LRN900"]["thresholds"] == [{"name": "records", "type": "int", "default": 3}]
    assert forensics(copy, "explain", "zero-learning-rate")["id"] == "LRN900"
    rows = [{"step": step, "loss": 3.0 - step / 100, "lr": 0.001 if step < 30 else 0.0} for step in range(1, 61)]
    found = forensics(copy, "triage", str(written(copy / "flat", rows)))
    findings = {one["rule"]: one for one in found["findings"]}
    assert findings["LRN900"]["onset"]["step"] == 30
    assert findings["LRN900"]["evidence"][0]["line"] == 30


def test_the_trainer_of_the_page_is_read(copy: Path) -> None:
    good = [f"[tw] it={step} | ce={4.0 - step / 50:.4f} | gn={0.8 + step % 3 / 10:.3f}" for step in range(1, 41)]
    bad = [f"[tw] it={step} | ce=nan | gn=nan" for step in range(41, 61)]
    (copy / "train.log").write_text("\n".join([*good, *bad]) + "\n", encoding="utf-8")
    found = forensics(copy, "triage", "train.log")
    assert "tidewheel" in found["coverage"]["files"][0]["format"]
    assert found["verdict"]["shape"] == "nan"
    assert found["verdict"]["onset"]["step"] == 41


def test_the_format_of_the_page_is_read_and_what_does_not_fit_is_stated(copy: Path) -> None:
    rows = [f"{step}\tloss\t{4.0 - step / 50:.4f}" for step in range(1, 41)] + ["no row"]
    rows += [f"{step}\tloss\tnan" for step in range(41, 61)]
    (copy / "run.tide").write_text("#tide 1\n" + "\n".join(rows) + "\n", encoding="utf-8")
    found = forensics(copy, "triage", "run.tide")
    assert found["verdict"]["shape"] == "nan"
    assert found["verdict"]["onset"]["step"] == 41
    assert found["coverage"]["files"][0]["ingester"] == "tide_table"
    assert found["coverage"]["lost_bytes"] == len("no row\n")


def test_the_trainer_and_the_format_of_the_pages_are_listed(copy: Path) -> None:
    listed = forensics(copy, "formats")
    assert "tidewheel" in {one["name"] for one in listed["dialects"]}
    assert "tide_table" in {one["name"] for one in listed["formats"]}


def test_the_renderer_of_the_page_is_a_format_of_triage(copy: Path) -> None:
    rows = [{"step": step, "loss": 3.0 if step < 30 else float("nan")} for step in range(1, 61)]
    run = written(copy / "run\x1b[31m", rows)
    done = called(copy, "-m", "forensics", "triage", str(run), "--format", "oneline")
    assert done.returncode == 1, done.stderr
    assert "failed nan step=30" in done.stdout
    assert "\x1b" not in done.stdout


def test_the_row_of_the_page_is_a_cause_with_its_actions(copy: Path) -> None:
    appended(copy, "add-a-cause.md")
    asked = "from forensics.knowledge.causes import causes; cause = causes()['zero_learning_rate']"
    done = called(copy, "-c", f"{asked}; print(cause.actions[0].words({{'saved': '400'}}))")
    assert done.stdout == "Make the schedule as long as the run, and restart from the checkpoint of step 400\n"


def test_the_row_of_the_page_is_an_error_line_that_triage_reads(copy: Path) -> None:
    row = appended(copy, "add-an-error-line.md")
    lines = [f"step {step} loss {4.0 - step / 50:.4f}" for step in range(1, 41)]
    run = copy / "volume"
    run.mkdir()
    (run / "train.log").write_text("\n".join([*lines, json.loads(row)["like"]]) + "\n", encoding="utf-8")
    verdict = forensics(copy, "triage", str(run))["verdict"]
    assert (verdict["shape"], verdict["cause"]) == ("crash", "disk_full")


def test_the_row_of_the_page_is_a_range_that_a_rule_judges_by(copy: Path) -> None:
    slug = json.loads(appended(copy, "add-a-range.md"))["row"]
    rows = [{"step": n, "reward": 0.01, "critic/score/max": 0.02, "actor/pg_loss": 0.1} for n in range(1, 81)]
    found = forensics(copy, "triage", str(written(copy / "unpaid", rows)))
    assert ("RLX008", slug) in {(one["rule"], one["cause"]) for one in found["findings"]}


def test_the_row_of_the_page_is_a_name_whose_numbers_are_brought_to_its_unit(copy: Path) -> None:
    appended(copy, "add-a-metric-name.md")
    rows = [{"step": n, "loss": 3.0 - n / 100, "tide_ms": 250.0} for n in range(1, 21)]
    run = written(copy / "tide-ms", rows)
    asked = "SELECT DISTINCT name, value FROM metrics WHERE raw_name = 'tide_ms'"
    assert forensics(copy, "query", str(run), asked)["rows"] == [{"name": "step_time_s", "value": 0.25}]


def test_the_row_of_the_page_is_a_word_that_the_program_knows(copy: Path) -> None:
    row = json.loads(appended(copy, "add-words.md"))
    asked = "from forensics.knowledge.vocabulary import stands_for"
    done = called(copy, "-c", f"{asked}; print(stands_for({row['means']!r}, {row['like'][0]!r}))")
    assert done.stdout == "True\n"


def test_the_files_of_the_pages_pass_the_tests_that_all_such_files_must_pass(copy: Path) -> None:
    quiet = ("-q", "--import-mode=importlib", "-p", "no:cacheprovider", "-rA")
    done = called(copy, "-m", "pytest", *quiet, *OWED, "-k", " or ".join(SHOWN))
    assert done.returncode == 0, done.stdout[-3000:]
    for name in SHOWN:
        assert re.search(rf"^PASSED .*{name}", done.stdout, re.MULTILINE), name


def test_the_format_of_the_page_stands_the_fuzzer(copy: Path) -> None:
    done = called(copy, "tests/fuzz/harness.py", "--ingester", "tide_table", "--n", "100")
    assert done.returncode == 0, done.stdout + done.stderr
