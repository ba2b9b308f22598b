"""Last words by shape: what follows the frames is the exception, whatever its name, and the inner one decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model import Outcome, Shape
from tests.unit.truth._runs import DONE, TRACEBACK, falling, judged, said, shape

OUT = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free."
)


@pytest.mark.parametrize(
    "words", ["Exception: the vocabulary is empty", "mypkg.Oops: the vocabulary is empty", "mypkg.DataIsOver"]
)
def test_the_first_line_behind_the_frames_is_the_exception_whatever_its_name(words: str, tmp_path: Path) -> None:
    verdict = said(tmp_path, [*falling(1, 50), *TRACEBACK, words])
    assert (*shape(verdict), words in verdict.headline) == (Outcome.FAILED, Shape.CRASH, True)


def test_frames_that_a_program_prints_and_gets_over_are_no_last_words(tmp_path: Path) -> None:
    lines = [*falling(1, 50), *TRACEBACK, "mypkg.DataIsOver", *falling(51, 90), DONE]
    assert said(tmp_path, lines).outcome in {Outcome.HEALTHY, Outcome.SUSPECT}


@pytest.mark.parametrize(
    "wrapped",
    [
        (f"torch._inductor.exc.InductorError: OutOfMemoryError: {OUT}", "", "Set TORCHDYNAMO_VERBOSE=1 for the stack"),
        (
            f"torch.OutOfMemoryError: {OUT}",
            "",
            "The above exception was the direct cause of the following exception:",
            "",
            *TRACEBACK,
            "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:",
            "see above",
        ),
    ],
)
def test_the_inner_exception_of_a_wrapper_decides(wrapped: tuple[str, ...], tmp_path: Path) -> None:
    found = judged(tmp_path, {"train.log": [*falling(1, 50), *TRACEBACK, *wrapped]})
    assert shape(found.verdict) == (Outcome.FAILED, Shape.OOM)
    assert [one.rule for one in found.findings if one.severity.rank > 1] == ["OOM001"]


def test_a_compilers_own_error_is_no_memory(tmp_path: Path) -> None:
    own = "torch._inductor.exc.InductorError: AssertionError: Tried to allocate a buffer twice"
    assert shape(said(tmp_path, [*falling(1, 50), *TRACEBACK, own])) == (Outcome.FAILED, Shape.CRASH)


def test_a_loader_worker_that_was_killed_is_no_memory_at_high_confidence(tmp_path: Path) -> None:
    killed = "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Killed."
    verdict = said(tmp_path, [*falling(1, 50), *TRACEBACK, killed])
    assert (*shape(verdict), verdict.cause) == (Outcome.FAILED, Shape.CRASH, "loader_worker_died")


def test_killed_behind_a_bar_is_a_kill_and_within_a_sentence_is_not(tmp_path: Path) -> None:
    frames = "".join(f"\r {at // 3}%|###   | {at}/300 [00:{at:02d}<01:00,  3.10it/s]" for at in range(1, 43))
    glued = judged(tmp_path / "glued", {"train.log": f"start\n{frames}Killed\n"}).verdict
    assert (*shape(glued), glued.cause) == (Outcome.FAILED, Shape.CRASH, "silent_death_sigkill")
    spoken = said(tmp_path / "spoken", [*falling(1, 50), "Killed processes of the last job: 0", DONE])
    assert spoken.outcome is Outcome.HEALTHY
