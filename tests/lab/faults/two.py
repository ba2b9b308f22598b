"""Two runs in one place: the same job with two seeds, each in a folder of its own; the second fails."""

from __future__ import annotations

from faults.nan import not_finite
from faults.row import FAILED, Fault, needs

ROWS = (
    Fault("two-crash", FAILED, "crash", ("crash_all_ranks", "uncaught_exception", "bad_config"), ("key", "config", "code", "line"), starts=2,
          beside=True, ends="failed"),
    Fault("two-nan", FAILED, "nan", ("data_or_numerics", "bad_sample", "loss_nonfinite", "gradient_nonfinite"), ("data", "batch", "sample"),
          needs("hidden"), starts=2, beside=True, shown=not_finite),
)  # fmt: skip
