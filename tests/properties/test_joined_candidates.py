"""Which files may be stores of one process: the pairs that are looked up are those that a search of all pairs finds."""

from __future__ import annotations

import random
from itertools import combinations

import polars as pl
import pytest

from forensics.case.joined._candidates import candidates
from forensics.case.joined._strands import Strand, Unit, is_measured, kind_of, may_be_one, preference

_FOLDERS = ("", "a/", "b/", "a/c1/", "a/c2/", "run-1/", "wandb/offline-run-20260101_000000-id1/", "checkpoint-10/")
_NAMES = (
    "train.log", "log-0.log", "log-1.log", "rank2.out", "m1.csv", "m2.csv", "x.jsonl", "trainer_state.json",
    "events.out.tfevents.17.hostA.1.0", "events.out.tfevents.18.hostA.1.1", "run-id1.wandb", "run-xy.wandb",
)  # fmt: skip


def _strand(unit: Unit, name: str, records: int) -> Strand:
    column = pl.Series(range(records), dtype=pl.Int64)
    return Strand(*unit, name, name, column, column, column, column, column, True, 0, 0)


def _shared(a: str, b: str) -> int:
    pairs = list(zip(a.split("/")[:-1], b.split("/")[:-1], strict=False))
    return next((i for i, (left, right) in enumerate(pairs) if left != right), len(pairs))


def _searched(units: dict[Unit, list[Strand]]) -> list[tuple[Unit, Unit]]:
    first = min((s.rank for own in units.values() for s in own if s.rank is not None), default=0)
    names = {unit: {s.name for s in own if is_measured(s.name)} for unit, own in units.items()}
    records = {unit: max((len(s) for s in own if is_measured(s.name)), default=0) for unit, own in units.items()}

    def may_pair(a: Unit, b: Unit) -> bool:
        of_one_rank = a[2] == b[2] or {a[2], b[2]} == {None, first}
        return a[0] != b[0] and bool(names[a] & names[b]) and of_one_rank and may_be_one(a[0], b[0])

    in_order = sorted(units, key=lambda unit: (*preference(unit[0]), str(unit)))
    pairs = [(a, b) for a, b in combinations(in_order, 2) if may_pair(a, b)]

    def nearest(a: Unit, b: Unit) -> bool:
        others = [(x, y) for pair in pairs for x, y in (pair, pair[::-1])]
        return _shared(a[0], b[0]) == max(
            _shared(x[0], y[0]) for x, y in others if x[0] == a[0] and kind_of(y[0]) == kind_of(b[0])
        )

    kept = [(a, b) for a, b in pairs if nearest(a, b) and nearest(b, a)]
    return sorted(kept, key=lambda pair: -max(records[pair[0]], records[pair[1]]))


@pytest.mark.parametrize("seed", range(60))
def test_the_pairs_that_are_looked_up_are_those_of_a_search_through_all(seed: int) -> None:
    rng = random.Random(seed)
    units: dict[Unit, list[Strand]] = {}
    for _ in range(rng.randint(2, 14)):
        unit = rng.choice(_FOLDERS) + rng.choice(_NAMES), rng.choice([0, 0, 1, None]), rng.choice([None, None, 0, 1])
        held = [(rng.choice(["loss", "grad_norm", "lr"]), rng.choice([3, 5, 5, 9])) for _ in range(rng.randint(1, 2))]
        units.setdefault(unit, [_strand(unit, name, records) for name, records in held])
    assert list(candidates(units, ())) == _searched(units)


def test_a_file_that_is_left_out_by_now_is_passed_over() -> None:
    units = {
        unit: [_strand(unit, "loss", 5)] for unit in (("a.log", 0, None), ("b.csv", 0, None), ("c.jsonl", 0, None))
    }
    gone: dict[Unit, None] = {}
    pairs = candidates(units, gone)
    first = next(pairs)
    gone[first[0]] = None
    assert first[0] not in {unit for pair in pairs for unit in pair}


def test_ten_thousand_parts_of_one_log_are_not_compared_with_each_other() -> None:
    one = _strand(("part-0.log", 0, None), "loss", 5)
    units: dict[Unit, list[Strand]] = {(f"part-{i}.log", 0, None): [one] for i in range(10_000)}
    assert list(candidates(units, ())) == []  # 50 million pairs would take minutes
