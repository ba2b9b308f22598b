"""A loss that jumps after a resume."""

from __future__ import annotations

from math import log, log1p

import polars as pl

from forensics.analyses.resume.around import Around, around, mean_error, paired, unnumbered
from forensics.analyses.resume.levels import initial
from forensics.case.folds import restarts
from forensics.case.processes.lives import Boundary, Life
from forensics.case.processes.starts import Start
from forensics.knowledge.paths import whose
from forensics.rules.kit import Finding, Findings, Onset, Run, Struct, rule
from forensics.rules.resume._compare import around_start, evidence_of, onset
from forensics.stats.spread import median


class Jump(Struct, frozen=True):
    """Thresholds of RSM001, chosen on seeded restarts so that less than 1 % of healthy ones are named.

    Of 1,620 with 16 to 60 records before them, noise of 1 to 12 % and correlations up to 0.8, 0.4 % are named, and of
    as many whose loss leaps by 30 % and falls again within 8 records, 47 %; one window of 20 records names 14 %.

    `before`, `near` and `after` count records, as do `fewest` before and `heads`, the windows after a restart, each
    with an error of its own; `errors` are standard errors and `share` a share of the level that the
    jump must exceed, `both` those of the loss and of the gradient norm where both rise; `restored` is the share of the
    way back to the first level within which a loss is back there. Above a `leap`, a share of the level, a jump that
    stays over steps which are done again is no other order of the data; nor is one that has `doubled` the level, and
    more, and stays above every loss before.
    """

    before: int = 60
    near: int = 20
    after: int = 20
    least: int = 10
    fewest: int = 15
    heads: tuple[int, ...] = (5, 10, 20)
    errors: float = 4.5
    both: float = 3.0
    share: float = 0.02
    restored: float = 0.3
    gradients: float = 3.0
    decayed: float = 0.4
    leap: float = 0.25
    doubled: float = 1.0


#: Records by which a count is behind a checkpoint that is the one it goes on from; records that make a level.
_LATER, _BESIDE = 3, 5
_SIGNS = "'\".,:;()[]"


@rule("RSM001 resume-optimizer-lost", "metrics checkpoints")
def optimizer_lost(run: Run, cfg: Jump) -> Findings:
    """Find the first restart after which the loss jumps."""
    for boundary in restarts(run):
        seen = around(run, boundary, "loss") if boundary.kind != "scratch" or _loads(boundary.after) else None
        jump = _jump(seen, cfg) if seen is not None else None
        if seen is not None and jump is not None and (jump[2] > cfg.errors or _gradients_rise(run, boundary, cfg)):
            yield _finding(run, boundary, seen, jump, cfg)
            return
    for start, seen in unnumbered(run):
        jump = _jump(seen, cfg)
        if jump is not None and jump[2] > cfg.errors:
            yield _without_steps(start, seen, jump, cfg)
            return


def _loads(life: Life) -> bool:
    """Whether a life says that it loaded a state: its steps may count from the start of an epoch, as those before."""
    return life.start is not None and life.start.resumed


def _without_steps(start: Start, seen: Around, jump: tuple[float, float, float], cfg: Jump) -> Finding:
    level, rise, errors = jump
    fallen = _decay(seen, cfg) > cfg.decayed * rise
    return optimizer_lost.finding(
        f"the loss jumps by {rise:.3g} over {level:.4g} where a checkpoint was loaded",
        f"{errors:.3g} standard errors{', and it falls again' if fallen else ''}; the log numbers no steps",
        around_start(seen, start),
        Onset(t_ns=seen.after["t_ns"][0]),
        severity="warning" if fallen else "info",
        confidence="medium" if fallen else "low",
        cause="optimizer_lost" if fallen else "loss_step_at_resume",
        numbers={"level": level, "jump": rise, "standard_errors": errors},
    )


def _jump(seen: Around, cfg: Jump) -> tuple[float, float, float] | None:
    """Level before, jump and its standard errors, when the jump is real and the weights were restored."""
    pairs = paired(seen)
    if pairs.height >= cfg.after:
        delta = pairs["delta"].head(cfg.after)
        level, rise, error = median(pairs["old"].head(cfg.after)), median(delta), mean_error(delta, count=delta.len())
    elif seen.before.height >= cfg.fewest and seen.after.height >= min(cfg.heads):
        level, rise, error = _highest(seen, cfg)
    else:
        return None
    if level <= 0 or rise <= cfg.share * level or rise <= cfg.both * error or _retraces(seen, level, cfg):
        return None
    return level, rise, rise / error if error > 0 else float("inf")


def _highest(seen: Around, cfg: Jump) -> tuple[float, float, float]:
    """Level before, jump and standard error, of the window after the restart with the clearest jump."""
    past = seen.before.tail(cfg.before)
    half = past.tail(max(cfg.fewest, past.height // 2))
    level = median(half["value"].tail(cfg.near))
    found: list[tuple[float, float]] = []
    for count in cfg.heads:
        if count <= seen.after.height:
            rise = median(seen.after["value"].head(count)) - level
            found.append((rise, mean_error(half["value"], count=count, steps=half["at"]) * 2**0.5))
    rise, error = max(found, key=lambda pair: pair[0] / max(pair[1], 1e-12))
    return level, rise, error


def _gradients_rise(run: Run, boundary: Boundary, cfg: Jump) -> bool:
    """Whether the gradient norm, too, is above where it was, by more than its own noise."""
    seen = around(run, boundary, "grad_norm")
    if seen is None:
        return False
    old, new = seen.before["value"].tail(cfg.before), seen.after["value"].head(cfg.after)
    if old.len() < cfg.near or new.len() < cfg.least:
        return False
    error = mean_error(old.tail(2 * cfg.near), count=new.len()) * 2**0.5
    return median(new) - median(old.tail(cfg.near)) > cfg.both * error > 0


def _retraces(seen: Around, level: float, cfg: Jump) -> bool:
    """Whether the loss goes the way that it went when the run began: then the weights were not restored."""
    if seen.after.height < cfg.least:
        return False
    count = min(cfg.near, seen.after.height // 2, max(1, seen.before.height // 4))
    far = 0.0
    for skip in (0, count):
        first, new = initial(seen, count=count, skip=skip), median(seen.after["value"].slice(skip, count))
        far = max(far, abs(new - first) / max(first - level, 1e-12))
    return far < cfg.restored


def _finding(run: Run, boundary: Boundary, seen: Around, jump: tuple[float, float, float], cfg: Jump) -> Finding:
    level, rise, errors = jump
    fallen = _decay(seen, cfg) > cfg.decayed * rise
    grads = around(run, boundary, "grad_norm")
    usual = median(grads.before["value"].tail(cfg.near)) if grads is not None else 0.0
    factor = median(grads.after["value"].head(5)) / usual if grads is not None and usual > 0 else 1.0
    rises = _gradients_rise(run, boundary, cfg)
    proven = fallen or rises or factor >= cfg.gradients
    stays = _stays(seen, boundary, level, rise, cfg)
    also = f", and the gradient norm is {factor:.2g} times that before" if rises or factor >= cfg.gradients else ""
    older = _older(seen, boundary, level)
    title = f"the loss jumps by {rise:.3g} over {level:.4g} at the restart of step {boundary.after.first}"
    return optimizer_lost.finding(
        title if older is None else f"{title}: the checkpoint of step {older} was loaded",
        f"{errors:.3g} standard errors{', and it falls again' if fallen else ', and it stays' if stays else ''}{also}",
        evidence_of(run, seen, boundary),
        onset(boundary),
        severity="warning" if proven or stays or older is not None else "info",
        confidence="medium" if proven or stays or older is not None else "low",
        cause="older_weights_loaded" if older is not None else "optimizer_lost" if proven else "loss_step_at_resume",
        numbers={"level": level, "jump": rise, "standard_errors": errors, "grad_norm_ratio": factor},
    )


def _stays(seen: Around, boundary: Boundary, level: float, rise: float, cfg: Jump) -> bool:
    """Whether steps that are done again give a far higher loss to the end: not all that was saved came back.

    A loss that more than doubles, and stays above each one before, needs no steps that are done again.
    """
    late, before = seen.after["value"].tail(cfg.near), pl.concat([seen.before["value"], seen.replaced["value"]])
    if rise > cfg.doubled * level and late.len() >= cfg.near and float(late.min()) > float(before.max()):  # type: ignore[arg-type] # numbers: the columns are Float64
        return True
    far = boundary.kind == "replays" and seen.after.height >= 2 * cfg.near and rise > cfg.leap * level
    return far and float(late.min()) > level + rise / 2  # type: ignore[arg-type] # numbers: the column is Float64


def _older(seen: Around, boundary: Boundary, level: float) -> int | None:
    """The step in the name of the checkpoint that was loaded, where the loss is again what it was at that step.

    The count went on from a later step, and the loss is nearer to its level at that step than to the one before.
    """
    start, rows = boundary.after.start, seen.before
    named = (whose(word.strip(_SIGNS)) for word in start.quote.split()) if start is not None else ()
    every = rows["at"].diff().median() if rows.height > 1 else None
    step = next((one.step for one in named if one is not None and one.step is not None), None)
    if step is None or not isinstance(every, float) or seen.after["at"][0] - step <= _LATER * every:
        return None
    near = rows.sort((pl.col("at") - step).abs(), maintain_order=True).head(_BESIDE)
    there, new = median(near["value"]), median(seen.after["value"].head(_BESIDE))
    return step if abs(new - there) < abs(new - level) else None


def _decay(seen: Around, cfg: Jump) -> float:
    """How far the loss falls after the restart beyond what it would have fallen anyway."""
    pairs = paired(seen)
    if pairs.height >= cfg.after:
        return _fall(pairs.head(3 * cfg.after), "delta")[0]
    fall, way = _fall(seen.after.head(3 * cfg.after))
    usual, usual_way = _fall(seen.before.tail(cfg.before // 2))
    # moments that are rebuilt within a few steps: of the shortest window alone
    head, rest = seen.after["value"].head(min(cfg.heads)), seen.after["value"].slice(min(cfg.heads), cfg.near)
    soon = median(head) - median(rest) if rest.len() >= cfg.least else 0.0
    foretold = max(0.0, usual) / usual_way if usual_way else 0.0
    return max(fall - foretold * way, soon - foretold * log1p(cfg.near / max(1.0, float(seen.after["at"][0]))))


def _fall(rows: pl.DataFrame, column: str = "value") -> tuple[float, float]:
    """How far a series falls from the first third of its rows to the last, and how much longer the run is by then."""
    third = rows.height // 3
    first, last = rows.head(third), rows.slice(2 * third, third)
    if first.is_empty():
        return 0.0, 0.0
    way = log(max(median(last["at"]), 1.0) / max(median(first["at"]), 1.0))
    return median(first[column]) - median(last[column]), way
