"""Attempts in one place: appended, requeued, dying in a loop, told by one store only; and near misses of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from make.base import Label, Made, Noise, decay, lines

_CRASH = ("Traceback (most recent call last):", '  File "train.py", line 88, in <module>', "KeyError: 'rope_scaling'")
_OOM = (*_CRASH[:2], "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB")  # fmt: skip
_REQUEUED = "slurmstepd: error: *** JOB 4711 ON node07 CANCELLED AT 2026-01-01T12:05:00 DUE TO PREEMPTION ***"
_HEAD = ("reading the settings of the run", "building a model of 24 layers")
_DONE = "Training complete"
_WHOLE = Noise(0.01, 5).on(decay(4.2, 1.5, 260, 45))


def steps(first: int, last: int, *, values: Sequence[float] = _WHOLE, rates: Sequence[float] = ()) -> list[str]:
    """Records of steps `first` to `last`, which take the values from `first` on."""
    return [
        f"step {n} | loss {values[n - 1]:.4f} | lr {rates[n - 1] if rates else 3e-4:.3e}"
        for n in range(first, last + 1)
    ]


def resumed(step: int) -> str:
    """What a loop of one's own prints of the checkpoint that it loads."""
    return f"resumed from out/step_{step} at step {step}"


def runs() -> Iterator[Made]:
    """Which attempt is judged, then what a process that goes on at the next step may have lost."""
    yield from _judged()
    yield from _lost()


def _judged() -> Iterator[Made]:
    first = [*_HEAD, *steps(1, 80)]
    appended = lines(first, _CRASH, _HEAD, resumed(60), steps(61, 120), _OOM)
    yield _made("appended-oom-after-crash", Label("failed", "oom", onset=120, within=1), train__log=appended)
    requeued = lines(first, _REQUEUED, _HEAD, resumed(80), steps(81, 160), _DONE)
    yield _made("requeued-to-its-end", Label("healthy"), train__log=requeued)
    yield _made(
        "requeued-by-nobody", Label("failed", "stopped", ("preempted",), onset=80), train__log=lines(first, _REQUEUED)
    )
    silent = lines(first, _HEAD, steps(81, 160), _DONE)
    yield _made("went-on-without-a-word", Label("healthy"), train__log=silent)
    out, err = (
        lines("training starts", "training starts", resumed(80), _DONE),
        lines(steps(1, 80), _REQUEUED, steps(81, 160)),
    )
    yield _made("placed-by-the-other-log", Label("healthy"), slurm__out=out, slurm__err=err)
    again = [resumed(200), *steps(201, 220), *_CRASH]
    loop = lines(_HEAD, steps(1, 220), _CRASH, again * 4)
    yield _made("loop-of-five", Label("failed", "crash", onset=220, within=1), train__log=loop)
    further = lines(first, _CRASH, resumed(80), steps(81, 150), _CRASH, resumed(150), steps(151, 230), _CRASH)
    yield _made("each-got-further", Label("failed", "crash", onset=230, within=1), train__log=further)
    nan = [f"step {n} | loss nan | lr 3.000e-04" for n in range(81, 101)]
    forgiven = lines(first, nan, _HEAD, resumed(80), steps(81, 160), _DONE)
    yield _made("nan-that-did-not-come-again", Label("healthy"), train__log=forgiven)
    twice = lines(first, nan, _HEAD, resumed(60), steps(61, 80), nan)
    yield _made("nan-that-came-again", Label("failed", "nan", onset=81), train__log=twice)


def _lost() -> Iterator[Made]:
    before, rest = steps(1, 100), [_HEAD[0], resumed(100)]
    anew = [*_WHOLE[:100], *_WHOLE[:120]]
    lost = Label("failed|suspect", "learning", ("restarted_from_scratch",), onset=101, within=1)
    yield _made(
        "weights-lost-step-kept", lost, train__log=lines(_HEAD, before, rest, steps(101, 220, values=anew), _DONE)
    )
    noisy = [*_WHOLE[:100], *Noise(0.02, 9).on(_WHOLE[100:220])]
    yield _made(
        "weights-kept-more-noise",
        Label("healthy"),
        train__log=lines(_HEAD, before, rest, steps(101, 220, values=noisy), _DONE),
    )
    rates = [3e-4 * min(n / 20, 1.0) * (1 - n / 400) for n in range(1, 221)]
    restarted = [*rates[:100], *rates[:120]]
    schedule = Label("failed|suspect", "learning", ("warmup_again", "schedule_restarted"), onset=101, within=1)
    for name, label, own in (("schedule-again", schedule, restarted), ("schedule-goes-on", Label("healthy"), rates)):
        log = lines(_HEAD, steps(1, 100, rates=own), rest, steps(101, 220, rates=own), _DONE)
        yield _made(name, label, train__log=log)
    counter = [f"step {n - 100} | {one.partition(' | ')[2]}" for n, one in enumerate(steps(101, 220), 101)]
    anew_label = Label("failed|suspect", "learning", ("step_lost", "steps_count_anew"), onset=1)
    yield _made("counter-lost-loss-kept", anew_label, train__log=lines(_HEAD, before, rest, counter, _DONE))


def _made(name: str, label: Label, **files: str) -> Made:
    return Made(f"attempts-{name}", {file.replace("__", "."): text for file, text in files.items()}, label)
