"""A run is healthy when its end is proven and its losses are finite; else the answer says how far it came."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from forensics import triage
from forensics.case.endings import Reach, ending
from forensics.model import Confidence, Outcome, Verdict
from forensics.pipeline import ingest_bytes, ingest_run

_DICT = "{{'loss': {loss:.4f}, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': {epoch:.2f}}}"


def loss(at: int) -> float:
    return 4.6 * 0.97**at


def steps(*numbers: int, form: str = "step {at} loss {loss:.4f} lr 1e-3") -> list[str]:
    return [form.format(at=at, loss=loss(at)) for at in numbers]


def judged(place: Path, lines: Iterable[str], **files: str) -> Verdict:
    (place / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, text in files.items():
        (place / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return triage(place).verdict


def test_an_end_marker_proves_health(tmp_path: Path) -> None:
    verdict = judged(tmp_path, [*steps(*range(40)), "training complete"])
    assert (verdict.outcome, verdict.confidence) == (Outcome.HEALTHY, Confidence.LOW)


@pytest.mark.parametrize(
    ("words", "is_healthy"),
    [
        ("Training finished with exit code 0", True),
        ("Training finished with loss 0.31", True),
        ("Training finished without errors", True),
        ("Training complete with 0 errors", True),
        ("Обучение завершено без ошибок", True),
        ("Training abgeschlossen ohne Fehler", True),
        ("Entraînement terminé sans erreur", True),
        ("Entrenamiento finalizado sin errores", True),
        ("训练完成 无错误", True),
        ("Training finished with errors", False),
        ("Обучение завершено с ошибкой", False),  # noqa: RUF001 - Russian
        ("Training beendet mit Fehlern", False),
        ("Entraînement terminé avec une erreur", False),
        ("训练结束 出现错误", False),
        ("学習終了、エラーあり", False),
        ("Training complete with 3 errors", False),
        ("Training finished with exit code 1", False),
        ("Training finished with status: FAILED", False),
        ("Training finished unsuccessfully", False),
        ("Entrenamiento finalizado exitosamente", True),
        ("Entrenamiento finalizado con errores", False),
    ],
)
def test_an_end_that_tells_of_errors_proves_no_health(words: str, is_healthy: bool, tmp_path: Path) -> None:
    verdict = judged(tmp_path, [*steps(*range(40)), words])
    assert (verdict.outcome is Outcome.HEALTHY) is is_healthy


def test_a_log_that_stops_at_step_55_of_100_is_no_health_and_says_how_far_it_came(tmp_path: Path) -> None:
    verdict = judged(tmp_path, steps(*range(1, 56), form="[Step {at}/100] loss {loss:.4f}"))
    assert verdict.outcome is Outcome.CANNOT_SAY
    assert "step 55 of 100, without an end marker" in verdict.headline
    assert "would settle it" in verdict.headline


def test_the_same_log_to_step_100_has_reached_its_plan(tmp_path: Path) -> None:
    verdict = judged(tmp_path, steps(*range(1, 101), form="[Step {at}/100] loss {loss:.4f}"))
    assert (verdict.outcome, verdict.confidence) == (Outcome.HEALTHY, Confidence.LOW)
    assert "up to step 100 of 100, which is the end of its plan" in verdict.headline


@pytest.mark.parametrize(
    ("first", "last", "outcome"),
    [
        (0, 190, Outcome.HEALTHY),
        (0, 180, Outcome.CANNOT_SAY),
        (10, 190, Outcome.CANNOT_SAY),
        (10, 200, Outcome.HEALTHY),
    ],
)
def test_the_last_record_before_the_plan_is_its_end_where_no_later_one_fits(
    tmp_path: Path, first: int, last: int, outcome: Outcome
) -> None:
    lines = steps(*range(first, last + 1, 10), form="step {at}/200 | loss {loss:.4f}")
    assert judged(tmp_path, lines).outcome is outcome


def test_records_far_apart_prove_no_end(tmp_path: Path) -> None:
    lines = steps(*range(0, 161, 40), form="step {at}/200 | loss {loss:.4f}")
    assert judged(tmp_path, lines).outcome is Outcome.CANNOT_SAY


@pytest.mark.parametrize(("last", "outcome"), [(40, Outcome.CANNOT_SAY), (3000, Outcome.HEALTHY)])
def test_a_plan_that_a_header_announces_holds_the_run_to_it(tmp_path: Path, last: int, outcome: Outcome) -> None:
    head = ["***** Running training *****", "  Total optimization steps = 3,000"]
    bars = [
        line
        for at in range(last - 39, last + 1)
        for line in (
            _DICT.format(loss=loss(at % 50), epoch=at / 100),
            f"{at * 100 // 3000}%|#| {at}/3000 [00:09<10:00,  1.00it/s]",
        )
    ]
    assert judged(tmp_path, [*head, *bars]).outcome is outcome


def test_a_plan_of_minus_one_is_none(tmp_path: Path) -> None:
    settings = json.dumps({"max_steps": -1, "num_train_epochs": 3})
    lines = [f"epoch {at / 33:.2f} step {at} loss {loss(at):.4f}" for at in range(1, 67)]
    verdict = judged(tmp_path, lines, config__json=settings)
    assert verdict.outcome is Outcome.CANNOT_SAY
    assert "epoch 2 of 3" in verdict.headline


@pytest.mark.parametrize(("last", "outcome"), [(99, Outcome.HEALTHY), (66, Outcome.CANNOT_SAY)])
def test_epochs_of_the_settings_are_a_plan(tmp_path: Path, last: int, outcome: Outcome) -> None:
    settings = json.dumps({"num_train_epochs": 3, "learning_rate": 1e-3, "seed": 1})
    lines = [f"epoch {at / 33:.2f} step {at} loss {loss(at):.4f}" for at in range(1, last + 1)]
    assert judged(tmp_path, lines, config__json=settings).outcome is outcome


@pytest.mark.parametrize(
    ("epochs", "batches", "outcome"),
    [(3, 40, Outcome.HEALTHY), (3, 25, Outcome.CANNOT_SAY), (2, 40, Outcome.CANNOT_SAY)],
)
def test_the_last_batch_of_the_last_epoch_is_the_end(
    tmp_path: Path, epochs: int, batches: int, outcome: Outcome
) -> None:
    rows = [(e, b) for e in range(1, epochs + 1) for b in range(1, (batches if e == epochs else 40) + 1)]
    lines = [f"Epoch [{e}/3][{b}/40] loss: {loss(40 * e + b):.4f}" for e, b in rows]
    assert judged(tmp_path, lines).outcome is outcome


def test_an_evaluation_after_the_last_step_hides_no_plan_that_was_reached(tmp_path: Path) -> None:
    bars = [f"Evaluating: {at * 10}%|#| {at}/10 [00:0{at}<00:01,  1.00it/s]" for at in range(8)]
    lines = [*steps(*range(1, 101), form="step {at}/100 | loss {loss:.4f}"), *bars]
    assert judged(tmp_path, lines).outcome is Outcome.HEALTHY


def test_a_bar_of_an_evaluation_that_is_complete_proves_no_end_of_training(tmp_path: Path) -> None:
    bars = [f"{at * 10}%|#| {at}/10 [00:0{at % 10}<00:01,  1.00it/s]" for at in range(11)]
    verdict = judged(tmp_path, [*steps(*range(1, 41)), *bars])
    assert verdict.outcome is Outcome.CANNOT_SAY


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        ("python3 train.py exited with code 0", Outcome.HEALTHY),
        ("[job] train.py finished, exit code 0", Outcome.HEALTHY),
        ("python3 train.py exited with code 1", Outcome.FAILED),
    ],
)
def test_the_exit_code_of_the_program_decides(tmp_path: Path, word: str, outcome: Outcome) -> None:
    assert judged(tmp_path, [*steps(*range(40)), word]).outcome is outcome


def test_a_helper_that_exits_with_code_0_before_training_goes_on_proves_nothing(tmp_path: Path) -> None:
    lines = [*steps(*range(20)), "download helper exited with code 0", *steps(*range(20, 60))]
    assert judged(tmp_path, lines).outcome is Outcome.CANNOT_SAY


def test_a_loss_that_is_nan_now_and_then_is_never_healthy(tmp_path: Path) -> None:
    lines = [f"step {at} loss {'nan' if at in {11, 23, 31} else f'{loss(at):.4f}'}" for at in range(80)]
    assert judged(tmp_path, [*lines, "training complete"]).outcome is Outcome.SUSPECT


def test_a_second_run_in_the_file_must_come_to_its_end_itself(tmp_path: Path) -> None:
    form = "step {at}/100 | loss {loss:.4f}"
    judged(tmp_path, [*steps(*range(1, 101), form=form), *steps(*range(1, 41), form=form)])
    reach = ending(ingest_run(tmp_path)).reach
    assert not reach.is_reached


def test_an_end_marker_without_any_record_is_only_low(tmp_path: Path) -> None:
    verdict = judged(tmp_path, ["building the model", "training complete"])
    assert verdict.confidence is Confidence.LOW


def test_a_stop_that_reports_failure_is_no_end_in_success(tmp_path: Path) -> None:
    stop = ':::MLLOG {"namespace": "", "time_ms": 1770000000000, "key": "run_stop", "value": {"success": false}}'
    verdict = judged(tmp_path, [*steps(*range(40)), stop])
    assert "without an end marker" in verdict.headline


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(3, Outcome.HEALTHY), (5, Outcome.FAILED), (4, Outcome.CANNOT_SAY), (1, Outcome.CANNOT_SAY)],
)
def test_the_word_of_a_tracker_on_the_end_of_a_run_is_used(tmp_path: Path, status: int, outcome: Outcome) -> None:
    place = tmp_path / "mlruns" / "0" / ("3f" * 16)
    (place / "metrics").mkdir(parents=True)
    rows = "".join(f"{1741000000000 + at * 1000} {loss(at)} {at}\n" for at in range(60))
    (place / "metrics" / "loss").write_text(rows, encoding="utf-8")
    known = f"run_id: {'3f' * 16}\nstatus: {status}\nstart_time: 1741000000000\nend_time: 1741000900000\n"
    (place / "meta.yaml").write_text(known, encoding="utf-8")
    assert triage(tmp_path).verdict.outcome is outcome


def test_a_plan_that_was_passed_is_not_told_as_one_of_these_steps() -> None:
    assert [str(Reach(done, 100)) for done in (55, 100, 140)] == ["step 55 of 100", "step 100 of 100", "step 140"]


POD = "kind: Pod\nstatus:\n  containerStatuses:\n    - name: tide\n"


@pytest.mark.parametrize(
    ("name", "text", "outcome"),
    [
        ("pod__yaml", f"{POD}  phase: Succeeded\n", Outcome.HEALTHY),
        ("pod__yaml", f"{POD}  phase: Running\n", Outcome.CANNOT_SAY),
        ("pod__yaml", f"{POD}      state:\n        terminated:\n          reason: OOMKilled\n", Outcome.FAILED),
        ("values__yaml", "pod:\n  phase: Succeeded\n", Outcome.CANNOT_SAY),  # settings of a chart
        ("job__json", '{"displayName": "tide", "state": "JOB_STATE_SUCCEEDED"}', Outcome.HEALTHY),
        ("job__json", '{"displayName": "tide", "state": "JOB_STATE_RUNNING"}', Outcome.CANNOT_SAY),
        ("describe_training_job__json", '{"TrainingJobStatus": "Completed"}', Outcome.HEALTHY),
        ("describe_training_job__json", '{"TrainingJobStatus": "Stopped"}', Outcome.CANNOT_SAY),
    ],
)
def test_the_document_of_the_service_that_ran_the_job_says_how_it_ended(
    name: str, text: str, outcome: Outcome, tmp_path: Path
) -> None:
    assert judged(tmp_path, steps(*range(40)), **{name: text}).outcome is outcome


def test_a_bar_that_is_drawn_at_each_begin_alone_comes_after_the_epochs_that_moved() -> None:
    row = "   {}/9   2.1G    0.07599   0.0377   0   0.1137   168   640: 100%|#| 38/38 [00:09<00:00,  4.1it/s]"
    bars = [line for epoch in range(7) for line in ("  0%|          | 0/38 [00:00<?, ?it/s]", row.format(epoch))]
    reach = ending(ingest_bytes("nohup.out", "\r".join(bars).encode())).reach
    assert (reach.done, reach.plan, reach.unit) == (6, 9, "epoch")
