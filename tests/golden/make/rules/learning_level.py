"""Runs that trained wrong, told by a level and not by a count of records; beside each the nearest that is all right."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

from make._logs import cosine, done, falling, run_log, start, steady
from make.base import Label, Made, Noise, Table, decay, line, lines


def runs() -> Iterator[Made]:
    """Explosions, losses that stand still, rates that end too soon or too late, and ranks that part."""
    yield from _explosions()
    yield from _still()
    yield from _rates()
    yield from _ranks()
    yield from _guessed()
    yield from _scored()


def _wrong(*causes: str, onset: int | None = None, within: int = 1, culprits: tuple[int, ...] | None = None) -> Label:
    return Label("failed|suspect", "learning", causes, onset=onset, within=within, culprits=culprits)


def _logged(name: str, label: Label, every: int = 1, **columns: Sequence[float]) -> Made:
    """A log and an end line, and a table of the same numbers that has no other columns."""
    count = len(columns["loss"])
    table = Table(dict(columns), every, every).csv()
    return Made(name, {"metrics.csv": table, "train.log": lines(start(), done(count * every))}, label)


def _explosions() -> Iterator[Made]:
    yield _logged("level-exploded-in-three-epochs", _wrong("diverged", onset=2), loss=[2.2, 8.1e27, 5.3e30])
    yield _logged("level-tripled-in-iteration-three", _wrong("diverged", onset=3), loss=[12.52, 12.47, 40.81, 41.2])
    huge = [4.3, 2.1e3, 6.4e5, *Noise(0.02, 4).on([1e5 * math.exp(-at / 2.5) + 7.9 for at in range(60)])]
    yield _logged("level-exploded-and-fell-to-twice-its-start", _wrong("diverged", onset=2), loss=huge)
    back = [4.3, 2.1e3, 6.4e5, *Noise(0.02, 4).on([1e5 * math.exp(-at / 2.5) + 1.4 for at in range(60)])]
    yield _logged("healthy-exploded-and-learned-in-the-end", Label("healthy|suspect", "none|learning"), loss=back)
    ramp = Noise(0.03, 5).on([*decay(4.3, 1.4, 60, 9), *[1.41 * math.exp(0.011 * at) for at in range(180)]])
    yield _logged("level-slow-ramp-from-sixty", _wrong("diverged", onset=60, within=18), loss=ramp)
    calm = Noise(0.08, 6).on(decay(4.3, 1.4, 150, 12))
    late = _wrong("diverged", onset=151, within=2)
    yield _logged("level-rises-in-the-last-three-records", late, loss=[*calm, 2.9, 3.8, 5.2])
    yield _logged("healthy-last-record-of-three-is-high", Label("healthy"), loss=[*calm, 1.5, 1.3, 5.2])
    leap = [*decay(4.3, 1.3, 60, 10), 5.4, 41.0, 46.0, 28.0, *line(19.0, -0.3, 30)]
    rate = [*cosine(58, 6e-3), 0.45, 0.45, 0.44, *cosine(33, 3e-3)]
    caused = _wrong("lr_jump", onset=59, within=2)
    yield _logged("level-rate-leaps-and-the-loss-follows", caused, loss=Noise(0.03, 2).on(leap), lr=rate)


def _still() -> Iterator[Made]:
    zero = [0.0] * 24
    yield _logged("level-all-labels-masked", _wrong("loss_zero"), loss=zero, grad_norm=zero, lr=cosine(24))
    flows = {"grad_norm": steady(0.4, 24), "lr": cosine(24)}
    yield _logged("healthy-loss-printed-as-zero", Label("healthy"), loss=[1.2, 0.3, 0.05, 0.01, *zero[4:]], **flows)
    policy = [
        json.dumps({"step": at + 1, "loss": 0.0, "reward": 0.1 + 0.03 * at, "kl": 0.001 * at}) for at in range(24)
    ]
    files = {"metrics.jsonl": lines(policy), "train.log": lines(start(), done(24))}
    yield Made("healthy-policy-loss-is-zero", files, Label("healthy"))
    yield _logged("level-same-four-digits-for-nine-epochs", _wrong("frozen_loss"), loss=[2.3026] * 9)
    few = [2.31, 2.3, 2.3, 2.29, 2.3, 2.28, 2.27, 2.27, 2.26]
    yield _logged("healthy-two-digits-repeat-now-and-then", Label("healthy"), loss=few)
    shuffled = Noise(0.006, 3).on(line(4.3, -0.0012, 100))
    yield _logged("level-fresh-loss-stays-near-its-start", _wrong("not_learning"), loss=shuffled, lr=cosine(100))
    tuned = steady(1.42, 100, 0.006)
    yield _logged("healthy-trained-model-has-little-left", Label("healthy"), loss=tuned, lr=cosine(100, 2e-5))


def _rates() -> Iterator[Made]:
    loss = falling(35, 4.3, 1.4, 8)
    early = [*line(6e-3, -8e-5, 15), *[0.0] * 20]
    yield _logged("level-rate-zero-for-twenty-records", _wrong("lr_zero", onset=16), loss=loss, lr=early)
    yield _logged("healthy-rate-falls-to-zero-at-the-end", Label("healthy"), loss=loss, lr=line(6e-3, -6e-3 / 34, 35))
    crawl, up = Noise(0.006, 8).on(line(4.36, -0.003, 100)), line(1e-6, 1e-6, 100)
    yield _logged("level-warm-up-longer-than-the-run", _wrong("lr_not_as_configured"), loss=crawl, lr=up)
    yield _logged("healthy-learns-through-a-long-warm-up", Label("healthy"), loss=falling(100, 4.3, 1.4, 25), lr=up)


def _ranks() -> Iterator[Made]:
    for world, odd in ((2, 1), (4, 2), (4, None)):
        files = {}
        for rank in range(world):
            own = Noise(0.12, 20 + rank).on(decay(4.3, 1.35, 90, 9))
            loss = [one * (3.2 if rank == odd and at >= 50 else 1) for at, one in enumerate(own)]
            log = run_log(
                {"loss": loss, "rank": [rank] * 90}, "{clock} | INFO | rank={rank} | step {step} | loss {loss:.5f}"
            )
            files[f"logs/rank{rank}.log"] = lines(log, done(90))
        if odd is None:
            yield Made("healthy-each-rank-has-its-own-data", files, Label("healthy"))
        else:
            label = _wrong("ranks_parted", onset=51, within=2, culprits=(odd,))
            yield Made(f"level-rank-{odd}-of-{world}-leaves-the-others", files, label)


def _guessed() -> Iterator[Made]:
    """Ten classes, evaluated every ten steps: guessed from the first to the last evaluation, or learned late."""
    loss = Noise(0.01, 31).on(decay(2.4, 1.9, 200, 60))
    at_chance = Noise(0.02, 32).on([math.log(10)] * 20)
    score = Noise(0.08, 33).on([0.1] * 20)
    late = [*score[:10], *Noise(0.04, 34).on([0.12 + 0.03 * at for at in range(10)])]
    cost = [*at_chance[:10], *Noise(0.02, 35).on([2.2 - 0.06 * at for at in range(10)])]
    for name, label, costs, scores in (
        ("level-every-evaluation-guesses", _wrong("not_learning", onset=10, within=10), at_chance, score),
        ("healthy-evaluations-learn-late", Label("healthy"), cost, late),
    ):
        train = Table({"loss": loss, "lr": cosine(200)}).rows()
        held_out = Table({"eval_loss": costs, "eval_accuracy": scores}, 10, 10).rows()
        rows = sorted([*train, *held_out], key=lambda row: row["step"])
        files = {
            "metrics.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
            "train.log": lines(start(), done(200)),
        }
        yield Made(name, files, label)


def _scored() -> Iterator[Made]:
    """Scores of evaluations that do not move, or that nothing earns, and the nearest that do."""
    still = [0.694, 0.6936, 0.6933, 0.6934, 0.6932, 0.6933]
    one_answer = Label("suspect", "learning|bad_eval", ("one_answer",), onset=10, within=10)
    yield _logged("level-one-answer-of-two", one_answer, 10, loss=still, val_accuracy=[0.5] * 6)
    moved = [0.5, 0.58, 0.66, 0.7, 0.74, 0.75]
    falls = [0.694, 0.63, 0.57, 0.52, 0.49, 0.47]
    yield _logged("healthy-one-answer-is-left-behind", Label("healthy"), 10, loss=falls, val_accuracy=moved)
    boxes = {"val/mAP50": [0.0] * 6, "val/recall": [0.0] * 6}
    zero = Label("suspect", "bad_eval", ("score_zero",), onset=10, within=10)
    yield _logged("eval-no-box-is-found", zero, 10, loss=[1.9, 1.2, 0.9, 0.8, 0.72, 0.7], **boxes)
