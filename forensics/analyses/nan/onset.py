"""Where a run went non-finite: one onset out of all series and all detectors, shared by the rules of this shape."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from msgspec import Struct

from forensics.analyses.nan.detector import detector_candidates
from forensics.analyses.nan.series import Candidate, Shares, Status, series_candidates
from forensics.case.epochs import counts_epochs
from forensics.case.evidence import Row, event_evidence, metric_evidence
from forensics.case.nonfinite import Watched, series_of, watched, watched_of, watched_series
from forensics.case.series import holding, metric_rows
from forensics.case.steps import at
from forensics.model import Evidence, EvidenceRole, Onset
from forensics.store.run import Run, derived
from forensics.values import replace

_ORDER = (Status.FAILED, Status.EARLIER, Status.INTERMITTENT, Status.TRANSIENT)
#: Roles of candidates that rest on words and not on a number.
SPOKEN = ("detector", "echo")
#: Roles of series that no name calls a loss: several that are lost at once, and the only one of a run.
TOGETHER = ("together", "alone")
_MAX_RELATED = 4
_SERIES_TOGETHER = 2


class NanOnset(Struct, frozen=True):
    """The first bad place, and the facts around it.

    `clean` is the last finite row before it; `n_before` counts finite losses before it in its source and attempt;
    `others` are further places with the same standing, in order of step.
    """

    first: Candidate
    clean: Row | None
    clean_step: int | None
    n_before: int
    others: tuple[Candidate, ...]
    rows: Watched

    @property
    def status(self) -> Status:
        """The state of the run after it."""
        return self.first.status

    @property
    def said(self) -> bool:
        """Whether it rests on words and not on a number."""
        return self.first.role in SPOKEN

    @property
    def step(self) -> int | None:
        """The first bad step."""
        return self.first.step

    @property
    def metric(self) -> str:
        """The canonical name of the first bad metric; `loss` where only words speak of it."""
        return "loss" if self.first.role in {*SPOKEN, "vanished"} else str(self.first.row["name"])

    @property
    def onset(self) -> Onset:
        """The same as a value of the model."""
        row = self.first.row
        return Onset(step=self.step, t_ns=row["t_ns"], rank=row["rank"], step_lo=self.clean_step)

    @property
    def first_loss(self) -> float | None:
        """The first finite loss of the rows around it."""
        losses = self.rows.filter((pl.col("role") == "loss") & ~pl.col("bad"))["value"]
        return None if losses.is_empty() else float(losses[0])

    def clean_before(self, step: int | None) -> int | None:
        """The last clean step below another one, where something else was lost first."""
        return None if self.clean_step is None or step is None else min(self.clean_step, step - 1)

    def evidence(self) -> tuple[Evidence, ...]:
        """The first bad place, the last clean one before it, and further evidence of it."""
        clean = () if self.clean is None else (metric_evidence(self.clean, EvidenceRole.RELATED),)
        others = tuple(_evidence(c, EvidenceRole.RELATED) for c in self.others[:_MAX_RELATED])
        return (_evidence(self.first, EvidenceRole.PRIMARY), *clean, *others)


def _evidence(candidate: Candidate, role: EvidenceRole) -> Evidence:
    if candidate.role in SPOKEN:
        return replace(event_evidence(candidate.row, role), step=candidate.step)
    return metric_evidence(candidate.row, role)


@derived
def nan_onset(run: Run) -> NanOnset | None:
    """Find where the run went non-finite; None when nothing did."""
    found = [_seen_whole(run, c) for c in series_candidates(run)]
    found += detector_candidates(run)
    found += lost_together(run) if not found else ()
    if not found:
        return None
    worst = min((c.status for c in found), key=_ORDER.index)
    peers = [c for c in found if c.status is worst]
    if worst is Status.FAILED:  # a gradient that was bad in the very last record belongs to the failure
        peers += [c for c in found if c.n_after == 0 and c not in peers and c.role == "grad_norm" and _near(c, peers)]
        peers = [c if c.status is worst else replace(c, status=worst) for c in peers]
    # a word without a step of its own, or one that only echoes NaN weights, never beats a number
    epochs = counts_epochs(run)
    first, *others = sorted(
        peers, key=lambda c: (_contradicted(c, peers), c.step is None, c.row["source"] in epochs, *_key(c))
    )
    # a line is ordered within its own file, whose numbers another store may hold too
    rows = watched(run, every=first.role in SPOKEN)
    return NanOnset(first, first.clean, _clean_step(first), _finite_before(rows, first), tuple(others), rows)


def lost(run: Run) -> NanOnset | None:
    """Find where the run went non-finite for good; None where it went on finite."""
    found = nan_onset(run)
    return found if found is not None and found.status is Status.FAILED else None


def _seen_whole(run: Run, candidate: Candidate) -> Candidate:
    """A series that only ever logged bad values has stumbled where another store of the metric is finite later."""
    row, step = candidate.row, candidate.step
    if candidate.status is not Status.FAILED or candidate.clean is not None or step is None or row["name"] is None:
        return candidate
    same = (pl.col("name") == row["name"]) & (pl.col("source") != row["source"])
    others = metric_rows(run, same).filter(
        (pl.col("value_class") == "finite") & (pl.col("rank").eq_missing(row["rank"]))
    )
    after = others.select((at() >= step + candidate.n_bad).sum()).collect().item()
    return replace(candidate, status=Status.TRANSIENT, n_after=after) if after else candidate


def _near(candidate: Candidate, peers: list[Candidate]) -> bool:
    return any(p.row["source"] == candidate.row["source"] for p in peers) and candidate.row["value_class"] != "+inf"


def _contradicted(candidate: Candidate, peers: list[Candidate]) -> bool:
    """Whether a store that saw no finite value has its first bad step where another store of the metric is finite.

    A progress bar that prints once, at the end, counts the steps of an epoch whose length it does not tell.
    """
    if candidate.role in SPOKEN or candidate.clean is not None or candidate.step is None:
        return False
    row, step = candidate.row, candidate.step
    return any(
        p.role not in SPOKEN
        and p.clean is not None
        and p.clean["at"] is not None
        and p.clean["at"] >= step
        and (p.row["source"], p.role) != (row["source"], candidate.role)
        and p.row["name"] == row["name"]
        and (p.row["rank"] == row["rank"] or p.row["rank"] is None or row["rank"] is None)
        for p in peers
    )


def _key(candidate: Candidate) -> tuple[bool, int, int, int]:
    """In the order of steps, or of lines where no step is printed."""
    spoken = candidate.role in SPOKEN
    line = candidate.row["line"] or candidate.row.get("seq") or 0
    return (
        spoken and not candidate.own_step,
        line if candidate.step is None else candidate.step,
        _RANKED.index(candidate.role) if candidate.role in _RANKED else len(_RANKED),
        line,
    )


_RANKED = ("loss", "grad_norm", "part", "eval")


def _clean_step(first: Candidate) -> int | None:
    """The last step of which no row is bad, unless the clean row's axis is another one than the first bad step's.

    Micro-batches and the records of a bar share a step: a clean row within the bad step says that the one before is.
    """
    step = None if first.clean is None else first.clean["at"]
    if step is None or first.step is None:
        return step
    return None if step > first.step else (min(step, first.step - 1) if first.step else None)


def _finite_before(rows: Watched, first: Candidate) -> int:
    """How many finite losses, or values of the same metric, the source of the first bad place has before it."""
    row = first.row
    if first.role in TOGETHER:
        return first.n - first.n_bad
    told = pl.col("role") == "loss"
    if first.role not in SPOKEN:  # where no loss of the whole is printed, its parts tell
        told |= pl.col("raw_name") == row["raw_name"]
    clean = first.clean
    source = row["source"] if first.role not in SPOKEN or clean is None else clean["source"]
    own = rows.filter((pl.col("source") == source) & told & ~pl.col("bad"))
    if clean is not None and clean["source"] != row["source"]:
        own = own.filter((pl.col("attempt") == clean["attempt"]) & (pl.col("seq") <= clean["seq"]))
    else:
        own = before(first, own)
    one = own.count("rank", "raw_name")["len"].max()
    return int(str(one)) if one is not None else 0


def before(first: Candidate, own: Watched) -> Watched:
    """Rows of a source before its first bad place: of a line in the last attempt above it."""
    row = first.row
    if first.role not in SPOKEN:
        return own.filter((pl.col("attempt") == row["attempt"]) & (pl.col("seq") < row["seq"]))
    above = own.filter(pl.coalesce("line", "seq").fill_null(0) < (row["line"] or row["seq"] or 0))
    return above.highest("attempt")


# Series that turn NaN together where no name says loss: generators, critics and cycles of a GAN, custom objectives.


def lost_together(run: Run) -> Iterator[Candidate]:
    """Give the place where most series of a source that logs no loss became NaN at once, and stayed so.

    In a run that logs a loss elsewhere one series may be NaN by design, so two must be gone, and what an evaluation
    measures is none of them (EVL027); in another run one is all.
    """
    least, known = run.threshold(Shares).lost_records, watched_series(run)["source"].unique().to_list()
    together = _SERIES_TOGETHER if known else 1
    objective = ~pl.col("source").is_in(known) & ~holding(run, "no_objective")
    objective &= ~holding(run, "evaluation_metric") if known else True
    every = series_of(run, objective, {})
    table = every.filter(pl.col("n") > least)
    lost = (pl.col("n_after") == 0) & (pl.col("n_bad") >= least) & (pl.col("n_bad") == pl.col("n") - pl.col("n_before"))
    for (source, attempt), part in table.group_by("source", "attempt", maintain_order=True):
        gone = part.filter(lost & (pl.col("n_before") > 0))
        if gone.height < together or 2 * gone.height < part.height:
            continue
        role = TOGETHER[0] if gone.height >= _SERIES_TOGETHER else TOGETHER[1]
        own = watched_of(run, gone["own"].explode().to_list())
        bad = own.filter(pl.col("bad")).row(0)
        key = gone.filter(pl.col("raw_name") == bad["raw_name"]).row(0, named=True)
        same = every.filter(source=source, attempt=attempt, raw_name=bad["raw_name"])
        clean = watched_of(run, same["own"].explode().to_list()).filter(~pl.col("bad")).row(-1)
        yield Candidate(Status.FAILED, role, bad, clean, bad["at"], key["n"], key["n_bad"], 0)
