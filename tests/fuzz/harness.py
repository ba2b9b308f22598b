# ruff: noqa: T201 - it prints its figures
"""Mutated inputs for every ingester: nothing may escape but an `InputError`, nothing may die, hang or swell.

    python tests/fuzz/harness.py --n 2000 [--ingester NAME] [--seed S]
    python tests/fuzz/harness.py --ingester NAME --seed S --case I [--save FILE]

Cases are read in a child process, started anew after a death; each has 5 s and 512 MiB. Exit code 1 on any failure.
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
from pathlib import Path
from typing import Any

from mutate import case, seeds
from worker import ingesters, judged

SECONDS = 5.0
MIB = 512
START_SECONDS = 120.0
AGAIN = "python tests/fuzz/harness.py"
HEADER = "ingester              read not-mine refused  raised    died    hung    max s  max MiB"


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

    def ask(self, name: str, seed: int, number: int) -> dict[str, Any]:
        self.requests.write(f"{name} {seed} {number}\n")
        self.requests.flush()
        return self._answer(SECONDS)

    def _answer(self, seconds: float) -> dict[str, Any]:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.answers, selectors.EVENT_READ)
            if not waiting.select(seconds):
                self.stop()
                return {"end": "hung", "why": f"over {seconds} s", "seconds": seconds, "kib": 0}
        line = self.answers.readline()
        if line:
            return json.loads(line)
        code = self.process.wait()
        self.errors.seek(0)
        last = self.errors.read()[-300:].decode(errors="replace").strip().replace("\n", " ")
        return {"end": "died", "why": f"exit {code}: {last}", "seconds": 0.0, "kib": 0}

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
    failures: list[tuple[int, str]] = field(default_factory=list)

    def add(self, number: int, answer: dict[str, Any]) -> None:
        end = answer["end"]
        if end in {"read", "not-mine", "refused"} and answer["kib"] > MIB << 10:
            end, answer["why"] = "swelled", f"{answer['kib'] >> 10} MiB"
        if end in {"read", "not-mine", "refused"} and answer["seconds"] > SECONDS:
            end, answer["why"] = "hung", f"{answer['seconds']:.1f} s"
        self.ends[end] = self.ends.get(end, 0) + 1
        self.seconds = max(self.seconds, answer["seconds"])
        self.kib = max(self.kib, answer["kib"])
        if end in {"raised", "died", "hung", "swelled"}:
            self.failures.append((number, f"{end}: {answer['why']}"))


def fuzz(names: list[str], count: int, seed: int) -> Iterator[Score]:
    """Read `count` cases with each ingester."""
    child = Child()
    try:
        for name in names:
            score = Score(name)
            for number in range(count):
                answer = child.ask(name, seed, number)
                score.add(number, answer)
                if answer["end"] in {"died", "hung"}:
                    child.stop()
                    child = Child()
            yield score
    finally:
        child.stop()


def show(score: Score, seed: int) -> None:
    ends = " ".join(f"{score.ends.get(end, 0):7}" for end in ("read", "not-mine", "refused", "raised", "died", "hung"))
    print(f"{score.name:18} {ends} {score.seconds:8.2f} {score.kib >> 10:8}", flush=True)
    seen: set[str] = set()
    for number, why in score.failures:
        if why[:60] not in seen and len(seen) < 8:
            seen.add(why[:60])
            print(f"    {why}\n      again: {AGAIN} --ingester {score.name} --seed {seed} --case {number}")


def again(name: str, seed: int, number: int, save: Path | None) -> int:
    """Read one case in this process and show how it ended; `save` keeps its bytes."""
    one = ingesters()[name]
    found = case(one, seeds(one), seed, number)
    if save is not None:
        save.write_bytes(found.data)
    print(f"{found.name}: {len(found.data)} bytes, begins {found.data[:60]!r}")
    answer = judged(one, found)
    print(answer)
    return int(answer["end"] == "raised")


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutated inputs for every ingester.")
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--ingester")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    known = list(ingesters())
    if given.ingester and given.ingester not in known:
        parser.error(f"no ingester is called {given.ingester}; there are: {', '.join(known)}")
    if given.case is not None and given.ingester:
        return again(given.ingester, given.seed, given.case, given.save)
    names = [given.ingester] if given.ingester else known
    print(f"{HEADER}   (n={given.n} seed={given.seed})")
    failed = False
    for score in fuzz(names, given.n, given.seed) if names else ():
        show(score, given.seed)
        failed = failed or bool(score.failures)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
