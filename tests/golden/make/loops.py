"""Logs as loops of a script's own print them: epochs, batches and tests of the ImageNet example, bars, ranks in lists."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from make.base import NAN, QUIET, Label, Made, decay, lines

_SUSPECT = "suspect|failed"


def runs() -> Iterator[Made]:
    """Runs of one process first, then those of several ranks."""
    yield _made("resumed-within-an-epoch", [*_batches(1.65), _LOADED, *_batches(6.9, 2)], Label(_SUSPECT, "learning"))
    yield _made("resumed-and-goes-on", [*_batches(1.65), _LOADED, *_batches(1.64, 2)], Label("healthy|cannot_say"))
    yield _made("test-breaks-off", _imagenet(broken=9), Label(_SUSPECT, "bad_eval", onset=10 * 5005, within=5005))
    yield _made("test-goes-on", _imagenet(broken=99), Label("healthy|cannot_say"))
    yield _made("epochs-slow", _epochs(lambda e: 390 if e < 29 else 1200), _slow(29 * 1300, 1300))
    yield _made("epochs-even", _epochs(lambda _: 390), Label("healthy|cannot_say"))
    yield _made("scale-falls-behind-a-bar", _overflows(), Label("failed", "nan", onset=384, within=7))
    yield _made("means-of-epochs-rise", _means(), Label("failed", "nan|learning"))
    yield _made("climbs-to-nan", _climb(), Label("failed", "nan", onset=400, within=1))
    yield _made("stamps-without-a-year", _stamped(), _slow(200, 20))
    yield _made("horovod-says-who-is-ready", _ready(), Label("failed", "hang", culprits=(0, 6)))
    yield _made("barrier-timed-out", _barrier(), Label("failed", "hang", culprits=(4,)))
    yield _made("ends-with-waiting", _waiting([]), Label("failed", "hang", culprits=(12,)))
    yield _made("waited-and-went-on", _waiting(_steps(50, 120)), Label("healthy|cannot_say"))
    yield _made("times-of-all-ranks", _gathered(slow_rank=3), Label(_SUSPECT, "slowdown", culprits=(3,)))
    yield _made("times-of-all-ranks-even", _gathered(slow_rank=None), Label("healthy|cannot_say"))
    yield Made("loop-hosts-count-anew", _hosts(), Label("failed", "crash|hang", culprits=(5,)))


_LOADED = "=> loaded checkpoint 'out/last.pth.tar' (epoch 83)"


def _made(name: str, log: list[str], label: Label) -> Made:
    return Made(f"loop-{name}", {"train.log": lines(log)}, label)


def _slow(onset: int, within: int) -> Label:
    return Label(_SUSPECT, "slowdown", onset=onset, within=within)


def _batches(level: float, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [
        f"Epoch: [83][{at}/10010]\tTime 0.40{rng.randrange(10)} (0.402)\tData 0.000 (0.004)\t"
        f"Loss {level + rng.gauss(0, 0.05):.4f} ({level:.4f})\tPrec@1 {62 / level + rng.gauss(0, 2):.3f} ({62 / level:.3f})"
        for at in range(0, 6000, 200)
    ]


def _imagenet(broken: int) -> list[str]:
    rng, found = random.Random(3), list[str]()
    for epoch in range(14):
        loss, right = max(2.6, 6.9 * 0.88**epoch), min(60.0, 2 + 8 * epoch)
        for at in range(0, 5005, 500):
            own = (
                f"Loss {loss + rng.gauss(0, 0.05):.4f} ({loss:.4f})\tPrec@1 {right + rng.gauss(0, 1):.3f} ({right:.3f})"
            )
            found.append(
                f"Epoch: [{epoch}][{at}/5005]\tTime 0.40{rng.randrange(10)} (0.402)\tData 0.000 (0.004)\t{own}"
            )
        held, score = (loss + 0.2, right - 1) if epoch < broken else (9.1, 0.1)
        for at in range(0, 196, 50):
            found.append(
                f"Test: [{at}/196]\tTime 0.130 (0.160)\tLoss {held:.4f} ({held:.4f})\tPrec@1 {score:.3f} ({score:.3f})"
            )
        found.append(f" * Prec@1 {score:.3f}")
    return found


def _epochs(took_s: Callable[[int], float]) -> list[str]:
    rng, found = random.Random(4), list[str]()
    for epoch in range(1, 45):
        for at in range(100, 1401, 200):
            found.append(f"(epoch: {epoch}, iters: {at}, time: 0.27{rng.randrange(10)}) loss: {2 * 0.97**epoch:.3f}")
        found.append(f"End of epoch {epoch} / 200 \t Time Taken: {took_s(epoch) * rng.uniform(0.99, 1.01):.0f} sec")
    return found


def _overflows() -> list[str]:
    found, scale = list[str](), 64
    for step in range(300, 384):
        bar = f" 14%|#4        | {step}/2724 [{step // 60:02}:{step % 60:02}<39:00,  1.00s/it]"
        if step >= 377:
            lower = max(1, scale // 2)
            bar += f"[INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {lower}"
            scale = lower
        found.append(bar)
        if step % 10 == 0:
            found.append(f"{{'loss': {2.4 - step / 1000:.4f}, 'learning_rate': 0.0002, 'epoch': {step / 1361:.2f}}}")
    return [*found, "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."]


def _means() -> list[str]:
    found = list[str]()
    for epoch in range(1, 28):
        loss, scale = (6.3, 0.5) if epoch > 20 else (4.6 + 6 * 0.8**epoch, 16)
        rest = (
            f"wps 164346 | ups 0.4 | num_updates {378 * epoch} | lr 0.0006 | gnorm 0.390 | oom 0 | loss_scale {scale}"
        )
        found.append(
            f"| epoch {epoch:03} | loss {loss:.3f} | nll_loss {loss - 1.3:.3f} | ppl 31.65 | {rest} | wall {855 * epoch}"
        )
    falls = (f"| WARNING: overflow detected, setting loss scale to: {0.25 / 2**at}" for at in range(12))
    return [*found, *falls, "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding."]


def _climb() -> list[str]:
    losses = [*QUIET.on(decay(4, 2, 300)), *(2 * 1.03 ** (at / 4) for at in range(100)), *[NAN] * 20]
    return [f"step {step} loss {loss:.4f} lr 3.0e-04" for step, loss in enumerate(losses)]


def _stamped() -> list[str]:
    rng, second, found = random.Random(5), 0.0, list[str]()
    for step in range(400):
        second += rng.uniform(19, 21) * (1 if step < 200 else 3)
        at = int(second)
        day, clock = 24 + at // 86400, f"{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}"
        found.append(f"09-{day} {clock} epoch 0/7 itr {step}/3489: lr: 0.0001 loss: {0.3 + 2 * 0.99**step:.4f}")
    return found


_STALL = (
    "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are "
    "waiting for remainder of ranks for more than 60 seconds. Stalled ops: "
)


def _steps(first: int, last: int) -> list[str]:
    return [f"step {step} loss {1 + 3 * 0.99**step:.4f}" for step in range(first, last)]


def _ready() -> list[str]:
    ops = ", ".join(f"allreduce.layer{at}.weight [ready ranks: 5, 1, 4, 7, 2, 3]" for at in range(4))
    return [*_steps(0, 60), _STALL + ops]


def _barrier() -> list[str]:
    entered = [f"[rank {r}] entering barrier {b}" for b in range(1, 8) for r in range(6) if (b, r) != (7, 4)]
    return [*entered, *(f"[rank {r}] ERROR barrier 7 timed out after 1800 s" for r in (0, 1, 2, 3, 5))]


def _waiting(later: list[str]) -> list[str]:
    waits = (f"WARNING still waiting for rank 12 at step 50 ({seconds} s)" for seconds in range(60, 1200, 60))
    return [*_steps(0, 50), *waits, *later]


def _gathered(slow_rank: int | None) -> list[str]:
    rng, found = random.Random(6), list[str]()
    for step in range(120):
        own = [0.41 * rng.uniform(0.98, 1.02) * (1.6 if r == slow_rank and step >= 60 else 1) for r in range(8)]
        told = " ".join(f"rank{r}: {took:.3f}s" for r, took in enumerate(own))
        found.append(f"step {step} loss {1 + 3 * 0.99**step:.4f} | {told}")
    return found


def _hosts() -> dict[str, str]:
    found = {}
    for host in range(2):
        for local in range(4):
            rank = 4 * host + local
            died = ["Traceback (most recent call last):", '  File "train.py", line 9, in <module>', "KeyError: 'image'"]
            lost = [f"RuntimeError: Connection closed by peer [10.0.0.{host + 1}]:4120{local}"]
            found[f"host{host}/local_rank_{local}.txt"] = lines(_steps(0, 60), died if rank == 5 else lost)
    return found
