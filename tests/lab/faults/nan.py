"""NaN: a number that is not one, in the loss or in the gradients."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from faults.row import FAILED, PLAIN, SOFT, Facts, Fault, needs, of

#: What these trainers print is the gradient norm's NaN; their loss is a mean over a window, or replaced.
_BY_NORM = frozenset(("nan-hidden", "nan-scale", "nan-grad"))
_NUMERICS = ("data_or_numerics", "loss_nonfinite", "gradient_nonfinite")


def not_finite(job: Any, facts: Facts, _codes: list[int]) -> str:
    """A NaN shows when a number that was logged is not finite."""
    logged = of(facts, "shown")
    norms = [float(one["norm"]) for one in logged if one["norm"] != "None"]
    losses = [float(one["loss"]) for one in logged]
    numbers = norms if job.fault in _BY_NORM else losses + norms
    return "" if any(not math.isfinite(number) for number in numbers) else "every number that was logged is finite"


def evaluated_not_finite(_job: Any, facts: Facts, _codes: list[int]) -> str:
    """A NaN of an evaluation shows when one comes after it began."""
    losses = [float(one["loss"]) for one in of(facts, "evaluated")]
    return "" if any(not math.isfinite(loss) for loss in losses) else "no evaluation came after the onset"


def before_it(_job: Any, _place: Path, facts: Facts, _rng: random.Random) -> dict[str, Any]:
    """The checkpoint that holds the NaN is not one to go on from; the one before it is."""
    saved = sorted({one["saved"] for one in of(facts, "saved") if not one["process"]})
    return {"checkpoint": saved[-2] if len(saved) > 1 else None}


ROWS = (
    Fault("nan-lr", FAILED, "nan|learning", ("optimization_blowup", "learning_rate_or_clip", "large_gradnorm", "lr_jump"),
          ("learning rate", "lr", "clip"), needs("lr"), ranks=(1, 1, 2), numbers={"factor": (3e4, 3e6)}, shown=not_finite),
    Fault("nan-overflow", FAILED, "nan", (*_NUMERICS, "optimization_blowup", "large_gradnorm"),
          ("overflow", "fp16", "bf16", "activation", "precision", "clip", "learning rate"), needs("hidden"), ranks=(1, 1, 2),
          begins=(0.35, 0.6), numbers={"growth": (1.8, 3.0)}, shown=not_finite),
    Fault("nan-sample", FAILED, "nan", (*_NUMERICS, "bad_sample"), ("data", "batch", "sample"), needs("hidden"), ranks=(1, 2), shown=not_finite),
    Fault("nan-start", FAILED, "nan", ("from_start", *_NUMERICS), ("initial", "data", "batch", "first", "checkpoint", "precision", "anomaly"),
          needs("hidden"), begins=(0.0, 0.0), shown=not_finite),
    Fault("nan-log0", FAILED, "nan", _NUMERICS, ("log", "eps", "numer", "data", "batch"), needs("loss"), shown=not_finite),
    Fault("nan-one-rank", FAILED, "nan", (*_NUMERICS, "bad_sample", "ranks_differ", "rank_first"), ("data", "batch", "rank"), needs("hidden"),
          ranks=(2, 4), shown=not_finite),
    Fault("nan-scale", FAILED, "nan", ("loss_scale_collapse",), ("scale", "bf16", "fp16"), needs("scale"), steps=(120, 200), shown=not_finite),
    # every update from the onset on is left out: the loss stays finite, and no longer falls
    Fault("nan-grad", SOFT, "nan", ("gradient_nonfinite", "data_or_numerics", "filtered_by_writer"), ("grad", "backward", "anomaly", "data", "batch"),
          needs("gradients", "guards"), ranks=(1, 2), ends="done", shown=not_finite),
    # three updates are left out, and training goes on as before
    Fault("nan-recovers", "healthy|suspect", "none|nan", needs=needs("gradients", "guards"), onset=False, ends="done"),
    Fault("nan-eval", SOFT, "bad_eval|nan", ("eval_loss_nan",), ("eval",), needs("evaluated"), eval_every=(20, 25), begins=(0.35, 0.6), ends="done",
          shown=evaluated_not_finite),
    # the loop's own check ends it before the record of the step
    Fault("nan-stop", FAILED, "nan", (*_NUMERICS, "bad_sample"), ("data", "batch", "sample", "anomaly"), needs("hidden", "gradients"),
          ranks=(1, 2), ends="failed", trainers=PLAIN),
    Fault("nan-resumed", FAILED, "nan", ("from_resume", "from_start", "earlier_run", *_NUMERICS), ("checkpoint", "weights", "earlier"), needs("restore", "resuming"),
          starts=2, shown=not_finite, after=before_it),
    Fault("nan-hidden", FAILED, "nan", ("filtered_by_writer", "loss_hidden_by_filter", *_NUMERICS, "bad_sample"),
          ("nan", "filter", "grad"), needs("hidden", "hides"), shown=not_finite),
)  # fmt: skip
