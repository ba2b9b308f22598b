# ruff: noqa: T201 - it prints its figures
"""Mutated inputs for every ingester: nothing may escape but an `InputError`, nothing may die, hang or swell.

    python tests/fuzz/harness.py --n 2000 [--amplify] [--ingester NAME,…] [--seed S] [--tell N]
    python tests/fuzz/harness.py --ingester NAME --seed S --case I [--amplify] [--save FILE]

Cases are read in a child process, started anew after a death; each has 2 s of CPU, 3 s more for each MB, and 512 MiB.
With `--amplify` small inputs that ask for much come after the mutated ones. Rules and renderers are asked about every
N-th case. Exit code 1 on any failure.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from amplify import amplified
from mutate import case, seeds
from worker import AMPLIFY, ingesters, judged

SECONDS, SECONDS_PER_MB = 2.0, 3.0
#: Wall time after which a child is given up: other work on the machine is no fault of the input.
HUNG_SECONDS = 240.0
MIB = 512
TELL = 10
START_SECONDS = 120.0
AGAIN = "python tests/fuzz/harness.py"
MOST_SHOWN = 12
ENDS = ("read", "not-mine", "refused", "ended", "raised", "died", "hung", "slow", "swelled")
FINE = frozenset(ENDS[:4])
HEADER = f"{'ingester':22}{' '.join(f'{end:>8}' for end in ENDS)}    max s  max MiB"


class Child:
    """A worker process; `ask` gives its answer, or how it died."""

    def __init__(self) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        command = [sys.executable, str(Path(__file__).with_name("worker.py"))]
        env = os.environ | {"POLARS_MAX_THREADS": "2", "RUST_BACKTRACE": "0"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self.errors, env=env, text=True)
        assert self.process.stdin
        assert self.process.stdout
        self.requests, self.answers = self.process.stdin, self.process.stdout
        self.ready = self._answer(START_SECONDS)
        if "ready" not in self.ready:
            msg = f"the worker did not start: {self.ready}"
            raise SystemExit(msg)

    def ask(self, name: str, seed: int | str, number: int, *, tell: bool) -> dict[str, Any]:
        self.requests.write(f"{name} {seed} {number} {int(tell)}\n")
        self.requests.flush()
        return self._answer(HUNG_SECONDS)

    def _answer(self, seconds: float) -> dict[str, Any]:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.answers, selectors.EVENT_READ)
            if not waiting.select(seconds):
                self.stop()
                return {"end": "hung", "why": f"over {seconds} s", "seconds": seconds, "kib": 0, "bytes": 0}
        line = self.answers.readline()
        if line:
            return json.loads(line)
        code = self.process.wait()
        self.errors.seek(0)
        last = self.errors.read()[-300:].decode(errors="replace").strip().replace("\n", " ")
        return {"end": "died", "why": f"exit {code}: {last}", "seconds": 0.0, "kib": 0, "bytes": 0}

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass(slots=True)
class Score:
    """What became of the cases of one ingester."""

    name: str
    ends: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    kib: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)

    def add(self, again: str, answer: dict[str, Any]) -> None:
        end, size = answer["end"], answer["bytes"]
        if end in FINE and answer["kib"] > MIB << 10:
            end, answer["why"] = "swelled", f"{answer['kib'] >> 10} MiB of {size} bytes"
        if end in FINE and answer["seconds"] > SECONDS + SECONDS_PER_MB * size / 1e6:
            end, answer["why"] = "slow", f"{answer['seconds']:.1f} s of {size} bytes"
        self.ends[end] = self.ends.get(end, 0) + 1
        self.seconds = max(self.seconds, answer["seconds"])
        self.kib = max(self.kib, answer["kib"])
        if end not in FINE:
            self.failures.append((again, f"{end}: {answer['why']} {answer.get('label', '')}".rstrip()))


def fuzz(names: list[str], given: argparse.Namespace) -> Iterator[Score]:
    """Read `given.n` mutated cases with each ingester, then every amplified one when they are asked for."""
    child = Child()
    try:
        for name in names:
            score = Score(name)
            amplified_cases = ((AMPLIFY, number) for number in count(given.part, given.parts))
            mutated_cases = ((given.seed, number) for number in range(given.part, given.n, given.parts))
            for seed, number in chain(mutated_cases, amplified_cases if given.amplify else ()):
                answer = child.ask(name, seed, number, tell=bool(given.tell) and number % given.tell == 0)
                if answer["end"] == "none":
                    break
                score.add(f"--ingester {name} --seed {given.seed} {_kind(seed)}--case {number}", answer)
                if answer["end"] in {"died", "hung"}:
                    child.stop()
                    child = Child()
            yield score
    finally:
        child.stop()


def _kind(seed: int | str) -> str:
    return "--amplify " if seed == AMPLIFY else ""


def show(score: Score) -> None:
    ends = " ".join(f"{score.ends.get(end, 0):8}" for end in ENDS)
    print(f"{score.name:22}{ends} {score.seconds:8.2f} {score.kib >> 10:8}", flush=True)
    seen: set[str] = set()
    for again_as, why in score.failures:
        if why[:60] not in seen and len(seen) < MOST_SHOWN:
            seen.add(why[:60])
            print(f"    {why}\n      again: {AGAIN} {again_as}")


def again(given: argparse.Namespace) -> int:
    """Read one case in this process and show how it ended; `save` keeps its bytes."""
    one = ingesters()[given.ingester]
    if given.amplify:
        label, found = next(islice(amplified(one, seeds(one)), given.case, None))
        print(label)
    else:
        found = case(one, seeds(one), given.seed, given.case)
    if given.save is not None:
        given.save.write_bytes(found.data)
    print(f"{found.name}: {len(found.data)} bytes, begins {found.data[:60]!r}")
    answer = judged(one, found, tell=True)
    print(answer)
    return int(answer["end"] == "raised")


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutated inputs for every ingester.")
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--ingester")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--amplify", action="store_true", help="amplified cases, too")
    parser.add_argument("--tell", type=int, default=TELL, help="ask rules and renderers about every N-th case; 0: none")
    parser.add_argument("--parts", type=int, default=1, help="of so many parts of the cases…")
    parser.add_argument("--part", type=int, default=0, help="…this one")
    given = parser.parse_args()
    known = list(ingesters())
    names = given.ingester.split(",") if given.ingester else known
    for name in names:
        if name not in known:
            parser.error(f"no ingester is called {name}; there are: {', '.join(known)}")
    if given.case is not None and given.ingester:
        return again(given)
    print(f"{HEADER}   (n={given.n} seed={given.seed})")
    failed = False
    for score in fuzz(names, given) if names else ():
        show(score)
        failed = failed or bool(score.failures)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
