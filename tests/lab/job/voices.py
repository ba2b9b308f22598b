"""How a loop prints a step, an evaluation, a checkpoint and its end: one class for each log style."""

from __future__ import annotations

import json
import logging
import sys
import time

from facts import RANK, WORLD


class Print:
    """`step 12 loss 3.1 …`, as a first loop prints."""

    everyone = False
    #: As of the last record: GPU memory in GiB and seconds of the rank's own work, where the job has them; samples read.
    held_gib, own_s, samples = None, None, 0

    def __init__(self, steps):
        self.steps = steps
        self.out(f"training for {steps} steps on {WORLD} rank(s)" if WORLD > 1 else f"training for {steps} steps")

    def out(self, text):
        print(text, flush=True)

    def step(self, step, loss, norm, rate, dt, tokens):
        self.out(
            f"step {step}/{self.steps} loss {loss:.4f} grad_norm {norm:.4f} lr {rate:.2e} dt {dt * 1e3:.1f}ms"
            + self._held()
        )

    def _held(self):
        return "" if self.held_gib is None else f" mem {self.held_gib:.2f}GiB"

    def skipped(self, step, norm):
        self.out(f"step {step}: grad norm is {norm}, skipping update")

    def scale(self, step, scale):
        self.out(f"step {step}: gradient overflow, skipping update, loss scale {scale:g}")

    def evaluated(self, step, loss):
        self.out(f"step {step} eval_loss {loss:.4f}")

    def saved(self, step, path):
        self.out(f"saved checkpoint {path}")

    def resumed(self, step, path):
        self.out(f"resumed from {path} at step {step}")

    def end(self, step):
        self.out(f"training finished after {step} steps")


class Logging(Print):
    """The standard library's logging, every rank."""

    everyone = True

    def __init__(self, steps):
        logging.basicConfig(
            level=logging.INFO,
            stream=sys.stdout,
            format=f"%(asctime)s %(levelname)s [rank {RANK}] %(message)s",
            force=True,
        )
        super().__init__(steps)

    def out(self, text):
        logging.info(text)

    def step(self, step, loss, norm, rate, dt, tokens):
        self.out(
            f"step={step} loss={loss:.5f} grad_norm={norm:.3f} lr={rate:.3g} step_time={dt:.3f}s tok/s={tokens:.0f}"
            + ("" if self.held_gib is None else f" mem={self.held_gib:.2f}GiB")
            + ("" if self.own_s is None else f" compute_time={self.own_s:.3f}s")
        )


class Tqdm(Print):
    """A progress bar with the loss behind it."""

    def __init__(self, steps):
        from tqdm import tqdm  # noqa: PLC0415 - only this voice

        self.bar = tqdm(total=steps, file=sys.stderr, mininterval=0)
        super().__init__(steps)

    def step(self, step, loss, norm, rate, dt, tokens):
        self.bar.n = step
        self.bar.set_postfix(loss=f"{loss:.4f}", gnorm=f"{norm:.3f}", lr=f"{rate:.2e}")

    def end(self, step):
        self.bar.close()
        super().end(step)


class Dict(Print):
    """Dictionaries, as the Hugging Face Trainer prints them."""

    def step(self, step, loss, norm, rate, dt, tokens):
        self.out(str({"loss": round(loss, 4), "grad_norm": round(norm, 4), "learning_rate": rate, "step": step}))

    def evaluated(self, step, loss):
        self.out(str({"eval_loss": round(loss, 4), "step": step}))


class KempnerForge(Logging):
    """`[rank 0] INFO     [step 50] loss=… | …`."""

    def out(self, text):
        print(f"[rank {RANK}] INFO     {text}", flush=True)

    def step(self, step, loss, norm, rate, dt, tokens):
        if loss != loss:
            print(f"[rank {RANK}] WARNING  NaN/Inf loss at step {step - 1} (consecutive=1, total=1)", flush=True)
            return
        self.out(
            f"[step {step}] loss={loss:.4f} | lr={rate:.2e} | grad_norm={norm:.3f} | tok/s={tokens:,.0f} | mfu=18.2% | "
            f"mem={self.held_gib or 2.1:.1f}/80GB | step_time={dt:.2f}s"
        )

    def evaluated(self, step, loss):
        self.out(f"[step {step}] eval_loss={loss:.4f}")

    def saved(self, step, path):
        self.out(f"Checkpoint committed: {path} (step={step})")

    def resumed(self, step, path):
        self.out(f"Resumed from step {step}, {step * 512:,} tokens seen")

    def end(self, step):
        self.out(f"Training complete: {step} steps, {step * 512:,} tokens")


class Megatron(Print):
    """Megatron-LM's line of an iteration."""

    def step(self, step, loss, norm, rate, dt, tokens):
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        shown = f" lm loss: {loss:.6E} |" if loss == loss else ""
        self.out(
            f" [{stamp}] iteration {step:8d}/{self.steps:8d} | consumed samples: {self.samples:12d} | elapsed time per "
            f"iteration (ms): {dt * 1e3:.1f} | learning rate: {rate:.6E} | global batch size:     8 |{shown} loss scale: 1.0 "
            f"| grad norm: {norm:.3f} | number of skipped iterations:   0 | number of nan iterations:   {int(loss != loss)} |"
        )

    def saved(self, step, path):
        self.out(f"  successfully saved checkpoint from iteration {step:7d} to checkpoints")


class TorchTitan(Print):
    """torchtitan's line of a step."""

    def out(self, text):
        print(f"[titan] {time.strftime('%Y-%m-%d %H:%M:%S')},000 - root - INFO - {text}", flush=True)

    def step(self, step, loss, norm, rate, dt, tokens):
        self.out(
            f"step: {step:2d}  loss: {loss:7.4f}  grad_norm: {norm:7.4f}  "
            f"memory: {self.held_gib or 2.1:5.2f}GiB({(self.held_gib or 2.1) / 0.791:.2f}%)  tps: {tokens:,.0f}  "
            f"tflops: 3.21  mfu: 1.03%"
        )

    def end(self, step):
        self.out("Training completed")


class Loguru(Print):
    """loguru's lines, as it comes: to the standard error, with a colour only on a terminal."""

    def __init__(self, steps):
        from loguru import logger  # noqa: PLC0415 - only this voice

        self.logger = logger
        super().__init__(steps)

    def out(self, text):
        self.logger.info(text)

    def step(self, step, loss, norm, rate, dt, tokens):
        self.out(
            f"step {step}/{self.steps} | loss: {loss:.4f} | grad_norm: {norm:.4f} | lr: {rate:.2e} | {dt:.3f} s/it"
        )

    def scale(self, step, scale):
        self.logger.warning(f"gradient overflow at step {step}, loss scale reduced to {scale:g}")


class Rich(Print):
    """rich's logging handler, off a terminal: columns of 80 or 120 places, wrapped."""

    def __init__(self, steps):
        from rich.console import Console  # noqa: PLC0415 - only this voice
        from rich.logging import RichHandler  # noqa: PLC0415

        handler = RichHandler(console=Console(width=120 if steps % 2 else 80), rich_tracebacks=True)
        logging.basicConfig(level=logging.INFO, format="%(message)s", datefmt="[%X]", handlers=[handler], force=True)
        super().__init__(steps)

    def out(self, text):
        logging.getLogger("train").info(text)

    def step(self, step, loss, norm, rate, dt, tokens):
        self.out(f"Step {step}: loss={loss:.4f}, grad_norm={norm:.4f}, lr={rate:.3e}, step_time={dt:.3f}s")


class Json(Print):
    """An object a line, as a service logs."""

    def out(self, text):
        self.put("INFO", message=text)

    def put(self, level, **fields):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        print(json.dumps({"timestamp": stamp, "level": level, "logger": "trainer", "rank": RANK, **fields}), flush=True)

    def step(self, step, loss, norm, rate, dt, tokens):
        self.put("INFO", message="train_step", step=step, loss=loss, grad_norm=norm, lr=rate, step_time_s=round(dt, 4))

    def evaluated(self, step, loss):
        self.put("INFO", message="eval", step=step, eval_loss=loss)

    def scale(self, step, scale):
        self.put("WARNING", message="gradient overflow, skipping update", step=step, loss_scale=scale)


VOICES = {
    "print": Print, "logging": Logging, "tqdm": Tqdm, "dict": Dict, "kempnerforge": KempnerForge, "megatron": Megatron,
    "torchtitan": TorchTitan, "loguru": Loguru, "rich": Rich, "json": Json,
}  # fmt: skip
