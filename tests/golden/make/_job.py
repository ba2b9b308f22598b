"""One made-up job whose numbers stand in several stores, and the ways in which each store writes them down."""

from __future__ import annotations

import importlib.util
import json
import math
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from forensics.values import replace
from make.base import NAN, QUIET, Noise, Series, decay

_FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
BEGAN = datetime(2025, 6, 15, 15, 6, 40, tzinfo=UTC)
LINE = "{t:%Y-%m-%d %H:%M:%S},{ms:03d} INFO step {step}/{total} loss {loss:.4f} grad_norm {grad:.3f} lr {lr:.3e} step_time {sec:.3f}"
KEY_ERROR = (
    "Traceback (most recent call last):\n"
    '  File "/srv/job/train.py", line 88, in <module>\n    step(batch)\n'
    '  File "/srv/job/train.py", line 41, in step\n    return table[key]\n'
    "KeyError: 'label_17'\n"
)


def script(name: str) -> Any:
    """A script of `fixtures/make`, loaded under a name of its own."""
    made = f"fixtures_make_{name}"
    if made not in sys.modules:
        folder = _FIXTURES / "make"
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
        spec = importlib.util.spec_from_file_location(made, folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[made] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[made])
    return sys.modules[made]


def fixture(path: str) -> bytes:
    """The bytes of a fixture: for formats whose writers change their bytes with a release."""
    return (_FIXTURES / path).read_bytes()


@dataclass(frozen=True, slots=True)
class Job:
    """A record for each step, or for every so many: equally long series, `total` steps planned."""

    loss: Series
    grad: Series
    lr: Series
    sec: Series
    every: int = 1
    first: int = 1
    total: int = 0
    began: datetime = BEGAN

    @property
    def steps(self) -> list[int]:
        """The step of each record."""
        return [self.first + at * self.every for at in range(len(self.loss))]

    @property
    def times(self) -> list[datetime]:
        """When each record was written."""
        now, found = self.began, list[datetime]()
        for sec in self.sec:
            now += timedelta(seconds=sec * self.every)
            found.append(now)
        return found

    def cut(self, count: int) -> Job:
        """Its first so many records."""
        return replace(self, loss=self.loss[:count], grad=self.grad[:count], lr=self.lr[:count], sec=self.sec[:count])

    def resumed(self, at: int, *, pause_s: float = 600.0) -> Job:
        """The same from a record on, begun anew some time after the record before."""
        return replace(
            self,
            loss=self.loss[at:],
            grad=self.grad[at:],
            lr=self.lr[at:],
            sec=self.sec[at:],
            first=self.steps[at],
            began=self.times[at] + timedelta(seconds=pause_s),
        )

    def bad(self, at: int) -> Job:
        """The same with NaN from a record on; the gradient norm is infinite in that one."""
        rest = len(self.loss) - at
        return replace(
            self,
            loss=[*self.loss[:at], *[NAN] * rest],
            grad=[*self.grad[:at], math.inf, *[NAN] * (rest - 1)],
        )

    def slower(self, at: int, times: float) -> Job:
        """The same, each step so much longer from a record on."""
        return replace(self, sec=[one * (times if n >= at else 1) for n, one in enumerate(self.sec)])

    def diverging(self, at: int) -> Job:
        """The same with a loss that rises from a record on, and stays."""
        rise = [min(1.8, 0.2 * max(0, n - at + 1)) for n in range(len(self.loss))]
        return replace(
            self,
            loss=[one * (1 + up) for one, up in zip(self.loss, rise, strict=True)],
            grad=[one * (1 + 6 * up) for one, up in zip(self.grad, rise, strict=True)],
        )

    def rows(self) -> list[dict[str, Any]]:
        """The values of each record."""
        return [
            {"step": step, "loss": loss, "grad": grad, "lr": lr, "sec": sec, "t": t, "ms": t.microsecond // 1000, "total": self.total}
            for step, loss, grad, lr, sec, t in zip(
                self.steps, self.loss, self.grad, self.lr, self.sec, self.times, strict=True
            )
        ]  # fmt: skip

    def log(self, form: str = LINE, **more: Any) -> str:
        """A log line for each record."""
        return "".join(form.format(**row, **more) + "\n" for row in self.rows())

    def events(self, tags: Sequence[str] = ("train/loss", "train/grad_norm", "train/lr")) -> bytes:
        """A TensorBoard event file."""
        maker = script("tfevents")
        columns = (self.loss, self.grad, self.lr)
        return maker.head() + b"".join(
            maker.scalar(tag, column[at], step)
            for at, step in enumerate(self.steps)
            for tag, column in zip(tags, columns, strict=False)
        )

    def wandb(self, *, config: dict[str, Any], said: str = "", code: int | None = 0) -> bytes:
        """A W&B transaction log; no exit record where the process was killed."""
        maker = script("wandb_run")
        records = [maker.start()[0], _run_record(maker, config)]
        for row in self.rows():
            cells = {"train__loss": row["loss"], "grad_norm": row["grad"], "lr": row["lr"]}
            records.append(maker.history(row["step"], **{name: json.dumps(value) for name, value in cells.items()}))
        records += [maker.said(line, self.steps[-1], error=True) for line in said.splitlines(keepends=True)]
        records += [maker.ended(code)] if code is not None else []
        return maker.frame(records, maker.HEADER)

    def state(self, *, upto: int | None = None, epochs: int = 2) -> str:
        """A trainer state of the Hugging Face trainer, up to a step."""
        last = upto or self.steps[-1]
        history = [
            {"epoch": round(epochs * row["step"] / self.total, 4), "grad_norm": round(row["grad"], 4),
             "learning_rate": row["lr"], "loss": round(row["loss"], 4), "step": row["step"]}
            for row in self.rows() if row["step"] <= last
        ]  # fmt: skip
        top = {"epoch": round(epochs * last / self.total, 4), "global_step": last, "logging_steps": self.every,
               "max_steps": self.total, "num_train_epochs": epochs, "save_steps": 100, "log_history": history}  # fmt: skip
        return json.dumps(top, indent=1) + "\n"


def job(count: int = 120, *, seed: int = 1, start: float = 6.2, end: float = 2.6, sec: float = 0.5, every: int = 1, total: int = 0,
        peak: float = 3e-4, noise: Noise = QUIET) -> Job:  # fmt: skip
    """A healthy job: a loss that falls, a warm-up and a cosine, a steady pace; as many steps as are planned."""
    planned = total or count * every
    at = [(n + 1) * every / planned for n in range(count)]
    return Job(
        loss=_rounded(Noise(noise.share, seed).on(decay(start, end, count, count / 6))),
        grad=_rounded(Noise(0.08, seed + 1).on([0.9] * count)),
        lr=_rounded(peak * (a / 0.05 if a < 0.05 else 0.55 + 0.45 * math.cos(math.pi * a)) for a in at),
        sec=_rounded(Noise(0.02, seed + 2).on([sec] * count)),
        every=every,
        first=every,
        total=planned,
    )


def _rounded(values: Iterable[float]) -> Series:
    """Seven digits: mathematical libraries differ in the last of sixteen."""
    return [float(f"{value:.7g}") for value in values]


def checkpoints(
    *steps: int, form: str = "checkpoints/step_{}", names: Sequence[str] = (".metadata", "__0_0.distcp")
) -> dict[str, str]:
    """Checkpoint folders by step, with a few bytes for each file."""
    return {f"{form.format(step)}/{name}": "weights" for step in steps for name in names}


def settings(**values: Any) -> str:
    """A YAML file of one level."""
    return "".join(f"{name}: {value}\n" for name, value in values.items())


def noise(seed: int, share: float, count: int, level: float) -> Series:
    """A level with noise."""
    rng = random.Random(seed)
    return _rounded(level * (1 + rng.gauss(0, share)) for _ in range(count))


def _run_record(maker: Any, config: dict[str, Any]) -> bytes:
    record = maker.pb.Record()
    record.run.run_id, record.run.project = "q7w2e9rt", "tiny"
    for name, value in config.items():
        record.run.config.update.add(key=name, value_json=json.dumps(value))
    return record.SerializeToString(deterministic=True)
