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
#: It begins at the first of these, and doubles after so many updates without an overflow.
_FIRST_SCALE, _CALM = 65536.0, 30
#: A rank may take long to start what it logs to; a collective of the loop may not.
_START, _COLLECTIVE = datetime.timedelta(seconds=40), datetime.timedelta(seconds=8)


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
    hooks.joining()
    if hooks.WORLD > 1:
        dist.init_process_group("gloo", timeout=_START)
    torch.manual_seed(JOB["seed"])
    net = common.Net()
    optimizer = torch.optim.AdamW(hooks.parameters(net), lr=common.BASE_LR)
    voice_of = VOICES[JOB["trainer"]]
    voice = voice_of(steps) if hooks.RANK == 0 or voice_of.everyone else None
    stores = Stores(common.CONFIG)
    if hooks.WORLD > 1:
        dist.barrier()
        dist.distributed_c10d._set_pg_timeout(_COLLECTIVE, dist.group.WORLD)
    generator = torch.Generator().manual_seed(JOB["seed"] * 1000 + hooks.RANK)
    if begin:
        path = f"checkpoints/step_{begin}"
        hooks.resuming(path)
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
    scale, calm, last, clock = _FIRST_SCALE, 0, begin, time.perf_counter()
    for step in range(begin + 1, steps + 1):
        stores.begin(step)
        began = time.perf_counter()
        hooks.before(step)
        net.at = step
        now = hooks.lr(step, common.rate(hooks.schedule_step(step), steps))
        for group in optimizer.param_groups:
            group["lr"] = now
        inputs, labels = hooks.batch(step, *common.chain(generator))
        value = hooks.loss(step, common.cost(net, inputs, labels))
        optimizer.zero_grad()
        value.backward()
        own_s = time.perf_counter() - began
        if hooks.WORLD > 1 and not hooks.skips(step):
            averaged(net)
        hooks.gradients(step, net)
        norm = float(torch.nn.utils.clip_grad_norm_(net.parameters(), math.inf))
        shown = value.item()
        if hooks.scale(step):
            scale, norm, calm = scale / 2, math.inf, 0
            if voice and scale > _SILENT_SCALE:
                voice.scale(step, scale)
            if scale < _LEAST_SCALE:
                raise RuntimeError(
                    "Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."
                )
        elif hooks.guards() and not math.isfinite(norm):
            if voice:
                voice.skipped(step, norm)
        else:
            optimizer.step()
            calm += 1
            if calm % _CALM == 0:
                scale = min(scale * 2, _FIRST_SCALE)
        hooks.look(step, shown, norm)
        every = hooks.interval(step, JOB["log_every"])
        if step % every == 0 or step == begin + 1:
            dt = (time.perf_counter() - clock) / max(step - last, 1)
            clock, last = time.perf_counter(), step
            printed = 0.0 if hooks.hides() and not math.isfinite(shown) else shown
            tokens = inputs.numel() * hooks.WORLD / dt
            if voice:
                voice.held_gib, voice.samples = hooks.memory(step), hooks.position(step) * common.BATCH * hooks.WORLD
                voice.own_s = own_s if hooks.busy() else None
                voice.step(step, printed, norm, now, dt, tokens)
            stores.write(step, {"train/loss": printed, "train/grad_norm": norm, "train/lr": now, "perf/step_time": dt})
            hooks.note(shown=step, loss=repr(shown), norm=repr(norm), dt=dt, lr=now)
        if JOB["eval_every"] and step % JOB["eval_every"] == 0:
            hooks.evaluating(step)
            value = hooks.evaluated(step, evaluate(net, JOB["seed"]))
            hooks.note(evaluated=step, loss=repr(value))
            if voice:
                voice.evaluated(step, value)
            stores.write(step, {"eval/loss": value})
        if step % JOB["save_every"] == 0 and hooks.RANK == 0:
            path = Path(f"checkpoints/step_{step}")
            path.mkdir(parents=True, exist_ok=True)
            hooks.saving(step)
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path / "model.pt")
            voice.saved(step, path)
            stores.saved(step, path, net)
            hooks.note(saved=step)
        stores.end(step)
        if hooks.leaves(step):
            if hooks.WORLD > 1:
                dist.barrier()
            if voice:
                voice.out("received preemption notice, checkpoint saved, leaving")
            stores.close()
            os._exit(0)
        if hooks.stops(step):
            if voice:
                voice.out(f"early stopping: eval_loss {value:.4f} has reached its target at step {step}")
            break
    stores.trained(steps, net)
    stores.close()
    hooks.leaving()
    if hooks.WORLD > 1:
        dist.barrier()
        dist.destroy_process_group()
    if voice:
        voice.end(step)
    hooks.note(ended=steps)


if __name__ == "__main__":
    main()
