"""The text verdict: short, narrow, whole where it is copied from, and harmless."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from forensics.action import Action, Setting
from forensics.model import Confidence as Sure
from forensics.model import Evidence, Finding, Locator, Outcome, Report, Severity, Shape, Verdict
from forensics.report import _many, text
from forensics.report.style import Style

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
WORDS = st.text(max_size=300)


def test_a_verdict_with_everything_fits_in_25_lines(failed: Report, make_finding: Callable[..., Finding]) -> None:
    long = "word " * 80
    evidence = make_finding().evidence * 5
    finding = make_finding(because=long, evidence=evidence, next=(long,) * 9)
    action = Action(long, "s", "nvidia-smi", Setting("lr", "1", "c.toml:3"))
    verdict = dataclasses.replace(
        failed.verdict, headline=long, chain=(long,) * 9, runner_up=long, against=evidence, culprits=tuple(range(99)),
        actions=(action,) * 4,
    )  # fmt: skip
    report = dataclasses.replace(failed, verdict=verdict, findings=(finding,), issues=failed.issues * 50)
    assert len(list(text.render(report))) <= 25


def test_what_mends_it_stands_right_below_the_cause_with_the_present_setting_and_its_place(failed: Report) -> None:
    lines = list(text.render(failed))
    at = next(n for n, line in enumerate(lines) if line.startswith("cause "))
    assert lines[at + 1] == "fix         Lower the peak learning rate (now lr = 0.003, run.yaml:7)"
    assert lines[at + 3] == "            nvidia-smi -q"


def test_beside_actions_a_finding_adds_its_commands_and_no_advice_of_its_own(
    failed: Report, make_finding: Callable[..., Finding]
) -> None:
    finding = make_finding(next=("lower the rate a little", "forensics nan-origin RUN", "nvidia-smi -q"))
    page = "\n".join(text.render(dataclasses.replace(failed, findings=(finding,))))
    assert "lower the rate a little" not in page
    assert "next        forensics nan-origin runs/a" in page
    assert page.count("nvidia-smi -q") == 1
    alone = dataclasses.replace(failed.verdict, actions=())
    page = "\n".join(text.render(dataclasses.replace(failed, verdict=alone, findings=(finding,))))
    assert "next        lower the rate a little" in page


def test_a_page_with_little_else_has_room_for_three_actions(failed: Report) -> None:
    three = tuple(Action(f"change number {n}", "s") for n in range(4))
    verdict = dataclasses.replace(failed.verdict, actions=three, chain=(), runner_up=None)
    page = "\n".join(text.render(dataclasses.replace(failed, verdict=verdict)))
    assert "change number 2" in page
    assert "change number 3" not in page


def test_a_place_is_never_cut_even_when_it_is_wider_than_the_screen(failed: Report) -> None:
    source = "a/" * 90 + "stdout.log"
    evidence = (Evidence(source, Locator(line=123_456), "loss nan"),)
    findings = (dataclasses.replace(failed.findings[0], evidence=evidence),)
    lines = list(text.render(dataclasses.replace(failed, findings=findings)))
    assert any(line.endswith(f"{source}:123456") for line in lines)


def test_a_command_to_copy_is_never_wrapped(failed: Report) -> None:
    command = "torchrun --nproc-per-node 8 train.py --resume " + "x" * 90
    findings = (dataclasses.replace(failed.findings[0], next=(command,)),)
    assert any(command in line for line in text.render(dataclasses.replace(failed, findings=findings)))


def test_other_lines_keep_to_80_columns(failed: Report) -> None:
    assert all(len(line) <= 80 for line in text.render(failed))


def test_nothing_of_a_hostile_input_reaches_the_terminal_raw(hostile: Report) -> None:
    for style in (Style(), Style(verbose=True)):
        assert not any(CONTROL.search(line) for line in text.render(hostile, style))
    assert not any(CONTROL.search(line) for line in text.render_many([hostile, hostile]))


def test_colour_is_only_added_around_the_same_words(failed: Report) -> None:
    painted = "\n".join(text.render(failed, Style(color=True)))
    assert "\x1b[" in painted
    assert re.sub("\x1b\\[[0-9;]*m", "", painted) == "\n".join(text.render(failed))


def test_runs_that_failed_the_same_way_stand_together(failed: Report, healthy: Report, silent: Report) -> None:
    keys = [(group.key, len(group.reports)) for group in _many.groups([healthy, failed, silent, failed])]
    assert [count for _, count in keys] == [2, 1, 1]
    assert keys[0][0] != "-"


@given(WORDS, WORDS, WORDS)
def test_any_text_renders_within_25_lines_without_control_characters(quote: str, path: str, headline: str) -> None:
    evidence = Evidence(path, Locator(line=1), quote)
    finding = Finding("NAN001", Shape.NAN, Severity.ERROR, Sure.LOW, headline, quote, (evidence,), next=(quote,))
    verdict = Verdict(Outcome.FAILED, headline, chain=(quote, path), runner_up=path)
    lines = list(text.render(Report(path, verdict, (finding,))))
    assert len(lines) <= 25
    assert not any(CONTROL.search(line) for line in lines)


@given(st.integers(1, 10**6), st.integers(1, 60), st.integers(1, 3))
def test_a_place_inside_a_sentence_is_whole_or_absent(line: int, words: int, most: int) -> None:
    place = f"logs/stdout.log:{line}"
    rows = list(Style().field("chain", "word " * words + f"({place}) and more of it " * 3, most=most))
    assert len(rows) <= most
    assert all(found == place for row in rows for found in re.findall(r"logs/[^ )]*", row))
