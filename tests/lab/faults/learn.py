"""Learning: the loss is finite, and wrong."""

from __future__ import annotations

import math
from typing import Any

from faults.row import EVERY_RANK, SOFT, Facts, Fault, needs, of, rate_logged

#: So far above its best an evaluation loss is when the model learned its training data by heart.
OVERFIT_BY = 0.15
#: So far above its best of before, in nats, a loss is that left it; over so many of its last records.
LEFT_BY, LAST = 0.3, 5
_UNLEARNED = ("not_learning", "uniform_loss", "plateau")


def losses(facts: Facts, rank: int | None = None) -> list[float]:
    """The losses that were logged, of one rank or of all."""
    return [float(one["loss"]) for one in of(facts, "shown") if rank in {None, one["by"]}]


def finite(_job: Any, facts: Facts, _codes: list[int]) -> str:
    """A wrong loss is one that is a number to its end; else it is another fault."""
    return "" if all(map(math.isfinite, losses(facts))) else "the loss became NaN"


def left(job: Any, facts: Facts, codes: list[int]) -> str:
    """A divergence shows when the last records lie above the best of all."""
    own = losses(facts, job.rank)
    levels = [sum(own[at : at + LAST]) / LAST for at in range(len(own) - LAST + 1)]
    risen = levels and levels[-1] > min(levels) + LEFT_BY
    return finite(job, facts, codes) or ("" if risen else "the loss did not leave its best level")


def overfitted(_job: Any, facts: Facts, _codes: list[int]) -> str:
    """Overfitting shows in evaluations that become worse."""
    evals = [float(one["loss"]) for one in of(facts, "evaluated")]
    return "" if evals and evals[-1] > min(evals) + OVERFIT_BY else "the evaluation loss did not rise"


def parted(job: Any, facts: Facts, _codes: list[int]) -> str:
    """Ranks disagree when the last records of the odd one lie apart from those of all others."""
    odd, *rest = (losses(facts, rank)[-LAST:] for rank in (job.rank, *(r for r in range(job.ranks) if r != job.rank)))
    apart = all(sum(odd) / LAST > sum(other) / LAST + LEFT_BY for other in rest)
    return "" if apart else "the ranks agree"


ROWS = (
    Fault("learn-lr0", SOFT, "learning", ("lr_zero", "frozen_loss"), ("learning rate", "lr", "schedule"), needs("lr"), ranks=(1, 1, 2),
          begins=(0.25, 0.45), ends="done", shown=rate_logged),
    Fault("learn-warmup", SOFT, "learning", (*_UNLEARNED, "lr_not_as_configured"), ("warm", "learning rate", "lr", "schedule"), needs("lr"),
          onset=False, ends="done", shown=finite),
    Fault("learn-lr30", SOFT, "learning|nan", (*_UNLEARNED, "diverged", "frozen_loss", "never_regained", "bad_initialisation"),
          ("learning rate", "lr"), needs("lr"), onset=False, ends="done"),
    Fault("learn-masked", SOFT, "learning", ("no_gradients", "frozen_loss", "loss_zero"), ("label", "mask", "gradient"), needs("batch"),
          onset=False, ends="done"),
    Fault("learn-shuffled", SOFT, "learning", _UNLEARNED, ("label", "data", "loss"), needs("batch"), onset=False, ends="done"),
    Fault("learn-frozen", SOFT, "learning", (*_UNLEARNED, "not_wired", "no_gradients", "frozen_loss"),
          ("optimizer", "parameter", "frozen", "weights", "wir"), needs("parameters"), onset=False, ends="done"),
    Fault("learn-overfit", SOFT, "learning", ("overfit", "overfitting"), ("eval", "overfit", "data", "early", "regular", "epoch"),
          needs("batch", "evaluated"), steps=(160, 240), onset=False, eval_every=(10, 20), ends="done", shown=overfitted),
    Fault("learn-spike", SOFT, "learning", ("diverged", "level_shift", "loss_spike", "lr_jump", "never_regained"),
          ("learning rate", "clip", "checkpoint", "data"), needs("lr"), ends="done", numbers={"factor": (40, 400)}, shown=left),
    # the rate grows by a few percent a step: which step is the first bad one, nobody can say
    Fault("learn-creep", SOFT, "learning", ("diverged", "level_shift", "lr_jump", "never_regained", "growing_gradients"),
          ("learning rate", "lr", "clip", "schedule", "checkpoint"), needs("lr"), steps=(160, 240), begins=(0.35, 0.5), onset=False, ends="done",
          numbers={"growth": (1.05, 1.09)}, shown=left),
    # a shard of labels that have nothing to do with their tokens, to the end; or weights that shrink, or begin anew
    Fault("learn-shard", SOFT, "learning", ("level_shift", "never_regained", "diverged", "loss_spike"), ("data", "shard", "batch", "label"),
          needs("batch"), ranks=(1, 1, 2), begins=(0.4, 0.6), ends="done", shown=left),
    Fault("learn-decay", SOFT, "learning", ("level_shift", "never_regained", "diverged", "weight_decay_high", "uniform_loss", "loss_spike"),
          ("weight", "checkpoint", "data", "learning rate"), needs("gradients"), begins=(0.4, 0.6), ends="done", shown=left),
    Fault("learn-anew", SOFT, "learning", ("restarted_from_scratch", "loss_spike", "level_shift", "never_regained", "diverged"),
          ("checkpoint", "weight", "data", "learning rate"), needs("gradients"), begins=(0.6, 0.8), ends="done", shown=left),
    Fault("learn-ranks", SOFT, "learning", ("ranks_parted", "rank_apart", "ranks_differ"), ("rank",), needs("gradients"), ranks=(2, 4),
          begins=(0.35, 0.5), culprit=True, ends="done", trainers=EVERY_RANK, shown=parted),
)  # fmt: skip
