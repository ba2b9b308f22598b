"""Two runs that failed the same way have one root, whatever else they print; two failures in alike words have two."""

from __future__ import annotations

import random
import re
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import pytest

from forensics.api import triage
from forensics.identity import bare, entity_of, root_of, rows, spoken
from forensics.model import Confidence, Evidence, Finding, Severity, Shape

#: Error lines with places for what differs between two runs: rank, host, stamp, address, run id, size, count, port.
TEMPLATES = (
    "{stamp} ERROR [rank{rank}] {host}: RuntimeError: CUDA out of memory. Tried to allocate {size} GiB. GPU {rank} has",
    "{host}: [rank{rank}]: KeyError: 'rope_scaling'",
    "[rank{rank}]: ValueError: cannot reshape array of size {count} into shape ({count},{rank})",
    "{host}: [rank{rank}]: torch.distributed.DistBackendError: NCCL error, NCCL version 2.{rank}.5, peer {address}",
    "slurmstepd: error: *** JOB {count} ON {host} CANCELLED AT {stamp} DUE TO TIME LIMIT ***",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/{run}/checkpoints/step_{count}/model.pt'",
    "[{stamp}] Out of memory: Killed process {count} (python) total-vm:{count}kB, anon-rss:{count}kB",
    "ConnectionError: HTTPSConnectionPool(host='{host}.example.com', port={port}): Max retries exceeded",
    "[E{port} ProcessGroupNCCL.cpp:{port}] [Rank {rank}] Watchdog caught a timeout: OpType=ALLREDUCE ({count} ms)",
    "NVRM: Xid (PCI:0000:{rank}b:00): 79, pid={count}, GPU has fallen off the bus.",
    "RuntimeError: DataLoader worker (pid {count}) is killed by signal: Killed.",
    "OSError: [Errno 28] No space left on device: '/scratch/{run}/step_{count}.pt'",
    "wandb.errors.CommError: run {run} not found ({address})",
    "AssertionError: loss {size} of sample {count} on {host}:{port}",
    "torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate {size} MiB. GPU {rank}",
    "Fatal Python error: Segmentation fault at {address}, thread {address}",
    "{stamp} [{host}] FATAL: worker {count} lost heartbeat for {size}s",
    "terminate called after throwing an instance of 'c10::Error' what(): address {address} is not mapped",
    "ray.exceptions.ActorDiedError: The actor died: ip {rank}0.1.2.3:{port}, pid={count}",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied ({count}x{rank} and {count}x{port})",
    "ConnectionError: HTTPSConnectionPool(host='{host}', port={port}): Max retries exceeded with url: /api/{run}",
    "ClientError: An error occurred (SlowDown): Please reduce your request rate. (RequestId: {request})",
    "RepositoryNotFoundError: 404 Client Error. (Request ID: Root=1-{request};{run})",
    "DistNetworkError: The client socket has timed out while trying to connect to ({host}, {port}).",
    "OSError: [Errno 5] Input/output error: '/tmp/{temporary}'",
    "c10d: connection to {host}:{port} was lost",
    "RuntimeError: no route to {host}.hpc.example.edu",
    "tarfile.ReadError: unexpected end of data in /data/{dated}/train-{count}.tar",
    "MisconfigurationException: You requested gpu: {several}",
    "srun: error: {any_host}: task {rank}: Bus error",
    "srun: error: Node failure on {any_host}",
    "slurmstepd: error: *** JOB {count} ON {any_host} CANCELLED AT {stamp} DUE TO JOB REQUEUE ***",
    "RuntimeError: rank {rank} was lost on node {any_host}",
    "RewardError: scoring of batch {count} gave up: Connection refused by {host}",
    "pod {dated}-{rank} was terminated: OOMKilled",
    "['/opt/{run}/python', '-u', 'train.py', '--local_rank={rank}', '--data', '{dated}'] exits with return code = -11",
    "CalledProcessError: Command '['/srv/{run}/nvcc', '-o', '{run}/op.so']' returned non-zero exit status 1.",
)
VARIANTS = 12
DIFFERENT = (
    "KeyError: 'rope_scaling'",
    "KeyError: 'labels'",
    "RuntimeError: expected scalar type Float but found Half",
    "RuntimeError: expected scalar type Half but found Float",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
    "NVRM: Xid (PCI:0000:3b:00): 48, pid=1, GPU has fallen off the bus.",
    "OSError: [Errno 28] No space left on device",
    "OSError: [Errno 5] Input/output error",
    "ModuleNotFoundError: No module named 'flash_attn'",
    "ModuleNotFoundError: No module named 'apex'",
    "exitcode: -9",
    "exitcode: -11",
    "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE)",
    "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(OpType=BROADCAST)",
    "RuntimeError: CUDA error: device-side assert triggered",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "RuntimeError: size mismatch for model.wpe.weight",
    "RuntimeError: size mismatch for model.mlp.bias",
    "OSError: [Errno 5] Input/output error: '/data/tmp_weights'",
    "OSError: [Errno 5] Input/output error: '/data/tmp_samples'",
    "RuntimeError: failed to connect to rendezvous",
    "RuntimeError: failed to connect to scheduler",
    "RuntimeError: expected torch.float32 but got torch.float16",
    "RuntimeError: expected torch.float16 but got torch.float32",
    "ValueError: int8 weights cannot be trained",
    "ValueError: int4 weights cannot be trained",
    "ConnectionError: the server refused the request",
    "ConnectionError: the server dropped the request",
    "RuntimeError: refused by the scheduler",
    "RuntimeError: refused by the quota",
    "ClientResponseError: 401, message=''",
    "ClientResponseError: 500, message=''",
    "OSError: libcudart.so.11.0: cannot open shared object file",
    "OSError: libcudart.so.12: cannot open shared object file",
    "['python', 'train.py', '--lr', '1e-3'] exits with return code = 1",
    "['python', 'train.py', '--lr', '1e-3'] exits with return code = -6",
    "CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.",
    "CalledProcessError: Command '['ninja', '-v']' timed out after 600 seconds",
    "KeyError: \"None of ['labels', 'ids'] are in the columns\"",
    "KeyError: \"None of ['labels', 'mask'] are in the columns\"",
)


def printed(template: str, seed: int) -> str:
    rng = random.Random(seed)
    day = f"2026-{rng.randrange(1, 13):02d}-{rng.randrange(1, 28):02d}"
    minute, digit = f"{rng.randrange(10, 24)}", rng.randrange(10)
    return template.format(
        rank=rng.randrange(8),
        host=rng.choice(("node07", "gpu-a17", "r6i5n1", "ip-10-0-31-4", "trn2-worker-003")),
        stamp=rng.choice((f"{day} {minute}:14:05", f"{day}T08:{minute}:07.{rng.randrange(1000):03d}")),
        address=f"0x{rng.getrandbits(44):012x}",
        run=rng.choice((f"run-20260103_101112-a{digit}b{digit}c7d9", f"exp_{digit}7")),
        size=f"{rng.uniform(1, 900):.2f}",
        count=rng.randrange(10, 10**7),
        port=rng.randrange(1000, 9999),
        any_host=rng.choice(("node07", "atlas", "boreas.hpc", "gpu-a")),
        dated=rng.choice((f"{day}_{minute}-14-05", f"calm-dew-4{digit}", f"{day}")),
        several=list(range(1 + rng.randrange(8))),
        request=rng.choice((f"{rng.getrandbits(64):016X}", f"{rng.getrandbits(32):08x}-{rng.getrandbits(96):024x}")),
        temporary=f"tmp{''.join(rng.choices('abcdefghijklmnopqrstuvwxyz0123456789_', k=8))}",
    )  # fmt: skip


@pytest.mark.parametrize("template", TEMPLATES)
def test_one_failure_has_one_root_whatever_rank_host_time_address_or_size_a_run_prints(template: str) -> None:
    seen = {bare(printed(template, seed)) for seed in range(VARIANTS)}
    assert len(seen) == 1, seen
    assert len({root_of("crash", "uncaught_exception", printed(template, seed)) for seed in range(VARIANTS)}) == 1


def test_each_row_of_the_table_takes_something_of_its_example_and_names_where_it_is_from() -> None:
    lines = (files("forensics") / "identity.tsv").read_text().splitlines()
    cells = [line.split("\t") for line in lines if not line.startswith("#")]
    assert len(cells) == len(rows())
    for (pattern, mask), (_, _, example, source) in zip(rows(), cells, strict=True):
        assert re.sub(pattern, mask, example) != example, example
        assert source


def test_different_failures_in_alike_words_have_different_roots() -> None:
    texts = [*DIFFERENT, *(printed(template, 1) for template in TEMPLATES if "Errno" not in template)]
    texts = [text for text in texts if text not in DIFFERENT[4:5] and text != DIFFERENT[0]]  # two templates say these
    alike = [(a, b) for a, b in combinations(texts, 2) if root_of("crash", "", a) == root_of("crash", "", b)]
    assert len(list(combinations(texts, 2))) >= 100
    assert alike == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "Feb 12 03:04:05 node033 kernel: NVRM: Xid (PCI:0000:4e:00): 79, GPU has fallen off the bus.",
            "Jul  2 13:04:05 gpu.cluster.local kernel: NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.",
        ),
        (
            "node033:831:990 [3] transport/net_ib.cc:1694 NCCL WARN NET/IB : Got completion from 10.4.2.7<51230>",
            "ip-10-2-33-41:8:99 [0] transport/net_ib.cc:1701 NCCL WARN NET/IB : Got completion from 10.9.2.7<5123>",
        ),
    ],
    ids=["a log of the system", "NCCL"],
)
def test_who_wrote_a_line_and_when_is_no_part_of_its_words(first: str, second: str) -> None:
    assert root_of("crash", "x", first) == root_of("crash", "x", second)
    assert bare(first).startswith(("NVRM: Xid", "NCCL WARN"))


def test_an_address_of_ipv6_without_its_zeros_is_a_host_and_names_of_cpp_are_none() -> None:
    said = "NCCL WARN Got completion from localGid {} hca mlx5_0"
    assert len({bare(said.format(a)) for a in ("fe80::9e50", "fe80::1e:c8ff:fe12:3", "2001:db8::a", "fd00:1::7")}) == 1
    assert bare("c10d::add failed") != bare("c10d::bad failed")
    assert "aten::add" in bare("RuntimeError: aten::add failed")


def test_words_that_only_begin_like_a_host_are_kept() -> None:
    assert bare("Max 12 workers may start") != bare("Max 12 workers may stop")
    assert bare("loader:3:4 is late") != bare("saver:3:4 is late")


def test_one_text_of_two_shapes_or_of_two_causes_is_two_failures() -> None:
    roots = {
        root_of(*key, "loss") for key in (("nan", "bad_sample"), ("nan", "loss_scale_collapse"), ("oom", "bad_sample"))
    }
    assert len(roots) == 3


def test_a_number_proves_by_the_name_of_its_metric_and_not_by_its_value_or_step() -> None:
    def finding(name: str, value: float, step: int) -> Finding:
        proof = Evidence("log", quote=f"{name} = {value} at step {step}", step=step, name=name, value=value)
        return Finding("NAN001", Shape.NAN, Severity.ERROR, Confidence.HIGH, "t", "b", (proof,), cause="unknown")

    nan = float("nan")
    assert finding("loss", nan, 7).identity == finding("loss", float("inf"), 912).identity
    assert finding("loss", nan, 7).identity.root != finding("grad_norm", nan, 7).identity.root


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("OSError: cannot read 'ckpt/step_400/model.pt'", "ckpt/step_400/model.pt"),
        ("ValueError: bad record in shard_0042.parquet", "shard_0042.parquet"),
        ("ValueError: sample 1234 has no label", "sample 1234"),
        ("NVRM: Xid (PCI:0000:3b:00): 79", "PCI:0000:3b:00"),
        ("RuntimeError: in /home/me/train.py line 12", None),
        ("KeyError: 'labels'", None),
    ],
)
def test_an_entity_is_what_another_try_would_meet_again(text: str, entity: str | None) -> None:
    assert entity_of(text) == entity


@pytest.mark.parametrize("stamp", ["[1,3]<stderr>:2021-06-18 14:34:09.873402: ", "[Fri Jun 18 14:34:09 2021] "])
def test_what_mpirun_and_dmesg_put_before_a_line_is_none_of_its_words(stamp: str) -> None:
    assert spoken(f"{stamp}NVRM: GPU has fallen off the bus") == "NVRM: GPU has fallen off the bus"
    assert spoken("Fri Jun comes late") == "Fri Jun comes late"


def died(place: Path, *said: str) -> str:
    steps = [f"step={i} loss={3 - 0.01 * i:.4f}" for i in range(1, 41)]
    frame = ["Traceback (most recent call last):", '  File "train.py", line 31, in main', "    load(path)"]
    place.mkdir()
    (place / "train.log").write_text("\n".join([*steps, *frame, *said]) + "\n")
    known = triage(place).verdict.identity
    assert known is not None
    return known.root


def test_what_a_message_only_announces_tells_failures_apart_and_what_follows_a_whole_one_does_not(
    tmp_path: Path,
) -> None:
    begins = "RuntimeError: Error(s) in loading state_dict for GPT:"
    sizes = ("size mismatch for {}: copying a param with shape torch.Size([{}, 8])", ("a.wpe.weight", "a.mlp.bias"))
    first, second = (died(tmp_path / name, begins, f"\t{sizes[0].format(name, 7)}") for name in sizes[1])
    assert first != second
    assert died(tmp_path / "again", begins, f"\t{sizes[0].format(sizes[1][0], 9)}") == first
    whole = "RuntimeError: the input is too long"
    assert died(tmp_path / "one", whole, "Seen by ada.") == died(tmp_path / "two", whole, "Seen by bob.")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("2m          Warning   Evicted     pod/w-2   The node was low", "Evicted     pod/w-2   The node was low"),
        ("2m is too short", "2m is too short"),
        ("17 2031-05-06 07:08:09 disk is full", "disk is full"),
    ],
)
def test_what_stands_before_the_words_is_left_out_whole_or_not_at_all(line: str, words: str) -> None:
    assert spoken(line) == words
