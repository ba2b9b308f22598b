"""Places with several processes, sources and runs, drawn from seeds; `processes.txt` holds what is said of them."""
# ruff: noqa: C901 - what is written is drawn line by line

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from forensics.case.folds import restarts
from forensics.case.processes.attempts import Attempts, attempts, of_judged
from forensics.case.processes.lives import Boundary, boundaries, is_new, lives
from forensics.case.processes.starts import Start, openings, starts
from forensics.case.runs import parts
from forensics.store.run import Run, run_of

SECOND = 1_000_000_000
#: Lines that a process may begin with, each by itself a proof of it or not.
SIGNS = ("head-again", "start-resumed", "elastic-restart", "start-loaded", "start-banner", "megatron.started")


@dataclass
class Log:
    """One source as it is written, line by line."""

    source: str
    rank: int | None = None
    clock: int | None = None
    named: bool = True
    line: int = 0
    attempt: int = 0
    last: int = -1
    metrics: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    checkpoints: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    progress: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def _place(self) -> dict[str, Any]:
        self.line += 1
        if self.clock is not None:
            self.clock += 1
        at = {"source": self.source, "seq": self.line, "line": self.line, "rank": self.rank}
        return at | {"t_ns": None if self.clock is None else self.clock * SECOND}

    def train(self, first: int, last: int, every: int, loss: float, slope: float) -> None:
        """Records of a loss at some steps; steps that go back begin an attempt, as a reader sees it."""
        if first <= self.last:
            self.attempt += 1
        for step in range(first, last + 1, every):
            told, self.last = {"step": step if self.named else None, "attempt": self.attempt}, step
            self.metrics.append(self._place() | told | {"value": loss + slope * (step - first), "name": "loss"})

    def say(self, code: str, step: int | None = None, **attrs: str) -> None:
        self.events.append(
            self._place() | {"code": code, "step": step, "attrs": json.dumps(attrs, separators=(",", ":"))}
        )

    def fail(self) -> None:
        self.say("traceback", role="root", exc="KeyError")

    def checkpoint(self, kind: str, step: int | None) -> None:
        place = {key: value for key, value in self._place().items() if key != "rank"}
        self.checkpoints.append(place | {"step": step, "kind": kind, "path": f"out/step_{step}"})

    def count(self, done: int, plan: int) -> None:
        told = {"done": done, "plan": plan, "unit": "step", "label": "train", "per": "", "dialect": "made"}
        self.progress.append(self._place() | told | {"attempt": 0})


def place(*logs: Log) -> Run:
    def table(of: str, **types: Any) -> pl.DataFrame:
        every = [row for log in logs for row in getattr(log, of)]
        schema = {"source": pl.String, "seq": pl.Int64, "line": pl.Int64, "rank": pl.Int32, "t_ns": pl.Int64, **types}
        return pl.DataFrame(
            every, schema=schema if not every else None, schema_overrides=schema, infer_schema_length=None
        )

    metrics = table("metrics", step=pl.Int64, value=pl.Float64, name=pl.String, attempt=pl.Int32)
    events = table("events", code=pl.String, step=pl.Int64, attrs=pl.String).with_columns(text=pl.col("code") + " said")
    tables = {
        "metrics": metrics.with_columns(raw_name=pl.col("name"), value_class=pl.lit("finite")),
        "events": events,
        "checkpoints": table("checkpoints", step=pl.Int64, kind=pl.String),
        "progress": table("progress", done=pl.Int64, plan=pl.Int64, attempt=pl.Int32),
        "sources": pl.DataFrame({"source": [log.source for log in logs], "ingester": "text_log"}),
    }
    return run_of("made", {name: rows for name, rows in tables.items() if rows.height})


def _drawn(seed: int) -> Run:
    """One to three sources of one to four processes each."""
    rng = random.Random(seed)
    count = rng.choice((1, 1, 1, 2, 2, 3))
    clock = rng.choice((None, 1000))
    logs = [Log(f"{name}.log", clock=clock) for name in "abc"[:count]]
    if rng.random() < 0.2:
        for number, log in enumerate(logs):
            log.rank = number
    for number, log in enumerate(logs):
        if clock is not None and rng.random() < 0.7:
            log.clock = clock + 500 * number
        log.named = rng.random() < 0.9
        _written(rng, log)
    return place(*logs)


def _written(rng: random.Random, log: Log) -> None:
    step, every, loss = rng.choice((0, 1, 1, 21, 60)), rng.choice((1, 1, 5)), 3.0
    slope = rng.choice((-0.01, -0.02, 0.0))
    for process in range(rng.choice((1, 2, 2, 3, 4))):
        if process or rng.random() < 0.3:
            _begun(rng, log, step)
        records = rng.choice((1, 2, 3, 4, 12, 30))
        if rng.random() < 0.3:
            log.count(min(step, 60), 60)
        log.train(step, step + every * (records - 1), every, loss, slope)
        step += every * records
        if rng.random() < 0.3:
            log.count(min(step - every, 60), 60)
        if rng.random() < 0.4:
            log.checkpoint(rng.choice(("saved", "committed")), step - every)
        end = rng.random()
        if end < 0.35:
            log.fail()
        elif end < 0.5:
            log.say(rng.choice(("success", "finished-steps", "megatron.ended")))
        elif end < 0.6:
            log.say("sigterm15", role="symptom")
        back = rng.random()
        if back < 0.3:
            step = max(0, step - every * rng.choice((1, 2, 5, 10)))
        elif back < 0.5:
            step, loss = rng.choice((0, 1)), rng.choice((loss, 3.0))
        elif back < 0.6:
            step += every * rng.choice((1, 2, 3, 9))
        if rng.random() < 0.7:
            loss = max(0.5, loss + slope * every * records)


def _begun(rng: random.Random, log: Log, step: int) -> None:
    """The lines of a process that begins: some of them signs, and some of those proofs."""
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        sign = rng.choice(SIGNS)
        if sign == "head-again":
            for head in rng.sample(range(5), rng.choice((1, 2, 3))):
                log.say(sign, head=str(head))
        elif sign in {"start-resumed", "start-loaded"}:
            log.say(sign, rng.choice((None, step - 1, step, 0)), path=f"ckpt/step_{step}")
        else:
            log.say(sign)
    if rng.random() < 0.3:
        log.checkpoint("resumed", rng.choice((None, step, step - 1)))


def _jobs(seed: int) -> Run:
    """Two to three sources whose names may make them runs, jobs, ranks, or parts of one run."""
    rng = random.Random(1000 + seed)
    tracked = [f"exp/run-2026010{day}_000000-abcd{day}/log.txt" for day in (1, 2)]
    names = rng.choice(
        (
            ("seed-1/train.log", "seed-2/train.log"), ("a/train.log", "b/train.log"), ("a/x.log", "b/y.csv"),
            ("slurm-4001.out", "slurm-4002.out"), ("slurm-4001_0.out", "slurm-4001_1.out"),
            ("job-12.log", "job-13.log"), tracked,
            ("out/seed-1/a.log", "out/seed-2/a.log", "out/seed-3/a.log"), ("rank-0/train.log", "rank-1/train.log"),
            ("seed-1/train.log", "seed-2/train.log", "all.log"), ("x7001.log", "x7002.log", "x7003.log"),
        )
    )  # fmt: skip
    apart, ranked, late = rng.choice((0, 0, 50, 500)), rng.random() < 0.2, rng.random() < 0.3
    logs: list[Log] = []
    for number, name in enumerate(names):
        clock = None if rng.random() < 0.1 else 1000 + apart * number
        log = Log(name, rank=number if ranked else None, clock=clock)
        first = 40 * number + 1 if late else rng.choice((0, 1, 1, 2, 3, 10))
        if rng.random() < 0.15:
            log.say("start-resumed", first - 1 or None)
        log.train(first, first + 100, rng.choice((1, 5, 10)), 3.0, -0.01)
        logs.append(log)
    return place(*logs)


def _start(one: Start) -> str:
    flags = "".join((" resumed" * one.resumed, " by its launcher" * one.by_launcher))
    return f"{one.source} {one.seq} step {one.step} of {one.path} by {one.quote or 'nothing'}{flags}"


def _edge(of: Run, one: Boundary) -> str:
    anew = " anew" * is_new(of, one)
    return (
        f"{one.kind} {one.before.source} {one.before.last} to {one.after.source} {one.after.first} "
        f"replayed {one.replayed} fork {one.fork}{anew}"
    )


def _tried(tried: Attempts) -> Iterator[str]:
    for one in tried.every:
        flags = "".join((" failed" * one.failed, " ended" * one.ended, " speaks" * one.speaks))
        yield f"attempt {one.number} {one.first} to {one.last} in {one.records} begun {one.t_ns}{flags}"
    for source, cuts in sorted(tried.cuts.items()):
        yield f"cuts of {source} {' '.join(f'{cut.number} from {cut.seq}' for cut in cuts)}"
        over = [line for line in range(1, 130) if tried.is_over(source, line=line)]
        ends = sorted({end for line in range(1, 130, 7) if (end := tried.end_of(source, line)) is not None})
        yield f"over {over[:1]} {over[-1:]} of {len(over)} ends {ends}"
    loop = [one.number for one in tried.loop]
    later = [tried.is_over("elsewhere", t_ns=t * SECOND) for t in (900, 1020, 1600)]
    yield f"judged {tried.judged.number} loop {loop} stuck {tried.stuck} elsewhere {tried.is_over('elsewhere')} {later}"


def _said(of: Run) -> Iterator[str]:
    yield from (f"opens {_start(one)}" for _, one in sorted(openings(of).items()))
    yield from (f"starts {_start(one)}" for _, own in sorted(starts(of).items()) for one in own)
    for one in lives(of):
        begun = one.start.seq if one.start else None
        yield f"life {one.source} {one.first} to {one.last} in {one.records} every {one.every:.3g} begun {begun}"
    yield from (_edge(of, one) for one in boundaries(of))
    yield f"restarts {len(restarts(of))}"
    tried = attempts(of)
    yield from _tried(tried)
    yield from (f"{one.source} since {tried.start_of(one).seq}" for one in lives(of) if tried.start_of(one))  # type: ignore[union-attr]
    kept = {name: of_judged(of).collect(name).height for name in ("metrics", "events", "checkpoints", "progress")}
    yield f"kept {' '.join(f'{name} {count}' for name, count in kept.items())}"
    yield from (f"part {part.folder} of {len(part.sources)} as {part.why}" for part in parts(of))


def runs() -> Sequence[tuple[str, Run]]:
    drawn = [(f"processes {seed}", _drawn(seed)) for seed in range(150)]
    return [*drawn, *((f"jobs {seed}", _jobs(seed)) for seed in range(60))]


def answers() -> Iterable[tuple[str, str]]:
    """What is said of each place."""
    return ((name, " | ".join(_said(of))) for name, of in runs())
