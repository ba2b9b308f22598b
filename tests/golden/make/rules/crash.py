"""Runs that ended of an error, of a signal or because somebody ended them, runs that got over one, and cut logs."""

from __future__ import annotations

from collections.abc import Iterator

from make._logs import LOOP, MAIN, STEP, clock, done, falling, jsons, run_log, start, traceback
from make.base import Label, Made, Table, lines

_LOADER = (
    "/opt/py/site-packages/torch/utils/data/dataloader.py",
    1131,
    "_try_get_data",
    "data = self._data_queue.get(timeout=timeout)",
)


def runs() -> Iterator[Made]:
    """Errors of the program, deaths by signal, ends that only a launcher reports, stops, and what was no failure."""
    yield from _errors()
    yield from _signals()
    yield from _reported()
    yield from _stops()
    yield from _survived()
    yield from _unclear()


def _log(steps: int = 90) -> list[str]:
    return [*start(plan=2000), *run_log({"loss": falling(steps)})]


def _errors() -> Iterator[Made]:
    own = traceback("KeyError: 'labels'", MAIN, STEP, ("/srv/job/data.py", 40, "collate", 'labels = batch["labels"]'))
    yield Made(
        "crash-key-error-at-step-90",
        {"train.log": lines(_log(), own)},
        Label("failed", "crash", onset=90, says=("frame", "labels", "keyerror")),
    )
    late = traceback(
        "ModuleNotFoundError: No module named 'rouge_score'",
        MAIN,
        ("/srv/job/evaluate.py", 12, "score", "import rouge_score"),
    )
    yield Made("crash-late-import", {"train.log": lines(_log(120), f"{clock(300)} | INFO | evaluating", late)}, Label("failed", "crash", ("module_missing", "uncaught_exception"), onset=120, says=("install", "module", "import")))  # fmt: skip
    full = traceback(
        "OSError: [Errno 28] No space left on device: 'out/step_100.pt'",
        MAIN,
        ("/srv/job/train.py", 190, "save", "torch.save(state, path)"),
    )
    yield Made(
        "crash-disk-full",
        {"train.log": lines(_log(100), full)},
        Label("failed", "crash", ("disk_full",), onset=100, says=("space", "disk", "free")),
    )
    shape = traceback(
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x512 and 768x768)",
        MAIN,
        STEP,
        ("/srv/job/model.py", 31, "forward", "x = self.proj(x)"),
    )
    yield Made("crash-shapes-before-first-step", {"train.log": lines(start(), shape)}, Label("failed", "crash"))
    chained = [
        *traceback("RuntimeError: Caught ValueError in DataLoader worker process 3.", MAIN, _LOADER),
        "Original Traceback (most recent call last):", '  File "/srv/job/data.py", line 88, in __getitem__', "    return self.decode(self.rows[i])",
        "ValueError: could not decode sample 77121: truncated JPEG",
    ]  # fmt: skip
    yield Made(
        "crash-loader-worker-raises",
        {"train.log": lines(_log(64), chained)},
        Label("failed", "crash", onset=64, says=("sample", "data", "frame", "decode")),
    )
    assertion = [
        "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.",
        *traceback("RuntimeError: CUDA error: device-side assert triggered", MAIN, STEP),
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
    ]  # fmt: skip
    yield Made(
        "crash-label-out-of-range",
        {"train.log": lines(_log(31), assertion)},
        Label("failed", "crash", ("label_out_of_range",), onset=31, says=("label", "class")),
    )


def _signals() -> Iterator[Made]:
    fault = [
        "Fatal Python error: Segmentation fault", "", "Current thread 0x00007f3a1c0ff740 (most recent call first):",
        '  File "/srv/job/ext.py", line 17 in gather_rows', '  File "/srv/job/train.py", line 148 in main', "Segmentation fault (core dumped)",
    ]  # fmt: skip
    yield Made(
        "crash-segmentation-fault",
        {"train.log": lines(_log(), fault)},
        Label("failed", "crash", ("segmentation_fault", "silent_death_segv"), onset=90),
    )
    yield Made("crash-killed-by-nobody-known", {"train.log": lines(_log(), "run.sh: line 8:  4711 Killed                  python train.py")}, Label("failed", "crash|oom", ("killed_by_sigkill", "silent_death_sigkill"), onset=90))  # fmt: skip
    xid = "[88123.551] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has fallen off the bus."
    yield Made(
        "crash-gpu-fell-off-the-bus",
        {
            "train.log": lines(_log(), traceback("RuntimeError: CUDA error: unspecified launch failure", MAIN, STEP)),
            "dmesg.txt": lines(xid),
        },
        Label(
            "failed", "crash", ("gpu_fell_off_the_bus", "device_error"), says=("node", "host", "drain", "gpu", "device")
        ),
    )


def _reported() -> Iterator[Made]:
    block = [
        "E0301 10:04:03.120000 4690 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 3) local_rank: 1 (pid: 4701) of binary: /opt/py/bin/python3",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "=" * 60, "train.py FAILED", "-" * 60, "Root Cause (first observed failure):", "[0]:",
        "  time      : 2026-03-01_10:04:02", "  host      : n7", "  rank      : 1 (local_rank: 1)", "  exitcode  : 3 (pid: 4701)", "  error_file: <N/A>",
        "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html", "=" * 60,
    ]  # fmt: skip
    yield Made(
        "crash-worker-exit-code-3",
        {"job.log": lines(_log(), block)},
        Label("failed", "crash", ("exit_nonzero",), culprits=(1,)),
    )

    def ended(rank: int) -> list[str]:
        return [
            f"[{rank}]:", "  time      : 2026-03-01_10:04:02", "  host      : n7", f"  rank      : {rank} (local_rank: {rank})",
            f"  exitcode  : 1 (pid: 470{rank})", "  error_file: <N/A>", block[12],
        ]  # fmt: skip

    several = [
        block[0].replace("exitcode: 3) local_rank: 1 (pid: 4701)", "exitcode: 1) local_rank: 0 (pid: 4700)"), *block[1:5],
        "Failures:", *ended(1), *ended(2), "-" * 60, "Root Cause (first observed failure):", *ended(0), "=" * 60,
    ]  # fmt: skip
    yield Made(
        "crash-all-workers-exit-1",
        {"job.log": lines(_log(), several)},
        Label("failed", "crash", ("exit_nonzero",), onset=90, culprits=()),
    )
    alone = [
        several[0],
        *block[1:5],
        "Failures:",
        "  <NO_OTHER_FAILURES>",
        "-" * 60,
        "Root Cause (first observed failure):",
        *ended(0),
        "=" * 60,
    ]
    yield Made(
        "crash-only-worker-exits-1",
        {"job.log": lines(_log(), alone)},
        Label("failed", "crash", ("exit_nonzero",), onset=90),
    )
    closed = "[rank0]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1275, remote process exited or there was a network error, NCCL version 2.21.5"
    remote = "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."
    yield Made(
        "crash-peer-is-gone", {"train.log": lines(_log(), closed, remote)}, Label("failed", "crash|hang", onset=90)
    )
    hydra = [
        f"{clock(2)} | INFO | composing config",
        "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.",
    ]
    yield Made("crash-hydra-hides-the-error", {"job.log": lines(hydra)}, Label("failed", "crash"))


def _stops() -> Iterator[Made]:
    limit = "slurmstepd: error: *** JOB 48213 ON node042 CANCELLED AT 2026-03-01T10:03:20 DUE TO TIME LIMIT ***"
    yield Made(
        "stopped-at-time-limit",
        {"slurm-48213.out": lines(_log(), limit)},
        Label("failed", "stopped", ("time_limit",), onset=90),
    )
    yield Made(
        "stopped-preempted",
        {"slurm-9.out": lines(_log(), limit.replace("TIME LIMIT", "PREEMPTION"))},
        Label("failed", "stopped", ("preempted",), onset=90),
    )
    yield Made(
        "stopped-by-ctrl-c",
        {"train.log": lines(_log(), "^C", traceback("KeyboardInterrupt", MAIN, STEP))},
        Label("failed", "stopped", ("interrupted_by_user",), onset=90),
    )
    agent = [
        "W0301 10:03:30.1 4690 torch/distributed/elastic/agent/server/api.py:704] Received 15 death signal, shutting down workers",
        "W0301 10:03:30.2 4690 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 4700 closing signal SIGTERM",
        *traceback("torch.distributed.elastic.multiprocessing.api.SignalException: Process 4690 got signal: 15", ("/opt/py/bin/torchrun", 8, "<module>", "sys.exit(main())")),
    ]  # fmt: skip
    yield Made(
        "stopped-by-sigterm",
        {"torchrun.log": lines(_log(), agent)},
        Label("failed", "stopped", ("external_termination",), onset=90),
    )
    spot = f"{clock(230)} | WARNING | spot instance interruption notice received, saving"
    saved = f"{clock(236)} | INFO | saved checkpoint to out/step_90.pt"
    yield Made("stopped-spot-instance", {"train.log": lines(_log(), spot, saved)}, Label("failed", "stopped", ("preempted",), onset=90, says=("resume", "restart", "checkpoint")))  # fmt: skip
    evicted = "Reason:  Evicted\nMessage:  The node was low on resource: ephemeral-storage.\n"
    yield Made(
        "stopped-evicted-pod",
        {"train.log": lines(_log()), "pod.txt": evicted},
        Label("failed", "stopped", ("evicted",)),
    )


def _survived() -> Iterator[Made]:
    log = _log(150)
    caught = [f"{clock(200)} | WARNING | could not reach the tracker, trying again in 5 s", *traceback("ConnectionError: HTTPSConnectionPool(host='tracker', port=443): Max retries exceeded", MAIN, ("/srv/job/track.py", 9, "push", "client.post(row)"))]  # fmt: skip
    yield Made(
        "healthy-exception-caught", {"train.log": lines(log[:80], caught, log[80:], done(150))}, Label("healthy")
    )
    noisy = [
        f"/opt/py/site-packages/torch/optim/lr_scheduler.py:{n}: UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`."
        for n in (136, 200)
    ]
    yield Made(
        "healthy-with-warnings",
        {
            "train.log": lines(
                log[:10], noisy, log[10:], done(150), "Exception ignored in: <function _releaseLock at 0x7f00>"
            )
        },
        Label("healthy"),
    )
    whole, rate = falling(200), [3e-4] * 200
    restarted = [
        "failed, 2/3 attempts left; will restart worker group",
        *start(),
        *run_log({"loss": whole[80:], "lr": rate[80:]}, LOOP, 81),
    ]
    early = [
        *start(plan=200), *run_log({"loss": whole[:100], "lr": rate[:100]}),
        *traceback("RuntimeError: [/opt/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:2211", MAIN, STEP),
    ]  # fmt: skip
    yield Made("healthy-worker-group-restarted", {"torchrun.log": lines(early, restarted, done(200))}, Label("healthy"))
    plan = Table({"loss": falling(120), "lr": [3e-4] * 120})
    yield Made(
        "healthy-plan-reached",
        {"metrics.csv": plan.csv(), "config.json": jsons({"max_steps": 120, "lr": 3e-4})},
        Label("healthy"),
    )


def _unclear() -> Iterator[Made]:
    cut = lines(_log(77))
    yield Made(
        "cannot-say-log-cut-anywhere",
        {"train.log": cut[: len(cut) - 21], "config.json": jsons({"max_steps": 2000})},
        Label("cannot_say"),
    )
    rows = Table({"loss": falling(60), "lr": [3e-4] * 60})
    yield Made(
        "cannot-say-sixty-of-ten-thousand",
        {"metrics.jsonl": rows.jsonl(), "config.json": jsons({"max_steps": 10000})},
        Label("cannot_say"),
    )
    yield Made(
        "cannot-say-start-only", {"train.log": lines(start(plan=2000), "loading weights ...")}, Label("cannot_say")
    )
    yield Made(
        "cannot-say-only-a-config",
        {"config.yaml": "lr: 3.0e-4\nmax_steps: 1000\n", "requirements.txt": "torch==2.6.0\n"},
        Label("cannot_say"),
    )
    yield Made(
        "cannot-say-empty-log", {"train.log": "", "config.yaml": "lr: 3.0e-4\nmax_steps: 1000\n"}, Label("cannot_say")
    )
    late = f"{clock(400)} | INFO | still waiting for data"
    yield Made("cannot-say-waits-for-data", {"train.log": lines(_log(40), late)}, Label("cannot_say"))
