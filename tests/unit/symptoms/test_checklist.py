"""Each symptom of the checklist in a small run of its own: what is said of it, and that its near miss stays quiet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, inf, log
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.unit.symptoms.kit import report, told, written
from tests.unit.symptoms.logs import ADAPTER, Value, at, cosine, falling, noisy, spread, steps, supervised, trainer

if TYPE_CHECKING:
    from pathlib import Path

Files = Mapping[str, str]
DONE = "Training complete.\n"
LOUD = ("FAILED", "SUSPECT")


@dataclass(frozen=True, slots=True)
class Symptom:
    """Files that show it, the words that must be said, and files that come near it."""

    files: Files
    said: tuple[str, ...]
    near: Files = field(default_factory=dict[str, str])


def level(value: float) -> Value:
    return lambda _: value


def logged(records: int = 200, settings: str = "", *, ended: bool = True, **values: Value) -> Files:
    """Lines of key and value, with a metric `a__b` named `a/b`, beside the settings."""
    text = steps(records, **{name.replace("__", "/"): value for name, value in values.items()})
    return {"train.log": text + DONE * ended, **({"config.yaml": settings} if settings else {})}


def tuned(records: int = 200, **values: Value) -> dict[str, Value]:
    return {"loss": noisy(falling(2.0, 1.0), 0.03), "gnorm": spread(0.6), "lr": cosine(2e-4, records)} | values


POLICY = "rl: grpo\nlearning_rate: 1e-6\ntrl:\n  num_generations: 8\n  max_completion_length: 1024\nlogging_steps: 1\n"


def policy(**changed: Value) -> Files:
    healthy: dict[str, Value] = {
        "loss": noisy(level(0.2), 0.004),
        "grad_norm": spread(0.3),
        "reward": noisy(lambda n: 0.2 + 0.0015 * n, 0.03),
        "reward_std": noisy(level(0.3), 0.02),
        "frac_reward_zero_std": noisy(level(0.2), 0.02),
        "completions/mean_length": noisy(level(300.0), 8.0),
        "completions/clipped_ratio": noisy(level(0.1), 0.01),
        "kl": lambda n: 0.001 + 0.0004 * n,
        "entropy": noisy(lambda n: 0.45 - 0.001 * n, 0.01),
        "clip_ratio/region_mean": noisy(level(0.03), 0.003),
        "sampling/importance_sampling_ratio/min": noisy(level(0.6), 0.03),
    }
    values = healthy | {name.replace("__", "/"): value for name, value in changed.items()}
    return {"train.log": steps(200, **values) + DONE, "config.yaml": POLICY}


def features(**changed: Value) -> Files:
    healthy: dict[str, Value] = {
        "loss": noisy(falling(9.0, 4.0), 0.05),
        "grad_norm": spread(0.3),
        "ebft/alignment": noisy(lambda n: 0.35 + 0.0015 * n, 0.01),
        "ebft/diversity": noisy(level(0.05), 0.003),
        "ebft/cfm_loss": noisy(falling(9.0, 4.0), 0.1),
    }
    values = healthy | {name.replace("__", "/"): value for name, value in changed.items()}
    return {"train.log": steps(200, **values) + DONE, "config.yaml": "rl: ebft\nlearning_rate: 1e-6\n"}


def pretrained(seconds: Value, records: int = 400, **more: Value) -> Files:
    """A pretraining log whose throughput follows the seconds of its steps."""
    values: dict[str, Value] = {
        "loss": noisy(falling(10.8, 3.2, 80.0), 0.03),
        "grad_norm": spread(1.0),
        "step_time": seconds,
        "tok/s": lambda n: 26000 / seconds(n),
    }
    return {"train.log": steps(records, **values, **more) + DONE}


def paced(of: Value, sd: float = 0.01) -> Value:
    return lambda n: of(n) * (1 + sd * Random(f"pace {n}").gauss(0, 1))


def memory(of: Value, name: str = "gpu__allocated_gb", **more: Value) -> Files:
    return logged(600, **tuned(600), **{name: noisy(of, 0.02)}, **more)


def lost(first: int, **values: Value) -> dict[str, Value]:
    bad = range(first, 200)
    base = tuned() | values
    return base | {"loss": at(bad, base["loss"]), "gnorm": at(bad, base["gnorm"])}


def halved(n: int) -> float:
    return 65536.0 if n < 150 else max(1.0, 65536.0 / 2 ** (n - 149))


def rank_log(rank: int, count: int, tail: str = "") -> str:
    return (
        "".join(
            f"2026-03-04 10:{n // 30:02}:{n % 30 * 2:02},000 INFO [rank{rank}] step {n} | loss {3 - n / 900:.4f}\n"
            for n in range(1, count + 1)
        )
        + tail
    )


def timed_out(rank: int, number: int, operation: str = "ALLREDUCE") -> str:
    return (
        f"2026-03-04 10:50:00,000 [rank{rank}]:[E ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective"
        f" operation timeout: WorkNCCL(SeqNum={number}, OpType={operation}, NumelIn=1024, NumelOut=1024,"
        " Timeout(ms)=1800000) ran for 1800023 milliseconds before timing out.\n"
    )


def dumped(*frames: str) -> str:
    inner = "".join(f"    {frame}\n" for frame in frames)
    return f'Process 41: python train.py\nPython v3.11.7 (/usr/bin/python3)\n\nThread 41 (idle): "MainThread"\n{inner}'


def crashed(error: str) -> Files:
    trace = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 61, in main\n    trainer.train()\n'
    return {"train.log": "Loading the dataset\n" + trace + error + "\n"}


def resumed(loss: Value, rate: Value) -> Files:
    first = tuned(600, lr=cosine(2e-4, 600, 50), loss=noisy(falling(2.0, 0.9, 120.0), 0.02))
    second = {"loss": loss, "gnorm": first["gnorm"], "lr": rate}
    later = "".join(
        f"step={n + 301} " + " ".join(f"{name}={value(n):.6g}" for name, value in second.items()) + "\n"
        for n in range(300)
    )
    return {"train.log": steps(300, **first) + "Resuming from checkpoint checkpoints/step_300\n" + later + DONE}


AFTER: Value = lambda n: noisy(falling(2.0, 0.9, 120.0), 0.02)(n + 300)  # noqa: E731 - a value as the others
RATE_AFTER: Value = lambda n: cosine(2e-4, 600, 50)(n + 300)  # noqa: E731 - a value as the others
GOOD = rank_log(0, 200, DONE)

SYMPTOMS: dict[str, Symptom] = {
    "a reward of zero": Symptom(
        policy(reward=level(0.0), reward_std=level(0.0), rewards__accuracy__mean=level(0.0)),
        ("FAILED learning", "no answer earns any reward", "Call the reward function outside of the training"),
        policy(reward=lambda n: 0.0 if n < 8 else 0.2 + 0.001 * n),
    ),
    "rewards that are all alike": Symptom(
        policy(reward_std=level(0.0), frac_reward_zero_std=level(1.0), reward=level(0.25)),
        ("SUSPECT learning", "no_advantage", "temperature"),
        policy(frac_reward_zero_std=noisy(level(0.5), 0.03)),
    ),
    "an entropy that collapses": Symptom(
        policy(entropy=lambda n: max(0.003, 0.45 * exp(-n / 20))),
        ("SUSPECT learning", "entropy", "between 0.8 and 1.0", "Raise the KL penalty (beta)", "num_generations"),
        policy(entropy=lambda n: max(0.06, 0.45 * exp(-n / 60))),
    ),
    "a divergence that shoots up": Symptom(
        policy(kl=lambda n: 0.02 * exp(min(n / 30, 5.6))),
        ("SUSPECT learning", "kl", "reference"),
        policy(kl=lambda n: 0.002 + 0.0017 * n),
    ),
    "sampled tokens that are impossible": Symptom(
        policy(sampling__importance_sampling_ratio__min=noisy(level(0.004), 0.0005)),
        ("SUSPECT learning", "sampling/importance_sampling_ratio/min", "Sync the sampler's weights more often"),
        policy(sampling__importance_sampling_ratio__min=noisy(level(0.25), 0.01)),
    ),
    "updates that clipping cuts off": Symptom(
        policy(clip_ratio__region_mean=noisy(level(0.38), 0.02)),
        ("SUSPECT learning", "clip_ratio", "rate"),
        policy(clip_ratio__region_mean=noisy(level(0.08), 0.002)),
    ),
    "answers that grow to the limit": Symptom(
        policy(completions__mean_length=noisy(lambda n: 200 + 4.4 * min(n, 185), 5.0)),
        ("SUSPECT learning", "completions/mean_length", "length"),
        policy(completions__mean_length=noisy(lambda n: 200 + n, 12.0)),
    ),
    "answers that are cut": Symptom(
        policy(completions__clipped_ratio=noisy(level(0.9), 0.02), completions__mean_length=noisy(level(990.0), 5.0)),
        ("SUSPECT learning", "most answers are cut", "max_completion_length"),
        policy(completions__clipped_ratio=noisy(level(0.2), 0.02)),
    ),
    "a reward that falls": Symptom(
        policy(reward=noisy(lambda n: 0.45 - 0.0013 * n, 0.03)),
        ("SUSPECT learning", "the reward falls"),
        policy(reward=noisy(lambda n: 0.2 + 0.001 * n, 0.03)),
    ),
    "a reward that does not rise": Symptom(
        policy(reward=noisy(level(0.3), 0.03)),
        ("SUSPECT learning", "the reward does not rise", "spread of rewards within a group"),
        policy(reward=noisy(lambda n: 0.28 + 0.0005 * n, 0.03)),
    ),
    "a reward function that pays nothing beside one that does": Symptom(
        policy(reward=noisy(level(0.6), 0.05), rewards__accuracy_reward__mean=level(0.0)),
        ("SUSPECT learning", "rewards/accuracy_reward/mean is 0", "Check that the columns"),
        policy(rewards__accuracy_reward__mean=noisy(level(0.3), 0.05)),
    ),
    "most groups without an advantage": Symptom(
        policy(frac_reward_zero_std=noisy(level(0.91), 0.03)),
        ("SUSPECT learning", "most groups of answers have no advantage", "Mix in prompts"),
        policy(frac_reward_zero_std=noisy(level(0.7), 0.03)),
    ),
    "an entropy that rises above one": Symptom(
        policy(entropy=noisy(lambda n: 0.5 + 0.006 * n, 0.02)),
        ("SUSPECT learning", "the policy does not settle", "temperature"),
        policy(entropy=noisy(lambda n: 0.5 + 0.002 * n, 0.02)),
    ),
    "answers that grow without an end": Symptom(
        policy(completions__mean_length=noisy(lambda n: 200 + 4.4 * min(n, 185), 5.0)),
        ("SUSPECT learning", "length penalty", "end-of-sequence token (EOS)"),
    ),
    "gradients of a policy above ten": Symptom(
        policy(grad_norm=spread(22.0, 0.4)),
        ("SUSPECT learning", "updates are unstable", "clip"),
        policy(grad_norm=at({50, 120}, spread(0.3), 12.0)),
    ),
    "features that collapse": Symptom(
        features(ebft__diversity=noisy(lambda n: 0.05 + 0.008 * n, 0.02)),
        ("SUSPECT learning", "ebft/diversity", "mode collapse"),
        features(ebft__diversity=noisy(level(0.09), 0.002)),
    ),
    "a flow-matching loss that rises": Symptom(
        features(ebft__cfm_loss=noisy(lambda n: 9 + 0.04 * n, 0.1)),
        ("SUSPECT learning", "ebft/cfm_loss", "rate"),
        features(),
    ),
    "the loss of guessing": Symptom(
        logged(300, "vocab_size: 32000\n", **tuned(300, loss=noisy(level(log(32000)), 0.01))),
        ("FAILED learning", "guessing", "Overfit a single batch", "label mask"),
        logged(300, "vocab_size: 32000\n", **tuned(300, loss=noisy(falling(10.4, 4.0), 0.03))),
    ),
    "a loss that never falls": Symptom(
        logged(300, **tuned(300, loss=noisy(level(4.21), 0.03))),
        ("SUSPECT learning", "did not fall", "a detached graph, frozen layers, a mask off by one", "softmax", "axis"),
        logged(300, **tuned(300)),
    ),
    "parameters that are frozen": Symptom(
        {
            "train.log": "trainable params: 0 || all params: 8,030,261,248 || trainable%: 0.0000\n"
            + trainer(300, supervised(300, noisy(level(2.31), 0.02), level(0.0))),
            "config.yaml": ADAPTER,
        },
        ("FAILED learning", "requires_grad"),
        {
            "train.log": "trainable params: 41,943,040 || all params: 8,072,204,288 || trainable%: 0.5196\n"
            + trainer(300, supervised(300)),
            "config.yaml": ADAPTER,
        },
    ),
    "gradients that vanish": Symptom(
        logged(
            600,
            loss=noisy(falling(4.6, 3.9, 40.0), 0.01),
            gnorm=lambda n: spread(1.0, 0.2)(n) * exp(-n / 90),
            lr=level(3e-4),
        ),
        ("learning", "vanish", "norm"),
        logged(600, **tuned(600)),
    ),
    "a gradient norm that rose before the NaN": Symptom(
        logged(
            200,
            "max_grad_norm: 0\nlearning_rate: 0.0002\n",
            ended=False,
            **lost(150, gnorm=at({147, 148, 149}, spread(0.6), 28.0)),
        ),
        ("FAILED nan", "gradient norm rose", "not a bad sample", "Turn gradient clipping on", "Lower the peak"),
        logged(200, **tuned(gnorm=at({148}, spread(0.6), 1.4))),
    ),
    "a NaN out of calm": Symptom(
        logged(200, "bf16: true\nmax_grad_norm: 1.0\n", ended=False, **lost(150)),
        ("FAILED nan", "bad sample", "batch of step 151", "detect_anomaly", "fp32", "overfit two examples"),
        logged(200, **tuned()),
    ),
    "a gradient norm that grows together with the loss": Symptom(
        logged(
            200,
            ended=False,
            **lost(
                170,
                loss=lambda n: noisy(falling(2.0, 1.0), 0.03)(n) * 1.12 ** max(0, n - 141),
                gnorm=lambda n: spread(0.6)(n) * 1.25 ** max(0, n - 139),
            ),
        ),
        ("FAILED nan", "blew up", "Clip the global gradient norm"),
    ),
    "an infinite gradient norm": Symptom(
        logged(200, ended=False, **lost(150, gnorm=at({149}, spread(0.6), inf))),
        ("FAILED nan", "is infinite from step 150", "blew up"),
    ),
    "a loss scale that collapses": Symptom(
        logged(200, "fp16: true\n", ended=False, **lost(165, loss_scale=halved)),
        ("FAILED nan", "scale", "bf16"),
        logged(200, "fp16: true\n", **tuned(loss_scale=lambda n: 2.0**32 / 2 ** min(n, 16))),
    ),
    "a trainer that hides NaN": Symptom(
        {
            "train.log": trainer(
                200,
                supervised(
                    200, at(range(150, 200), noisy(falling(1.9, 0.9), 0.03), 0.0), at(range(150, 200), spread(0.6))
                ),
            )
        },
        ("FAILED nan", "logging_nan_inf_filter"),
        {"train.log": trainer(200, supervised(200))},
    ),
    "numbers that are lost from the start": Symptom(
        logged(200, ended=False, **lost(0)), ("FAILED nan", "from_start", "first batch")
    ),
    "memory that climbs step by step": Symptom(
        memory(lambda n: 40 + 0.02 * n), ("SUSPECT oom", "leak", "detach"), memory(level(61.2))
    ),
    "memory that climbs in stairs": Symptom(
        memory(lambda n: 50 + 2.5 * (n // 75)), ("oom", "stairs", "snapshot"), memory(lambda n: 50 + 2.5 * (n > 75))
    ),
    "a reservation that leaves its use behind": Symptom(
        memory(level(45.0), gpu__reserved_gb=noisy(lambda n: 50 + 0.03 * n, 0.05)),
        ("oom", "fragmentation", "expandable_segments"),
        memory(level(45.0), gpu__reserved_gb=noisy(level(52.0), 0.05)),
    ),
    "a rank behind the others' collective": Symptom(
        {f"rank_{rank}.log": rank_log(rank, 400, timed_out(rank, 8120 + (rank != 2))) for rank in range(4)},
        ("FAILED hang", "rank 2"),
    ),
    "a rank in another collective than the others": Symptom(
        {
            f"rank_{rank}.log": rank_log(rank, 400, timed_out(rank, 8120, "ALLGATHER" if rank == 1 else "ALLREDUCE"))
            for rank in range(4)
        },
        ("FAILED hang", "Rank 1 issued another operation than the others", "collective_mismatch_op"),
    ),
    "a rank whose data ended first": Symptom(
        {
            f"rank_{rank}.log": rank_log(rank, 400 - (rank == 3), timed_out(rank, 8121 - (rank == 3), last))
            for rank, last in enumerate(["ALLREDUCE"] * 3 + ["BARRIER"])
        },
        ("FAILED hang", "Rank 3 had another number of steps", "drop_last=True with a DistributedSampler", "Join"),
    ),
    "a stack inside a collective, and nothing else": Symptom(
        {
            "train.log": steps(200, **tuned(400)),
            "dump.txt": dumped("wait (torch/distributed/distributed_c10d.py:2806)")[:-1]
            + "\n    all_reduce (torch/distributed/distributed_c10d.py:2808)\n    reduce_grads (train.py:120)\n",
        },
        ("SUSPECT hang", "waits in all_reduce, called in reduce_grads (train.py:120), after step 200", "py-spy dump"),
        {
            "train.log": steps(200, **tuned(200)) + DONE,
            "dump.txt": dumped("all_reduce (torch/distributed/distributed_c10d.py:2808)", "step (train.py:9)"),
        },
    ),
    "a rendezvous where nobody answers": Symptom(
        {
            "train.log": "torch.distributed.DistNetworkError: The client socket has timed out after 600s while trying"
            " to connect to (node-0, 29500).\n"
        },
        ("FAILED hang", "A rank did not join the job", "node-0, port 29500", "MASTER_ADDR"),
    ),
    "a time-out of which no rank is known": Symptom(
        {"train.log": rank_log(0, 400, timed_out(0, 8120)), "config.yaml": "fsdp_version: 2\nasync_prefetch: true\n"},
        ("FAILED hang", "Set async_prefetch: false"),
    ),
    "a rank that died before the others waited": Symptom(
        {
            f"rank_{rank}.log": rank_log(
                rank,
                300,
                timed_out(rank, 8121)
                if rank != 3
                else 'Traceback (most recent call last):\n  File "d.py", line 4, in f\n    x[k]\nKeyError: 9911\n',
            )
            for rank in range(4)
        },
        ("FAILED", "rank 3", "KeyError"),
    ),
    "a health check that failed": Symptom(
        {
            "train.log": rank_log(
                0, 300, "2026-03-04 10:10:02,000 ERROR NCCL health check failed at step 300 — stopping\n"
            )
        },
        ("FAILED hang", "health check", "rank"),
        {"train.log": rank_log(0, 300, "2026-03-04 10:10:02,000 INFO NCCL health check passed at step 300\n" + DONE)},
    ),
    "a rendezvous that never came": Symptom(
        crashed(
            "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients joined."
        ),
        ("FAILED", "MASTER_ADDR"),
        {"train.log": GOOD},
    ),
    "steps that became slow": Symptom(
        pretrained(paced(lambda n: 0.5 if n < 200 else 1.0)),
        ("FAILED slowdown", "from step 201", "torch.profiler, nsys"),
        pretrained(paced(lambda n: 0.5 if n < 200 else 0.51)),
    ),
    "a slow time that went away": Symptom(
        pretrained(paced(lambda n: 1.5 if 150 <= n < 230 else 0.5)),
        ("slowdown", "step"),
        pretrained(paced(lambda n: 1.0 if 150 <= n < 153 else 0.5)),
    ),
    "steps that become slower and slower": Symptom(
        pretrained(paced(lambda n: 0.5 + 0.001 * max(0, n - 150))),
        ("slowdown", "memory"),
        pretrained(paced(level(0.5))),
    ),
    "pauses in a rhythm": Symptom(
        pretrained(paced(lambda n: 16.0 if n % 50 == 49 else 0.5)),
        ("slowdown", "every 50"),
        pretrained(paced(level(0.5))),
    ),
    "twice the tokens in twice the time": Symptom(
        {}, (), pretrained(paced(lambda n: 0.5 if n < 200 else 1.0), tokens_per_step=lambda n: 6e4 * (1 + (n >= 200)))
    ),
    "twice the time beside a total of three digits": Symptom(
        pretrained(paced(lambda n: 0.5 if n < 200 else 1.0), consumed_tokens=lambda n: float(f"{5.2e6 * (n + 1):.3g}")),
        ("slowdown", "step"),
        pretrained(paced(level(0.5)), consumed_tokens=lambda n: float(f"{5.2e6 * (n + 1):.3g}")),
    ),
    "as many longer samples in twice the time": Symptom(
        pretrained(
            paced(lambda n: 0.5 if n < 200 else 1.0), tokens_per_step=level(6e4), consumed_samples=lambda n: 64 * n
        ),
        ("slowdown", "step"),
        pretrained(
            paced(lambda n: 0.5 if n < 200 else 1.0),
            tokens_per_step=lambda n: 6e4 * (1 + (n >= 200)),
            consumed_samples=lambda n: 64 * n,
        ),
    ),
    "an optimizer that was not restored": Symptom(
        resumed(lambda n: AFTER(n) + 0.5 * exp(-n / 40), cosine(2e-4, 600, 50)),
        ("SUSPECT", "optimizer"),
        resumed(AFTER, RATE_AFTER),
    ),
    "a stand-in for the optimizer": Symptom(
        crashed("AttributeError: 'DummyOptim' object has no attribute 'step'"),
        ("FAILED crash", "DeepSpeed", "deepspeed"),
        {"train.log": GOOD},
    ),
    "generations that do not divide the batch": Symptom(
        crashed("ValueError: generation_batch_size (4) must be divisible by num_generations (16)."),
        ("FAILED crash", "divisible"),
    ),
    "a number type that NumPy lacks": Symptom(
        crashed("TypeError: Got unsupported ScalarType BFloat16"), ("FAILED crash", "BFloat16", "float16 before numpy")
    ),
    "a chat template that does not fit": Symptom(
        crashed("ValueError: Content end boundary is before start boundary"), ("FAILED", "template", "eos_token")
    ),
    "a reward module that cannot be imported": Symptom(
        {
            "train.log": "[ERROR] unable to load strategy my_rewards.accuracy_reward\n"
            + crashed("TypeError: 'NoneType' object is not callable")["train.log"]
        },
        ("FAILED", "import"),
    ),
}


@pytest.mark.parametrize("name", [name for name, one in SYMPTOMS.items() if one.files])
def test_a_symptom_is_named_with_its_cause_and_its_remedy(tmp_path: Path, name: str) -> None:
    text = told(written(tmp_path, dict(SYMPTOMS[name].files))).lower()
    assert [words for words in SYMPTOMS[name].said if words.lower() not in text] == []


@pytest.mark.parametrize("name", [name for name, one in SYMPTOMS.items() if one.near])
def test_what_comes_near_a_symptom_stays_quiet(tmp_path: Path, name: str) -> None:
    verdict = report(written(tmp_path, dict(SYMPTOMS[name].near))).verdict
    assert verdict.outcome.value.upper() not in LOUD, verdict.headline
