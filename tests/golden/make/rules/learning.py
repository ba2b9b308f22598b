"""Runs that trained finite and wrong: diverged, flat, frozen, overfit, rates of zero, gradients that vanish, spikes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

from make._logs import BARE, LOOP, clock, cosine, done, falling, jsons, run_log, start, steady
from make.base import Label, Made, Noise, Table, decay, line, lines

_VOCAB = 32768
_UNIFORM = math.log(_VOCAB)


def runs() -> Iterator[Made]:
    """Losses that rise, losses that stay, what happens beside them, then what looks wrong and is not."""
    yield from _rises()
    yield from _stays()
    yield from _evaluated()
    yield from _rates()
    yield from _gradients()
    yield from _told()
    yield from _fine()


def _suspect(*causes: str, onset: int | None = None, within: int = 1) -> Label:
    return Label("suspect", "learning", causes, onset=onset, within=within)


def _config(**settings: object) -> str:
    return jsons({"vocab_size": _VOCAB, "max_steps": 10000, "lr": 3e-4, "warmup_steps": 10} | settings)


def _table(loss: Sequence[float], first: int = 10, every: int = 10, **more: Sequence[float]) -> str:
    return Table({"train/loss": loss, "train/lr": cosine(len(loss)), **more}, first, every).jsonl()


def _ended(count: int, every: int = 10) -> str:
    return lines(start(plan=count * every), done(count * every))


def _rises() -> Iterator[Made]:
    up = [*falling(90, 10.8, 3.2, 25), *Noise(0.02, 3).on([3.4, 4.1, 5.6, 7.2, *[7.9] * 66])]
    yield Made(
        "learning-diverged",
        {"train.log": lines(start(), run_log({"loss": up}), done(160))},
        _suspect("diverged", onset=91, within=4),
    )
    creep = [*falling(80, 10.8, 2.6, 18), *Noise(0.012, 3).on(line(2.6, 0.013, 90))]
    yield Made(
        "learning-loss-turns-and-climbs",
        {"metrics.jsonl": _table(creep), "train.log": _ended(170)},
        _suspect(onset=800, within=250),
    )
    spike = falling(160, 10.8, 2.9, 30, share=0.006)
    spike[100:106] = [4.4, 6.9, 5.8, 4.6, 3.9, 3.4]
    yield Made("healthy-spike-recovered", {"metrics.jsonl": _table(spike), "train.log": _ended(160)}, Label("healthy"))
    shift = [*falling(90, 6.0, 2.3, 20, share=0.006), *Noise(0.006, 5).on([2.62] * 90)]
    yield Made(
        "learning-level-shift",
        {"metrics.jsonl": _table(shift), "train.log": _ended(180)},
        _suspect(onset=910, within=20),
    )
    huge = [412.5, 97.2, 61.0, 44.1, *falling(116, 31.0, 4.2, 20)]
    yield Made(
        "learning-bad-start",
        {"metrics.jsonl": _table(huge, 1, 1), "config.json": _config(), "train.log": _ended(120, 1)},
        Label("healthy|suspect", "none|learning"),
    )


def _stays() -> Iterator[Made]:
    at_chance = steady(_UNIFORM, 140, 0.002)
    yield Made(
        "learning-loss-at-uniform",
        {
            "metrics.jsonl": _table(at_chance, 1, 1, **{"train/grad_norm": steady(0.4, 140)}),
            "config.json": _config(),
            "train.log": _ended(140, 1),
        },
        _suspect("uniform_loss", onset=1),
    )
    flat = steady(2.304, 160, 0.012)
    yield Made(
        "learning-labels-shuffled",
        {"train.log": lines(start("resnet"), run_log({"loss": flat, "lr": [1e-3] * 160}, BARE), done(160))},
        _suspect("not_learning", onset=1, within=1),
    )
    frozen = Table({"loss": [6.2171] * 80, "lr": [0.0] * 80}, 10, 10)
    yield Made(
        "learning-frozen-loss",
        {"metrics.csv": frozen.csv(), "train.log": _ended(80)},
        _suspect("frozen_loss", "lr_zero", onset=10, within=10),
    )
    kept = Table({"loss": [5.8123] * 70, "lr": [3e-4] * 70}, 10, 10)
    yield Made(
        "learning-loss-never-moves",
        {"metrics.csv": kept.csv(), "train.log": _ended(70)},
        _suspect("frozen_loss", onset=10, within=10),
    )
    alive = [*decay(4.14, 1.66, 80, 12), *[1.66] * 120]
    still = Table({"loss": Noise(0.09, 5).on(alive)}, 1).jsonl()
    evals = "".join(
        jsons({"step": at, "eval_loss": 4.1862 - at / 50 if at < 100 else 1.64107}) + "\n" for at in range(20, 201, 20)
    )
    yield Made(
        "learning-evaluations-repeat",
        {"metrics.jsonl": still, "evals.jsonl": evals, "train.log": _ended(200, 1)},
        _suspect("frozen_loss", "lr_zero", onset=100, within=20),
    )
    plateau = Noise(0.004, 2).on(decay(10.4, 7.2, 160, 6))
    yield Made(
        "learning-early-plateau",
        {
            "metrics.jsonl": Table({"train/loss": plateau, "train/lr": [3e-4] * 160}, 10, 10).jsonl(),
            "config.json": _config(),
            "train.log": _ended(160),
        },
        _suspect("early_plateau"),
    )


def _evaluated() -> Iterator[Made]:
    rows = []
    for at, loss in enumerate(Noise(0.02, 2).on(decay(2.6, 0.02, 120, 12))):
        rows.append({"step": 10 * (at + 1), "train/loss": loss})
        if at % 10 == 9:
            kept = at // 10
            rows.append(
                {"step": 10 * (at + 1), "eval/loss": 1.62 - 0.2 * kept if kept < 3 else 1.22 + 0.16 * (kept - 2)}
            )
    yield Made(
        "learning-overfit",
        {"metrics.jsonl": lines(map(json.dumps, rows)), "train.log": _ended(120)},
        _suspect("overfit", onset=300, within=100),
    )
    rows = []
    for at, loss in enumerate(falling(100, 1.4, 0.5, 20)):
        rows.append({"step": 10 * (at + 1), "train/loss": loss})
        if at % 12 == 11:
            kept = at // 12
            rows.append({"step": 10 * (at + 1), "eval_loss": (0.31, 0.52, 0.55, 0.58, 0.57, 0.61, 0.6, 0.62)[kept], "eval_wer": (21.2, 31.4, 34.0, 35.1, 34.8, 36.9, 37.2, 37.0)[kept]})  # fmt: skip
    yield Made(
        "learning-never-regained",
        {"metrics.jsonl": lines(map(json.dumps, rows)), "train.log": _ended(100)},
        _suspect("never_regained", onset=240, within=120),
    )


def _rates() -> Iterator[Made]:
    loss = steady(4.29, 120, 0.006)
    zero = Table({"loss": loss, "lr": [0.0] * 120, "grad_norm": steady(1.2, 120)}, 10, 10)
    yield Made(
        "learning-rate-always-zero",
        {"metrics.csv": zero.csv(), "train.log": _ended(120)},
        _suspect("lr_zero", onset=10, within=10),
    )
    early = Table(
        {"loss": [*falling(90, 8.0, 3.1, 20), *steady(3.4, 70, 0.006)], "lr": [*[3e-4] * 90, *[0.0] * 70]}, 10, 10
    )
    yield Made(
        "learning-rate-zero-too-early",
        {"metrics.csv": early.csv(), "train.log": _ended(160)},
        _suspect("lr_zero", "lr_zero_early", onset=910, within=10),
    )
    jump = Table({"loss": falling(150, 6, 2.5), "lr": [*[2e-4] * 90, *[1e-3] * 60]}, 10, 10)
    yield Made(
        "learning-rate-jumps",
        {"metrics.csv": jump.csv(), "train.log": _ended(150)},
        _suspect("lr_jump", onset=910, within=10),
    )
    none = Table({"loss": falling(120, 6, 2.5), "lr": [2e-4] * 120}, 10, 10)
    yield Made(
        "learning-no-decay-no-warmup",
        {"metrics.csv": none.csv(), "train.log": _ended(120),
         "config.json": jsons({"learning_rate": 2e-4, "lr_scheduler_type": "cosine", "warmup_steps": 400, "max_steps": 1200})},
        _suspect("warmup_missing", "decay_missing"),
    )  # fmt: skip
    tuned = Table({"loss": falling(80, 1.9, 1.4), "learning_rate": [2e-6] * 80}, 5, 5)
    for name, more in (
        ("lora-settings-unusual", ""),
        ("lora-settings-unusual-with-rank", "lora_r: 8\nlora_alpha: 16\n"),
    ):
        config = f"base_model: tiny\nadapter: lora\n{more}learning_rate: 2.0e-06\nweight_decay: 0.3\n"
        files = {"metrics.jsonl": tuned.jsonl(), "config.yaml": config, "train.log": _ended(80, 5)}
        yield Made(name, files, Label("healthy|suspect", "none|learning"))


def _gradients() -> Iterator[Made]:
    zero = Table({"loss": steady(4.29, 100, 0.006), "grad_norm": [0.0] * 100, "lr": cosine(100)}, 10, 10)
    yield Made(
        "learning-gradients-are-zero",
        {"metrics.csv": zero.csv(), "train.log": _ended(100)},
        _suspect("zero_gradnorm", "detached", onset=10, within=10),
    )
    fades = Table(
        {
            "loss": Noise(0.004, 3).on(decay(5.5, 3.4, 160, 10)),
            "grad_norm": Noise(0.03, 4).on(decay(2.0, 0.002, 160, 14)),
            "lr": [3e-4] * 160,
        },
        10,
        10,
    )
    yield Made(
        "learning-gradients-vanish",
        {"metrics.csv": fades.csv(), "train.log": _ended(160)},
        _suspect("vanishing_gradients"),
    )
    grows = Table({"loss": [*falling(70, 3.0, 2.2, 25), *line(2.3, 0.012, 90)], "grad_norm": Noise(0.05, 4).on([*[0.5] * 70, *[0.5 * 1.05**at for at in range(90)]]), "lr": [3e-4] * 160}, 10, 10)  # fmt: skip
    yield Made("learning-gradients-grow", {"metrics.csv": grows.csv(), "train.log": _ended(160)}, _suspect())


def _told() -> Iterator[Made]:
    log = run_log({"loss": steady(2.31, 120, 0.01)})
    yield Made(
        "learning-nothing-trainable",
        {
            "train.log": lines(
                start(), "trainable params: 0 || all params: 1,234,567,890 || trainable%: 0.0000", log, done(120)
            )
        },
        _suspect("not_wired", "not_learning"),
    )
    files = {}
    for rank in range(4):
        shared = falling(120, 6.0, 2.4, 30)
        own = [one * (1 + 0.04 * (at - 60) / 10) if rank == 3 and at >= 60 else one for at, one in enumerate(shared)]
        log = run_log(
            {"loss": own, "rank": [rank] * 120}, "{clock} | INFO | rank={rank} | step {step} | loss {loss:.5f}"
        )
        files[f"logs/rank{rank}.log"] = lines(log, done(120))
    yield Made("learning-ranks-part", files, Label("suspect", "learning", onset=61, within=2, culprits=(3,)))


def _fine() -> Iterator[Made]:
    log = run_log({"loss": falling(200, 9.8, 2.2, 50, share=0.05)}, LOOP)
    for at in (150, 100, 50):
        log.insert(at, f"{clock(60 + 2 * at)} | INFO | step {at} eval_loss {2.4 + 3 / at:.4f}")
    yield Made("healthy-noisy-loss", {"train.log": lines(start(plan=200), log, done(200))}, Label("healthy"))
    tuned = Table(
        {"loss": steady(0.92, 60, 0.08), "eval_loss": steady(0.9, 60, 0.01), "learning_rate": cosine(60, 2e-5)}, 5, 5
    )
    yield Made(
        "healthy-short-fine-tune",
        {"metrics.jsonl": tuned.jsonl(), "train.log": _ended(60, 5), "config.json": jsons({"max_steps": 300})},
        Label("healthy|cannot_say"),
    )
    mock = steady(_UNIFORM, 120, 0.002)
    yield Made(
        "healthy-mock-data-at-uniform",
        {
            "metrics.jsonl": _table(mock, 1, 1),
            "config.json": _config(mock_data=True, max_steps=120),
            "train.log": _ended(120, 1),
        },
        Label("healthy"),
    )
    short = Table({"loss": [2.31, 2.29], "lr": [1e-3, 1e-3]})
    yield Made("cannot-say-two-records", {"metrics.csv": short.csv(), "config.json": _config()}, Label("cannot_say"))
    flat = Table({"loss": steady(4.3, 40, 0.02), "lr": [3e-4] * 40})
    yield Made("cannot-say-forty-flat-records", {"metrics.csv": flat.csv()}, Label("cannot_say"))
