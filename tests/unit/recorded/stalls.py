"""Jobs of several ranks that stall, drawn from seeds; `stalls.txt` holds what their dumps and logs are said to tell."""
# ruff: noqa: E501 - what is written is drawn line by line

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from forensics.analyses.hang.clock import clock_offsets
from forensics.analyses.hang.collectives import Entry, timed_out_in
from forensics.analyses.hang.complaints import complaints
from forensics.analyses.hang.differs import first_difference
from forensics.analyses.hang.last_seen import last_seen
from forensics.analyses.hang.origin import unexplained_exit
from forensics.analyses.hang.waits import device_lags, last_common, newest, wait_graph
from forensics.case.errors.exits import exits
from forensics.case.errors.failures import failures, standing
from forensics.rules.hang.decide import decision
from forensics.store.run import Run, run_of

SECOND = 1_000_000_000
OPS = ("all_reduce", "all_reduce", "all_gather", "reduce_scatter")
SIZES = ("[[8]]", "[[8]]", "[[16]]")
#: What a rank may say at its end: code, words, and what is known of them.
SAID: tuple[tuple[str, dict[str, str]], ...] = (
    ("nccl-watchdog", {"role": "symptom", "shape": "hang"}), ("nccl-watchdog", {"role": "symptom", "shape": "hang"}),
    ("nccl-remote-error", {"role": "symptom", "shape": "hang", "cause": "peer_gone"}),
    ("traceback", {"role": "root", "exc": "ValueError", "message": "made up"}),
    ("traceback", {"role": "root", "exc": "RuntimeError", "message": "Connection reset by peer"}),
    ("cuda-oom", {"role": "root", "shape": "oom"}), ("sigterm15", {"role": "root", "shape": "stopped"}),
    ("childfailed", {"role": "symptom", "shape": "crash"}), ("success", {"role": "benign"}),
)  # fmt: skip


def _drawn(seed: int) -> Run:
    rng = random.Random(seed)
    ranks = rng.choice((2, 3, 4, 8))
    tables = {"collectives": [], "events": [], "metrics": [], "sources": []}
    apart = rng.choice((0, 0, 5))
    for rank in range(ranks):
        tables["sources"].append({"source": f"rank{rank}.log", "ingester": "text_log", "rank": rank})
        tables["metrics"] += _steps(rng, rank, apart)
    if rng.random() < 0.7:
        tables["collectives"] = _dumps(rng, ranks)
    if rng.random() < 0.3:
        for rank in range(ranks):
            if rng.random() < 0.7:
                tables["collectives"].append(_entry(rank, None, rng.choice((40, 40, 41)), "timed_out", rng.choice(OPS)))
    for rank in range(ranks):
        if rng.random() < 0.55:
            tables["events"] += _words(rng, rank)
    if rng.random() < 0.3:
        told = {"group": "g0", "ranks": json.dumps(list(range(ranks))), "last_enqueued": "90", "last_completed": "88"}
        rank = rng.randrange(ranks)
        tables["events"].append(_event(f"fr{rank}.json", rank, 1, "fr-dump", {}))
        tables["events"].append(_event(f"fr{rank}.json", rank, 2, "fr-group", told))
    types = {"rank": pl.Int32, "seq": pl.Int64, "p2p_seq": pl.Int64, "t_ns": pl.Int64, "line": pl.Int64}
    return run_of("made", {
        name: pl.DataFrame(rows, infer_schema_length=None).cast({k: t for k, t in types.items() if k in rows[0]})
        for name, rows in tables.items() if rows
    })  # fmt: skip


def _steps(rng: random.Random, rank: int, apart: int) -> list[dict[str, Any]]:
    last = 30 - rng.choice((0, 0, 0, 0, 1, 4, 12))
    own = {"source": f"rank{rank}.log", "rank": rank, "name": "loss", "raw_name": "loss", "value_class": "finite"}
    return [
        own | {"seq": step, "line": step, "step": step, "value": 3 - step / 100, "t_ns": (1000 + step + apart * (rank > 1)) * SECOND}
        for step in range(1, last + 1)
    ]  # fmt: skip


def _event(source: str, rank: int | None, line: int, code: str, attrs: dict[str, str]) -> dict[str, Any]:
    own = {"source": source, "rank": rank, "seq": line, "line": line, "code": code, "text": f"{code} said"}
    return own | {"attrs": json.dumps(attrs, separators=(",", ":")), "t_ns": (1000 + line) * SECOND}


def _words(rng: random.Random, rank: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for _ in range(rng.choice((1, 1, 2))):
        code, attrs = rng.choice(SAID)
        told = attrs | ({"rank": str(rank)} if rng.random() < 0.7 else {})
        found.append(
            _event(f"rank{rank}.log", rng.choice((rank, rank, None)), rng.choice((29, 31, 40, 60, 90)), code, told)
        )
    return found


def _entry(rank: int, group: str | None, seq: int, state: str, op: str, **more: Any) -> dict[str, Any]:
    own = {
        "source": f"fr{rank}.json",
        "rank": rank,
        "group": group,
        "seq": seq,
        "state": state,
        "op": op,
        "ranks": None,
    }
    return (
        own
        | {"in_sizes": "[[8]]", "dtype": "float32", "attrs": "{}", "site": None, "stack": None, "p2p_seq": None}
        | more
    )


def _dumps(rng: random.Random, ranks: int) -> list[dict[str, Any]]:
    """Groups in which one rank is late, another one issued something else, or a device is behind."""
    rows: list[dict[str, Any]] = []
    ops = [rng.choice(OPS) for _ in range(60)]
    sizes = [rng.choice(SIZES) for _ in range(60)]
    whole = list(range(ranks))
    groups = [
        ("g0", whole),
        *([("g1", whole[: ranks // 2]), ("g2", whole[ranks // 2 :])] if rng.random() < 0.4 else []),
    ]
    for name, members in groups:
        late, odd, behind = (rng.choice((None, None, rng.choice(members))) for _ in range(3))
        end, slip, gloo = 40, rng.choice((-1, 0, 1)), rng.random() < 0.1
        for rank in members:
            if rng.random() < 0.08:
                continue
            last = end - (rng.choice((1, 3)) if rank == late else 0)
            for seq in range(last - 6, last + 1):
                place = seq + (slip if rank == odd and seq >= end - 1 else 0)
                other = rank == odd and slip == 0 and seq == end
                state = (
                    "completed"
                    if seq < last - (rank == behind) * 2
                    else rng.choice(("scheduled", "started", "started", "timed_out"))
                )
                if late is None and odd is None and behind is None:
                    state = "completed"
                more = {"ranks": json.dumps(members), "in_sizes": "[[4]]" if other else sizes[place % 60]}
                more |= {
                    "attrs": json.dumps({"op": "gloo:x"}) if gloo else "{}",
                    "site": rng.choice((None, "train.py:12 step")),
                }
                rows.append(_entry(rank, name, seq, state, ops[place % 60], **more))
    if rng.random() < 0.3:
        one, other = rng.sample(whole, 2)
        pair = json.dumps({"src": one, "dst": other, "p2p": True})
        rows.append(_entry(one, "g0", 41, "started", "send", attrs=pair, p2p_seq=3, ranks=json.dumps(whole)))
        if rng.random() < 0.4:
            rows.append(_entry(other, "g0", 41, "started", "recv", attrs=pair, p2p_seq=3, ranks=json.dumps(whole)))
    return rows


def _entry_words(one: Entry) -> str:
    return f"{one.rank} {one.words} done {one.done} peer {one.peer} {one.p2p_seq} {one.site}"


def _said(of: Run) -> Iterator[str]:
    yield from (f"behind {lag.rank} {lag.count} {_entry_words(lag.first)}" for lag in device_lags(of).values())
    graph = wait_graph(of)
    for one in graph.waits:
        yield f"wait {one.group} {one.seq} {one.op} {one.waiting} for {one.awaited}"
    yield f"sinks {graph.sinks} cyclic {graph.cyclic} timed out {timed_out_in(of)}"
    common = last_common(of)
    yield f"common {_entry_words(common) if common else 'none'}"
    yield f"newest {'; '.join(map(_entry_words, newest(of)))}"
    yield f"difference {first_difference(of)}"
    seen = sorted(last_seen(of).items())
    yield f"seen {seen}"
    yield f"clocks {dict(clock_offsets(of))} late {sorted(complaints(of).late)}"
    yield f"exits {sorted((rank, one.code) for rank, one in exits(of).by_rank.items())} began {unexplained_exit(of)}"
    for name, told in (("failures", failures(of)), ("standing", standing(of))):
        yield f"{name} {'; '.join(f'{f.source} {f.at} {f.weight} {f.rank}' for f in told)}"
    found = decision(of)
    if found is not None:
        clues = "; ".join(f"{c.kind} {c.cause} {c.weight:g} {c.ranks} {c.tied}" for c in found.clues)
        yield f"decided {found.ranks} {found.cause} {found.confidence} {found.shape} tied {found.tied} by {clues}"


def answers() -> Iterable[tuple[str, str]]:
    """What is said of each job."""
    for seed in range(130):
        yield f"job {seed}", " | ".join(_said(_drawn(seed))).replace("\n", " ").replace("\t", " ")
