"""Ends of runs that prove health, and their near misses: plans in steps, epochs and bars, exit codes, bars of others."""

from __future__ import annotations

import json
from collections.abc import Iterator

from make.base import Label, Made, decay, lines

_HEALTHY, _CANNOT = Label("healthy"), Label("cannot_say")
_LOSSES = decay(5.0, 2.0, 400)


def runs() -> Iterator[Made]:
    """Logs whose end is proven, or not, by what they count."""
    yield from _steps()
    yield from _epochs()
    yield from _bars()
    yield from _codes()
    yield from _values()


def _made(name: str, label: Label, *parts: object, **files: str) -> Made:
    log = {"train.log": lines(*parts)}
    return Made(f"ending-{name}", log | {path.replace("__", "."): text for path, text in files.items()}, label)


def _counted(form: str, numbers: range) -> list[str]:
    return [form.format(at=at, loss=_LOSSES[at % 400], epoch=at / 40) for at in numbers]


def _bar(done: int, plan: int, label: str = "", per: str = "it/s") -> str:
    return f"{label}{done * 100 // plan:3d}%|{'#' * (done * 10 // plan):<10}| {done}/{plan} [00:{done % 60:02d}<00:{(plan - done) % 60:02d},  1.00{per}]"  # fmt: skip


def _steps() -> Iterator[Made]:
    """Counters of steps in the lines of training, to their plan and short of it."""
    form = "[Step {at}/100] loss {loss:.4f} lr 1.0e-03"
    yield _made("step-100-of-100", _HEALTHY, _counted(form, range(1, 101)))
    for last in (55, 99):
        yield _made(f"step-{last}-of-100", _CANNOT, _counted(form, range(1, last + 1)))
    for first, last in ((0, 190), (0, 180), (10, 190), (10, 200)):
        label = _HEALTHY if last == 200 or (first, last) == (0, 190) else _CANNOT
        body = _counted("step {at}/200 | loss {loss:.4f} | lr 1.0e-03", range(first, last + 1, 10))
        yield _made(f"every-10-from-{first}-to-{last}-of-200", label, body)
    yield _made("every-40-to-160-of-200", _CANNOT, _counted("step {at}/200 | loss {loss:.4f}", range(0, 161, 40)))
    head = ["***** Running training *****", "  Total optimization steps = 300"]
    for last in (40, 300):
        body = _counted("{{'loss': {loss:.4f}, 'grad_norm': 1.01, 'learning_rate': 1e-05, 'epoch': {epoch:.2f}}}", range(1, last + 1))  # fmt: skip
        drawn = [part for at, line in enumerate(body, 1) for part in (_bar(at, 300), line)]
        yield _made(f"header-of-300-at-{last}", _HEALTHY if last == 300 else _CANNOT, head, drawn)


def _epochs() -> Iterator[Made]:
    """Epochs of a plan whose last one is complete, or cut."""
    for epochs, batches in ((3, 40), (3, 25), (2, 40)):
        rows = [(e, b) for e in range(1, epochs + 1) for b in range(1, (batches if e == epochs else 40) + 1)]
        body = [f"Epoch [{e}/3][{b}/40] loss: {_LOSSES[40 * (e - 1) + b]:.4f} lr: 1.0e-03" for e, b in rows]
        label = _HEALTHY if (epochs, batches) == (3, 40) else _CANNOT
        yield _made(f"epoch-{epochs}-batch-{batches}", label, body)
    settings = json.dumps({"max_steps": -1, "num_train_epochs": 3, "learning_rate": 0.001, "seed": 4})
    form = "epoch {epoch:.3f} step {at} loss {loss:.4f} lr 1.0e-03"
    for last in (99, 120):
        label = _HEALTHY if last == 120 else _CANNOT
        yield _made(f"plan-of-minus-one-at-{last}", label, _counted(form, range(1, last + 1)), config__json=settings)


def _bars() -> Iterator[Made]:
    """Bars of training, of an evaluation and of a data set."""
    form = "step {at} loss {loss:.4f} lr 1.0e-03"
    for last in (60, 90):
        body = [part for at, line in enumerate(_counted(form, range(1, last + 1)), 1) for part in (line, _bar(at, 90))]
        yield _made(f"bar-at-{last}-of-90", _HEALTHY if last == 90 else _CANNOT, body)
    data = [_bar(at, 18819, "Map (num_proc=4): ", " examples/s") for at in range(0, 18820, 697)]
    yield _made("bar-of-a-data-set", _CANNOT, data, _counted(form, range(1, 41)))
    whole = _counted("step {at}/90 | loss {loss:.4f}", range(1, 91))
    yield _made("plan-then-half-an-evaluation", _HEALTHY, whole, [_bar(at, 10, "Evaluating: ") for at in range(6)])
    part = _counted(form, range(1, 41))
    yield _made("bar-of-an-evaluation-alone", _CANNOT, part, [_bar(at, 10) for at in range(11)])
    yield _made("bar-of-a-named-evaluation", _CANNOT, part, [_bar(at, 10, "Evaluating: ") for at in range(11)])


def _codes() -> Iterator[Made]:
    """Exit codes of the program, of a helper, and of a tracker."""
    body = _counted("step {at} loss {loss:.4f} lr 1.0e-03", range(1, 61))
    yield _made("exit-code-0", _HEALTHY, body, "python3 train.py exited with code 0")
    yield _made("exit-code-1", Label("failed", "crash"), body, "python3 train.py exited with code 1")
    yield _made("a-helper-with-code-0", _CANNOT, body[:30], "prefetch helper exited with code 0", body[30:])
    run = "mlruns/0/" + "3f" * 16
    points = "".join(f"{1741000000000 + at * 1000} {_LOSSES[at]:.4f} {at}\n" for at in range(60))
    for status, label in ((1, _CANNOT), (3, _HEALTHY), (4, Label("failed|cannot_say", "crash|none")), (5, Label("failed", "stopped"))):  # fmt: skip
        known = f"run_id: {'3f' * 16}\nstatus: {status}\nstart_time: 1741000000000\nend_time: 1741000900000\n"
        yield Made(f"ending-tracker-status-{status}", {f"{run}/meta.yaml": known, f"{run}/metrics/loss": points}, label)


def _values() -> Iterator[Made]:
    """A loss that is no number now and then in a run that comes to its end."""
    for places in ((40,), (11, 43, 71, 95)):
        body = [
            f"step {at} loss {'nan' if at in places else f'{_LOSSES[at]:.4f}'} grad_norm 1.1" for at in range(1, 121)
        ]
        yield _made(f"loss-nan-{len(places)}-times", Label("suspect", "nan"), body, "Training complete")
