"""The text verdict: short, narrow, whole where it is copied from, and harmless."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.action import Action, Check, Gap, Restart, Setting
from forensics.knowledge.causes import causes
from forensics.model import (
    Causal,
    Checkpoint,
    Evidence,
    Finding,
    Locator,
    Outcome,
    Recorded,
    Report,
    Severity,
    Shape,
    Verdict,
)
from forensics.model import Confidence as Sure
from forensics.report import _many, markdown, text
from forensics.report.html import page
from forensics.report.phrases import notes, stated
from forensics.report.style import Style
from forensics.values import replace

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
WORDS = st.text(max_size=300)
RESTART = Restart("elsewhere", "a machine failed", 2, "--load c/step_40", None, ("gpu-7",))
CHECK = Check("nan.fp32", "Repeat the steps in fp32", "next", None, None, "s")
GAP = Gap(
    "gpu_log",
    "log of the GPUs",
    "clocks are seen only there",
    "Log the GPUs beside the job",
    "nvidia-smi -l 5 > gpu.csv",
    "s",
)
GAP_OF_WORDS = replace(GAP, how_to_record="word " * 80)


def test_a_verdict_with_everything_fits_in_25_lines(failed: Report, make_finding: Callable[..., Finding]) -> None:
    long = "word " * 80
    evidence = make_finding().evidence * 5
    finding = make_finding(because=long, evidence=evidence, next=(long,) * 9)
    action = Action(long, "s", "nvidia-smi", Setting("lr", "1", "c.toml:3"))
    verdict = replace(
        failed.verdict, headline=long, chain=(long,) * 9, runner_up=long, against=evidence, culprits=tuple(range(99)),
        actions=(action,) * 4, restart=replace(RESTART, basis=long), missing=(GAP_OF_WORDS,),
        playbook=(replace(CHECK, text=long, command="nvidia-smi"),),
    )  # fmt: skip
    report = replace(failed, verdict=verdict, findings=(finding,), issues=failed.issues * 50)
    assert len(list(text.render(report))) <= 25


def test_what_mends_it_is_told_with_the_present_setting_and_its_place(failed: Report) -> None:
    lines = list(text.render(failed))
    at = next(n for n, line in enumerate(lines) if line.startswith("fix "))
    assert lines[at] == "fix         Lower the peak learning rate (now lr = 0.003, run.yaml:7)"
    assert lines[at + 2] == "            nvidia-smi -q"


def test_the_parts_come_in_the_order_in_which_they_are_needed(failed: Report) -> None:
    verdict = replace(
        failed.verdict, cause_confidence=Sure.LOW, restart=RESTART, playbook=(CHECK,), missing=(GAP,), chain=()
    )
    lines = list(text.render(replace(failed, verdict=verdict)))
    labels = [line.split()[0] for line in lines[1:] if line[:1].strip()]
    wanted = ["onset", "cause", "evidence", "fix", "restart", "next", "record", "seen"]
    assert [label for label in labels if label in wanted] == wanted


@pytest.mark.parametrize(
    ("cause", "sure", "shown"),
    [("float16", Sure.MEDIUM, True), ("float16", Sure.HIGH, False), ("unknown", Sure.LOW, False)],
)
def test_a_known_cause_that_is_not_certain_comes_with_what_confirms_it(
    failed: Report, cause: str, sure: Sure, *, shown: bool
) -> None:
    report = replace(failed, verdict=replace(failed.verdict, cause=cause, cause_confidence=sure))
    in_full = text.render(report, Style(verbose=True))
    for rendered in (in_full, markdown.render(report), page.render(report)):
        assert shown_in("\n".join(rendered), causes()[cause].confirms) is shown


def test_what_confirms_a_cause_is_the_first_to_go_where_a_page_is_full(failed: Report) -> None:
    verdict = replace(failed.verdict, cause="float16", cause_confidence=Sure.LOW)
    assert not any(line.startswith("confirm") for line in text.render(replace(failed, verdict=verdict)))
    short = replace(verdict, against=(), chain=(), runner_up=None, missing=(), actions=())
    assert any(line.startswith("confirm") for line in text.render(replace(failed, verdict=short)))


def shown_in(page: str, sentence: str) -> bool:
    return sentence in " ".join(page.split()) and "confirm" in page


def test_a_restart_is_told_with_its_checkpoint_its_reason_and_a_command_that_is_whole(failed: Report) -> None:
    verdict = replace(failed.verdict, restart=RESTART, checkpoint=Checkpoint(40, "c/step_40"))
    lines = list(text.render(replace(failed, verdict=verdict)))
    at = next(n for n, line in enumerate(lines) if line.startswith("restart "))
    told = " ".join(" ".join(lines[at : at + 3]).split())
    where = "on another machine than gpu-7, from the checkpoint of step 40, c/step_40"
    assert told.startswith(f"restart {where}; at most 2 times without progress")
    assert "a machine failed" in " ".join(lines)
    assert f"            {RESTART.command}" in lines


def test_after_a_known_change_the_reason_is_the_change_itself(failed: Report) -> None:
    told = replace(RESTART, decision="after_change", change="Clip", avoid=())
    verdict = replace(failed.verdict, restart=told)
    assert "a machine failed" not in "\n".join(text.render(replace(failed, verdict=verdict)))


def test_the_next_check_says_nothing_that_a_fix_says_already(failed: Report) -> None:
    same = replace(CHECK, text="Lower the peak by a tenth: it tells")
    done = replace(CHECK, text="Look at the loss", state="done")
    verdict = replace(failed.verdict, cause_confidence=Sure.LOW, playbook=(done, same, CHECK))
    page = "\n".join(text.render(replace(failed, verdict=verdict)))
    assert "next        Repeat the steps in fp32" in page
    assert "by a tenth" not in page


@pytest.mark.parametrize(
    ("sure", "has_fix", "asks"),
    [(Sure.HIGH, True, False), (Sure.HIGH, False, True), (Sure.MEDIUM, True, True), (Sure.LOW, True, True)],
)
def test_only_a_certain_cause_with_a_fix_asks_for_no_experiment(
    failed: Report, sure: Sure, *, has_fix: bool, asks: bool
) -> None:
    actions = failed.verdict.actions if has_fix else ()
    verdict = replace(failed.verdict, cause_confidence=sure, actions=actions, playbook=(CHECK,))
    assert ("in fp32" in "\n".join(text.render(replace(failed, verdict=verdict)))) is asks


def test_what_to_record_comes_with_its_command_and_where_there_is_room_with_its_reason(failed: Report) -> None:
    report = replace(failed, verdict=replace(failed.verdict, missing=(GAP,)))
    lines = list(text.render(report))
    at = next(n for n, line in enumerate(lines) if line.startswith("record "))
    assert lines[at : at + 2] == [
        "record      no log of the GPUs: Log the GPUs beside the job",
        "            nvidia-smi -l 5 > gpu.csv",
    ]
    assert "clocks are seen only there" in "\n".join(text.render(report, Style(verbose=True)))


def test_the_checklist_has_every_check_with_its_proof_or_its_recipe(failed: Report) -> None:
    done = replace(CHECK, text="Look at the loss", state="done", evidence="train.log, steps 1 to 9")
    lacks = replace(CHECK, text="Look at the clocks", state="missing", signals=("gpu_log",))
    verdict = replace(failed.verdict, playbook=(done, lacks, CHECK), missing=(GAP,))
    page = list(text.render(replace(failed, verdict=verdict), Style(checklist=True)))
    assert page[page.index("") + 1 :] == [
        "done        Look at the loss [train.log, steps 1 to 9]",
        "missing     Look at the clocks",
        "            record: Log the GPUs beside the job",
        "            nvidia-smi -l 5 > gpu.csv",
        "next        Repeat the steps in fp32",
    ]


def test_a_long_error_line_is_shown_from_its_own_words_on(failed: Report) -> None:
    quote = f"2026-11-16 03:12:44,991 [default0]:[rank3]: {'x' * 40} ValueError: the decisive words"
    evidence = (Evidence("train.log", Locator(line=7), quote),)
    findings = (replace(failed.findings[0], evidence=evidence),)
    assert "              ValueError: the decisive words" in text.render(replace(failed, findings=findings))


def test_beside_actions_a_finding_adds_its_commands_and_no_advice_of_its_own(
    failed: Report, make_finding: Callable[..., Finding]
) -> None:
    finding = make_finding(next=("lower the rate a little", "forensics nan-origin RUN", "nvidia-smi -q"))
    page = "\n".join(text.render(replace(failed, findings=(finding,))))
    assert "lower the rate a little" not in page
    assert "more        forensics nan-origin runs/a" in page
    assert page.count("nvidia-smi -q") == 1
    alone = replace(failed.verdict, actions=())
    page = "\n".join(text.render(replace(failed, verdict=alone, findings=(finding,))))
    assert "more        lower the rate a little" in page


def test_a_page_with_little_else_has_room_for_four_actions(failed: Report) -> None:
    five = tuple(Action(f"change number {n}", "s") for n in range(5))
    verdict = replace(failed.verdict, actions=five, chain=(), runner_up=None)
    report = replace(failed, verdict=verdict)
    page = "\n".join(text.render(report))
    assert "change number 3" in page
    assert "change number 4" not in page
    assert "change number 4" in "\n".join(text.render(report, Style(verbose=True)))


def test_a_place_is_never_cut_even_when_it_is_wider_than_the_screen(failed: Report) -> None:
    source = "a/" * 90 + "stdout.log"
    evidence = (Evidence(source, Locator(line=123_456), "loss nan"),)
    findings = (replace(failed.findings[0], evidence=evidence),)
    lines = list(text.render(replace(failed, findings=findings)))
    assert any(line.endswith(f"{source}:123456") for line in lines)


def test_a_command_to_copy_is_never_wrapped(failed: Report) -> None:
    command = "torchrun --nproc-per-node 8 train.py --resume " + "x" * 90
    findings = (replace(failed.findings[0], next=(command,)),)
    assert any(command in line for line in text.render(replace(failed, findings=findings)))


def test_other_lines_keep_to_80_columns(failed: Report) -> None:
    assert all(len(line) <= 80 for line in text.render(failed))


def test_nothing_of_a_hostile_input_reaches_the_terminal_raw(hostile: Report) -> None:
    for style in (Style(), Style(verbose=True)):
        assert not any(CONTROL.search(line) for line in text.render(hostile, style))
    assert not any(CONTROL.search(line) for line in text.render_many([hostile, hostile]))


def test_of_equal_remarks_the_one_that_may_be_a_cause_comes_before_its_context(
    healthy: Report, make_finding: Callable[..., Finding]
) -> None:
    info = {"severity": Severity.INFO, "cause": "many_stores"}
    files = make_finding("HST002", title="2 files hold the same loss", causal=Causal.CONTEXT, **info)
    slower = make_finding("SLO001", title="a step takes longer", confidence=Sure.MEDIUM, **info)
    assert notes(replace(healthy, findings=(files, slower))) == [slower]
    graver = replace(files, severity=Severity.WARNING)
    assert notes(replace(healthy, findings=(slower, graver))) == [graver]
    assert notes(replace(healthy, findings=(slower, replace(slower, confidence=Sure.HIGH))))[0].confidence is Sure.HIGH


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


def test_a_text_that_is_too_long_is_cut_behind_its_last_whole_clause() -> None:
    text = (
        "Overfit a single batch: a loss that stays up is a bug and no setting: a detached graph, frozen layers, masks"
    )
    assert [row.strip() for row in Style(width=60).field("more", text, most=2)] == [
        "more        Overfit a single batch: a loss that stays up is",
        "a bug and no setting …",
    ]


def test_a_clause_that_would_leave_half_of_the_room_empty_is_no_place_to_cut() -> None:
    text = "Shorten: the longest sequences, then the batch, then the model, until it fits again"
    assert [row.strip() for row in Style(width=60).field("fix", text, most=1)] == [
        "fix         Shorten: the longest sequences, then the …"
    ]


def test_a_colon_inside_of_a_place_ends_no_clause() -> None:
    (row,) = Style(width=60).field("why", "the last line of rank 3 is logs/rank3.log:1200 and more words", most=1)
    assert row.endswith("the last line of rank 3 is logs/rank3.log:1200 …")


def test_below_the_word_of_its_outcome_a_headline_does_not_repeat_it(silent: Report) -> None:
    said = "the records end at step 60, without an end marker"
    shown = [*text.render(replace(silent, verdict=replace(silent.verdict, headline=f"Cannot say: {said}")))]
    assert shown[:2] == ["CANNOT SAY  runs/c", f"            {said}"]


@pytest.mark.parametrize("signals", [(), (Recorded("loss", "training loss", "m.csv", 60),)])
def test_formats_are_a_next_step_only_where_nothing_was_recognised(
    silent: Report, signals: tuple[Recorded, ...]
) -> None:
    shown = [*text.render(replace(silent, coverage=replace(silent.coverage, signals=signals)))]
    assert ("more        forensics formats" in shown) == (not signals)


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        (72, "x" * 72 + " CUDA error: uncorrectable ECC error encountered"),
        (73, "… uncorrectable ECC error encountered"),
        (119, "… uncorrectable ECC error encountered"),
    ],
)
def test_a_line_that_is_too_long_begins_where_the_words_are_by_which_it_is_known(before: int, shown: str) -> None:
    line = "x" * before + " CUDA error: uncorrectable ECC error encountered"
    evidence = Evidence("a.log", Locator(line=3), line, name="ecc-uncorrectable")
    assert stated(evidence, 60, 2) == shown
    assert stated(replace(evidence, name="loss"), 60, 2) == line
    assert stated(evidence) == line
