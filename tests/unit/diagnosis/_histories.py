"""Runs of one to six attempts, each of which ends in a failure of a known nature, and what a launcher is to do next."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

#: What an attempt ends with; `{rank}` is a rank, `{step}` its last step.
ENDS = {
    "program": (
        "Traceback (most recent call last):",
        '  File "/app/train.py", line 88, in <module>',
        "    main()",
        '  File "/app/train.py", line 61, in main',
        '    target = batch["labels"]',
        "KeyError: 'labels'",
    ),
    "capacity": (
        "Traceback (most recent call last):",
        '  File "/app/train.py", line 88, in <module>',
        "    loss.backward()",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has 1.21 GiB free.",
    ),
    "machine": (
        "[Mon Nov 16 03:12:44 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=4122, name=python, GPU has fallen off the bus.",
        "Traceback (most recent call last):",
        '  File "/app/train.py", line 88, in <module>',
        "    loss.backward()",
        "RuntimeError: CUDA error: unspecified launch failure",
    ),
    "passing": (
        "Traceback (most recent call last):",
        '  File "/app/train.py", line 88, in <module>',
        "    dist.all_reduce(total)",
        "torch.distributed.DistBackendError: NCCL error in: ../NCCLUtils.hpp:275, remote process exited or there was",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "Last error:",
        "socketProgress: Connection closed by remote peer node-{rank}<44211>",
    ),
    "preempted": ("slurmstepd: error: *** JOB 4471 ON node17 CANCELLED AT 2026-11-16T03:12:44 DUE TO PREEMPTION ***",),
    "time_limit": ("slurmstepd: error: *** JOB 4471 ON node17 CANCELLED AT 2026-11-16T03:12:44 DUE TO TIME LIMIT ***",),
    "numbers": ("step={next} loss=nan grad_norm=nan lr=3.0e-04", "ValueError: loss is not finite, stopping"),
    "unclear": ("Segmentation fault (core dumped)",),
}
#: What is to be done, and after how many attempts that got no further it is something else.
NEXT = {
    "program": ("after_change", 99, ""),
    "capacity": ("after_change", 99, ""),
    "machine": ("elsewhere", 3, "stop"),
    "passing": ("as_is", 3, "stop"),
    "preempted": ("as_is", 3, "after_change"),
    "time_limit": ("as_is", 3, "after_change"),
    "numbers": ("after_change", 99, ""),
    "unclear": ("as_is", 2, "stop"),
}


@dataclass(frozen=True, slots=True)
class History:
    """One run: the nature of each attempt's end, the step it reached, and whether each has a log of its own."""

    seed: int
    kinds: tuple[str, ...]
    reached: tuple[int, ...]
    begins: tuple[int, ...]
    own_logs: bool

    @property
    def stuck(self) -> int:
        """How many attempts at the end got no further than the first of them."""
        count, furthest = 0, -1
        if self.reached[-1] // 50 * 50 > self.begins[-1]:
            return 1  # it saved a checkpoint
        for number, step in enumerate(self.reached):
            lost = number and self.begins[number + 1 : number + 2] == (self.begins[number],)
            count = count + 1 if lost or step <= furthest else 1
            furthest = max(step, furthest)
        return count

    @property
    def expected(self) -> str:
        """What is to be done next."""
        first, least, then = NEXT[self.kinds[-1]]
        return first if self.stuck < least else then

    def write(self, folder: Path) -> Path:
        """Write the logs of the run."""
        texts = [self._attempt(number) for number in range(len(self.kinds))]
        if self.own_logs:
            for number, text in enumerate(texts):
                (folder / f"slurm-{4470 + number}.out").write_text(text)
        else:
            (folder / "train.log").write_text("".join(texts))
        return folder

    def _attempt(self, number: int) -> str:
        rng = random.Random(f"{self.seed}-{number}")
        begin, end = self.begins[number], self.reached[number]
        lines = [f"resuming from checkpoint checkpoints/step_{begin} at step {begin}"] if begin else ["training starts"]
        for step in range(begin + 5, end + 1, 5):
            loss = 8 * (step + 20) ** -0.3 + rng.gauss(0, 0.01)
            lines.append(f"step={step} loss={loss:.4f} grad_norm={1 + rng.random():.3f} lr=3.0e-04")
            if step % 50 == 0:
                lines.append(f"saved checkpoint to checkpoints/step_{step}")
        words = (line.replace("{rank}", "3").replace("{next}", str(end + 5)) for line in ENDS[self.kinds[number]])
        return "\n".join([*lines, *words]) + "\n"


def history(seed: int) -> History:
    """The history of a seed: all attempts end alike, or another failure comes last; they advance, or are stuck."""
    rng = random.Random(seed)
    count = rng.choice((1, 2, 2, 3, 3, 4, 5, 6))
    kind = rng.choice(tuple(ENDS))
    kinds = [kind] * count
    if rng.random() < 0.3:
        kinds[-1] = rng.choice(tuple(ENDS))
    reached, begins = [rng.randrange(60, 200, 5)], [0]
    stuck = rng.random() < 0.5
    while len(reached) < count:
        saved = reached[-1] // 50 * 50
        begins.append(saved)
        gain = 0 if stuck and len(reached) >= 1 else rng.randrange(20, 150, 5)
        reached.append(max(reached[-1] + gain, saved + 15))
    return History(seed, tuple(kinds), tuple(reached), tuple(begins), rng.random() < 0.5)
