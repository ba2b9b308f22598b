"""Runs of ranks that part, of starts that never end, of memory that creeps and of devices that idle; and runs alike that are well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from make._logs import LOOP, clock, cosine, done, falling, run_log, start, steady, waited
from make.base import NAN, Label, Made, Noise, Series, Table, decay, line, lines
from make.rules.hang import ranks
from make.rules.traces import GEMM, Trace

_TUNING = """\
base_model: meta-llama/Llama-3.1-8B
datasets:
  - path: data/chat.jsonl
    type: chat_template
learning_rate: 0.00002
num_epochs: 3
micro_batch_size: 2
gradient_accumulation_steps: 4
"""
_SGEMM = "ampere_sgemm_128x64_tn"
_SMI = "timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]"
_SUMMARY = """\
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 0                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 0            |        cudaMalloc retries: {retries}         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |  52224 MiB |  60416 MiB |   9216 GiB |   9165 GiB |
| GPU reserved memory   |  75776 MiB |  75776 MiB |  75776 MiB |      0 B   |
| Non-releasable memory |  {lost:5d} MiB |  23552 MiB |   4096 GiB |   4075 GiB |
|==========================================================================="""


def runs() -> Iterator[Made]:
    """Each that is wrong, then one that only looks so."""
    yield from _hangs()
    yield from _starts()
    yield from _ranks_apart()
    yield from _fine_tunings()
    yield from _log_probabilities()
    yield from _memory()
    yield from _parts_of_steps()
    yield from _traces()


def _hangs() -> Iterator[Made]:
    for name, numbers, culprits in (
        ("hang-one-rank-a-collective-behind", (902, 902, 901, 902), (2,)),
        ("hang-all-ranks-in-one-collective", (902, 902, 902, 902), ()),
    ):
        yield Made(
            name,
            ranks({rank: [waited(rank, number)] for rank, number in enumerate(numbers)}),
            Label("failed", "hang", onset=60, within=2, culprits=culprits),
        )


def _starts() -> Iterator[Made]:
    joins = [
        f"{clock(2)} | INFO | MASTER_ADDR=n0 MASTER_PORT=29500 world_size=16",
        f"{clock(3)} | INFO | initializing process group (backend=nccl, rank=0, world_size=16)",
    ]
    begins = [f"{clock(0)} | INFO | job 881 on nodes n0,n1", *joins]
    limit = "slurmstepd: error: *** JOB 881 ON n0 CANCELLED AT 2026-03-01T12:00:12 DUE TO TIME LIMIT ***"
    yield Made(
        "hang-before-the-first-step",
        {"slurm-881.out": lines(begins, limit), "config.yaml": "max_steps: 4000\nlr: 3.0e-4\n"},
        Label("failed", "hang", ("stuck_before_first_step",), says=("nccl_debug", "master_addr", "world size")),
    )
    trained = run_log({"loss": falling(140)}, step_s=50)
    yield Made(
        "stopped-at-its-time-limit-after-steps",
        {"slurm-882.out": lines(begins, trained, limit.replace("881", "882"))},
        Label("failed|cannot_say", "stopped|none"),
    )


def _ranks_apart() -> Iterator[Made]:
    for name, rates, label in (
        ("learning-one-rank-has-its-own-rate", ("3.0e-4", "3.0e-4", "3.0e-4", "1.0e-4"),
         Label("suspect", "learning", ("ranks_configured_apart",), culprits=(3,), says=("same", "configuration"))),
        ("healthy-ranks-share-their-settings", ("3.0e-4",) * 4, Label("healthy")),
    ):  # fmt: skip
        files = {}
        for rank, rate in enumerate(rates):
            log = run_log({"loss": falling(80, seed=7)}, "{clock} | INFO | step {step} | loss {loss:.4f}")
            files[f"rank{rank}/train.log"] = lines(log, done(80))
            files[f"rank{rank}/config.yaml"] = f"lr: {rate}\nseed: {40 + rank}\nmax_steps: 80\nbatch_size: 16\n"
        yield Made(name, files, label)

    log = run_log({"loss": falling(140)})
    said = "losses differ across ranks: [{0:.3f}, {1:.3f}, {2:.3f}, {3:.3f}]"
    for at in (140, 120, 100):
        log.insert(at, f"{clock(30 + 2 * at)} | WARNING | " + said.format(2.301, 2.305, 2.4 + at / 200, 2.302))
    yield Made(
        "learning-losses-of-ranks-differ",
        {"train.log": lines(start(world=4), log, done(140))},
        Label("suspect", "learning", ("ranks_parted",), onset=100, within=1, culprits=(2,), says=("checksum", "weights")),
    )  # fmt: skip
    yield Made(
        "learning-hidden-state-of-a-rank-drifts",
        {"train.log": lines(start(world=4), _statistics(0.002), done(120))},
        Label("suspect", "learning", ("ranks_parted",), onset=61, within=12, culprits=(2,)),
    )
    yield Made(
        "healthy-hidden-states-of-ranks-agree",
        {"train.log": lines(start(world=4), _statistics(0.0), done(120))},
        Label("healthy"),
    )


def _statistics(drift: float) -> list[str]:
    means = [Noise(0.03, rank).on([0.1] * 120) for rank in range(4)]
    said = list[str]()
    for at, one in enumerate(run_log({"loss": falling(120)})):
        said.append(one)
        for rank in range(4) if at % 3 == 0 else ():
            mean = means[rank][at] + drift * max(0, at - 59) * (rank == 2)
            said.append(f"[rank{rank}] hidden: mean={mean:.4f} std=1.0021")
    return said


def _trainer(columns: Mapping[str, Sequence[float]], evals: Mapping[int, float]) -> str:
    """The bar and the dictionaries that the Trainer of transformers prints, with an evaluation after some records."""
    count = max(map(len, columns.values()))
    told = list[str]()
    for at in range(count):
        epoch = {"epoch": round(3 * (at + 1) / count, 4)}
        values = {name: float(f"{values[at]:.5g}") for name, values in columns.items()}
        told += [f" {100 * (at + 1) // count}%|#   | {at + 1}/{count} [00:01<00:09,  1.02s/it]", str(values | epoch)]
        if at + 1 in evals:
            told.append(str({"eval_loss": round(evals[at + 1], 4), "eval_runtime": 3.1} | epoch))
    return lines(told)


def _ended() -> str:
    return lines(str({"train_runtime": 812.3, "train_samples_per_second": 7.9, "train_loss": 1.02, "epoch": 3.0}))


def _fine_tunings() -> Iterator[Made]:
    loss = Noise(0.02, 3).on(decay(1.9, 1.0, 150, 20))
    columns = {"loss": loss, "grad_norm": steady(0.6, 150, 0.15), "learning_rate": cosine(150, 2e-5)}
    places = range(30, 151, 30)
    shifted = {at: loss[at - 1] + 1.9 + 0.01 * (at % 7) for at in places}
    beside = {at: 1.05 + 0.9 * 0.5 ** (at / 20) for at in places}
    for name, evals, label in (
        ("learning-evaluation-set-of-another-kind", shifted,
         Label("suspect", "learning", ("eval_shifted",), onset=30, within=30, says=("decode", "template", "evaluation"))),
        ("healthy-evaluation-close-to-training", beside, Label("healthy")),
    ):  # fmt: skip
        yield Made(name, {"train.log": _trainer(columns, evals) + _ended(), "config.yaml": _TUNING}, label)


def _log_probabilities() -> Iterator[Made]:
    settings = _TUNING.replace("0.00002", "5e-7") + "rl: dpo\nfp16: true\n"
    bad = [NAN] * 20
    for name, level, label in (
        ("nan-after-log-probabilities-fell", -720.0,
         Label("failed", "nan", ("log_softmax_overflow",), onset=121, says=("log-softmax", "fp32"))),
        ("nan-in-preference-training-out-of-calm", -240.0, Label("failed", "nan", ("data_or_numerics",), onset=121)),
    ):  # fmt: skip
        logps = [*Noise(0.02, 2).on([-120.0] * 100), *Noise(0.02, 4).on([level] * 20), *bad]
        columns = {
            "loss": [*Noise(0.03, 5).on(decay(0.69, 0.45, 120)), *bad],
            "grad_norm": [*steady(2.0, 120, 0.15), *bad],
            "learning_rate": cosine(140, 5e-7),
            "logps/rejected": logps,
        }
        yield Made(name, {"train.log": _trainer(columns, {}), "config.yaml": settings}, label)


def _memory() -> Iterator[Made]:
    form = "{clock} | INFO | step {step} | loss {loss:.4f} | mem_allocated_gib {mem:.3f} | mem_reserved_gib {held:.3f}"
    log = run_log({"loss": falling(90), "mem": steady(60, 90, 0.0005), "held": [62.0] * 90}, form, step_s=60)
    for name, last, label in (
        ("suspect-memory-outside-the-allocator-climbs", 71.5,
         Label("suspect", "oom", ("outside_allocator",), says=("nvidia-smi", "process", "outside"))),
        ("healthy-driver-count-is-level", 64.1, Label("healthy")),
    ):  # fmt: skip
        files = {"nvidia-smi.csv": _smi(64, last, 90), "train.log": lines(start(), log, done(90, 5500))}
        yield Made(name, files, label)

    log = run_log({"loss": falling(120)})
    for name, lost, label in (
        ("suspect-memory-summary-is-fragmented", 21217, Label("suspect", "oom", ("fragmentation",), onset=120, within=1, says=("expandable",))),
        ("healthy-memory-summary", 1217, Label("healthy")),
    ):  # fmt: skip
        table = _SUMMARY.format(retries=4 if lost > 9999 else 0, lost=lost)
        yield Made(name, {"train.log": lines(start(), log, table, done(120))}, label)

    creep = [78.4] * 22 + [78.6] * 22 + [78.9] * 10 + [79.2] * 6
    settled = [78.4] * 4 + [78.7] * 4 + [79.2] * 52
    for name, peaks, label in (
        ("suspect-memory-creeps-near-the-end-of-the-device", creep, Label("suspect", "oom", ("creep_near_capacity",), says=("snapshot", "micro-batch"))),
        ("healthy-memory-near-capacity-settled", settled, Label("healthy")),
    ):  # fmt: skip
        log = run_log({"loss": falling(60), "peak": peaks}, LOOP + " | gpu/peak_gb {peak:.1f}", first=50, every=50)
        yield Made(name, {"train.log": lines(start(), log, done(3000))}, label)


def _smi(first: float, last: float, count: int) -> str:
    """What `nvidia-smi --query-gpu` writes each minute."""
    levels = [one * 1024 for one in line(first, (last - first) / count, count)]
    return lines(
        _SMI,
        [
            f"2026/03/01 {10 + at // 60}:{at % 60:02}:30.000, 0, NVIDIA H100 80GB HBM3, {mib:.0f} MiB, 81559 MiB, 98 %"
            for at, mib in enumerate(levels)
        ],
    )


def _parts_of_steps() -> Iterator[Made]:
    form = "{clock} step {step} loss {loss:.4f} step_time {step_time:.4f} data_time {data:.4f}"
    for name, wait_s, label in (
        ("slow-each-step-waits-for-data", 0.22, Label("suspect", "slowdown", ("dataloader",), says=("loader", "workers", "prefetch"))),
        ("healthy-loader-keeps-up", 0.012, Label("healthy")),
    ):  # fmt: skip
        columns = {"loss": falling(120), "step_time": steady(0.5, 120, 0.02), "data": steady(wait_s, 120, 0.05, 4)}
        log = run_log(columns, form, first=10, every=10, step_s=5)
        files = {"train.log": lines(start(), log, done(1200)), "config.yaml": "num_workers: 2\nmax_steps: 1200\n"}
        yield Made(name, files, label)

    def tokens(level: float) -> str:
        filled: Series = [round(one) for one in steady(level, 100, 0.02, 6)]
        return Table({"loss": falling(100), "tokens_per_step": [8192] * 100, "non_pad_tokens": filled}).jsonl()

    for name, level, label in (
        ("slow-half-of-the-tokens-are-padding", 4100, Label("suspect", "slowdown", ("padding",), says=("pack", "length"))),
        ("healthy-sequences-are-full", 7800, Label("healthy")),
    ):  # fmt: skip
        settings = f"base_model: tiny\nsample_packing: {str(level > 7000).lower()}\n"
        files = {"metrics.jsonl": tokens(level), "train.log": lines(start(), done(100)), "config.yaml": settings}
        yield Made(name, files, label)


def _traces() -> Iterator[Made]:
    log = lines(start(), run_log({"loss": falling(120)}), done(120))

    def works(name: str, share: float) -> str:
        def body(trace: Trace, begin: float) -> float:
            for at in range(4):
                kernel = name if at < 2 else GEMM
                trace.launch(kernel, begin + 5 + 5 * at, begin + 20 + 250 * share * at, 250 * share - 1)
            return 1000

        return Trace().steps(5, body).json()

    def early(trace: Trace, begin: float) -> float:
        for at in range(4):
            trace.launch(GEMM, begin + 5 + 5 * at, begin + 20 + 245 * at, 243)
        return 1000

    for name, text, label in (
        ("trace-device-idles-between-steps", works(GEMM, 0.65), Label("suspect", "slowdown", ("idle_device",))),
        ("trace-products-in-full-precision", works(_SGEMM, 0.97), Label("suspect", "slowdown", ("no_fast_path",), says=("tf32", "bf16", "precision"))),
        ("trace-of-the-first-steps", Trace(first=2).steps(4, early).json(), Label("healthy")),
    ):  # fmt: skip
        yield Made(name, {"profile/rank0.pt.trace.json": text, "train.log": log}, label)
