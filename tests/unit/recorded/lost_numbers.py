"""Runs whose numbers are lost, or not, drawn from seeds; `lost_numbers.txt` holds what is said of them."""
# ruff: noqa: C901, E501 - what is written is drawn line by line, and told in sentences of many parts

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from forensics.analyses.nan.kind import Precursor, kind_of
from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.origin import origin
from forensics.analyses.nan.scale import collapse_of
from forensics.case.nonfinite import watched_series
from forensics.store.run import Run, run_of

NAN, INF = math.nan, math.inf
#: What a loss may become: forever, for some records, now and then, or not at all.
LOST = ("all", "all", "all", "some", "now and then", "last", "never", "zeros", "vanished")
LINES = ("fairseq-overflow", "apex-overflow", "ds-min-scale", "nan-detected", "guard-skip", "traceback", "last_line")


def _class(value: float | None) -> str:
    if value is None:
        return "null"
    return "nan" if math.isnan(value) else "+inf" if value == INF else "-inf" if value == -INF else "finite"


class Written:
    """The records and events of one or two sources."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.line = rng, 0
        self.metrics: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.checkpoints: list[dict[str, Any]] = []

    def record(self, source: str, step: int | None, rank: int | None = None, **values: float | None) -> None:
        self.line += 1
        for name, value in values.items():
            place = {"source": source, "seq": self.line, "line": self.line, "step": step, "rank": rank, "name": name}
            told = None if value is None else value
            self.metrics.append(place | {"raw_name": name, "value": told, "value_class": _class(value)})

    def say(self, code: str, step: int | None = None, **attrs: str) -> None:
        self.line += 1
        place = {
            "source": "a.log",
            "seq": self.line,
            "line": self.line,
            "step": step,
            "code": code,
            "text": f"{code} said",
        }
        self.events.append(place | {"attrs": json.dumps(attrs, separators=(",", ":"))})

    def save(self, step: int) -> None:
        self.line += 1
        place = {"source": "a.log", "seq": self.line, "line": self.line, "step": step, "kind": "saved"}
        self.checkpoints.append(place | {"path": f"out/step_{step}"})

    def run(self) -> Run:
        schema = {"step": pl.Int64, "rank": pl.Int32, "value": pl.Float64}
        wide = {"metrics": self.metrics, "events": self.events, "checkpoints": self.checkpoints}
        return run_of("made", {
            name: pl.DataFrame(rows, infer_schema_length=None).cast({k: t for k, t in schema.items() if k in rows[0]})
            for name, rows in wide.items() if rows
        })  # fmt: skip


def _course(seed: int) -> Run:
    """A loss, its gradient norm and a rate, of which one is lost at some record in some way."""
    rng = random.Random(seed)
    made = Written(rng)
    count, every = rng.choice((3, 8, 20, 40, 90)), rng.choice((1, 1, 10))
    first = rng.choice((1, 1, every, 60, 98))
    onset = rng.choice((0, 1, 2, count // 2, count - 6, count - 2, count - 1))
    way, normed, ranks = rng.choice(LOST), rng.random() < 0.75, rng.choice((None, None, None, 0))
    rise, lead, late_norm = (
        rng.choice((1, 1, 1.4, 2.5, 4, 30)),
        rng.choice((1, 2, 3, 9, 10, 11)),
        rng.choice((0, 0, -1, 1)),
    )
    leap, rated = rng.choice((1, 1, 1.3, 1.7, 5)), rng.random() < 0.3
    bad, second = rng.choice((NAN, NAN, INF)), rng.random() < 0.25
    for at in range(count):
        step = first + at * every
        loss = 3 * math.exp(-at / 200 + rng.gauss(0, 0.03)) * (leap if 0 < onset - at <= 2 else 1)
        norm = math.exp(rng.gauss(0, 0.1)) * (rise if 0 < onset - at <= lead else 1)
        lost = {
            "all": at >= onset, "some": onset <= at < onset + 4, "last": at >= count - 1,
            "now and then": at >= onset and rng.random() < 0.4, "zeros": False, "vanished": False, "never": False,
        }[way]  # fmt: skip
        values: dict[str, float | None] = {"loss": bad if lost else 0.0 if way == "zeros" and at >= onset else loss}
        if way == "vanished" and at >= onset:
            values = {"lr": 1e-3}
        if normed:
            values["grad_norm"] = NAN if way in {"all", "some"} and onset + late_norm <= at < onset + 5 else norm
        if rated:
            values["lr"] = 1e-3 * (4 if at >= onset - 1 else 1)
        if rng.random() < 0.03:
            values["eval_loss"] = rng.choice((NAN, 2.5))
        made.record("a.log", step, ranks, **values)
        if second:
            made.record("b.log", step, 1, loss=bad if way == "all" and at >= onset + 1 else loss * 1.01)
        if at % 10 == 9 and rng.random() < 0.5:
            made.save(step)
        if onset <= at < onset + 3 and rng.random() < 0.25:
            made.say(rng.choice(LINES), rng.choice((None, step)), role=rng.choice(("root", "benign")))
    return made.run()


def _scale(seed: int) -> Run:
    """A loss scale, counters of skipped updates, or lines that tell of them."""
    rng = random.Random(3000 + seed)
    made = Written(rng)
    count, told = rng.choice((40, 60, 120, 300)), rng.choice(("series", "series", "counter", "total", "lines", "falls"))
    begin, falls = rng.choice((0, 20, 49, 50, 51, count - 20, count - 8)), rng.choice((2, 4, 5, 6, 16))
    apart, stays = rng.choice((1, 1, 2, 6, 12, 13)), rng.random() < 0.6
    value, total, stepped, share = 65536.0, 0.0, rng.random() < 0.8, rng.choice((0.03, 0.06, 0.3, 1.0))
    grown = rng.choice((0, 0, 25, 40))
    for at in range(count):
        falling = at >= begin and (at - begin) % apart == 0 and (at - begin) // apart < falls
        skipped = at >= begin and rng.random() < share and (stays or at < begin + 30)
        step = at if stepped else None
        if falling:
            value = max(value / rng.choice((2, 2, 16)), rng.choice((1.0, 1.0, 0.5, 8.0)))
        elif grown and at % grown == grown - 1 and (not stays or at < begin):
            value *= 2
        total += skipped
        values: dict[str, float | None] = {"loss": 3 - at / 500}
        if at > count - 5 and rng.random() < 0.2:
            values["loss"] = NAN
        if told == "series":
            values["loss_scale"] = value
        elif told == "counter":
            values["skipped_steps"] = float(skipped)
        elif told == "total":
            values["skipped_steps_total"] = total
        made.record("a.log", step, **values)
        if told == "lines" and skipped:
            made.say(rng.choice(("apex-overflow", "ds-overflow", "ds-min-scale", "ds-scale-at-one")), step)
        if told == "falls" and falling:
            made.say("apex-overflow", rng.choice((step, None)), to=str(value))
    if rng.random() < 0.2:
        made.say("fairseq-min-scale")
    made.say("last_line")
    return made.run()


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def _rise(one: Precursor | None) -> str:
    return (
        "none" if one is None else f"{one.metric} at {one.step} {_number(one.ratio)} {_number(one.z)} lead {one.lead}"
    )


def _said(of: Run) -> Iterator[str]:
    collapse = collapse_of(of)
    if collapse is not None:
        lines = " ".join(str(e.locator.line) for e in collapse.evidence)
        yield f"collapse at {collapse.step}: {collapse.words}, lines {lines}, share {_number(collapse.share)}"
    found = nan_onset(of)
    if found is not None:
        row = found.first.row
        place = (
            f"{row['source']} {row['line']} rank {row['rank']} {found.metric} {found.first.role} {found.first.status}"
        )
        yield f"lost at {found.step} after {found.clean_step}, {place}, before {found.n_before} after {found.first.n_after}"
        yield f"others {len(found.others)} evidence {' '.join(str(e.locator.line) for e in found.evidence())}"
        kind = kind_of(of)
        yield f"{kind.name} {kind.cause} {kind.confidence} {kind.words}, rise {_rise(kind.precursor)}, quiet {_rise(kind.quiet)}"
    told = origin(of)
    points = " ".join(f"{one.step} {one.state}" for one in told.checkpoints)
    best = None if told.last_clean_checkpoint is None else told.last_clean_checkpoint.step
    yield f"origin {told.kind} {told.last_clean_step} to {told.first_bad_step} restart {told.restart} at {best} of {points}"
    yield f"series {watched_series(of).height}"


def answers() -> Iterable[tuple[str, str]]:
    """What is said of each run."""
    for seed in range(160):
        yield f"course {seed}", " | ".join(_said(_course(seed)))
    for seed in range(120):
        yield f"scale {seed}", " | ".join(_said(_scale(seed)))
