"""One failure has one root, whatever rank, host, day, address, process id or size its run prints, and in what order."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import forensics

_DUMP = "nccl_trace_rank_{}.json"


def _torn(rank: int) -> str:
    return "\n".join(
        [
            f"2026-03-0{1 + rank % 2} 12:00:{step:02d} [rank {rank}] step {step} loss {3 - step / 50:.3f}"
            for step in range(1, 30)
        ]
    )


def _crash() -> dict[str, str]:
    trace = 'Traceback (most recent call last):\n  File "/srv/job/train.py", line 88, in <module>\n    step()\n'
    words = "RuntimeError: device 0x7f31a0c2 lost after 31.20 GiB on host node014, pid=41822"
    return {
        f"logs/rank_{rank}.log": f"{_torn(rank)}\n" + (trace + words + "\n" if rank == 1 else "") for rank in (0, 1)
    }


def _stopped() -> dict[str, str]:
    said = "slurmstepd: error: *** JOB 48213 ON node014 CANCELLED AT 2026-03-01T13:00:00 DUE TO TIME LIMIT ***"
    return {"slurm-48213.out": f"{_torn(0)}\n{said}\n"}


def _memory() -> dict[str, str]:
    said = (
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.50 GiB. GPU 1 has a total capacity "
        "of 79.15 GiB of which 1.12 GiB is free. Process 41822 has 78.02 GiB memory in use."
    )
    trace = '[rank1]: Traceback (most recent call last):\n[rank1]:   File "/srv/job/train.py", line 88, in <module>\n'
    return {"logs/rank_0.log": f"{_torn(0)}\n", "logs/rank_1.log": f"{_torn(1)}\n{trace}{said}\n"}


def _parted() -> dict[str, str]:
    """Ranks 0 and 1 wait in different collectives, as their flight recorders say."""
    files: dict[str, str] = {}
    for rank, name in enumerate(("nccl:all_reduce", "nccl:broadcast")):
        entry = {
            "frames": [{"name": "sync", "filename": "/srv/job/loop.py", "line": 88}],
            "record_id": 12,
            "pg_id": 0,
            "process_group": ["0", "default_pg"],
            "collective_seq_id": 13,
            "p2p_seq_id": 0,
            "op_id": 13,
            "profiling_name": name,
            "time_created_ns": 1767262500123456789,
            "input_sizes": [[64, 8]],
            "input_dtypes": ["Float"],
            "output_sizes": [[64, 8]],
            "output_dtypes": ["Float"],
            "state": "started",
            "is_p2p": False,
            "retired": False,
            "timeout_ms": 600000,
        }
        groups = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
        reached = {"last_enqueued_collective": 13, "last_started_collective": 13, "last_completed_collective": 12}
        dump = {"version": "2.5", "pg_config": groups, "pg_status": {"0": reached}, "entries": [entry]}
        files[_DUMP.format(rank)] = json.dumps(dump)
    return files


RUNS: Mapping[str, Callable[[], dict[str, str]]] = {
    "an error of one rank": _crash,
    "a time limit": _stopped,
    "memory": _memory,
    "ranks in different collectives": _parted,
}
#: What may differ between two runs of one failure, by words.
CHANGES: Mapping[str, Callable[[str, random.Random], str]] = {
    "day": lambda text, rng: text.replace("2026-03-0", f"2026-{rng.randrange(4, 10):02d}-1"),
    "host": lambda text, rng: text.replace("node014", rng.choice(("gpu-a17", "nid004142", "ip-10-0-31-4"))),
    "address": lambda text, rng: text.replace("0x7f31a0c2", f"0x{rng.getrandbits(40):x}"),
    "process": lambda text, rng: text.replace("41822", str(rng.randrange(100, 10**6))),
    "job": lambda text, rng: text.replace("48213", str(rng.randrange(1000, 10**7))),
    "size": lambda text, rng: re.sub(r"\d+\.\d\d GiB", lambda _: f"{rng.uniform(1, 79):.2f} GiB", text),
    "line": lambda text, rng: text.replace("line 88", f"line {rng.randrange(10, 999)}"),
    "rank": lambda text, _: re.sub(r"(rank[ _]?)([01])\b", lambda found: f"{found[1]}{1 - int(found[2])}", text),
}
SEEDS = 3


def root(files: Mapping[str, str]) -> str:
    return _root_of(tuple(files.items()))


@cache
def _root_of(files: tuple[tuple[str, str], ...]) -> str:
    """What is the same to the letter, as a run without a host's name is under any, is judged once."""
    with TemporaryDirectory() as place:
        for name, text in files:
            path = Path(place) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        verdict = forensics.triage(Path(place)).verdict
    assert verdict.identity is not None
    return verdict.identity.root


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_failed_the_same_way_has_the_same_root(name: str, change: str) -> None:
    files = RUNS[name]()
    expected = root(files)
    for seed in range(SEEDS):
        rng = random.Random(f"{name} {change} {seed}")
        changed = {CHANGES[change](path, rng): CHANGES[change](text, rng) for path, text in files.items()}
        names = sorted(changed, key=lambda _: rng.random())
        assert root({path: changed[path] for path in names}) == expected


def test_failures_of_different_causes_have_different_roots() -> None:
    roots = {name: root(made()) for name, made in RUNS.items()}
    assert len(set(roots.values())) == len(RUNS)


def _raised(words: str, *frames: str) -> dict[str, str]:
    """Rank 1 of two raises an error, whose frames are given from the outer one to the inner one."""
    places = (frame.split() for frame in frames)
    trace = "".join(f'  File "{path}", line {line}, in {name}\n    work()\n' for path, line, name in places)
    return {
        "logs/rank_0.log": f"{_torn(0)}\n",
        "logs/rank_1.log": f"{_torn(1)}\nTraceback (most recent call last):\n{trace}{words}\n",
    }


_INDEX = "IndexError: list index out of range"
_RESET = "ConnectionResetError: [Errno 104] Connection reset by peer"
_FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.50 GiB. GPU 1 has a total capacity of 79.15 GiB"
)
_PACK, _SCORE = "/srv/a/data/pack.py 12 pack", "/srv/a/eval/score.py 90 score"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (_raised(_INDEX, _PACK), _raised(_INDEX, _SCORE), False),
        (_raised(_INDEX, _PACK), _raised(_INDEX, "/home/b/run-7/data/pack.py 140 pack"), True),
        (_raised(_INDEX, _PACK), _raised(_INDEX, _PACK, "/v/lib/python3.11/site-packages/torch/x.py 3 f"), True),
        (_raised(_RESET, _PACK), _raised(_RESET, _SCORE), True),
        (_raised(_FULL, "/srv/a/model.py 7 forward"), _raised(_FULL, "/srv/a/eval.py 7 evaluate"), False),
        (_raised(_FULL, "/srv/a/model.py 7 forward"), _raised(_FULL, "/srv/a/mlp.py 60 forward"), True),
    ],
    ids=["two places", "a line that moved", "inside a library", "a network", "two phases of memory", "one phase"],
)
def test_an_error_of_the_program_is_the_one_of_its_place_and_memory_that_ran_out_is_that_of_its_phase(
    one: Mapping[str, str], other: Mapping[str, str], same: bool
) -> None:
    assert (root(one) == root(other)) is same
