"""The same job as a loop of one's own around Accelerate, with its logger and its trackers."""

from __future__ import annotations

import contextlib
import logging
import math
import sys

import common
import hooks
import library
import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from accelerate.logging import get_logger
from accelerate.utils import ProjectConfiguration
from tqdm.auto import tqdm

JOB = hooks.JOB
#: What `log_with` fills.
_NATIVE = frozenset(("tensorboard",))


class Place:
    """Where the loop is: saved and loaded with the rest."""

    def __init__(self):
        self.step = 0

    def state_dict(self):
        return {"step": self.step}

    def load_state_dict(self, state):
        self.step = state["step"]


def loaded(accelerator, place, log):
    """Go on from the checkpoint; gives the step that is done."""
    path = f"out/step_{hooks.STARTED_AT}"
    log.info(f"Resumed from checkpoint: {path}")
    model, optimizer = accelerator._models[0], accelerator._optimizers[0]
    new = {name: value.clone() for name, value in model.state_dict().items()}, optimizer.state_dict()
    accelerator.load_state(path)
    if not hooks.restore("net"):
        model.load_state_dict(new[0])
    if not hooks.restore("optimizer"):
        optimizer.load_state_dict(new[1])
    return place.step if hooks.restore("step") else 0


def main():
    steps = JOB["steps"]
    hooks.joining()
    accelerator = Accelerator(
        cpu=True, log_with=sorted(_NATIVE & set(JOB["stores"])) or None,
        project_config=ProjectConfiguration(project_dir="out", logging_dir="out/logs"),
        kwargs_handlers=[InitProcessGroupKwargs("gloo", timeout=library.START)] if hooks.WORLD > 1 else [],
    )  # fmt: skip
    logging.basicConfig(
        format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", datefmt="%m/%d/%Y %H:%M:%S", level=logging.INFO,
        stream=library.CHOICE.choice([sys.stdout, sys.stderr]),
    )  # fmt: skip
    log = get_logger("train")
    log.info(accelerator.state, main_process_only=False)
    torch.manual_seed(JOB["seed"])
    model, place, shown = library.Model(), Place(), library.Shown(common.CONFIG, _NATIVE)
    inner, optimizer = model, library.optimizer_of(model)
    loader = torch.utils.data.DataLoader(common.Rows(), batch_size=1, collate_fn=lambda rows: rows[0])
    held = torch.utils.data.DataLoader(common.Held(), batch_size=1, collate_fn=lambda rows: rows[0])
    model, optimizer, loader, held = accelerator.prepare(model, optimizer, loader, held)
    accelerator.register_for_checkpointing(place)
    accelerator.init_trackers("lab", config=common.CONFIG)
    done = loaded(accelerator, place, log) if hooks.STARTED_AT else 0
    log.info("***** Running training *****")
    log.info(f"  Instantaneous batch size per device = {common.BATCH}")
    log.info(f"  Total optimization steps = {steps}")
    bar = tqdm(total=steps, initial=done, disable=not accelerator.is_local_main_process)
    library.meet()
    model.train()
    rows = accelerator.skip_first_batches(loader, done) if hooks.restore("data") else loader
    for step, (inputs, labels) in enumerate(rows, start=done + 1):
        if step > steps:
            break
        inner.at = step
        shown.stores.begin(step)
        hooks.before(step)
        for group in optimizer.param_groups:
            group["lr"] = library.rate(step)
        with accelerator.no_sync(model) if hooks.skips(step) else contextlib.nullcontext():
            value = model(inputs, labels)["loss"]
            accelerator.backward(value)
        hooks.gradients(step, inner.net)
        norm = float(accelerator.clip_grad_norm_(model.parameters(), math.inf))
        if hooks.guards() and not math.isfinite(norm):
            log.warning(f"step {step}: grad norm is {norm}, skipping update")
        else:
            optimizer.step()
        optimizer.zero_grad()
        bar.update(1)
        rate = optimizer.param_groups[0]["lr"]
        bar.set_postfix(loss=value.item(), lr=rate)
        if step % hooks.interval(step, JOB["log_every"]) == 0:
            shown.train(step, value.item(), norm, rate)
            accelerator.log({"train_loss": value.item(), "lr": rate, "grad_norm": norm}, step=step)
            log.info(f"step {step}: loss {value.item():.4f}, grad_norm {norm:.4f}, lr {rate:.3g}")
        if JOB["eval_every"] and step % JOB["eval_every"] == 0:
            hooks.evaluating(step)
            model.eval()
            with torch.no_grad():
                mean = torch.stack([accelerator.gather(model(*both)["loss"]).mean() for both in held]).mean().item()
            model.train()
            shown.evaluated(step, mean)
            log.info(f"step {step}: eval_loss: {mean:.4f} perplexity: {math.exp(min(mean, 50)):.2f}")
            accelerator.log({"eval_loss": mean}, step=step)
        if step % JOB["save_every"] == 0:
            hooks.saving(step)
            place.step = step
            accelerator.save_state(f"out/step_{step}")
            log.info(f"Saved state to out/step_{step}")
            hooks.note(saved=step)
        shown.stores.end(step)
        library.leave(step)
        if hooks.stops(step):
            log.info(f"early stopping at step {step}: eval_loss has reached its target")
            break
    hooks.leaving()
    shown.stores.close()
    accelerator.end_training()
    bar.close()
    log.info("Training finished")
    hooks.note(ended=step)


if __name__ == "__main__":
    main()
