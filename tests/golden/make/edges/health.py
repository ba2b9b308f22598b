"""Ends of runs on either side of what may be called healthy: markers, steps after them, plans, losses, runs in one file."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from make.base import NAN, Label, Made, decay, lines

_HEALTHY, _CANNOT = "healthy", "cannot_say"
_DONE = "Training complete"
_SCRIPTS = Path(__file__).resolve().parents[4] / "fixtures" / "make"


def steps(count: int, first: int = 1, top: float = 5.0, offset: int = 0) -> list[str]:
    """Lines of training."""
    return [f"step {first + at} loss {value:.4f} lr 1.00e-03" for at, value in enumerate(decay(top, 2, count + offset)[offset:])]  # fmt: skip


def runs() -> Iterator[Made]:
    """Logs, tables and settings of runs that ended well, or did not say so."""
    yield from _markers()
    yield from _plans()
    yield from _losses()
    yield from _several()
    yield from _sources()


def _made(name: str, outcome: str, **files: str) -> Made:
    return Made(f"edge-health-{name}", {path.replace("__", "."): text for path, text in files.items()}, Label(outcome=outcome, shape="none|crash|nan|learning" if "failed" in outcome or "suspect" in outcome else "none"))  # fmt: skip


def _markers() -> Iterator[Made]:
    """A success marker, and what was trained before and after it."""
    for count in (0, 1, 2, 3):
        yield _made(f"marker-after-{count}", _HEALTHY if count > 1 else f"{_HEALTHY}|{_CANNOT}", log__txt=lines(steps(count), _DONE))  # fmt: skip
        yield _made(f"no-marker-after-{count}", f"{_HEALTHY}|{_CANNOT}" if count > 1 else _CANNOT, log__txt=lines(steps(count), "bye"))  # fmt: skip
    for after in (2, 3, 6):
        log = lines(steps(30), _DONE, steps(after, 31, offset=30))
        yield _made(f"marker-then-{after}-steps", f"{_HEALTHY}|{_CANNOT}", log__txt=log)
        same = lines(steps(30), _DONE, [steps(1, 31)[0]] * after)
        yield _made(f"marker-then-one-step-{after}-times", f"{_HEALTHY}|{_CANNOT}", log__txt=same)
    trace = ("Traceback (most recent call last):", '  File "a.py", line 1, in <module>', "ValueError: bad width")
    yield _made("marker-then-error", _HEALTHY, log__txt=lines(steps(30), _DONE, trace))
    for after in (2, 3, 20):
        caught = lines(steps(30), trace, steps(after, 31, offset=30))
        right = f"{_HEALTHY}|{_CANNOT}" if after > 2 else f"{_HEALTHY}|{_CANNOT}|failed"
        yield _made(f"error-then-{after}-steps", right, log__txt=caught)
        marked = lines(steps(30), trace, steps(after, 31, offset=30), _DONE)
        yield _made(f"error-then-{after}-steps-and-marker", _HEALTHY, log__txt=marked)


def _plans() -> Iterator[Made]:
    """How many steps were planned, and how many were made."""
    for key in ("max_steps", "train_iters"):
        for planned in (30, 31, 32):
            settings = f"model: tiny\ntraining:\n  {key}: {planned}\n"
            outcome = _HEALTHY if planned < 32 else f"{_HEALTHY}|{_CANNOT}"
            yield _made(f"{key}-{planned}-of-30", outcome, config__yaml=settings, log__txt=lines(steps(30)))
    two = "training:\n  max_steps: 20\nschedule:\n  total_steps: 30\n"
    yield _made("two-plans", _HEALTHY, config__yaml=two, log__txt=lines(steps(30)))
    two = "training:\n  max_steps: 20\nschedule:\n  total_steps: 60\n"
    yield _made("two-plans-of-which-one-is-open", f"{_HEALTHY}|{_CANNOT}", config__yaml=two, log__txt=lines(steps(30)))


def _records(values: Sequence[object], name: str = "loss") -> str:
    return "".join(json.dumps({"step": at + 1, name: value}) + "\n" for at, value in enumerate(values))


def _losses() -> Iterator[Made]:
    """Runs without a loss, without a finite one, or whose loss does not move."""
    yield _made("no-loss", _CANNOT, metrics__jsonl=_records([0.001] * 30, "lr"))
    yield _made("no-loss-and-marker", _CANNOT, log__txt=lines([f"step {at} lr 1.0e-03 grad_norm 0.9" for at in range(1, 31)], _DONE))  # fmt: skip
    yield _made("no-finite-loss", "failed", metrics__jsonl=_records([NAN] * 30))
    yield _made("one-finite-loss", "failed|suspect", metrics__jsonl=_records([2.0, *[NAN] * 29]))
    yield _made(
        "evaluation-loss-not-finite", f"failed|suspect|{_CANNOT}", metrics__jsonl=_records([NAN] * 30, "eval_loss")
    )
    yield _made(
        "perplexity", f"{_HEALTHY}|{_CANNOT}", metrics__jsonl=_records([30 - at / 2 for at in range(30)], "ppl")
    )
    for count in (40, 200):
        for spread in (0.0, 0.0005):
            flat = [2.3026 + spread * (at % 4) for at in range(count)]
            yield _made(
                f"still-for-{count}-within-{spread}", f"{_CANNOT}|suspect|failed", metrics__jsonl=_records(flat)
            )
            yield _made(f"still-for-{count}-within-{spread}-and-marker", f"{_HEALTHY}|suspect|failed", log__txt=lines([f"step {at + 1} loss {v:.4f} lr 1.00e-03" for at, v in enumerate(flat)], _DONE))  # fmt: skip


def _several() -> Iterator[Made]:
    """Several runs in one file: an earlier one failed, the last one decides."""
    trace = ("Traceback (most recent call last):", '  File "a.py", line 1, in <module>', "ValueError: bad width")
    for count in (10, 29, 30, 31, 46):
        log = lines(steps(30), trace, steps(count))
        right = f"{_HEALTHY}|{_CANNOT}" if count > 30 else f"{_HEALTHY}|{_CANNOT}|failed"
        yield _made(f"failed-then-{count}-steps-anew", right, log__txt=log)
        yield _made(f"failed-then-{count}-steps-anew-and-marker", _HEALTHY, log__txt=lines(steps(30), trace, steps(count), _DONE))  # fmt: skip
    for top in (3.6, 2.2):
        log = lines(steps(30), trace, steps(20, top=top), _DONE)
        yield _made(f"failed-then-from-{top}", _HEALTHY, log__txt=log)
        longer = lines(steps(30), trace, steps(50, top=top))
        yield _made(f"failed-then-longer-from-{top}", f"{_HEALTHY}|{_CANNOT}", log__txt=longer)
    rising = [f"step {at + 1} loss {2 + max(0, at - 50) / 4:.4f} lr 1.00e-03" for at in range(90)]
    gone = [f"step {at + 1} loss {'nan' if at > 50 else f'{3 - at / 50:.4f}'} lr 1.00e-03" for at in range(90)]
    for word, body in (("diverged", rising), ("lost", gone)):
        for count in (40, 100):
            for end in ("marker", "nothing"):
                log = lines(body, steps(count, top=3.0), [_DONE] if end == "marker" else [])
                right = f"{_HEALTHY}|{_CANNOT}" if end == "marker" or count > 90 else f"{_HEALTHY}|{_CANNOT}|failed"
                yield _made(f"{word}-then-{count}-anew-and-{end}", right, log__txt=log)
        yield _made(f"{word}-then-{word}", "failed", log__txt=lines(body, body))
        for count in (40, 140):
            log = lines(body, steps(count, top=20.0), _DONE)
            yield _made(f"{word}-then-on-from-its-end-for-{count}", f"{_HEALTHY}|{_CANNOT}|failed", log__txt=log)
    log = lines(rising, _DONE, steps(40, top=3.0))
    yield _made("diverged-and-marker-then-40-anew", f"{_HEALTHY}|{_CANNOT}|failed", log__txt=log)
    for first, second in ((20, 100), (100, 20)):
        log = lines(rising, steps(first), steps(second))
        yield _made(f"diverged-then-{first}-then-{second}-anew", f"{_HEALTHY}|{_CANNOT}", log__txt=log)
    twice = lines(steps(30), trace, steps(20), trace, steps(40), _DONE)
    yield _made("failed-twice-then-success", _HEALTHY, log__txt=twice)
    yield _made("failed-then-failed", "failed", log__txt=lines(steps(30), trace, steps(20), "KeyError: 'x'", trace))
    yield _made("success-then-failed", "failed", log__txt=lines(steps(30), _DONE, steps(20), trace))
    yield _made("success-then-anew", f"{_HEALTHY}|{_CANNOT}", log__txt=lines(steps(30), _DONE, steps(20)))
    epochs = lines([part for epoch in range(3) for part in (f"epoch {epoch}", *steps(20, offset=20 * epoch, top=5.0))], _DONE)  # fmt: skip
    yield _made("epochs-that-count-anew", _HEALTHY, log__txt=epochs)
    broken = lines(steps(20), trace, steps(20, offset=20), steps(20, offset=40))
    yield _made("error-between-epochs", f"{_HEALTHY}|{_CANNOT}", log__txt=broken)


def _started() -> Iterator[Made]:
    """Words with which a run begins, before and after the words with which one ends."""
    begin, end = "[rank 0] INFO     Starting training: step=0, max_steps=400", "[rank 0] INFO     Training complete: 20 steps, 8,038,400 tokens"  # fmt: skip
    body = [f"[rank 0] INFO     [step {at}] loss={3 - at / 50:.4f} | lr=3.00e-04 | grad_norm=1.1 | step_time=0.16s" for at in range(1, 21)]  # fmt: skip
    trace = ("Traceback (most recent call last):", '  File "a.py", line 1, in <module>', "ValueError: bad width")
    yield _made("begun-and-ended", _HEALTHY, log__txt=lines(begin, body, end))
    yield _made("ended-and-begun-anew", f"{_HEALTHY}|{_CANNOT}", log__txt=lines(begin, body, end, begin))
    yield _made(
        "ended-and-begun-elsewhere", f"{_HEALTHY}|{_CANNOT}", a__log=lines(begin, body, end), b__log=lines(begin)
    )
    yield _made("failed-and-begun-anew-to-its-end", _HEALTHY, log__txt=lines(begin, body, trace, begin, body[:4], end))
    yield _made("failed-and-ended", f"{_HEALTHY}|failed", log__txt=lines(begin, body, trace, body[:2], end))
    yield _made("ended-begun-and-failed", "failed", log__txt=lines(begin, body, end, begin, body[:2], trace))
    for after in (2, 3):
        plain = [f"loss {3 - at / 20:.4f}" for at in range(30)]
        log = lines(plain, _DONE, [f"loss {1.5 - at / 20:.4f}" for at in range(after)])
        yield _made(f"marker-then-{after}-without-steps", f"{_HEALTHY}|{_CANNOT}", log__txt=log)


def _tracked(*, ended: bool) -> Made:
    """A run that W&B followed offline, with its exit record or without."""
    sys.path.append(str(_SCRIPTS))
    script = importlib.import_module("wandb_run")
    sys.path.remove(str(_SCRIPTS))
    data = script.frame([*script.start(), *script.training(30), *([script.ended(0)] if ended else [])], script.HEADER)
    name = "edge-health-tracked-to-its-exit" if ended else "edge-health-tracked-without-exit"
    return Made(name, {"wandb/offline-run-20260101_120000-abcd1234/run-abcd1234.wandb": data}, Label(outcome="healthy" if ended else "cannot_say"))  # fmt: skip


def _sources() -> Iterator[Made]:
    """Markers and errors that stand in different files, with clocks and without."""
    trace = ("Traceback (most recent call last):", '  File "a.py", line 1, in <module>', "ValueError: bad width")

    def clocked(rows: Sequence[str], minute: int) -> list[str]:
        return [f"2026-01-01 12:{minute:02d}:{at:02d} INFO {row}" for at, row in enumerate(rows)]

    for done, error in ((10, 20), (20, 10)):
        files = {
            "rank_0.log": lines(clocked(steps(20), 1), clocked([_DONE], done)),
            "rank_1.log": lines(clocked(steps(20), 1), clocked(["ERROR worker failed"], error), trace),
        }
        yield Made(
            f"edge-health-done-at-{done}-error-at-{error}", files, Label(outcome="healthy|failed", shape="none|crash")
        )
    files = {"rank_0.log": lines(steps(20), _DONE), "rank_1.log": lines(steps(20), trace)}
    yield Made("edge-health-done-and-error-without-clocks", files, Label(outcome="failed", shape="crash"))
    files = {"a.log": lines(steps(20), _DONE), "b.log": lines(steps(20, 21, offset=20), _DONE)}
    yield Made("edge-health-two-logs", files, Label(outcome="healthy"))
    for count in (1, 2, 3):
        yield _made(f"records-{count}", _CANNOT if count < 2 else f"{_HEALTHY}|{_CANNOT}", metrics__jsonl=_records([3.0, 2.5, 2.0][:count]))  # fmt: skip
    off = "model: tiny\ntraining:\n  fp16: false\n  max_steps: 100\n"
    yield _made("a-setting-that-is-off", f"{_HEALTHY}|{_CANNOT}", config__yaml=off, log__txt=lines(steps(30)))
    yield from _started()
    for ended in (True, False):
        yield _tracked(ended=ended)
    yield Made("edge-health-empty", {"train.log": "", "err.log": ""}, Label(outcome="cannot_say"))
    yield Made("edge-health-empty-beside", {"train.log": lines(steps(1)), "err.log": ""}, Label(outcome="cannot_say"))
