"""Who is named as the culprit of a hang, and when nobody is."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import jsonschema
import polars as pl
import pytest

from forensics.analyses.hang.stacks import main_threads, prefix_tree, stacks
from forensics.analyses.hang.waits import wait_graph
from forensics.case.rank_spans import spans
from forensics.diagnosis.hang import picture
from forensics.diagnosis.verdict import decide
from forensics.model import Confidence, Coverage
from forensics.report.pages import hang as pages
from forensics.rules.hang.culprit import culprit
from forensics.rules.hang.decide import decision
from forensics.store.run import Run, run_of

HOSTILE = "\x1b]0;x\x07 \u202e##[error]"


def op(rank: int, seq: int, name: str = "all_reduce", *, done: bool = False, **more: Any) -> dict[str, Any]:
    ranks = more.pop("ranks", [0, 1, 2])
    return {
        "source": f"fr/trace_rank_{rank}", "rank": rank, "group": more.pop("group", "0(default_pg)"),
        "ranks": json.dumps(ranks), "seq": seq, "op": name, "in_sizes": more.pop("sizes", "[[6]]"), "dtype": "Float",
        "state": "completed" if done else "scheduled", "created_ns": seq, "attrs": "{}", **more,
    }  # fmt: skip


def run(*rows: dict[str, Any], **tables: pl.DataFrame) -> Run:
    return run_of("run", {"collectives": pl.DataFrame(list(rows)), **tables} if rows else tables)


def test_the_rank_that_never_came_is_the_sink_of_the_waits() -> None:
    found = run(op(0, 9), op(1, 8, done=True), op(2, 9))
    assert wait_graph(found).sinks == (1,)
    answer = decision(found)
    assert answer is not None
    assert (answer.ranks, answer.cause) == ((1,), "never_entered")


def test_a_majority_names_the_rank_that_issued_another_operation() -> None:
    answer = decision(run(op(0, 9), op(1, 9), op(2, 9, "all_gather")))
    assert answer is not None
    assert (answer.ranks, answer.cause) == ((2,), "collective_mismatch_op")


def test_two_ranks_that_differ_are_a_tie_and_nobody_is_named() -> None:
    pair = [0, 1]
    answer = decision(run(op(0, 9, ranks=pair), op(1, 9, "all_gather", ranks=pair)))
    assert answer is not None
    assert (answer.ranks, answer.tied, answer.confidence) == ((), (0, 1), Confidence.LOW)


@pytest.mark.parametrize(
    ("odd", "usual", "cause"),
    [
        (("broadcast", "all_reduce"), ("all_reduce", "reduce"), "extra_collective"),
        (("reduce", "gather"), ("all_reduce", "reduce"), "skipped_collective"),
        (("barrier", "gather"), ("all_reduce", "reduce"), "uneven_data"),
    ],
)
def test_a_slipped_sequence_is_told_from_a_different_operation(
    odd: tuple[str, str], usual: tuple[str, str], cause: str
) -> None:
    rows = [op(rank, 9 + i, (odd if rank == 1 else usual)[i]) for rank in range(3) for i in range(2)]
    answer = decision(run(*rows))
    assert answer is not None
    assert (answer.ranks, answer.cause) == ((1,), cause)


def test_another_order_of_two_groups_is_a_cycle_with_a_minority() -> None:
    rows = [op(0, 1, group="1(dp)"), op(1, 1, group="2(tp)"), op(2, 1, group="1(dp)")]
    answer = decision(run(*rows))
    assert wait_graph(run(*rows)).cyclic
    assert answer is not None
    assert (answer.ranks, answer.cause) == ((1,), "pg_order_deadlock")


def test_a_healthy_dump_decides_nothing() -> None:
    assert decision(run(*(op(rank, 9, done=True) for rank in range(3)))) is None


def frames(rank: int, *functions: str) -> list[dict[str, Any]]:
    return [
        {"source": f"s/pyspy_rank{rank}.txt", "rank": rank, "thread_name": "MainThread", "seq": 0, "depth": depth,
         "function": function, "file": "torch/distributed/distributed_c10d.py" if function == "all_reduce" else "a.py",
         "line": 7, "kind": "python", "state": "idle"}
        for depth, function in enumerate(functions)
    ]  # fmt: skip


def test_a_dump_of_no_known_rank_has_a_number_that_no_rank_has() -> None:
    rows = [row | {"rank": None} for row in frames(0, "fetch", "main")]
    (stack,) = main_threads(run(stack_frames=pl.DataFrame(rows, schema_overrides={"rank": pl.Int32})))
    assert stack.rank == -1


@pytest.mark.parametrize(("named", "function"), [(None, "fetch"), ("MainThread", "watch")], ids=["no names", "named"])
def test_the_main_thread_of_a_dump_without_names_is_the_one_that_runs_the_script(
    named: str | None, function: str
) -> None:
    watch = [row | {"thread_name": named, "seq": 0} for row in frames(0, "watch", "run")]
    script = [row | {"thread_name": named and "Thread-1", "seq": 1} for row in frames(0, "fetch", "<module>")]
    rows = pl.DataFrame([*watch, *script], schema_overrides={"thread_name": pl.String})
    assert stacks(run(stack_frames=rows))[0].frames[0].function == function


def test_the_prefix_tree_tells_who_has_and_who_lacks_a_frame() -> None:
    rows = [*frames(0, "all_reduce", "main"), *frames(1, "fetch", "main"), *frames(2, "all_reduce", "main")]
    tree = prefix_tree(stacks(run(stack_frames=pl.DataFrame(rows))))
    assert [(n.depth, n.have, n.lack) for n in tree] == [(0, (0, 1, 2), ()), (1, (0, 2), (1,)), (1, (1,), (0, 2))]


@pytest.mark.parametrize(("inner", "said"), [("read_shard", "read_shard"), ("advance", "step")])
def test_the_reason_names_the_frame_that_tells_the_work_and_not_the_innermost(inner: str, said: str) -> None:
    waiting = [row for rank in (0, 2, 3) for row in frames(rank, "all_reduce", "main")]
    answer = decision(run(stack_frames=pl.DataFrame([*waiting, *frames(1, "step", inner, "main")])))
    assert answer is not None
    assert f"rank 1 is in {said} (a.py:7)" in {clue.why.partition(" while ")[0] for clue in answer.clues}


def test_runs_of_ranks_are_joined() -> None:
    assert spans([3, 1, 2, 9, 7]) == ["1-3", "7", "9"]


def page(found: Run) -> pages.Page:
    verdict = decide(list(culprit(found)), found, Coverage())
    return pages.Page(picture(found), verdict, "run", coverage=Coverage())


def test_the_document_fits_its_schema() -> None:
    schema = json.loads((files("forensics.report") / "_schema/hang-1.schema.json").read_text(encoding="utf-8"))
    document = json.loads("\n".join(pages.LAYOUT.render(page(run(op(0, 9), op(1, 8, done=True), op(2, 9))), "json")))
    jsonschema.validate(document, schema)
    assert (document["culprits"], document["last_common"]["seq"]) == ([1], 8)
    assert document["waits"][0]["awaited"] == [1]


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_nothing_of_a_hostile_dump_acts_in_the_page(form: str) -> None:
    found = run(op(0, 9, HOSTILE), op(1, 8, done=True), op(2, 9, HOSTILE))
    text = "\n".join(pages.LAYOUT.render(page(found), form))
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
