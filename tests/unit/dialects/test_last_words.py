"""The last line of a log: what its logger prints before it says nothing, and words of an epoch are no end."""

from __future__ import annotations

import pytest

from forensics.dialects.events.last_words import last_words, message_of

HEADS = (
    "",
    "2025-03-01 12:00:01,020 - INFO - ",
    "I0301 12:00:01.123456 140213 train.py:88] ",
    "Mar 01 12:00:01 gpu-17 python[4123]: ",
    "[   98.3s] ",
    "(TrainWorker pid=4123) ",
    "[12:03:44] INFO     ",
    "19.10.2025 05:53:43 ",
    "08-19 08:08 [INFO]: ",
    "INFO:__main__:",
    "0:12:03 | ",
    "1740830401.123 ",
    "2026-11-27 14:13:55.918 | SUCCESS  | __main__:main:19 - ",
    "INFO:train:",
)
ENDS = (
    "done",
    "=== DONE ===",
    "All done!",
    "Finished!",
    "*** Training finished ***",
    "Training took 12.3 minutes",
    "total training time 734.2s",
    "Total time: 0:12:03",
    "Run complete. Best val loss 1.23",
    "Completed 1 run",
    "Job finished with exit code 0",
    "End of training",
    "Done, total time 8s",
    "done in 3.2 min",
    "Solved! Running reward is now 198.8",
    "submission.csv written",
    "SUCCESS",
    "Finished successfully.",
    "completed 1000/1000",
    "Max steps reached, stopping.",
    "Early stopping: no improvement for 10 evals",
    "No improvement in 8 epochs, stop.",
    "patience exhausted, best epoch 12",
    "EarlyStopping counter: 5 out of 5",
    "trainer.fit finished",
    "wall clock 1234.5s, bye",
    "*** converged after 520 iterations: ||g|| below 1.0E-02 ***",
    "reached 20000 iterations, wrote final.pt, bye",
    "all cycles done, best mAP at c2 e39",
    " final objective 1.250141E+01   cpu 486.2 s",
    "end of schedule, weights in final.npz",
)


@pytest.mark.parametrize("head", HEADS)
def test_an_end_is_one_behind_what_any_logger_prints(head: str) -> None:
    assert [end for end in ENDS if last_words(head + end, b"") is None] == []


@pytest.mark.parametrize(
    "line",
    [
        "epoch 3 done",
        "completed 300/1000",
        "EarlyStopping counter: 3 out of 5",
        "early stopping in 3 rounds unless the loss falls",
        "early stopping is enabled",
        "no improvement for 3 epochs, lr is halved",
        "upload finished successfully",
        "received SIGTERM, bye",
        "bye",
        "Validation finished",
        "loading data ... done",
        "Training step 3 done",
        "training time of epoch 3: 12.3 minutes",
        "time per step 0.3",
        "total loss: 0.53",
        "Job finished with exit code 1",
        "* Run finished. Uploading logs to Trackio (please wait...)",
        "Run finished, syncing what is left",
        "run failed, training is done",
        "training isn't finished",
        "INFO:train:loading data: done",
        "| epoch 3 done, 200 left",
        "resolved in 3 steps",
        "total time of the epochs so far",
        "loading sample_submission.csv",
        "stage 2 complete",
        "done. loading the next shard",
        "finished epoch 3 in 12 s",
        "average loss: 0.5",
        "total 47.6 GB",
        "évaluation terminée",
        "not converged after 520 iterations",
        "loss is nan, bye",
        "all workers done",
        "Готово не всё",
    ],
)
def test_words_of_a_part_or_of_a_failure_are_no_end(line: str) -> None:
    assert last_words(line, b"") is None


def test_words_that_came_three_times_before_are_those_of_a_part() -> None:
    epochs = [f"epoch {n} loss 0.3\n[12:00:0{n}] Training took {n}.1 minutes" for n in range(5)]
    assert last_words("[12:00:09] Training took 4.1 minutes", "\n".join(epochs[:2]).encode()) is not None
    assert last_words("[12:00:09] Training took 4.1 minutes", "\n".join(epochs[:3]).encode()) is None


def test_the_place_in_the_program_behind_a_message_is_no_part_of_it() -> None:
    assert message_of("[12:03:44] INFO     Training complete            train.py:88") == "Training complete"


@pytest.mark.parametrize(
    "line",
    [
        "done, 20000 steps",
        "total 47.6 min",
        "curriculum complete, model written to final.npz",
        "average accuracy over tasks: 0.726",
        "Finished 1500000 env steps in 1h58m",
        "NORMAL END OF RUN",
        "Terminé en 12 min",
        "Terminé en 2 h 14 min. Exactitude de l'ensemble : 95,41 %",
        "Обучение завершено",
        "Готово. Лучшая точность 0.93",
        "Fim do treino",
        "Fertig nach 3 h",
    ],
)
def test_a_program_ends_in_any_language(line: str) -> None:
    assert last_words(line, b"") is not None
