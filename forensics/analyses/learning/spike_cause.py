"""What the spikes of a loss have in common: a place of the data, or the peak of the learning rate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from forensics.analyses.epoch_places import same_place
from forensics.analyses.learning.spikes import Spike
from forensics.case.curves.loss import Curve, beside
from forensics.case.settings import settings
from forensics.store.run import Run


class Common(Struct, frozen=True):
    """When spikes have something in common.

    `many` spikes at least; a `share` of them stands where the rate is above `at_peak` of its highest, and `usual` of
    all records at most stand there: by chance that is one of 8 cases of three spikes, and rarer for more.
    """

    many: int = 3
    share: float = 0.7
    at_peak: float = 0.8
    usual: float = 0.5


def common_cause(run: Run, curve: Curve, spikes: Sequence[Spike], limits: Common) -> tuple[str, str]:
    """Give the slug of what the spikes share, empty where they share nothing, and the words."""
    places = np.array([spike.index for spike in spikes])
    again = same_place(curve.epochs, places)
    if len(again) >= 2 and 2 * len(again) > len(places):
        return "bad_sample", f"{len(again)} of {len(places)} are at the same place of their epochs"
    if len(places) >= limits.many and _at_the_peak(run, curve, places, limits):
        return "spikes_at_peak_rate", "they are where the learning rate is near its peak"
    return "", _batch(run)


def _at_the_peak(run: Run, curve: Curve, places: np.ndarray, limits: Common) -> bool:
    rate = beside(run, curve, "lr")
    if rate is None or len(rate) != len(curve):
        return False
    values = rate.values
    high = values > limits.at_peak * values.max()
    return float(high[places].mean()) >= limits.share and float(high.mean()) <= limits.usual


def _batch(run: Run) -> str:
    """The batch of one update on a device, where the settings say it."""
    known = settings(run)
    parts = [known[name].value for name in ("micro_batch", "accumulation") if name in known]
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        return ""
    return f"the effective batch is {' x '.join(parts)} = {int(parts[0]) * int(parts[1])} samples of each device"
