"""Whole runs with what machines and tools leave beside a log: dumps, stacks, traces, snapshots, GPU logs, evaluations."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from forensics.values import replace
from make._job import BEGAN, KEY_ERROR, Job, checkpoints, fixture, job, noise, script, settings
from make.base import NAN, Label, Made, Noise, line

_DONE = "training complete\n"
_CAUSES, _CODE = ("uncaught_exception", "crash_all_ranks", "bad_config"), ("code", "line", "frame", "key")
_T0_NS = 1_790_000_000_000_000_000
Files = dict[str, str | bytes]


def runs() -> Iterator[Made]:
    """Every run of this module."""
    for part in (_hangs, _launchers, _memory, _hosts, _traces, _evaluations, _settings):
        yield from part()


def _run(name: str, label: Label, files: Files) -> Made:
    return Made(f"format-{name}", files, label)


def _watchdog(rank: int, seq: int) -> str:
    return (
        f"[rank{rank}]:[E615 15:37:0{rank}.123456789 ProcessGroupNCCL.cpp:685] [Rank {rank}] Watchdog caught collective operation"
        f" timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for"
        f" 60004{rank} milliseconds before timing out.\n"
    )


def _dump(late: bool, *, backend: str = "nccl", world: int = 4) -> bytes:
    maker = script("hang_files")
    group = ("0", "default_pg")
    entries = [
        maker.entry(at, f"{backend}:all_reduce", group, at + 1, time_discovered_completed_ns=_T0_NS + at * 1_100_000)
        for at in range(12)
    ]
    if not late:
        entries.append(maker.entry(12, f"{backend}:all_reduce", group, 13, state="scheduled", retired=False))
    return maker.Pickled().of(maker.dump(entries, {"0": ("default_pg", str(list(range(world))))}))


def _stack(rank: int, *leaf: str) -> str:
    pid = 4700 + rank
    return (
        f"Process {pid}: python3 -u train.py --local-rank={rank}\nPython v3.11.9 (/usr/bin/python3.11)\n\n"
        f'Thread {pid} (idle): "MainThread"\n' + "".join(f"    {one}\n" for one in leaf) + "    main (train.py:160)\n"
    )


_WAITING = ("all_reduce (torch/distributed/distributed_c10d.py:2810)", "train_step (train.py:118)")
_LOADING = ("read_shard (shards.py:57)", "next_batch (loader.py:31)")


def _hangs() -> Iterator[Made]:
    """Ranks that wait for one: recorder dumps, stacks of every tool, states of processes."""
    one = job(60, seed=101, total=400)
    logs: Files = {f"logs/rank_{rank}.log": one.log() + ("" if rank == 2 else _watchdog(rank, 13)) for rank in range(4)}
    dumps: Files = {f"fr/nccl_trace_rank_{rank}": _dump(rank == 2) for rank in range(4)}
    waits = ("never_entered", "skipped_collective", "uneven_data", "data_stall")
    label = Label("failed", "hang", waits, onset=60, within=1, culprits=(2,))
    reads = replace(
        label,
        causes=("slow_storage_read", "data_stall", "host_stall_loop"),
        says=("storage", "loader", "data", "shard"),
    )
    frozen = replace(label, causes=("frozen_process",), says=("signal", "stopped", "continue", "host", "cont"))
    yield _run("recorder-hang", label, {**logs, **dumps, "config.yaml": settings(max_steps=400, world_size=4)})
    stacks: Files = {
        f"stacks/pyspy_rank{rank}.txt": _stack(rank, *(_LOADING if rank == 2 else _WAITING)) for rank in range(4)
    }
    yield _run("pyspy-hang", reads, {**logs, **stacks})
    yield _run("recorder-pyspy-hang", reads, {**logs, **dumps, **stacks, **checkpoints(40)})
    frames = {
        False: [
            ("all_reduce", "/opt/py/site-packages/torch/distributed/distributed_c10d.py", 2810),
            ("train_step", "/srv/job/train.py", 118),
        ],
        True: [("clock_nanosleep", "libc.so.6", 0), ("next_batch", "/srv/job/loader.py", 31)],
    }
    printed: Files = {}
    for rank in range(4):
        pid = 4700 + rank
        thread = {
            "pid": pid, "thread_id": 139_000_000_000 + rank, "thread_name": "MainThread", "os_thread_id": pid, "active": False,
            "owns_gil": rank == 2, "process_info": {"pid": pid, "command_line": f"python3 train.py --local_rank {rank}"},
            "frames": [{"name": name, "filename": file, "line": at} for name, file, at in frames[rank == 2]],
        }  # fmt: skip
        printed[f"stacks/pyspy_rank{rank}.json"] = json.dumps([thread], indent=1)
    yield _run("pyspy-json-hang", reads, {**logs, **printed})
    quiet: Files = {f"logs/rank_{rank}.log": one.log() for rank in range(4)}
    faults: Files = {}
    for rank in range(4):
        where = (
            ("/srv/job/loader.py", 31, "next_batch")
            if rank == 2
            else ("/opt/py/site-packages/torch/distributed/distributed_c10d.py", 2810, "all_reduce")
        )
        faults[f"stacks/faulthandler_rank{rank}.txt"] = (
            f'Timeout (0:10:00)!\nThread 0x00007f0{rank} (most recent call first):\n  File "{where[0]}", line {where[1]} in {where[2]}\n'
            '  File "/srv/job/train.py", line 118 in train_step\n  File "/srv/job/train.py", line 160 in <module>\n'
        )
    yield _run("faulthandler-hang", reads, {**quiet, **faults})
    status = script("hang_files").STATUS
    states: Files = {
        f"proc/proc_rank{rank}.txt": (status if rank == 2 else status.replace("T (stopped)", "S (sleeping)").replace("do_signal_stop", "futex_wait_queue"))
        .replace("4711", str(4700 + rank)) for rank in range(4)
    }  # fmt: skip
    yield _run("proc-stopped-hang", frozen, {**logs, **states})
    gloo: Files = {f"fr/trace_rank_{rank}": _dump(rank == 0, backend="gloo", world=2) for rank in range(2)}
    words = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete\n"
    yield _run(
        "gloo-hang",
        Label("failed", "hang", waits, onset=60, culprits=(0,)),
        {
            "logs/rank_0.log": one.log(),
            "logs/rank_1.log": one.log()
            + "Traceback (most recent call last):\n"
            + '  File "train.py", line 90, in <module>\n    dist.all_reduce(loss)\n'
            + words,
            **gloo,
        },
    )
    healthy: Files = {f"logs/rank_{rank}.log": job(100, seed=102).log() + _DONE for rank in range(4)}
    routine: Files = {
        f"stacks/pyspy_rank{rank}.txt": _stack(
            rank, "backward (torch/autograd/graph.py:829)", "train_step (train.py:117)"
        )
        for rank in range(4)
    }
    yield _run("pyspy-of-a-healthy-run", Label("healthy"), {**healthy, **routine})


def _launchers() -> Iterator[Made]:
    """Attempts of torchrun with error files, a batch script with the scheduler's words or its exit code."""
    one = job(70, seed=111, total=300)
    label = Label("failed", "crash", ("exit_nonzero",))
    yield _run("exit-code-of-a-script", label, {"train.log": one.log(), "exitcode": "3\n"})
    error = fixture("error_file/crash-one-rank/attempt_0/2/error.json")
    home = "torchrun/none_k3w1/attempt_0"
    words = (
        "Traceback (most recent call last):\n"
        '  File "/opt/app/train.py", line 88, in main\n    fit(model, batches)\n'
        '  File "/opt/app/loop.py", line 31, in fit\n    loss = model(batch["ids"])\n'
        "KeyError: 'ids'\n"
    )
    files: Files = {f"{home}/{rank}/stdout.log": one.log() if rank == 0 else "" for rank in range(4)}
    files |= {f"{home}/{rank}/stderr.log": f"[rank{rank}]: " + words if rank == 2 else "" for rank in range(4)}
    block = (
        "E0615 15:08:01.000000 139 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 2 (pid: 4702) of binary: python3\n"
        "============================================================\ntrain.py FAILED\n------------------------------------------------------------\n"
        "Root Cause (first observed failure):\n[0]:\n  time      : 2025-06-15_15:08:00\n  host      : node-7\n  rank      : 2 (local_rank: 2)\n  exitcode  : 1 (pid: 4702)\n"
        f"  error_file: {home}/2/error.json\n============================================================\n"
    )
    label = Label("failed", "crash", ("exception_one_rank",), culprits=(2,), says=_CODE)
    yield _run("error-file-crash", label, {**files, f"{home}/2/error.json": error, "slurm-4711.err": block})
    silent = dict.fromkeys((f"{home}/{rank}/stderr.log" for rank in range(4)), "")
    yield _run("error-file-alone", label, {**files, **silent, f"{home}/2/error.json": error})
    limit = f"slurmstepd: error: *** JOB 4712 ON node-7 CANCELLED AT {one.times[-1]:%Y-%m-%dT%H:%M:%S} DUE TO TIME LIMIT ***\n"
    yield _run(
        "batch-script-time-limit",
        Label("failed", "stopped", ("time_limit",), onset=70, says=("time", "resume")),
        {
            "job.sbatch": fixture("command_files/ok-batch/job.sbatch"),
            "slurm-4712.out": one.log(),
            "slurm-4712.err": limit,
            "launch.sh": fixture("command_files/ok-script/launch.sh"),
            **checkpoints(50),
        },
    )
    yield _run(
        "hydra-crash",
        Label("failed", "crash", _CAUSES, onset=70, says=_CODE),
        {
            ".hydra/config.yaml": fixture("config_files/ok-hydra/.hydra/config.yaml"),
            ".hydra/overrides.yaml": fixture("command_files/ok-hydra/.hydra/overrides.yaml"),
            "train.log": one.log() + KEY_ERROR,
        },
    )
    killed = "train.sh: line 12:  4711 Segmentation fault      (core dumped) python3 train.py\n"
    yield _run(
        "core-dump-crash",
        Label(
            "failed",
            "crash",
            ("segmentation_fault", "silent_death_segv"),
            onset=70,
            says=("core", "gdb", "faulthandler", "segmentation"),
        ),
        {
            "train.out": one.log() + killed,
            "core.4711": fixture("not_read/ok-core/core.4711"),
            "profile.nsys-rep": fixture("not_read/ok-nsys/profile.nsys-rep"),
            "cmd.txt": fixture("command_files/ok-saved/cmd.txt"),
        },
    )
    whole, home = job(120, seed=112), "torchrun/none_k3w2/attempt_{}/0/{}.log"
    two: Files = {
        home.format(0, "stdout"): whole.cut(45).log(),
        home.format(0, "stderr"): KEY_ERROR,
        home.format(1, "stdout"): whole.resumed(40).log() + _DONE,
        home.format(1, "stderr"): "",
    }
    yield _run("second-attempt-finished", Label("healthy"), {**two, **checkpoints(40, 80, 120)})


def _memory() -> Iterator[Made]:
    """Snapshots, memory in the log, the kernel's and the cluster's words."""
    maker = script("memory_snapshot")
    oom = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 39.39 GiB of which"
        " 311.06 MiB is free. Including non-PyTorch memory, this process has 39.08 GiB memory in use. Of the allocated memory"
        " 37.90 GiB is allocated by PyTorch, and 611.20 MiB is reserved by PyTorch but unallocated.\n"
    )
    trace = (
        'Traceback (most recent call last):\n  File "/srv/job/run.py", line 40, in <module>\n    loss = net(batch)\n'
    )
    form = "{t:%Y-%m-%d %H:%M:%S} INFO step {step}/{total} loss {loss:.4f} mem_allocated_gib {mem:.2f}"

    def climbing(one: Job, memory: list[float]) -> str:
        return "".join(form.format(**row, mem=mem) + "\n" for row, mem in zip(one.rows(), memory, strict=True))

    one = job(80, seed=121, total=300)
    flat = noise(122, 0.003, 80, 31.0)
    label = Label("failed", "oom", onset=80, within=80, says=("memory", "batch", "leak", "detach", "snapshot"))
    leaks = replace(label, causes=("leak_per_step", "leak"))
    steps = replace(label, causes=("leak_periodic", "leak"), says=("16", "evaluation", "memory", "steps"))
    yield _run(
        "snapshot-oom",
        label,
        {
            "train.log": climbing(one, flat) + trace + oom,
            "memory.pickle": fixture("memory_snapshot/ok-expandable-oom/memory.pickle"),
        },
    )
    slope = Noise(0.002, 123).on(line(12.0, 0.32, 80))
    leak = maker.pickled(maker.made(maker.Plan(schema="2.12", leak_every=1, steps=6, annotate=False))[0])
    yield _run("snapshot-leak", leaks, {"train.log": climbing(one, slope) + trace + oom, "memory.pickle": leak})
    stairs = [14 + 5.1 * (at // 16) + mem - 31 for at, mem in enumerate(flat)]
    yield _run(
        "memory-stairs",
        steps,
        {"train.log": climbing(one, stairs) + trace + oom, "config.yaml": settings(max_steps=300, eval_every=16)},
    )
    good = job(100, seed=124)
    yield _run(
        "snapshot-of-a-healthy-run",
        Label("healthy"),
        {
            "train.log": climbing(good, noise(125, 0.003, 100, 22.0)) + _DONE,
            "memory_snapshot.json": fixture("memory_snapshot/ok-json/memory_snapshot.json"),
        },
    )
    creeping = [9 + 0.05 * at for at in range(100)]
    yield _run("memory-creeps-to-the-end", Label("suspect", "oom"), {"train.log": climbing(good, creeping) + _DONE})
    killer = (
        "[Sun Jun 15 15:07:19 2025] python3 invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0\n"
        "[Sun Jun 15 15:07:19 2025] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=job_4713,mems_allowed=0-1,task_memcg=/slurm/job_4713,task=python3,pid=4711,uid=1000\n"
        "[Sun Jun 15 15:07:19 2025] Memory cgroup out of memory: Killed process 4711 (python3) total-vm:214748364kB, anon-rss:125829120kB, file-rss:2048kB\n"
    )
    yield _run(
        "host-killer",
        label,
        {"train.log": one.log(), "dmesg.txt": killer, "job.sbatch": fixture("command_files/ok-batch/job.sbatch")},
    )
    cluster = "slurmstepd: error: Detected 1 oom_kill event in StepId=4714.0. Some of the step tasks have been OOM Killed.\nsrun: error: node-7: task 3: Out Of Memory\n"
    yield _run(
        "cluster-killer",
        Label("failed", "oom", ("host_out_of_memory",), culprits=(3,), says=("memory", "host")),
        {"slurm-4714.out": one.log(), "slurm-4714.err": cluster},
    )


def _smi(seconds: int, *, gpus: int = 2, lost_from: int | None = None, clock_from: int | None = None) -> str:
    head = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], temperature.gpu, clocks.sm [MHz]\n"
    rng, rows = random.Random(131), [head]
    for second in range(0, seconds, 2):
        when = BEGAN + timedelta(seconds=second)
        for gpu in range(gpus):
            slow = clock_from is not None and second >= clock_from and gpu == 1
            lost = lost_from is not None and second >= lost_from and gpu == 1
            use, watts = (
                ("[Unknown Error]", "[GPU requires reset]")
                if lost
                else (f"{96 + rng.randrange(4)} %", f"{(310 if slow else 395) + rng.random() * 9:.2f} W")
            )
            rows.append(
                f"{when:%Y/%m/%d %H:%M:%S}.{rng.randrange(1000):03d}, {gpu}, NVIDIA A100-SXM4-40GB, {use}, {30100 + rng.randrange(40)} MiB, 40960 MiB, {watts}, {88 if slow else 61}, {930 if slow else 1410} MHz\n"
            )
    return "".join(rows)


def _hosts() -> Iterator[Made]:
    """Logs of GPUs and of the host beside the training log."""
    one = job(80, seed=131, total=300)
    lost = (
        "Traceback (most recent call last):\n"
        '  File "/srv/job/train.py", line 90, in step\n    loss.backward()\n'
        "RuntimeError: CUDA error: unspecified launch failure\n"
    )
    xid = "[Sun Jun 15 15:07:19 2025] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus.\n"
    yield _run(
        "gpu-lost",
        Label("failed", "crash", ("gpu_fell_off_the_bus", "gpu_lost"), onset=80, says=("node", "gpu", "drain")),
        {"train.log": one.log() + lost, "gpu.csv": _smi(44, lost_from=40), "dmesg.txt": xid},
    )
    hot = job(120, seed=132).slower(60, 1.55)
    yield _run(
        "gpu-throttled",
        Label(
            "suspect",
            "slowdown",
            ("slow_steps", "clock_throttling", "thermal_throttling"),
            onset=61,
            within=4,
            says=("clock", "temperature", "throttl"),
        ),
        {"train.log": hot.log() + _DONE, "nvidia-smi.csv": _smi(76, clock_from=30)},
    )
    good = job(100, seed=133)
    yield _run(
        "gpu-logs-healthy",
        Label("healthy"),
        {
            "train.log": good.log() + _DONE,
            "gpu.csv": _smi(50),
            "dcgmi_dmon.log": fixture("dcgmi_dmon/ok-dcgmi/dcgmi_dmon.log"),
            "dcgm.prom": fixture("dcgm_exporter/ok-scrapes/dcgm.prom"),
        },
    )
    alone = {"gpu.csv": _smi(60), "dmon.out": fixture("dcgmi_dmon/ok-nvidia-smi/dmon.out")}
    yield _run("gpu-logs-alone", Label("cannot_say"), alone)
    yield _run(
        "host-errors-corrected",
        Label("healthy"),
        {
            "train.log": good.log() + _DONE,
            "dmesg.txt": "[Sun Jun 15 15:07:01 2025] EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0\n[Sun Jun 15 15:07:02 2025] perf: interrupt took too long (2514 > 2500), lowering kernel.perf_event_max_sample_rate\n",
        },
    )


def _trace(rank: int, *, wait_us: float = 0.0, steps: int = 3) -> str:
    """A profiler trace of a few steps whose loader takes so much longer."""
    maker, rows = script("trace_events"), list[dict[str, Any]]()
    for step in range(steps):
        shift = step * wait_us
        for event in maker.events(rank, 1, 2_000_000.125 + step * 1000.5):
            moved = dict(event, ts=round(event["ts"] + shift, 3))
            if "ProfilerStep#" in event["name"]:
                moved |= {"name": f"ProfilerStep#{12 + step}", "dur": round(event["dur"] + wait_us, 3)}
            elif "DataLoader" in event["name"]:
                moved["dur"] = round(event["dur"] + wait_us, 3)
            elif event.get("ts", 0) > 2_000_000.125 + step * 1000.5 + 100:
                moved["ts"] = round(moved["ts"] + wait_us, 3)
            if event["ph"] != "M" or not step:
                rows.append(moved)
    return json.dumps({**maker.head(rank), "traceEvents": rows})


def _traces() -> Iterator[Made]:
    """Profiler traces of each rank, and the summary of one trainer's profiler."""
    summary = fixture("kempnerforge_profile/ok-summary/summary.md")
    good, slow = job(100, seed=141), job(120, seed=142).slower(70, 2.4)
    form = "[rank 0] INFO     [step {step}] loss={loss:.4f} | lr={lr:.2e} | grad_norm={grad:.3f} | step_time={sec:.2f}s"
    end = "[rank 0] INFO     Training complete: {} steps, 1,000,000 tokens\n"
    traces: Files = {f"profiler_traces/rank{rank}.pt.trace.json": _trace(rank) for rank in range(2)}
    yield _run(
        "traces-healthy",  # as a training goes, its device does nothing for three quarters of the trace
        Label("healthy|suspect", "none|slowdown"),
        {"train.log": good.log(form) + end.format(100), "profiler_traces/summary.md": summary, **traces},
    )
    starved: Files = {f"profiler_traces/rank{rank}.pt.trace.json": _trace(rank, wait_us=2400.0) for rank in range(2)}
    yield _run(
        "traces-starved",
        Label(
            "suspect",
            "slowdown",
            ("slow_steps", "dataloader", "data_starvation"),
            onset=71,
            within=3,
            says=("loader", "data", "input"),
        ),
        {"train.log": slow.log(form) + end.format(120), **starved},
    )
    yield _run("traces-alone", Label("cannot_say|suspect", "none|slowdown"), dict(traces))
    cut: Files = {
        "profiler_traces/rank1.pt.trace.json.tmp": fixture("chrome_trace/crash-killed/rank1.pt.trace.json.tmp")
    }
    yield _run(
        "trace-of-a-killed-job",
        Label("failed", "crash"),
        {"train.log": good.cut(60).log(form) + "Fatal Python error: Segmentation fault\n", **cut},
    )


def _results(step: int, shift: float) -> Files:
    document = script("evals").version_04(step=step, shift=shift)
    return {f"evals/step_{step}/results_2031-02-0{1 + step // 1000}T04-05-06.789000.json": json.dumps(document)}


def _evaluations() -> Iterator[Made]:
    """Results and samples of lm-eval and lighteval beside a training log."""
    one = job(100, seed=151, every=50)
    log: Files = {"train.log": one.log() + _DONE, **checkpoints(1000, 3000, 5000)}
    up = {**_results(1000, -0.12), **_results(3000, -0.04), **_results(5000, 0.0)}
    yield _run(
        "lm-eval-rises",
        Label("healthy"),
        {
            **log,
            **up,
            "evals/step_5000/samples_reefs_easy_2031-02-06T04-05-06.789000.jsonl": script("evals").samples(
                "reefs_easy", 24, seed=1
            ),
        },
    )
    down = {**_results(1000, -0.12), **_results(3000, 0.0), **_results(5000, -0.16)}
    yield _run("lm-eval-falls", Label("suspect|failed", "bad_eval"), {**log, **down})
    bare = fixture("lighteval/ok-tasks/results_2031-02-03T04-05-06.789000.json")
    yield _run(
        "lighteval-one-result",
        Label("suspect", "bad_eval"),
        {**log, "evals/results_2031-02-03T04-05-06.789000.json": bare},
    )
    steps: Files = {}
    for step, score in ((1000, 0.36), (3000, 0.41), (5000, 0.27)):
        document = json.loads(bare)
        document["config_general"]["model_name"] = f"out/global_step{step}"
        document["results"]["tides|reefs_easy|5"] |= {"acc": score, "acc_norm": score + 0.02}
        steps[f"evals/{step}/results_2031-02-03T04-05-0{step // 1000}.789000.json"] = json.dumps(document)
    yield _run("lighteval-falls", Label("suspect|failed", "bad_eval", onset=5000), {**log, **steps})
    document = script("evals").version_04(step=5000)
    document["results"]["reefs_easy"] |= {"acc,none": NAN, "acc_stderr,none": NAN, "acc_norm,none": NAN}
    unread = {"evals/results_2031-02-06T04-05-06.789000.json": json.dumps(document)}
    yield _run("lm-eval-not-a-number", Label("suspect|failed", "bad_eval|nan"), {**log, **unread})
    yield _run(
        "results-alone",
        Label("cannot_say"),
        {
            **_results(3000, 0.0),
            "evals/samples_reefs_easy.jsonl": fixture("eval_samples/ok-old/samples_reefs_easy.jsonl"),
        },
    )
    tokens = {
        f"checkpoint-5000/{path.split('/')[-1]}": fixture(path)
        for path in (
            "tokenizer_files/ok-bpe/tokenizer.json",
            "tokenizer_files/ok-template/chat_template.jinja",
            "tokenizer_files/ok-added/added_tokens.json",
        )
    }
    weights = script("safetensors_header").weights({"model.embed_tokens.weight": (16, 4), "lm_head.weight": (16, 4)})
    config = json.dumps(
        {"architectures": ["OwlForCausalLM"], "hidden_size": 4, "vocab_size": 16, "num_hidden_layers": 2}
    )
    yield _run(
        "tokens-beyond-the-embedding",
        Label("suspect|failed", "bad_eval"),
        {
            **log,
            **_results(5000, -0.3),
            **tokens,
            "checkpoint-5000/model.safetensors": weights,
            "checkpoint-5000/config.json": config,
        },
    )
    rising = [
        {"step": step, "eval_accuracy": round(0.3 + 0.4 * (1 - math.exp(-step / 1500)), 4)}
        for step in range(500, 5001, 500)
    ]
    falling = [
        row | {"eval_accuracy": round(row["eval_accuracy"] - max(0, row["step"] - 3000) / 9000, 4)} for row in rising
    ]
    for name, label, rows in (
        ("rises", Label("healthy"), rising),
        ("falls", Label("suspect|failed", "bad_eval|learning"), falling),
    ):
        yield _run(
            f"own-evaluation-{name}",
            label,
            {**log, "eval_metrics.jsonl": "".join(json.dumps(row) + "\n" for row in rows)},
        )


def _settings() -> Iterator[Made]:
    """Settings, versions and commits: beside a run, and with nothing else."""
    kept: Files = {
        "train.toml": fixture("config_files/ok-toml/train.toml"),
        "ds_zero2.json": fixture("config_files/ok-deepspeed/ds_zero2.json"),
        "requirements.txt": fixture("requirements_txt/ok-freeze/requirements.txt"),
        "pip_list.txt": fixture("requirements_txt/ok-table/pip_list.txt"),
        "git_log.txt": fixture("git_record/ok-log/git_log.txt"),
        "environment.yml": fixture("config_files/ok-conda/environment.yml"),
    }
    yield _run(
        "settings-beside-a-healthy-run", Label("healthy"), {**kept, "train.log": job(90, seed=161).log() + _DONE}
    )
    yield _run("settings-alone", Label("cannot_say"), kept)
    yield _run(
        "archive-alone",
        Label("cannot_say"),
        {
            "5e" * 16 + ".zip": fixture("not_read/ok-comet/5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e.zip"),
            "state.pkl": fixture("not_read/ok-pickle/state.pkl"),
        },
    )
    jump = job(120, seed=162)
    raised = replace(jump, lr=[one * (10 if at >= 70 else 1) for at, one in enumerate(jump.lr)]).diverging(72)
    yield _run(
        "config-and-rate-jump",
        Label("failed|suspect", "learning", onset=71, within=8),
        {**kept, "train.log": raised.log() + _DONE},
    )
