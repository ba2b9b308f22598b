"""Runs that ran out of memory, on the device or on the host, and runs whose memory is wrong though they ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from make._logs import (
    KEMPNER,
    MAIN,
    STEP,
    clock,
    done,
    falling,
    jsons,
    run_log,
    start,
    steady,
    traceback,
    waited,
)
from make.base import Label, Made, Noise, Series, Table, line, lines

_LIB = "/opt/py/site-packages/torch"
_FORWARD = ("/srv/job/model.py", 88, "forward", "scores = q @ k.transpose(-2, -1)")
_BACKWARD = (f"{_LIB}/_tensor.py", 626, "backward", "torch.autograd.backward(")
_ADAM = (f"{_LIB}/optim/adam.py", 168, "_init_group", 'state["exp_avg_sq"] = torch.zeros_like(p)')
_EVALUATE = ("/srv/job/train.py", 301, "evaluate", "logits = model(batch)")


def runs() -> Iterator[Made]:
    """Memory that grows, one request that is too large, memory of others, host memory, runs that ended."""
    yield from _growing()
    yield from _one_request()
    yield from _of_others()
    yield from _host()
    yield from _ended_well()
    yield from _creeping()


def oom(
    tried: float, allocated: float = 75.3, unused: float = 1.6, *, outside: float = 1.1, others: float = 0, gpu: int = 0
) -> str:
    """The message of torch's allocator; sizes in GiB."""
    process = allocated + unused + outside
    other = f"Process 81123 has {_size(others)} memory in use. " if others else ""
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {_size(tried)}. GPU {gpu} has a total capacity of 79.15 GiB of"
        f" which {_size(79.15 - process - others)} is free. {other}Including non-PyTorch memory, this process has {_size(process)}"
        f" memory in use. Of the allocated memory {_size(allocated)} is allocated by PyTorch, and {_size(unused)} is reserved by"
        " PyTorch but unallocated. If reserved but unallocated memory is large try setting"
        " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
    )


def _size(gib: float) -> str:
    return f"{gib:.2f} GiB" if gib >= 1 else f"{gib * 1024:.2f} MiB"


def _memory(allocated: Sequence[float], reserved: Sequence[float], first: int = 1, every: int = 1) -> str:
    count = len(allocated)
    columns = {
        "train/loss": falling(count),
        "gpu/allocated_gb": allocated,
        "gpu/reserved_gb": reserved,
        "gpu/total_gb": [79.15] * count,
    }
    return Table(columns, first, every).jsonl()


def _died(log: Sequence[str], error: str, *frames: tuple[str, int, str, str]) -> str:
    return lines(start(), log, traceback(error, MAIN, STEP, *frames))


_HELD = "{clock} | INFO | step {step} | loss {loss:.4f} | lr {lr:.2e} | mem_allocated_gib {mem:.3f} | mem_reserved_gib {held:.3f}"


def _noisy(values: Series, seed: int = 5) -> Series:
    return [one + shift for one, shift in zip(values, Noise(1, seed).on([0.02] * len(values)), strict=True)]


def _growing() -> Iterator[Made]:
    grows = _noisy(line(21.5, 0.44, 122))
    log = run_log({"loss": falling(122), "mem": grows, "held": [one + 1.6 for one in grows]}, _HELD)
    yield Made(
        "oom-leak-every-step",
        {"train.log": _died(log, oom(0.5), _FORWARD), "config.yaml": "model: tiny\ngpu_total_gib: 79.15\n"},
        Label("failed", "oom", ("leak_per_step",), onset=1, within=20),
    )
    yield Made(
        "oom-leak-in-metrics",
        {"metrics.jsonl": _memory(grows, [one + 1.6 for one in grows]),
         "train.log": _died(run_log({"loss": falling(122)}), oom(0.5), _FORWARD)},
        Label("failed", "oom", ("leak_per_step",), onset=1, within=20),
    )  # fmt: skip
    stairs = _noisy([24.0 + 9.2 * (at // 20) for at in range(118)])
    log = run_log({"loss": falling(118), "mem": stairs, "held": [one + 1.2 for one in stairs]}, _HELD)
    for at in (100, 80, 60, 40, 20):
        log.insert(at, f"{clock(30 + 2 * at)} | INFO | evaluation at step {at}: eval_loss {4.2 - at / 100:.4f}")
    yield Made(
        "oom-stairs-at-evaluations",
        {"train.log": _died(log, oom(2.5, 70.5, 1.2), _FORWARD)},
        Label("failed", "oom", ("leak_periodic",), onset=21, within=5),
    )
    level = _noisy([31.0] * 120)
    apart = [a + 2.0 + 0.36 * at for at, a in enumerate(level)]
    log = run_log({"loss": falling(120), "mem": level, "held": apart}, _HELD)
    yield Made(
        "oom-fragmentation-climbs",
        {"train.log": _died(log, oom(2.5, 31.0, 46.0), _BACKWARD)},
        Label("failed", "oom", ("fragmentation",), onset=None, says=("expandable", "fragment", "alloc_conf")),
    )
    reserved = _noisy(line(40.0, 0.3, 120))
    form = "{clock} | INFO | step {step} | loss {loss:.4f} | lr {lr:.2e} | max_memory_reserved_gib {held:.3f}"
    yield Made(
        "oom-reserved-alone-climbs",
        {"train.log": _died(run_log({"loss": falling(120), "held": reserved}, form), oom(2.5, 74.0, 2.0), _FORWARD)},
        Label("failed", "oom", ("device_memory_grows", "gpu_out_of_memory"), onset=1, within=120),
    )
    creep = _noisy(line(76.6, 0.012, 120))
    yield Made(
        "oom-creep-on-a-full-device",
        {"metrics.jsonl": _memory(creep, [one + 0.3 for one in creep]),
         "train.log": _died(run_log({"loss": falling(120)}), oom(0.5, 77.9, 0.3), _FORWARD)},
        Label("failed", "oom", ("creep_near_capacity", "leak_per_step", "gpu_out_of_memory"), onset=1, within=120),
    )  # fmt: skip


def _one_request() -> Iterator[Made]:
    config = {
        "per_device_train_batch_size": 16, "gradient_accumulation_steps": 1, "gradient_checkpointing": False,
        "max_seq_length": 4096, "vocab_size": 128000, "attn_implementation": "eager", "max_steps": 3000,
    }  # fmt: skip
    yield Made(
        "oom-optimizer-at-first-step",
        {"train.err": lines(start(), f"{clock(40)} | INFO | step 1 | loss 11.7712 | grad_norm 3.114 | lr 3.00e-06",
                            traceback(oom(0.75, 77.3, 0.4), MAIN, STEP, _ADAM)),
         "config.json": jsons(config)},
        Label("failed", "oom", onset=1, says=("batch", "optimizer", "shard", "8-bit", "offload", "gradient checkpointing")),
    )  # fmt: skip
    flat = _noisy([52.0] * 80)
    yield Made(
        "oom-logits-of-a-long-batch",
        {"metrics.jsonl": _memory(flat, [one + 1 for one in flat], 10, 10),
         "train.log": _died(run_log({"loss": falling(80)}, first=10, every=10), oom(31.25, 52.0, 1.0), ("/srv/job/model.py", 140, "loss_of", "logits = logits.float()")),
         "config.json": jsons(config)},
        Label("failed", "oom", ("logits_too_large", "one_large_request", "gpu_out_of_memory"), onset=800, within=10, says=("logit", "batch", "sequence", "chunk", "length")),
    )  # fmt: skip
    log = run_log({"loss": falling(100)})
    yield Made(
        "oom-in-evaluation",
        {"train.log": lines(start(), log, f"{clock(300)} | INFO | evaluating 512 batches",
                            traceback(oom(9.77, 70.0), MAIN, _EVALUATE, _FORWARD))},
        Label("failed", "oom", ("oom_in_evaluation", "gpu_out_of_memory"), onset=100, says=("eval", "batch")),
    )  # fmt: skip
    yield Made(
        "oom-while-generating",
        {"train.log": lines(start(), log, f"{clock(300)} | INFO | sampling 64 completions",
                            traceback(oom(3.1, 75.0), MAIN, ("/srv/job/sample.py", 61, "generate", "cache = grow(cache, tokens)")))},
        Label("failed", "oom", ("oom_in_evaluation", "gpu_out_of_memory"), onset=100, says=("eval", "generat", "batch", "sample")),
    )  # fmt: skip
    files = {}
    for rank in range(4):
        used = steady(61.5 if rank == 3 else 44.0, 90, 0.002, rank)
        form = f"{{clock}} | INFO | rank={rank} | step {{step}} | loss {{loss:.4f}} | mem_allocated_gib {{mem:.3f}}"
        log = run_log({"loss": falling(90, seed=rank), "mem": used}, form)
        error = traceback(oom(16, 61.5, gpu=3), MAIN, STEP, _FORWARD) if rank == 3 else [waited(rank)]
        files[f"logs/rank{rank}.log"] = lines(log, error)
    yield Made("oom-one-rank-holds-more", files, Label("failed", "oom", onset=90, within=1, culprits=(3,)))
    first = run_log({"loss": falling(120)})
    saved = [f"{clock(200 + at)} | INFO | saved checkpoint to out/step_{at}.pt" for at in (100,)]
    second = run_log({"loss": falling(2, 3.6)}, first=101)
    yield Made(
        "oom-just-after-resume",
        {"train.log": lines(start(), first[:100], saved, first[100:], f"{clock(900)} | INFO | resumed from checkpoint out/step_100.pt at step 100", second,
                            traceback(oom(0.5), MAIN, STEP, _BACKWARD))},
        Label("failed", "oom", onset=102, within=1),
    )  # fmt: skip


def _of_others() -> Iterator[Made]:
    log = run_log({"loss": falling(70)})
    yield Made(
        "oom-another-process-on-the-gpu",
        {"train.log": _died(log, oom(1, 35.3, 0.5, others=41.5), _FORWARD)},
        Label("failed", "oom", ("others_on_device", "gpu_shared_with_another_process"), onset=70, says=("process", "device", "other", "nvidia-smi")),
    )  # fmt: skip
    yield Made(
        "oom-outside-the-allocator",
        {"train.log": _died(log, oom(2, 61.2, 1.1, outside=16.5), _FORWARD)},
        Label("failed", "oom", ("outside_allocator", "gpu_out_of_memory"), onset=70),
    )
    bus = "RuntimeError: DataLoader worker (pid 71234) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit."
    yield Made(
        "crash-shared-memory-full",
        {"train.log": _died(log, bus, (f"{_LIB}/utils/data/dataloader.py", 1133, "_try_get_data", "raise RuntimeError("))},
        Label("failed", "crash|oom", ("shared_memory_exhausted",), onset=70, says=("shm", "shared", "workers")),
    )  # fmt: skip


def _host() -> Iterator[Made]:
    rss = _noisy(line(8.2, 0.9, 120), 9)
    metrics = Table({"loss": falling(120), "rss_gb": rss}, 10, 10).jsonl()
    log = lines(start(), run_log({"loss": falling(120)}, first=10, every=10))
    yield Made(
        "oom-host-killed-silently",
        {"metrics.jsonl": metrics, "train.log": log + "run.sh: line 14: 81234 Killed                  python train.py --config big.yaml\n"},
        Label("failed", "oom", ("host_leak", "host_out_of_memory"), onset=10, within=100),
    )  # fmt: skip
    kernel = "[812345.678901] Out of memory: Killed process 81234 (python) total-vm:412345678kB, anon-rss:251234567kB, file-rss:0kB"
    yield Made(
        "oom-kernel-killed-process",
        {"train.log": log, "dmesg.txt": lines("[812340.000001] python invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0", kernel)},
        Label("failed", "oom", ("host_out_of_memory",)),
    )  # fmt: skip
    yield Made(
        "oom-slurm-cgroup",
        {"slurm-77.out": log + "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.\nsrun: error: node7: task 0: Out Of Memory\n"},
        Label("failed", "oom", ("host_out_of_memory",), onset=1200, within=10),
    )  # fmt: skip
    yield Made(
        "suspect-host-memory-triples",
        {"metrics.jsonl": metrics, "train.log": log + done(1200) + "\n"},
        Label("suspect", "oom", ("host_leak",)),
    )


def _ended_well() -> Iterator[Made]:
    grows = _noisy(line(22.0, 0.2, 150))
    log = run_log({"loss": falling(150)})
    yield Made(
        "suspect-leak-in-a-short-run",
        {"metrics.jsonl": _memory(grows, [one + 1.5 for one in grows]), "train.log": lines(start(), log, done(150))},
        Label("suspect", "oom", ("leak_per_step",)),
    )
    stairs = _noisy([24.0 + 3.1 * (at // 30) for at in range(150)])
    yield Made(
        "suspect-memory-in-stairs",
        {"metrics.jsonl": _memory(stairs, [one + 1.5 for one in stairs]), "train.log": lines(start(), log, done(150))},
        Label("suspect", "oom", ("leak_periodic",)),
    )
    full = run_log({"loss": falling(150), "mem": steady(78.3, 150, 0.001)}, KEMPNER, step_s=0.2)
    yield Made(
        "healthy-full-device",
        {"run.log": lines("[rank 0] INFO     Starting training: 150 steps, world_size=8", full,
                          "[rank 0] INFO     Training complete: 150 steps, 7,680,000 tokens"),
         "metrics.jsonl": _memory(steady(77.9, 150, 0.0005), steady(78.4, 150, 0.0002))},
        Label("healthy"),
    )  # fmt: skip
    found = [part for size in (64, 48, 32) for part in (
        f"{clock(12)} | INFO | trying batch size {size}", f"{clock(14)} | WARNING | {oom(12)}"[:500])]  # fmt: skip
    yield Made(
        "healthy-batch-size-search",
        {"train.log": lines(start(), found, f"{clock(20)} | INFO | found batch size 24", log, done(150))},
        Label("healthy"),
    )


def _creeping() -> Iterator[Made]:
    """The log that ends in the error shows the creep, too: one order of time holds for both."""
    peaks = [*[77.9] * 40, *[78.1] * 40, *[78.7] * 40]
    form = "{clock} | INFO | step {step} | loss {loss:.4f} | lr {lr:.2e} | max_memory_reserved_gib {held:.3f}"
    for name, held in (("oom-creep-in-the-log-that-died", peaks), ("oom-level-in-the-log-that-died", [78.7] * 120)):
        causes = ("creep_near_capacity",) if held is peaks else ("gpu_out_of_memory", "one_large_request")
        log = run_log({"loss": falling(120), "held": held}, form)
        label = Label("failed", "oom", causes, onset=41 if held is peaks else 120, within=2)
        yield Made(name, {"train.log": _died(log, oom(0.5, 77.9, 0.4, outside=0.5), _FORWARD)}, label)
