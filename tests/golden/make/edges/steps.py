"""Runs whose steps and checkpoints must be found behind other counters: epochs, bars, a tracker's records, cut saves."""

from __future__ import annotations

import json
from collections.abc import Iterator

from make._logs import MAIN, STEP, falling, run_log, start, traceback
from make.base import Label, Made, lines

#: A zip container with its end, and the same torn off.
_WHOLE = b"PK\x03\x04" + bytes(200) + b"PK\x05\x06" + bytes(18)
_TORN = _WHOLE[:120]
_ERROR = traceback("KeyError: 'rope_scaling'", MAIN, STEP)


def runs() -> Iterator[Made]:
    """Runs that crash or become NaN, each where one counter is a step and another is none."""
    yield from _epochs()
    yield from _bars()
    yield from _trackers()
    yield from _saves()


def crash(onset: int | None, checkpoint: int | None = None, within: int = 1) -> Label:
    """The label of a run that died of an error of its own."""
    return Label(
        "failed", "crash", ("uncaught_exception", "crash_all_ranks"), onset=onset, within=within, checkpoint=checkpoint
    )


def _epochs() -> Iterator[Made]:
    losses = falling(200, half=60)
    saved = {f"checkpoints/epoch_{epoch:02d}.keras": _WHOLE for epoch in (4, 8, 12, 16)}
    whole = [f"Epoch {e}/28\n5/5 - 0s - 40ms/step - loss: {losses[5 * e]:.4f}" for e in range(1, 17)]
    log = lines(whole, "Epoch 17/28", _ERROR)
    yield Made("edge-steps-keras-epochs", {"train.log": log, **saved}, crash(17, 16))
    table = "epoch,loss\n" + "".join(f"{e - 1},{losses[5 * e]:.6f}\n" for e in range(1, 17))
    yield Made("edge-steps-keras-epochs-and-table", {"train.log": log, "training.csv": table, **saved}, crash(17, 16))
    bars = [
        f"Epoch {e}/28\n"
        + "\n".join(f"{n}/10 ━━━━━━━━━━━━ 1s 40ms/step - loss: {losses[10 * e + n - 10]:.4f}" for n in (3, 7, 10))
        for e in range(1, 9)
    ]
    few = {f"checkpoints/epoch_{epoch:02d}.keras": _WHOLE for epoch in (4, 8)}
    yield Made("edge-steps-keras-bars", {"train.log": lines(bars, _ERROR), **few}, crash(81, 80))
    told = [(at, round(at / 114, 4)) for at in (1, *range(2, 77, 2))]
    dicts = [
        f"{{'loss': '{losses[at]:.4g}', 'grad_norm': '0.42', 'learning_rate': '0.002', 'epoch': '{e:.4g}'}}"
        for at, e in told
    ]
    history = [{"epoch": at / 114, "loss": losses[at], "step": at} for at, _ in told if at <= 50]
    state = {"epoch": 50 / 114, "global_step": 50, "max_steps": 140, "num_train_epochs": 2, "log_history": history}
    kept = {"out/checkpoint-50/trainer_state.json": json.dumps(state), "out/checkpoint-50/model.bin": _WHOLE}
    yield Made("edge-steps-trainer-without-bar", {"train.log": lines(dicts, _ERROR), **kept}, crash(77, 50))
    log = [f"step {at} loss {losses[at] if at < 71 else float('nan'):.4f}" for at in range(1, 101)]
    table = (
        "epoch,loss,val_loss\n"
        + "".join(f"{e},{losses[25 * e]:.4f},{9 - e}\n" for e in (1, 2))
        + "3,nan,nan\n4,nan,nan\n"
    )
    yield Made(
        "edge-steps-table-of-epochs", {"train.log": lines(log), "metrics.csv": table}, Label("failed", "nan", onset=71)
    )


def _bars() -> Iterator[Made]:
    def bar(at: int, plan: int, label: str = "", per: str = "it/s") -> str:
        return f"{label}{100 * at // plan:3d}%|█████| {at}/{plan} [00:{at % 60:02d}<01:00,  2.00{per}]"

    losses, drawn = falling(140), list[str]()
    for at in range(1, 79):
        drawn.append(bar(at, 140))
        if at % 25 == 0:
            drawn.append(
                f"{{'loss': {losses[at]:.4f}, 'grad_norm': 0.5, 'learning_rate': 0.001, 'epoch': {at / 140:.2f}}}"
            )
    text = "\r".join(drawn) + lines(_ERROR)
    yield Made("edge-steps-bar-on-the-failing-line", {"train.log": text}, crash(78))
    data = [bar(at, 18819, "Map (num_proc=4): ", " examples/s") for at in range(0, 15686, 3137)]
    yield Made("edge-steps-bar-of-data", {"train.log": lines(data, run_log({"loss": losses[:20]}), _ERROR)}, crash(20))
    other = "\r".join(bar(at, 7, "Evaluating: ") for at in range(1, 6))
    log = lines(run_log({"loss": losses[:40]}), other) + lines(_ERROR)
    yield Made("edge-steps-bar-of-an-evaluation", {"train.log": log}, crash(40))


def _trackers() -> Iterator[Made]:
    values = [f"{loss:.4f}" if at < 30 else "NaN" for at, loss in enumerate(falling(40))]
    rows = "".join(f"{at},{1_772_000_000 + at},{10 * at + 10},{value}\n" for at, value in enumerate(values))
    head = "_step,_timestamp,trainer/global_step,train/loss\n"
    yield Made("edge-steps-count-of-records", {"history.csv": head + rows}, Label("failed", "nan", onset=310))
    log = [
        f"03/01/2026 10:00:{at % 60:02d} - INFO - train - step {at}: loss {loss:.4f}, lr 0.01"
        for at, loss in enumerate(falling(80), 1)
    ]
    log[39:39] = [
        "03/01/2026 10:00:40 - INFO - save - saving state to out/step_40",
        " 57%|█████| 80/140 [00:05<00:01, 20.5it/s, loss=3.1, lr=0.01]",
    ]
    yield Made("edge-steps-dates-with-slashes", {"train.log": lines(log, _ERROR)}, crash(80, 40))


def _saves() -> Iterator[Made]:
    log = [*start(plan=2000), *run_log({"loss": falling(90)})]
    log += [f"saved checkpoint to out/step_{at}" for at in (40, 80)]
    first = {"out/step_40/model.pt": _WHOLE}
    gone = traceback("FileNotFoundError: [Errno 2] No such file or directory: '/srv/out/step_4/model.pt'", MAIN)
    yield Made("edge-saved-and-gone", {"train.log": lines(log, _ERROR), **first}, crash(90, 40))
    yield Made(
        "edge-saved-and-torn", {"train.log": lines(log, _ERROR), **first, "out/step_80/model.pt": _TORN}, crash(90, 40)
    )
    yield Made(
        "edge-saved-and-whole",
        {"train.log": lines(log, _ERROR), **first, "out/step_80/model.pt": _WHOLE},
        crash(90, 80),
    )
    yield Made("edge-saved-elsewhere", {"train.log": lines(log, _ERROR)}, crash(90, 80))
    label = Label("failed", "crash", ("file_missing", "no_checkpoint_found"), checkpoint=80)
    yield Made(
        "edge-saved-and-another-named", {"train.log": lines(log, gone), **first, "out/step_80/model.pt": _WHOLE}, label
    )
    named = traceback("RuntimeError: could not read '/srv/out/step_80/model.pt'", MAIN)
    label = Label("failed", "crash", checkpoint=40)
    yield Made("edge-saved-and-named", {"train.log": lines(log, named), **first, "out/step_80/model.pt": _WHOLE}, label)
    inside = [f"Random states saved in out/step_{at}/random_states_0.pkl" for at in (40, 80)]
    files = {f"out/step_{at}/model.pt": _WHOLE for at in (40, 80)}
    yield Made("edge-saved-files-inside", {"train.log": lines(log, inside, _ERROR), **files}, crash(90, 80))
