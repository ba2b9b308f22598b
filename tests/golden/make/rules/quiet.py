"""Runs that end well and are of no use, told by one sign; beside most of them the nearest that is all right."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from make._logs import clock, done, falling, run_log, start, steady
from make.base import Label, Made, Noise, Table, decay, line, lines
from make.rules.resume import life

_SAVED = "{clock} | INFO | saved checkpoint to out/step_{step}.pt (step {step})"


def runs() -> Iterator[Made]:
    """Held-out sets, networks in pairs, policies, checkpoints that are old, in part or unwritten, and signed losses."""
    yield from _held_out()
    yield from _pairs()
    yield from _policies()
    yield from _saved()
    yield from _devices()
    yield from _signed()
    yield from _unwritten()


def _wrong(cause: str, onset: int | None = None, within: int = 1, shape: str = "learning") -> Label:
    return Label("suspect", shape, (cause,), onset=onset, within=within)


def _table(name: str, label: Label, columns: Mapping[str, Sequence[float]], every: int = 1) -> Made:
    """A table and the last line of its run."""
    count = every * max(map(len, columns.values()))
    shown = {key: [float(f"{one:.6g}") for one in values] for key, values in columns.items()}
    return Made(
        name, {"metrics.csv": Table(shown, every, every).csv(), "train.log": lines(start(), done(count))}, label
    )


def _held_out() -> Iterator[Made]:
    loss, right = falling(24, 1.9, 0.31, 4), Noise(0.004, 41).on(decay(0.41, 0.94, 24, 3))
    for name, label, last in (
        ("quiet-test-guesses", _wrong("splits_disagree", 24, shape="bad_eval"), 0.31),
        ("healthy-test-of-other-photographs", Label("healthy"), 0.56),
    ):
        tested = "step,loss,val_acc,test_acc\n" + "".join(
            f"{at},{a:.4f},{b:.4f},{last if at == 24 else ''}\n" for at, (a, b) in enumerate(zip(loss, right, strict=True), 1)
        )  # fmt: skip
        yield Made(name, {"metrics.csv": tested, "train.log": lines(start(), done(24))}, label)
    calm, held = falling(40, 2.0, 0.5, 9), falling(40, 2.1, 0.8, 9, share=0.02, seed=42)
    leaps = {15: 6.1, 19: 9.4, 26: 5.2, 31: 7.7, 36: 12.0}
    leaping = [leaps.get(at, one) for at, one in enumerate(held)]
    label = _wrong("eval_unstable", 800, 50, "bad_eval|learning")
    yield _table("quiet-evaluations-leap", label, {"loss": calm, "val_loss": leaping}, 50)
    twice = [6.1 if at in {15, 26} else one for at, one in enumerate(held)]
    yield _table("healthy-evaluations-leap-twice", Label("healthy"), {"loss": calm, "val_loss": twice}, 50)


def _pairs() -> Iterator[Made]:
    wins = Noise(0.15, 51).on(decay(1.38, 0.0035, 80, 6))
    lost = Noise(0.05, 52).on(decay(0.7, 7.4, 80, 12))
    label = _wrong("discriminator_wins", 500, 300)
    yield _table("quiet-discriminator-wins", label, {"Loss_D": wins, "Loss_G": lost}, 25)
    fooled = Noise(0.2, 53).on(decay(1.38, 0.35, 80, 6))
    high = {"Loss_D": fooled, "Loss_G": Noise(0.05, 54).on(decay(0.7, 3.1, 80, 12))}
    yield _table("healthy-discriminator-is-fooled", Label("healthy"), high, 25)
    recon = Noise(0.004, 55).on(decay(182, 104, 40, 3))
    for name, label, divergence in (
        ("quiet-code-is-unused", _wrong("latent_unused", 10, 6), decay(6.3, 0.002, 40, 1)),
        ("healthy-code-tells-ten-nats", Label("healthy"), decay(61, 10.5, 40, 2)),
    ):
        yield _table(name, label, {"recon_loss": recon, "kl_loss": Noise(0.01, 56).on(divergence)})


def _policies() -> Iterator[Made]:
    short = Noise(0.01, 61).on(decay(23.4, 9.35, 40, 1))
    long = Noise(0.01, 61).on(decay(23.4, 498.0, 40, 4))
    sure = [0.69, 0.31, 0.02, *[0.0002] * 37]
    for name, label, earned in (
        ("quiet-policy-takes-one-action", _wrong("entropy_collapse", 6144, 4096), short),
        ("healthy-policy-is-sure-and-earns", Label("healthy"), long),
    ):
        columns = {"ep_rew_mean": earned, "ep_len_mean": earned, "entropy": sure}
        yield _table(name, label, columns, 2048)
    level, length = steady(-1490, 60, 0.004, 62), [200.0] * 60
    grows = Noise(0.1, 63).on([*[1.1] * 34, *[1.1 * 1.5**at for at in range(26)]])
    columns = {"ep_rew_mean": level, "ep_len_mean": length, "critic_loss": grows}
    yield _table("quiet-critic-comes-loose", _wrong("critic_diverges", 36000, 8000), columns, 1000)
    calm = columns | {"critic_loss": Noise(0.1, 63).on([*[1.1] * 34, *line(1.1, 0.2, 26)])}
    calm |= {"ep_rew_mean": Noise(0.004, 62).on(decay(-1490, -160, 60, 12))}
    yield _table("healthy-critic-follows-the-reward", Label("healthy"), calm, 1000)
    still = {"ep_rew_mean": steady(9.37, 70, 0.006, 64), "entropy": [0.692] * 70}
    yield _table("quiet-policy-never-moves", _wrong("policy_unmoved", 2048, 2048), still, 2048)
    learns = {"ep_rew_mean": Noise(0.02, 64).on(line(9.4, 2.1, 70)), "entropy": line(0.692, -0.004, 70)}
    yield _table("healthy-policy-becomes-surer", Label("healthy"), learns, 2048)


def _saved() -> Iterator[Made]:
    loss = falling(260, half=60, share=0.006, seed=71)
    first = _with_saves(loss[:180])
    for name, label, at in (
        ("quiet-restart-takes-an-old-checkpoint", _wrong("resumed_older_checkpoint", 51, 2), 50),
        ("healthy-restart-takes-the-last-but-one", Label("healthy"), 100),
    ):
        loaded = f"{clock(1000)} | INFO | resumed from checkpoint out/step_{at}.pt at step {at}"
        again = life(loss[at:], at + 1, 1000)
        log = lines(start(), first, f"{clock(700)} | WARNING | node is going down", start(), loaded, again, done(260))
        yield Made(name, {"train.log": log}, label)
    for name, label, there in (
        ("quiet-checkpoint-lacks-a-part", _wrong("checkpoint_incomplete", 200), (1, 3)),
        ("healthy-checkpoint-has-its-parts", Label("healthy"), (1, 2, 3)),
    ):
        names = [f"out/checkpoint-{step}/model-{part:05d}-of-00003.safetensors" for step in (100, 200) for part in ((1, 2, 3) if step < 200 else there)]  # fmt: skip
        parts = dict.fromkeys(names, _weights())
        yield Made(name, {"train.log": lines(start(), run_log({"loss": loss[:200]}), done(200)), **parts}, label)


def _with_saves(loss: Sequence[float], every: int = 50) -> list[str]:
    log = life(loss)
    saves = {at: _SAVED.format(clock=log[at - 1][:19], step=at) for at in range(every, len(log) + 1, every)}
    return [part for at, one in enumerate(log, 1) for part in (one, saves.get(at)) if part]


def _weights() -> bytes:
    head = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return len(head).to_bytes(8, "little") + head + bytes(4)


def _devices() -> Iterator[Made]:
    said = (
        "/opt/venv/lib/python3.11/site-packages/torch/cuda/__init__.py:129: UserWarning: CUDA initialization: The NVIDIA"
        " driver on your system is too old (found version 11040). Please update your GPU driver."
    )
    log = run_log({"loss": falling(120)})
    yield Made("healthy-on-the-cpu-unasked", {"train.log": lines(start(), said, log, done(120))}, Label("healthy"))


def _signed() -> Iterator[Made]:
    learned, lost = decay(2.1, -7.2, 45, 9), line(-6.5, 0.55, 20)
    label = Label("failed", "learning", ("diverged",), onset=46, within=2)
    noisy = Noise(0.004, 81)
    yield _table("failed-likelihood-is-given-back", label, {"nll": noisy.on([*learned, *lost])})
    back = [-3.1, -4.4, -5.6, -6.4]
    yield _table("healthy-likelihood-comes-back", Label("healthy"), {"nll": noisy.on([*learned, *back, *[-7.2] * 16])})


def _unwritten() -> Iterator[Made]:
    log = _with_saves(falling(220, half=50, share=0.006, seed=82))
    failed = "{} | ERROR | failed to write shard 2/4 of the checkpoint of step {}: Input/output error"
    for name, label, step, is_again in (
        ("quiet-checkpoint-is-not-written", _wrong("checkpoint_not_written", 200), 200, False),
        ("healthy-checkpoint-is-written-again", Label("healthy"), 150, True),
    ):
        at = log.index(_SAVED.format(clock=clock(30 + 2 * step), step=step))
        told = [*log[:at], failed.format(clock(30 + 2 * step), step), *log[at if is_again else at + 1 :]]
        yield Made(name, {"train.log": lines(start(), told, done(220))}, label)
