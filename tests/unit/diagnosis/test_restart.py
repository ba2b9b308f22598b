"""Whether a run is to be started again: by the nature of its failure, and by what its attempts got done."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from forensics import registry
from forensics.action import Restart
from forensics.case.restart import options_of
from forensics.knowledge.causes import causes
from forensics.knowledge.hosts import host_of
from forensics.knowledge.restarts import nature_of, restarts
from forensics.model import Shape
from forensics.pipeline import triage
from forensics.report import phrases
from tests.unit.diagnosis._histories import ENDS, History, history

#: Stories that are told; FORENSICS_EXAMPLES asks for more of them.
EXAMPLES = int(os.environ.get("FORENSICS_EXAMPLES") or "40")
TRAINERS = {dialect.name: dialect for dialect in registry.load("dialects").dialects}


def decided(folder: Path) -> Restart:
    """The decision on a run that has one."""
    restart = triage(folder).verdict.restart
    assert restart is not None
    return restart


def stuck(kind: str, *reached: int) -> History:
    """Attempts in one log that all end alike, each from the last multiple of 50."""
    begins = [0, *(step // 50 * 50 for step in reached[:-1])]
    return History(1, (kind,) * len(reached), reached, tuple(begins), own_logs=False)


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_a_history_of_attempts_is_decided_by_its_failure_and_its_progress(seed: int, tmp_path: Path) -> None:
    story = history(seed)
    assert decided(story.write(tmp_path)).decision == story.expected, story


@pytest.mark.parametrize(
    ("kind", "tries"), [("passing", 2), ("unclear", 1), ("machine", 2), ("preempted", 2), ("program", 0)]
)
def test_a_first_failure_leaves_the_tries_after_which_a_row_for_stuck_attempts_decides(
    kind: str, tries: int, tmp_path: Path
) -> None:
    (first := tmp_path / "first").mkdir()
    (last := tmp_path / "last").mkdir()
    assert decided(stuck(kind, 120).write(first)).tries == tries
    again = decided(stuck(kind, *[120] * (tries + 1)).write(last))
    assert (again.decision in {"stop", "after_change"}, again.tries) == (True, 0)


def test_an_attempt_that_saved_a_checkpoint_got_further_wherever_it_died(tmp_path: Path) -> None:
    for name, saves in (("saved", "saved checkpoint to checkpoints/step_150"), ("lost", "cleaning up")):
        (place := tmp_path / name).mkdir()
        text = (stuck("passing", 140, 140, 140).write(place) / "train.log").read_text()
        before, found, after = text.rpartition("step=140")
        (place / "train.log").write_text(before + saves.replace("150", "135") + "\n" + found + after)
    assert decided(tmp_path / "saved").decision == "as_is"
    assert decided(tmp_path / "lost").decision == "stop"


def test_a_save_is_no_progress_where_the_next_attempt_begins_before_it_again(tmp_path: Path) -> None:
    for name, begins in (("unused", (0, 50, 50, 50)), ("used", (0, 100, 150, 200))):
        (place := tmp_path / name).mkdir()
        reached = tuple(begin + 70 for begin in begins)
        History(1, ("preempted",) * 4, reached, begins, own_logs=True).write(place)
    assert decided(tmp_path / "unused").decision == "after_change"
    assert decided(tmp_path / "used").decision == "as_is"


def raised(place: Path, reached: Sequence[int], *errors: str, own: bool = False) -> Restart:
    """The decision on attempts that each end in an exception of a library, or of the program's own module."""
    lines = list[str]()
    for number, (last, error) in enumerate(zip(reached, errors, strict=True)):
        begin = reached[number - 1] // 50 * 50 if number else 0
        lines += [f"resuming from checkpoint checkpoints/step_{begin} at step {begin}"] if number else ["it begins"]
        lines += [f"step={step} loss={4 - step / 200:.3f} lr=1e-4" for step in range(begin + 5, last + 1, 5)]
        file = "/srv/millstore/wire.py" if own else "/opt/env/lib/python3.11/site-packages/millstore/wire.py"
        lines += ["Traceback (most recent call last):", '  File "/srv/train.py", line 88, in main', "    row = get(k)"]
        lines += [f'  File "{file}", line 7, in get', "    raise Gone(k)", f"millstore.wire.{error}"]
    (place / "train.log").write_text("\n".join(lines) + "\n")
    return decided(place)


def test_an_unknown_error_of_a_library_that_comes_elsewhere_each_time_is_left_to_chance(tmp_path: Path) -> None:
    restart = raised(tmp_path, (120, 190), "Gone: lease 41 is over", "Gone: lease 97 is over")
    assert (restart.decision, restart.tries) == ("as_is", 1)
    assert restart.basis.startswith("the error came at another step and with other words in an earlier attempt")


@pytest.mark.parametrize(
    ("reached", "errors", "own"),
    [
        pytest.param((120, 120), ("Gone: lease 41 is over", "Gone: lease 97 is over"), False, id="the same step"),
        pytest.param((120, 190), ("Gone: lease 41 is over", "Gone: lease 41 is over"), False, id="the same words"),
        pytest.param((120, 190), ("Gone: lease 41 is over", "Bent: lease 97 is over"), False, id="another class"),
        pytest.param((120, 190), ("Gone: lease 41 is over", "Gone: lease 97 is over"), True, id="the program's own"),
        pytest.param((120, 190), ("Gone: no part-41.tar here", "Gone: no part-97.tar here"), False, id="a file"),
    ],
)
def test_an_unknown_error_is_the_programs_own(
    reached: Sequence[int], errors: Sequence[str], own: bool, tmp_path: Path
) -> None:
    assert raised(tmp_path, reached, *errors, own=own).decision == "after_change"


def test_each_attempt_that_gets_no_further_takes_one_try(tmp_path: Path) -> None:
    assert decided(stuck("passing", 120, 120).write(tmp_path)).tries == 1


def test_an_attempt_that_gets_further_gives_all_tries_back(tmp_path: Path) -> None:
    assert decided(stuck("passing", 120, 120, 170).write(tmp_path)).tries == 2


def test_the_third_end_at_one_step_is_no_passing_failure(tmp_path: Path) -> None:
    restart = decided(stuck("passing", 120, 120, 120).write(tmp_path))
    assert (restart.decision, restart.tries) == ("stop", 0)
    assert restart.basis == "3 attempts got no further than step 120: the failure does not pass by itself"


def test_preemptions_that_come_before_the_next_checkpoint_ask_for_saves(tmp_path: Path) -> None:
    restart = decided(stuck("preempted", 80, 80, 80).write(tmp_path))
    assert restart.decision == "after_change"
    assert restart.basis.startswith("3 attempts were ended before they got further than step 80: save more often")


def test_words_that_count_at_the_end_of_a_log_end_each_of_its_attempts(tmp_path: Path) -> None:
    folder = stuck("preempted", 70, 60, 60).write(tmp_path)
    text = (folder / "train.log").read_text()
    assert decided(folder).decision == "after_change"
    word = "allocation released: another experiment preempts this trial"
    (folder / "train.log").write_text(text.replace(ENDS["preempted"][0], word))
    restart = decided(folder)
    assert (restart.decision, restart.basis[:21]) == ("after_change", "3 attempts were ended")


def test_a_machine_that_a_line_names_is_left_out(tmp_path: Path) -> None:
    folder = stuck("machine", 120).write(tmp_path)
    text = (folder / "train.log").read_text()
    (folder / "train.log").write_text(
        text.replace("[Mon Nov 16 03:12:44 2026] NVRM", "Nov 16 03:12:44 gpu-017 kernel: NVRM")
    )
    restart = decided(folder)
    assert (restart.decision, restart.avoid) == ("elsewhere", ("gpu-017",))


@pytest.mark.parametrize(("second", "confirmed"), [("0017", True), ("0018", False)])
def test_the_same_shard_in_two_attempts_is_left_out(second: str, confirmed: bool, tmp_path: Path) -> None:
    for number, shard in enumerate(("0017", second)):
        begin = "resuming from checkpoint checkpoints/step_50 at step 50" if number else "training starts"
        steps = [f"step={step} loss={3 - step / 100:.3f} lr=1e-4" for step in range(55 if number else 5, 100, 5)]
        error = f"OSError: corrupt footer in shards/part-{shard}.parquet"
        lines = [begin, *steps, "Traceback (most recent call last):", '  File "train.py", line 9, in read', error]
        (tmp_path / f"slurm-{44 + number}.out").write_text("\n".join(lines) + "\n")
    restart = decided(tmp_path)
    assert restart.decision == "after_change"
    assert ("part-0017.parquet failed in an earlier attempt" in restart.basis) is confirmed


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("srun: error: node17: task 3: Killed", "node17"),
        ("  host      : ip-10-0-4-7.internal", "ip-10-0-4-7.internal"),
        ("Nov 16 03:12:44 gpu-017 kernel: NVRM: Xid (PCI:0000:3b:00): 79", "gpu-017"),
        ("JOB 4471 ON node17 CANCELLED", None),
        ("ValueError: hosted = 3", None),
    ],
)
def test_the_host_that_a_line_speaks_of(line: str, host: str | None) -> None:
    assert host_of(line) == host


def test_a_finished_run_is_not_started_again(tmp_path: Path) -> None:
    lines = [f"step={step} loss={5 - step / 100:.3f} lr=1e-4" for step in range(1, 101)]
    (tmp_path / "train.log").write_text("\n".join([*lines, "Training complete."]) + "\n")
    assert triage(tmp_path).verdict.restart is None


def test_a_run_of_which_nothing_can_be_said_gives_no_decision(tmp_path: Path) -> None:
    lines = [f"step={step} loss={5 - step / 100:.3f} lr=1e-4" for step in range(1, 41)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    restart = decided(tmp_path)
    assert (restart.decision, restart.tries) == ("unknown", 1)


def test_the_command_loads_the_checkpoint_and_makes_the_change() -> None:
    restart = decided(Path("fixtures/runs/nan-blowup-kempnerforge"))
    assert restart.command == "--checkpoint.load_path=checkpoints/demo/step_100 --train.max_grad_norm=1.0"
    assert restart.change is not None
    assert restart.change.startswith("Turn gradient clipping on")


def test_a_run_without_a_checkpoint_gives_no_command(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("\n".join(["step=1 loss=3.0 lr=1e-4", *ENDS["program"]]) + "\n")
    assert decided(tmp_path).command is None


@pytest.mark.parametrize(
    ("trainer", "option"),
    [
        ("kempnerforge", "--train.max_grad_norm=1.0"),
        ("hf_trainer", "--max_grad_norm 1.0"),
        ("megatron", "--max-grad-norm 1.0"),
        ("verl", "train.max_grad_norm=1.0"),
    ],
)
def test_each_trainer_has_its_own_form_of_an_option(trainer: str, option: str) -> None:
    assert options_of([TRAINERS[trainer]], "train.max_grad_norm", "1.0") == (option,)


def test_what_a_file_gives_as_a_key_is_no_shell_code() -> None:
    assert options_of([TRAINERS["kempnerforge"]], "a; rm -rf /", "1.0") == ()
    assert shlex.split(options_of([TRAINERS["kempnerforge"]], "lr", "1; rm")[0]) == ["--lr=1; rm"]


def test_every_cause_and_shape_has_a_nature_that_a_row_decides() -> None:
    natures = {nature_of(cause, "crash") for cause in causes()} | {nature_of("", shape.value) for shape in Shape}
    assert natures | {"moving"} == {nature for row in restarts() for nature in row.nature}


def test_every_row_without_conditions_comes_after_those_with_some() -> None:
    for nature in {nature for row in restarts() for nature in row.nature}:
        own = [row for row in restarts() if nature in row.nature]
        assert [row.stuck == 1 and not (row.again or row.change) for row in own] == [False] * (len(own) - 1) + [True]


_WHOLE = b"PK\x03\x04" + bytes(200) + b"PK\x05\x06" + bytes(18)
_CUT = _WHOLE[:100]


def with_checkpoints(place: Path, end: str, **saved: bytes) -> Restart:
    """The decision on sixty steps that end as a line says, beside files of weights by their steps."""
    steps = [f"step {at} loss {'nan' if end == 'nan' and at > 50 else f'{3 - at / 100:.4f}'}" for at in range(1, 61)]
    (place / "train.log").write_text("\n".join([*steps, *([] if end == "nan" else [end])]) + "\n")
    for name, content in saved.items():
        (place / name).mkdir()
        (place / name / "model.pt").write_bytes(content)
    return decided(place)


@pytest.mark.parametrize("end", ["nan", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."])
def test_a_checkpoint_that_cannot_be_used_is_named_where_none_can(end: str, tmp_path: Path) -> None:
    restart = with_checkpoints(tmp_path, end, step_20=_CUT, step_40=_CUT)
    assert restart.no_checkpoint == "step 40 is incomplete (the files on disk are not those of a finished save)"
    words = phrases.restart(triage(tmp_path).verdict)
    assert words.endswith(f"no checkpoint is usable: {restart.no_checkpoint}")


def test_a_checkpoint_that_can_be_used_hides_the_damage_of_a_later_one(tmp_path: Path) -> None:
    restart = with_checkpoints(tmp_path, "nan", step_20=_WHOLE, step_40=_CUT)
    assert restart.no_checkpoint == ""
    assert phrases.restart(triage(tmp_path).verdict).endswith("from the checkpoint of step 20, step_20")


def test_a_run_without_checkpoints_is_not_said_to_have_unusable_ones(tmp_path: Path) -> None:
    assert with_checkpoints(tmp_path, "nan").no_checkpoint == ""


def test_a_run_begins_anew_because_none_is_usable_or_because_none_was_found(tmp_path: Path) -> None:
    end = "slurmstepd: error: *** JOB 1234 ON node-1 CANCELLED AT 2026-01-01T10:00:00 DUE TO PREEMPTION ***"
    assert with_checkpoints(tmp_path, end).basis.endswith("; no checkpoint was found, so it may begin anew")
    restart = with_checkpoints(tmp_path, end, step_40=_CUT)
    assert restart.basis.endswith("; no checkpoint is usable, so it may begin anew")
