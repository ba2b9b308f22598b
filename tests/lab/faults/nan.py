"""NaN: a number that is not one, in the loss or in the gradients."""

from __future__ import annotations

import math
from typing import Any

from faults.row import FAILED, Facts, Fault, needs, of

#: What these trainers print is the gradient norm's NaN; their loss is a mean over a window, or replaced.
_BY_NORM = frozenset(("nan-hidden", "nan-scale"))


def not_finite(job: Any, facts: Facts, _codes: list[int]) -> str:
    """A NaN shows when a number that was logged is not finite."""
    logged = of(facts, "shown")
    norms = [float(one["norm"]) for one in logged if one["norm"] != "None"]
    losses = [float(one["loss"]) for one in logged]
    numbers = norms if job.fault in _BY_NORM or job.trainer == "hf" else losses
    return "" if any(not math.isfinite(number) for number in numbers) else "every number that was logged is finite"


ROWS = (
    Fault("nan-lr", FAILED, "nan|learning", ("optimization_blowup", "learning_rate_or_clip", "large_gradnorm", "lr_jump"),
          ("learning rate", "lr", "clip"), needs("lr"), ranks=(1, 1, 2), numbers={"factor": (3e4, 3e6)}, shown=not_finite),
    Fault("nan-sample", FAILED, "nan", ("data_or_numerics", "bad_sample"), ("data", "batch", "sample"), needs("hidden"), ranks=(1, 2), shown=not_finite),
    Fault("nan-log0", FAILED, "nan", ("data_or_numerics", "loss_nonfinite"), ("log", "eps", "numer", "data", "batch"), needs("loss"), shown=not_finite),
    Fault("nan-one-rank", FAILED, "nan", ("data_or_numerics", "bad_sample", "ranks_differ"), ("data", "batch", "rank"), needs("hidden"),
          ranks=(2, 4), shown=not_finite),
    Fault("nan-scale", FAILED, "nan", ("loss_scale_collapse",), ("scale", "bf16", "fp16"), needs("scale"), steps=(120, 200), shown=not_finite),
    Fault("nan-hidden", FAILED, "nan", ("filtered_by_writer", "loss_hidden_by_filter", "gradient_nonfinite", "data_or_numerics", "bad_sample"),
          ("nan", "filter", "grad"), needs("hidden", "hides"), shown=not_finite),
)  # fmt: skip
