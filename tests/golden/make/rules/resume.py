"""Runs that were started again: what was lost on the way, clean resumes, and several stores of one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from make._logs import MAIN, MEGATRON, STEP, clock, clocks, done, falling, jsons, run_log, start, steady, traceback
from make.base import NAN, Label, Made, Noise, Table, decay, line, lines

_FORM = "{clock} | INFO | step {step} | loss {loss:.4f} | grad_norm {grad_norm:.3f} | lr {lr:.3e} | consumed_samples {samples} | epoch {epoch:.4f}"
_SAVED = "{clock} | INFO | saved checkpoint to out/step_{step}.pt (step {step})"
_LOADED = "{clock} | INFO | resumed from checkpoint out/step_{step}.pt at step {step}"


def runs() -> Iterator[Made]:
    """Each thing that a resume can lose, then resumes that lose nothing, then stores that do and do not agree."""
    yield from _lost()
    yield from _kept()
    yield from _stores()


def life(loss: Sequence[float], first: int = 1, begin_s: float = 30, **more: Sequence[Any]) -> list[str]:
    """Log lines of one process that trained from a step on; samples count on."""
    count = len(loss)
    samples = [64 * (first + at) for at in range(count)]
    rate = [3e-4 * (1 - (first + at) / 400) for at in range(count)]
    columns = {
        "loss": loss,
        "lr": rate,
        "samples": samples,
        "epoch": [one / 6400 for one in samples],
        "clock": clocks([2.0] * count, begin_s),
    }
    return run_log({**columns, **more}, _FORM, first)


def _with_saves(log: list[str], every: int = 50, first: int = 1) -> list[str]:
    found: list[str] = []
    for at, one in enumerate(log, first):
        found.append(one)
        if at % every == 0:
            found.append(_SAVED.format(clock=one[:19], step=at))
    return found


def _again(first: Sequence[str], second: Sequence[str], step: int | None, end: int) -> str:
    loaded = [_LOADED.format(clock=clock(1000), step=step)] if step is not None else []
    killed = [f"{clock(700)} | WARNING | node is going down, the job is queued again"]
    return lines(start(), first, killed, start(), loaded, second, done(end, 2600))


def _megatron(before: Sequence[float], after: Sequence[float], first: int, samples_from: int) -> str:
    """Two lives of a Megatron job: the second counts steps from `first` and samples from `samples_from`."""

    def printed(loss: Sequence[float], first: int, since: int) -> list[str]:
        count = len(loss)
        samples = [since + 128 * (at + 1) for at in range(count)]
        fixed = {"scale": [1.0] * count, "skipped": [0] * count, "nans": [0] * count, "lr": [3e-4] * count}
        return run_log({"loss": loss, "samples": samples, **fixed}, MEGATRON, first, 2)

    saved = "  successfully saved checkpoint at iteration     150 to out/ckpt"
    loaded = " successfully loaded checkpoint from out/ckpt at iteration 150"
    log = printed(before, 2, 0)
    return lines(
        log[:150],
        saved,
        log[150:],
        "node is going down",
        loaded,
        printed(after, first, samples_from),
        "training finished",
    )


def _suspect(*causes: str, onset: int | None = None) -> Label:
    return Label("suspect", "learning", causes, onset=onset, within=3)


def _lost() -> Iterator[Made]:
    whole = falling(320, half=60, share=0.006)
    first = _with_saves(life(whole[:160]))
    flat = falling(320, half=30, share=0.006)
    bump = [one * (1 + 0.25 * 0.5 ** (at / 12)) for at, one in enumerate(flat[200:])]
    norms = [*steady(4.2, 20, 0.1), *steady(1.0, 100)]
    yield Made(
        "resume-optimizer-lost",
        {"train.log": _again(_with_saves(life(flat[:212])), life(bump, 201, 1000, grad_norm=norms), 200, 320)},
        _suspect("optimizer_lost", onset=201),
    )
    anew = falling(160, half=60, share=0.006, seed=3)
    yield Made(
        "resume-starts-from-scratch",
        {"train.log": _again(first, life(anew, 1, 1000), None, 160)},
        _suspect("from_scratch", "resume_from_scratch", onset=1),
    )
    rate = [3e-4 * min(1.0, (at + 1) / 60) for at in range(170)]
    yield Made(
        "resume-warms-up-again",
        {"train.log": _again(first, life(whole[150:], 151, 1000, lr=rate), 150, 320)},
        _suspect("warmup_again", onset=151),
    )
    peak = [3e-4 * (1 - at / 400) for at in range(80)]
    late = _with_saves(life(whole[:240]))
    yield Made(
        "resume-rate-back-at-its-peak",
        {"train.log": _again(late, life(whole[200:280], 201, 1000, lr=peak), 200, 280)},
        _suspect("back_at_peak", onset=201),
    )
    yield Made(
        "resume-counts-steps-anew",
        {"logs/node0.log": _megatron(whole[1:160:2], whole[151::2], 2, 64 * 150)},
        _suspect("step_lost", onset=2),
    )
    yield Made(
        "resume-sees-first-data-again",
        {"logs/node0.log": _megatron(whole[1:160:2], whole[151::2], 152, 0)},
        _suspect("data_position_lost", onset=152),
    )
    other = [*[one * (1 + 0.012 * (-1) ** at) for at, one in enumerate(whole[150:160])], *whole[160:]]
    yield Made(
        "resume-other-losses-at-same-steps",
        {"train.log": _again(first, life(other, 151, 1000), 150, 320)},
        Label("healthy|suspect", "none|learning"),
    )
    long = _with_saves(life(falling(299)), every=100)
    yield Made(
        "crash-long-after-last-checkpoint",
        {"train.log": lines(start(), long, traceback("KeyError: 'tokens'", MAIN, STEP))},
        Label("failed", "crash", onset=298, within=2, says=("keyerror", "frame", "traceback", "key")),
    )


def _kept() -> Iterator[Made]:
    whole = falling(320, half=60, share=0.006)
    first = _with_saves(life(whole[:160]))
    yield Made(
        "healthy-clean-resume", {"train.log": _again(first, life(whole[150:], 151, 1000), 150, 320)}, Label("healthy")
    )
    ended = life(whole[:150])
    yield Made(
        "healthy-resume-without-replay",
        {"train.log": _again(_with_saves(ended), life(whole[150:], 151, 1000), 150, 320)},
        Label("healthy"),
    )
    failed = [*life(falling(40)), *traceback("ValueError: batch size must divide 64", MAIN, STEP)]
    yield Made(
        "healthy-second-run-in-one-file",
        {"train.log": lines(start(), failed, start(batch=64), life(falling(150, seed=4), 1, 2000), done(150, 3000))},
        Label("healthy"),
    )


def _stores() -> Iterator[Made]:
    loss = falling(120, 6.0, 2.2, 30)
    rounded = [float(f"{one:.4f}") for one in loss]
    log = lines(start(), run_log({"loss": loss}, "step {step} loss {loss:.4f} lr {lr:.2e}", 10, 10), done(1200))
    jsonl = Table({"loss": rounded, "lr": steady(3e-4, 120, 0)}, 10, 10).jsonl()
    yield Made("healthy-one-run-two-stores", {"train.log": log, "metrics.jsonl": jsonl}, Label("healthy"))
    hidden = [0.0 if at in {60, 61} else one for at, one in enumerate(rounded)]
    truth = [NAN if at in {60, 61} else one for at, one in enumerate(rounded)]
    files = {
        "metrics.jsonl": Table({"loss": hidden}, 10, 10).jsonl(),
        "history.csv": Table({"loss": truth}, 10, 10).csv(),
        "train.log": lines(start(), done(1200)),
    }
    yield Made("stores-disagree-on-a-nan", files, Label("suspect", "nan|learning", onset=610, within=10))
    state = {
        "global_step": 1200, "max_steps": 1200, "logging_steps": 10, "epoch": 2.0,
        "log_history": [{"loss": one, "learning_rate": 1e-5, "epoch": at / 60, "step": 10 * (at + 1)} for at, one in enumerate(rounded)],
    }  # fmt: skip
    yield Made(
        "healthy-trainer-state-and-table",
        {"out/trainer_state.json": jsons(state), "metrics.csv": Table({"loss": rounded}, 10, 10).csv()},
        Label("healthy"),
    )
    slow = Noise(0.01, 2).on(decay(3.0, 2.0, 60, 20))
    two = {
        "run_a/metrics.jsonl": Table({"loss": slow, "lr": line(1e-3, 0, 60)}).jsonl(), "run_a/train.log": lines(start(), done(60)),
        "run_b/metrics.jsonl": Table({"loss": [*slow[:30], *[NAN] * 30], "lr": line(1e-2, 0, 60)}).jsonl(), "run_b/train.log": lines(start()),
    }  # fmt: skip
    yield Made("two-runs-in-one-place", two, Label("failed", "nan", onset=31))
