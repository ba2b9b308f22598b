"""Who waits for whom in sends and receives."""

from __future__ import annotations

import json

import polars as pl
import pytest

from forensics.analyses.hang.collectives import recorded
from forensics.analyses.hang.stacks import Frame, Stack, prefix_tree
from forensics.analyses.hang.waits import last_common, wait_graph
from forensics.store.run import run_of

#: Source, destination and operation of what a rank holds pending.
Pending = tuple[int, int, int, str]


def waits(*pending: Pending, ranks: int = 3) -> tuple[list[tuple[int, int]], bool]:
    """Give each rank that waits with the one it waits for, and whether they wait in a ring."""
    rows = [
        {
            "source": f"fr{rank}.json",
            "rank": rank,
            "group": "g0",
            "seq": 41,
            "state": "started",
            "op": op,
            "ranks": json.dumps(list(range(ranks))),
            "attrs": json.dumps({"src": source, "dst": to, "p2p": True}),
            "p2p_seq": 3,
            "in_sizes": "[[8]]",
            "dtype": "float32",
            "site": None,
            "stack": None,
        }
        for rank, source, to, op in pending
    ]
    types = {"rank": pl.Int32, "seq": pl.Int64, "p2p_seq": pl.Int64}
    graph = wait_graph(run_of("run", {"collectives": pl.DataFrame(rows).cast(types)}))
    return sorted((wait.waiting[0], wait.awaited[0]) for wait in graph.waits), graph.cyclic


@pytest.mark.parametrize(
    ("pending", "graph"),
    [
        (((0, 0, 1, "send"), (1, 0, 1, "recv")), ([], False)),
        (((0, 0, 1, "send"),), ([(0, 1)], False)),
        (((0, 0, 1, "send"), (1, 1, 0, "send")), ([(0, 1), (1, 0)], True)),
        (((0, 1, 0, "recv"), (1, 0, 1, "recv")), ([(0, 1), (1, 0)], True)),
        (((0, 1, 0, "recv"), (1, 2, 1, "recv"), (2, 0, 2, "recv")), ([(0, 1), (1, 2), (2, 0)], True)),
        (((0, 1, 0, "recv"), (1, 2, 1, "recv")), ([(0, 1), (1, 2)], False)),
    ],
    ids=["both sides", "one side", "both send", "both receive", "a ring", "a chain"],
)
def test_only_the_other_side_of_the_same_pair_answers_a_send_or_a_receive(
    pending: tuple[Pending, ...], graph: tuple[list[tuple[int, int]], bool]
) -> None:
    assert waits(*pending) == graph


def test_what_all_had_in_common_is_told_of_the_largest_group_that_stalls() -> None:
    groups = {"pair": ([0, 1], 7), "all": ([0, 1, 2], 5)}
    rows = [
        {
            "source": f"fr{rank}.json", "rank": rank, "group": group, "seq": seq, "op": "all_reduce",
            "state": "completed" if seq < last else "started", "ranks": json.dumps(ranks), "attrs": "{}",
            "p2p_seq": None, "in_sizes": "[[8]]", "dtype": "float32", "site": None, "stack": None,
        }
        for group, (ranks, last) in groups.items() for rank in ranks for seq in (last - 1, last)
    ]  # fmt: skip
    types = {"rank": pl.Int32, "seq": pl.Int64, "p2p_seq": pl.Int64}
    found = last_common(run_of("run", {"collectives": pl.DataFrame(rows).cast(types)}))
    assert found is not None
    assert (found.key[0], found.seq) == ("all", 5)


def test_the_branch_that_most_ranks_have_comes_first() -> None:
    def stack(*names: str) -> Stack:
        return Stack(0, tuple(Frame(name, "loop.py", 1) for name in reversed(names)), "", "")

    alone, together = ("main", "evaluate"), ("main", "backward")
    tree = prefix_tree({0: stack(*alone), 1: stack(*together), 2: stack(*together)})
    assert [(node.have, node.lack) for node in tree] == [((0, 1, 2), ()), ((1, 2), (0,)), ((0,), (1, 2))]


@pytest.mark.parametrize(
    ("told", "enqueued", "completed"),
    [
        ({"last_enqueued": "90", "last_completed": "88"}, {0: 90}, {0: 88}),
        ({"last_enqueued": "3", "last_completed": "2"}, {0: 41}, {0: 2}),
        ({"last_enqueued": "90", "last_completed": "90"}, {0: 90}, {0: 90}),
        ({"last_enqueued": "90", "last_completed": "91"}, {0: 90}, {}),
        ({"last_completed": "88"}, {0: 41}, {}),
        ({"last_enqueued": "-", "last_completed": "88"}, {0: 41}, {}),
    ],
    ids=[
        "beyond its entries",
        "behind its entries",
        "all is done",
        "more done than begun",
        "no number",
        "no whole number",
    ],
)
def test_how_far_a_group_came_is_what_its_dump_says_where_that_can_be(
    told: dict[str, str], enqueued: dict[int, int], completed: dict[int, int]
) -> None:
    own = {"source": "fr0.json", "rank": 0}
    entry = own | {"group": "g0", "seq": 41, "state": "started", "op": "all_reduce", "ranks": "[0, 1]", "attrs": "{}"}
    nothing = {"p2p_seq": None, "in_sizes": "[[8]]", "dtype": "float32", "site": None, "stack": None}
    said = json.dumps({"group": "g0", "ranks": "[0, 1]"} | told, separators=(",", ":"))
    events = [
        own | {"code": code, "attrs": attrs, "text": code} for code, attrs in (("fr-dump", "{}"), ("fr-group", said))
    ]
    types = {"rank": pl.Int32, "seq": pl.Int64, "p2p_seq": pl.Int64}
    tables = {
        "collectives": pl.DataFrame([entry | nothing]).cast(types),
        "events": pl.DataFrame(events).cast({"rank": pl.Int32}),
    }
    found = recorded(run_of("run", tables))
    key = ("g0", (0, 1))
    assert (found.enqueued[key], found.completed.get(key, {})) == (enqueued, completed)
