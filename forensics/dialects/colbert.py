"""ColBERT: `[Mon DD, hh:mm:ss] step loss`, the bare pair that its trainer prints for each batch on the first rank.

Steps count batches from 0. The loss is an exponential moving average (0.999), so it begins near the first batch's and
changes slowly: a batch that goes wrong shows late, and NaN stays. The line that begins with `#>>>` holds the mean
scores of positives and negatives, which are not read. Times have no year.

Example:
    ```log
    [Apr 02, 10:15:30] 7 5.031250000000000
    [Apr 02, 10:15:31] 8 nan
    #> Saving a checkpoint to experiments/demo/checkpoints/colbert ..
    ```
    => step=7 loss=5.03125
    => step=8 loss=nan
    => saved path=experiments/demo/checkpoints/colbert

Not this:
    ```log
    [Apr 02, 10:15:30] #> Got 9906 queries. All QIDs are unique.
    [Apr 02, 10:15:30] 7 passages
    ```
"""

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N

DIALECT = Dialect(
    name="colbert",
    title="ColBERT",
    lines=(
        Line("metrics", "] ", rf"^\[[A-Z][a-z]{{2}} \d\d, \d\d:\d\d:\d\d\] (?P<step>\d+) (?P<loss>{N})$"),
        Line("saved", "#> Saving a checkpoint to ", r"^#> Saving a checkpoint to (?P<path>\S+) \.\.", carry=True),
        Line("ended", "#> Done with all triples", r"^#> Done with all triples"),
    ),
    metric_rank="first",
    doc=__doc__ or "",
)
