"""A plain training loop, alone or as ranks of torchrun over gloo."""

from __future__ import annotations

import datetime
import math
import os
import time
from pathlib import Path

import common
import hooks
import torch
import torch.distributed as dist
from stores import Stores
from voices import VOICES

JOB = hooks.JOB
#: An fp16 scale is printed while it halves down to the first of these, and is given up at the second.
_SILENT_SCALE, _LEAST_SCALE = 0.2, 1e-4


def averaged(net):
    """All-reduce the gradients."""
    for parameter in net.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= hooks.WORLD


def evaluate(net, seed):
    net.eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        value = sum(common.cost(net, *common.chain(generator)).item() for _ in range(4)) / 4
    net.train()
    return value


def main():
    steps, begin = JOB["steps"], hooks.STARTED_AT
    if hooks.WORLD > 1:
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=8))
    torch.manual_seed(JOB["seed"])
    net = common.Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=common.BASE_LR)
    voice_of = VOICES[JOB["trainer"]]
    voice = voice_of(steps) if hooks.RANK == 0 or voice_of.everyone else None
    stores = Stores({"steps": steps, "lr": common.BASE_LR, "warmup_steps": common.WARMUP, "batch_size": common.BATCH})
    generator = torch.Generator().manual_seed(JOB["seed"] * 1000 + hooks.RANK)
    if begin:
        path = f"checkpoints/step_{begin}"
        state = torch.load(f"{path}/model.pt")
        if hooks.restore("net"):
            net.load_state_dict(state["net"])
        if hooks.restore("optimizer"):
            optimizer.load_state_dict(state["optimizer"])
        if voice:
            voice.resumed(begin, path)
        begin = begin if hooks.restore("step") else 0
    for _ in range(begin if hooks.restore("data") else 0):
        common.chain(generator)
    hooks.start()
    scale, first_bad, last, clock = 65536.0, None, begin, time.perf_counter()
    for step in range(begin + 1, steps + 1):
        stores.begin(step)
        hooks.before(step)
        net.at = step
        now = hooks.lr(step, common.rate(hooks.schedule_step(step), steps))
        for group in optimizer.param_groups:
            group["lr"] = now
        inputs, labels = hooks.batch(step, *common.chain(generator))
        value = hooks.loss(step, common.cost(net, inputs, labels))
        optimizer.zero_grad()
        value.backward()
        if hooks.WORLD > 1 and not hooks.skips(step):
            averaged(net)
        norm = float(torch.nn.utils.clip_grad_norm_(net.parameters(), math.inf))
        shown = value.item()
        if hooks.scale(step):
            scale, norm = scale / 2, math.inf
            if voice and scale > _SILENT_SCALE:
                voice.scale(step, scale)
            if scale < _LEAST_SCALE:
                raise RuntimeError(
                    "Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."
                )
        else:
            optimizer.step()
        if first_bad is None and not (math.isfinite(shown) and math.isfinite(norm)):
            first_bad = step
            hooks.note(onset=step)
        every = hooks.interval(step, JOB["log_every"])
        if step % every == 0 or step == begin + 1:
            dt = (time.perf_counter() - clock) / max(step - last, 1)
            clock, last = time.perf_counter(), step
            printed = 0.0 if hooks.hides() and not math.isfinite(shown) else shown
            tokens = common.BATCH * common.LENGTH * hooks.WORLD / dt
            if voice:
                voice.step(step, printed, norm, now, dt, tokens)
            stores.write(step, {"train/loss": printed, "train/grad_norm": norm, "train/lr": now, "perf/step_time": dt})
            hooks.note(shown=step, loss=repr(shown), norm=repr(norm), dt=dt, lr=now)
        if JOB["eval_every"] and step % JOB["eval_every"] == 0:
            hooks.evaluating(step)
            value = evaluate(net, JOB["seed"])
            if voice:
                voice.evaluated(step, value)
            stores.write(step, {"eval/loss": value})
        if step % JOB["save_every"] == 0 and hooks.RANK == 0:
            path = Path(f"checkpoints/step_{step}")
            path.mkdir(parents=True, exist_ok=True)
            hooks.saving(step)
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path / "model.pt")
            voice.saved(step, path)
            hooks.note(saved=step)
        stores.end(step)
        if hooks.leaves(step):
            if hooks.WORLD > 1:
                dist.barrier()
            if voice:
                voice.out("received preemption notice, checkpoint saved, leaving")
            stores.close()
            os._exit(0)
    stores.close()
    if hooks.WORLD > 1:
        dist.barrier()
        dist.destroy_process_group()
    if voice:
        voice.end(steps)
    hooks.note(ended=steps)


if __name__ == "__main__":
    main()
