"""Torchrun's folders count on their own node; what the workers print tells the global rank."""

from __future__ import annotations

from pathlib import Path

from forensics.io.discover import discover


def made(root: Path, files: dict[str, str]) -> dict[str, int | None]:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {source.path: source.rank for source in discover(root).sources}


def test_the_tag_of_one_worker_places_its_node(tmp_path: Path) -> None:
    ranks = made(
        tmp_path,
        {
            "a/attempt_0/0/stderr.log": "[rank0]: warning\n",
            "a/attempt_0/1/stdout.log": "step 1\n",
            "b/attempt_0/0/stdout.log": "step 1\n",
            "b/attempt_0/1/stderr.log": "[rank3]: Traceback\n",
        },
    )
    assert ranks == {
        "a/attempt_0/0/stderr.log": 0,
        "a/attempt_0/1/stdout.log": 1,
        "b/attempt_0/0/stdout.log": 2,
        "b/attempt_0/1/stderr.log": 3,
    }


def test_one_node_out_of_the_middle_of_a_job_is_placed_too(tmp_path: Path) -> None:
    text = "INFO | rank={} | step 3\n"
    files = {f"x/attempt_0/{n}/stdout.log": text.format(8 + n) for n in range(3)}
    assert list(made(tmp_path, files).values()) == [8, 9, 10]


def test_the_rank_of_a_matrix_is_no_rank(tmp_path: Path) -> None:
    files = {f"x/attempt_0/{n}/stdout.log": "adapter: rank=16\n" for n in range(3)}
    assert list(made(tmp_path, files).values()) == [0, 1, 2]


def test_of_two_nodes_that_cannot_be_told_apart_no_rank_is_known(tmp_path: Path) -> None:
    files = {f"{node}/attempt_0/0/stdout.log": "step 1\n" for node in "ab"}
    assert list(made(tmp_path, files).values()) == [None, None]


def test_restarts_of_one_node_are_not_two_nodes(tmp_path: Path) -> None:
    files = {f"x/attempt_{k}/1/stdout.log": "step 1\n" for k in range(2)}
    assert list(made(tmp_path, files).values()) == [1, 1]
