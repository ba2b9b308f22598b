"""Values without names: every text at any depth, keys too; a value that cannot be looked into is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from forensics.case.identities import identities_of
from forensics.report.redacted import redacted
from forensics.store.run import Run, run_of

TOKEN = "hf_a1B2a1B2a1B2a1B2a1B2"


def run(*facts: tuple[str, str], name: str = "run", sources: tuple[str, ...] = ()) -> Run:
    keys, values = [k for k, _ in facts], [v for _, v in facts]
    tables = {"facts": pl.DataFrame({"key": keys, "value": values}, schema={"key": pl.String, "value": pl.String})}
    return run_of(name, {**tables, "sources": pl.DataFrame({"source": list(sources)}, schema={"source": pl.String})})


@dataclass(frozen=True)
class Page:
    text: str
    kind: str = "atlas"
    inner: tuple[object, ...] = ()
    by_node: dict[str, float] = field(default_factory=dict)
    points: np.ndarray | None = None


def test_texts_at_every_depth_and_keys_are_redacted_and_alike() -> None:
    page = Page("on atlas-07", inner=(["/home/rowan/x", ("by rowan@example.org",)],), by_node={"atlas-07": 0.5})
    shown = redacted(page, run(("host", '"atlas-07"')))
    assert shown == Page("on <host-1>", inner=(["/home/<user-1>/x", ("by <email-1>",)],), by_node={"<host-1>": 0.5})


def test_names_of_several_runs_are_hidden_in_what_they_have_in_common() -> None:
    one, two = run(("host", '"atlas"')), run(("user", '"rowan"'))
    assert redacted("rowan on atlas", one, two) == "<user-1> on <host-1>"


def test_two_keys_that_become_alike_lose_no_value() -> None:
    assert redacted({TOKEN: 1, TOKEN.replace("a", "b"): 2}) == {"<secret>": 1, "<secret> (2)": 2}


def test_words_of_our_own_and_values_without_words_stay() -> None:
    at, points = datetime(2026, 1, 2, tzinfo=UTC), np.array([1.0, 2.0])
    page = Page("x", inner=(1, None, True, 2.5, at, (0.5, 1.5)), points=points)
    shown = redacted(page, run(("host", '"atlas"')))
    assert (shown.kind, shown.inner) == ("atlas", page.inner)
    assert shown.points is points


def test_cells_of_a_frame_are_redacted_within_lists_and_structs_too() -> None:
    frame = pl.DataFrame({
        "n": [1, 2],
        "text": ["on atlas-07", None],
        "kind": pl.Series(["atlas-07", "b"], dtype=pl.Categorical),
        "many": [["atlas-07", "b"], []],
        "part": [{"a": "atlas-07"}, {"a": None}],
        "raw": [b"atlas-07", b""],
    })  # fmt: skip
    shown = redacted(frame, run(("host", '"atlas-07"')))
    assert "atlas" not in str(shown.rows())
    assert shown["n"].to_list() == [1, 2]
    assert shown["many"].to_list() == [["<host-1>", "b"], []]
    assert shown["text"].to_list() == ["on <host-1>", None]


@pytest.mark.parametrize("value", [object(), {1, 2}, Path("/home/rowan"), np.array(["rowan"])])
def test_a_value_of_an_unknown_kind_is_refused_and_not_shown(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be redacted"):
        redacted((value,))


@pytest.mark.parametrize(
    ("source", "host"),
    [
        ("tb/events.out.tfevents.1790000000.borealis.4242.0", "borealis"),
        ("tb/events.out.tfevents.1790000000.borealis", "borealis"),
        ("tb/events.out.tfevents.1790000000.h1.corp.example.12.3.v2", "h1.corp.example"),
        ("trace/borealis_4242.1790000000.pt.trace.json.gz", "borealis"),
        ("fr/comm_lib_trace_rank_n7-a_3", "n7-a"),
    ],
)
def test_a_host_by_which_a_writer_names_its_file_is_known(source: str, host: str) -> None:
    assert host in identities_of(run(sources=(source,))).hosts
    assert host not in redacted(source, run(sources=(source,)))


@pytest.mark.parametrize(("name", "short"), [("n7.corp.example", "n7"), ("7n.corp.example", None)])
def test_a_host_is_known_by_its_first_name_unless_that_begins_as_a_number(name: str, short: str | None) -> None:
    known = identities_of(run(sources=(f"tb/events.out.tfevents.1790000000.{name}.12.3.v2",))).hosts
    assert set(known) == {name, *([short] if short else [])}


@pytest.mark.parametrize("source", ["rank3_12.pt.trace.json", "logs/rank_3.log", "worker-1_7.pt.trace.json"])
def test_a_rank_in_the_name_of_a_file_is_no_host(source: str) -> None:
    assert identities_of(run(sources=(source,))).hosts == ()


def test_every_node_of_a_list_of_nodes_is_known_and_the_list_itself() -> None:
    listed = run(("host.slurm.nodelist", '"borg[098-100],atlas-7"'))
    assert {"borg098", "borg099", "borg100", "borg", "atlas-7"} <= set(identities_of(listed).hosts)
    assert redacted("borg099 of borg[098-100], gpu 3", listed).count("<host-") == 2
    assert identities_of(run(("slurm_nodelist", '"gpu[1-3]"'))).hosts == ()


def test_the_user_of_a_home_folder_in_a_path_is_known_by_his_name_alone() -> None:
    assert (
        redacted("rowan ran it", run(sources=("home/rowan/train.log",), name="/home/rowan/runs")) == "<user-1> ran it"
    )
