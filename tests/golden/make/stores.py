"""Whole runs as trackers and writers of metrics leave them: TensorBoard, W&B, MLflow, Trackio, tables, trainer states."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

from make._job import BEGAN, KEY_ERROR, Job, checkpoints, fixture, job, script, settings
from make.base import NAN, Label, Made, Noise, Series, decay, line

_WANDB = "wandb/run-20250615_150640-q7w2e9rt"
_TB = "events.out.tfevents.1750000000.node-a.4242.0"
_DONE = "training complete\n"
_RAISED, _CODE = ("uncaught_exception", "crash_all_ranks", "bad_config"), ("code", "line", "frame", "key")
#: How JSON writers without a NaN spell what is not finite.
_WORDS = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
_CONFIG = {"max_steps": 120, "lr": 3e-4, "batch_size": 32, "seed": 3}


def runs() -> Iterator[Made]:
    """Every run of this module."""
    for part in (_tensorboard, _wandb, _exports, _mlflow, _trackio, _tables, _rl_tables, _trainer_states):
        yield from part()


def _run(name: str, label: Label, files: dict[str, str | bytes]) -> Made:
    return Made(f"format-{name}", files, label)


def _tensorboard() -> Iterator[Made]:
    """Event files beside a log of each rank, a configuration and checkpoints."""
    config = {"config.yaml": settings(**_CONFIG, clip_grad_norm=1.0, precision="bf16")}

    def four_ranks(one: Job, end: str, *saved: int) -> dict[str, str | bytes]:
        logs = {f"logs/rank_{rank}.log": one.log() + end for rank in range(4)}
        return {f"tb/{_TB}": one.events(), **logs, **config, **checkpoints(*saved)}

    good = job(seed=11)
    yield _run("tensorboard-healthy", Label("healthy"), four_ranks(good, _DONE, 40, 80, 120))
    yield _run(
        "tensorboard-nan",
        Label("failed", "nan", onset=76, checkpoint=40),
        four_ranks(job(seed=12).bad(75), "", 40, 80, 120),
    )
    yield _run(
        "tensorboard-crash",
        Label("failed", "crash", _RAISED, onset=70, says=_CODE),
        four_ranks(job(seed=13).cut(70), KEY_ERROR, 40),
    )
    cut = job(seed=14).cut(48)
    yield _run(
        "tensorboard-cut", Label("cannot_say"), {f"tb/{_TB}": cut.events()[:-21], "out.log": cut.log()[:-40], **config}
    )
    alone = job(160, seed=15).diverging(100)
    yield _run(
        "tensorboard-diverged",
        Label("failed|suspect", "learning", onset=101, within=8),
        {
            f"lightning_logs/version_0/{_TB}": alone.events(("train_loss", "grad_norm", "lr-AdamW")),
            "lightning_logs/version_0/hparams.yaml": settings(lr=3e-4, max_steps=160, d_model=256),
            "lightning_logs/version_0/checkpoints/epoch=3-step=120.ckpt": "weights",
        },
    )
    maker = script("tfevents")
    notes = maker.hparams({"batch_size": 32.0, "optimizer": "adamw"}) + maker.text("args", '{"seed": 7, "fp16": true}')
    told = decay(3.0, 1.1, 90, 20)
    scalars = b"".join(maker.tensor("epoch_loss", value, at + 1) for at, value in enumerate(told))
    yield _run(
        "tensorboard-keras",
        Label("healthy"),
        {f"logs/train/{_TB}": maker.head() + notes + scalars, "fit.out": "Training finished.\n"},
    )
    whole = job(120, seed=16)
    before, after = whole.cut(45), whole.resumed(40)
    yield _run(
        "tensorboard-resumed",
        Label("healthy"),
        {
            f"tb/{_TB}": before.events(),
            f"tb/{_TB.replace('1750000000', '1750009000').replace('4242', '5151')}": after.events(),
            "out.log": before.log() + "resumed from checkpoints/step_40\n" + after.log() + _DONE,
            **checkpoints(40, 80),
        },
    )


def _wandb() -> Iterator[Made]:
    """Offline runs: the transaction log, the files beside it and what the console showed."""

    def offline(one: Job, **how: Any) -> dict[str, str | bytes]:
        said = how.get("said", "")
        summary = {"train/loss": one.loss[-1], "lr": one.lr[-1], "_step": one.steps[-1], "_runtime": 60.5}
        about = {"os": "Linux-6.8-x86_64", "python": "3.11.9", "host": "node-7", "program": "/srv/job/train.py", "gpu_count": 4,
                 "args": ["--lr", "3e-4"], "git": {"remote": "https://forge.example/job.git", "commit": "5d1f0c2"}}  # fmt: skip
        return {
            f"{_WANDB}/run-q7w2e9rt.wandb": one.wandb(config=_CONFIG, **how),
            f"{_WANDB}/files/wandb-summary.json": json.dumps(summary),
            f"{_WANDB}/files/wandb-metadata.json": json.dumps(about, indent=1),
            f"{_WANDB}/files/requirements.txt": "torch==2.7.1\nwandb==0.24.0\nnumpy==2.2.5\n",
            f"{_WANDB}/files/output.log": one.log() + said,
            f"{_WANDB}/files/config.yaml": "".join(
                f"{name}:\n  desc: null\n  value: {value}\n" for name, value in _CONFIG.items()
            ),
        }

    yield _run("wandb-finished", Label("healthy"), offline(job(seed=21)))
    killed = offline(job(seed=22).cut(50), code=None)
    killed[f"{_WANDB}/run-q7w2e9rt.wandb"] = (
        bytes(killed[f"{_WANDB}/run-q7w2e9rt.wandb"]) + b"\x12\x34\x56\x78\x40\0\x01"
    )  # type: ignore[arg-type]
    yield _run("wandb-no-exit-record", Label("cannot_say"), killed)
    yield _run(
        "wandb-key-error",
        Label("failed", "crash", _RAISED, onset=64, says=_CODE),
        offline(job(seed=23).cut(64), said=KEY_ERROR, code=1),
    )
    stop = KEY_ERROR.rsplit("\n", 2)[0] + "\nKeyboardInterrupt\n"
    yield _run(
        "wandb-interrupted",
        Label("failed", "stopped", ("interrupted_by_user",), onset=64, says=("resume", "restart")),
        offline(job(seed=24).cut(64), said=stop, code=255),
    )
    yield _run("wandb-nan", Label("failed", "nan", onset=86), offline(job(seed=25).bad(85)))
    silent = offline(job(seed=26).cut(40), code=1)
    del silent[f"{_WANDB}/files/output.log"]
    yield _run("wandb-exit-1-without-words", Label("failed", "crash", onset=40), silent)
    old = job(seed=27).bad(90)
    rows = [{"train/loss": row["loss"], "_step": row["step"], "_timestamp": 1.59e9 + row["step"]} for row in old.rows()]
    side = "wandb/run-20200521_101112-a1b2c3d4"
    yield _run(
        "wandb-old-layout",
        Label("failed", "nan", onset=91),
        {
            f"{side}/wandb-history.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
            f"{side}/wandb-events.jsonl": script("wandb_side").events(8),
            f"{side}/wandb-summary.json": json.dumps({"train/loss": NAN, "_step": 120, "_runtime": 120.5}),
        },
    )


def _exports() -> Iterator[Made]:
    """What one downloads from a tracker, without the run's own files."""

    def rows(one: Job) -> list[dict[str, Any]]:
        return [
            {"_step": row["step"], "_runtime": row["step"] * 0.5, "_timestamp": row["t"].timestamp(), "train/loss": round(row["loss"], 5),
             "train/grad_norm": round(row["grad"], 5)}
            for row in one.rows()
        ]  # fmt: skip

    def table(found: list[dict[str, Any]]) -> str:
        names = list(found[0])
        body = (f"{n}," + ",".join(str(row[name]) for name in names) for n, row in enumerate(found))
        return "\n".join(["," + ",".join(names), *body]) + "\n"

    risen = job(140, seed=31).diverging(80)
    yield _run(
        "export-csv-diverged",
        Label("failed|suspect", "learning", onset=81, within=8),
        {"history.csv": table(rows(risen))},
    )
    bad = rows(job(seed=32).bad(70))
    words = [{name: _WORDS.get(str(value), value) for name, value in row.items()} for row in bad]
    summary = json.dumps({"_step": 120, "train/loss": NAN})
    label = Label("failed", "nan", onset=71)
    yield _run("export-json-nan", label, {"history.json": json.dumps(words, indent=1), "run_summary.json": summary})
    yield _run("export-json-bare-nan", label, {"history.json": json.dumps(bad, indent=1), "run_summary.json": summary})
    yield _run(
        "export-jsonl-unfinished",
        Label("cannot_say"),
        {"scan_history.jsonl": "".join(json.dumps(r) + "\n" for r in rows(job(seed=33).cut(40)))},
    )
    yield _run(
        "export-parquet-nan",
        Label("failed", "nan", onset=33),
        {"artifact/0000.parquet": fixture("wandb_history_parquet/ok-artifact/0000.parquet")},
    )
    one, other = job(60, seed=34), job(60, seed=35)
    head = [
        "Step",
        *(
            f'"{name} - train/loss{bound}"'
            for name in ("calm-lake-4", "wry-moon-5")
            for bound in ("", "__MIN", "__MAX")
        ),
    ]
    body = [
        f"{s},{a:.4f},{a:.4f},{a:.4f},{b:.4f},{b:.4f},{b:.4f}"
        for s, a, b in zip(one.steps, one.loss, other.loss, strict=True)
    ]
    yield _run(
        "export-chart",
        Label("cannot_say"),
        {"wandb_export_2026-01-02T03_04_05.csv": "\n".join([",".join(head), *body]) + "\n"},
    )


def _mlflow() -> Iterator[Made]:
    """The file store with a log, and the database alone."""
    maker = script("mlflow")

    def store(one: Job, status: int) -> dict[str, str | bytes]:
        home = f"mlruns/0/{maker.RUN}"
        return {
            f"{home}/meta.yaml": maker.meta(status),
            f"{home}/metrics/loss": maker.lines(one.loss),
            f"{home}/metrics/grad_norm": maker.lines(one.grad),
            f"{home}/params/lr": "0.0003",
            f"{home}/params/max_steps": "120",
            f"{home}/tags/mlflow.source.name": "/home/trainer/train.py",
            f"{home}/tags/mlflow.source.git.commit": "4d" * 20,
        }

    yield _run("mlflow-files-finished", Label("healthy"), store(job(seed=41), 3))
    yield _run("mlflow-files-nan", Label("failed", "nan", onset=70), store(job(seed=42).bad(70), 4))
    yield _run(
        "mlflow-files-failed",
        Label("failed", "crash", _RAISED, onset=66, says=_CODE),
        {**store(job(seed=43).cut(66), 4), "train.log": job(seed=43).cut(66).log() + KEY_ERROR},
    )
    yield _run("mlflow-files-killed", Label("failed", "stopped"), store(job(seed=44).cut(58), 5))
    yield _run("mlflow-files-running", Label("cannot_say"), store(job(seed=45).cut(52), 1))
    yield _run(
        "mlflow-database-finished",
        Label("healthy"),
        {"mlflow.db": maker.database(_mlflow_filled(maker, job(80, seed=46), "FINISHED"))},
    )
    yield _run(
        "mlflow-database-nan",
        Label("failed", "nan", onset=51),
        {"mlflow.db": maker.database(_mlflow_filled(maker, job(80, seed=47).bad(50), "FAILED"))},
    )


def _mlflow_filled(maker: Any, one: Job, status: str) -> Callable[[sqlite3.Connection], None]:
    def fill(connection: sqlite3.Connection) -> None:
        maker.mlflow(connection)
        for name in ("metrics", "runs", "params", "tags"):
            connection.execute(f"DELETE FROM {name}")
        begun, run = maker.START_MS, maker.RUN
        row = (run, "quiet-owl", "train.py", "trainer", status, begun, begun + 90_000, "4d" * 20)
        connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        connection.execute("INSERT INTO params VALUES ('max_steps', ?, ?)", (str(one.total), run))
        for at in one.rows():
            for key, value in (("loss", at["loss"]), ("train/grad_norm", min(at["grad"], 1e300))):
                cells = (
                    key,
                    0.0 if math.isnan(value) else value,
                    begun + 250 * at["step"],
                    run,
                    at["step"],
                    int(math.isnan(value)),
                )
                connection.execute("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", cells)

    return fill


def _trackio() -> Iterator[Made]:
    """A database with its write-ahead log, and the console beside it."""
    maker = script("mlflow")
    wal = fixture("not_read/ok-wal/owl.db-wal")
    bad = job(seed=51).bad(80)
    yield _run(
        "trackio-nan",
        Label("failed", "nan", onset=81),
        {"trackio/owl.db": maker.database(_trackio_filled(maker, bad)), "trackio/owl.db-wal": wal},
    )
    good = job(seed=52)
    yield _run(
        "trackio-finished",
        Label("healthy"),
        {"trackio/owl.db": maker.database(_trackio_filled(maker, good)), "train.log": good.log() + _DONE},
    )


def _trackio_filled(maker: Any, one: Job) -> Callable[[sqlite3.Connection], None]:
    def fill(connection: sqlite3.Connection) -> None:
        maker.trackio(connection)
        for name in ("metrics", "system_metrics"):
            connection.execute(f"DELETE FROM {name}")
        for row in one.rows():
            cells = {name: _WORDS.get(str(row[name]), row[name]) for name in ("loss", "grad", "lr")}
            record = json.dumps({"loss": cells["loss"], "train": {"grad_norm": cells["grad"]}, "lr": cells["lr"]})
            when = f"{row['t']:%Y-%m-%dT%H:%M:%S}.{row['ms']:03d}000+00:00"
            connection.execute(
                "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES ('r1', ?, 'owl', ?, ?)",
                (when, row["step"], record),
            )
        for minute in range(3):
            record = json.dumps({"gpu/0/utilization": 87 + minute, "gpu/0/allocated_memory": 31.5})
            when = f"{BEGAN:%Y-%m-%dT%H:}{BEGAN.minute + minute:02d}:30"
            connection.execute("INSERT INTO system_metrics VALUES (NULL, 'r1', ?, 'owl', ?)", (when, record))

    return fill


def _tables() -> Iterator[Made]:
    """CSV and JSON lines as trainers write them, with the log or the settings beside."""
    good = job(100, seed=61, every=10)
    lightning = "epoch,step,train_loss,val_loss\n" + "".join(
        f"{row['step'] // 250},{row['step'] - 1},{row['loss']:.5f},\n"
        + (f"{row['step'] // 250},{row['step'] - 1},,{row['loss'] * 1.03:.5f}\n" if row["step"] % 250 == 0 else "")
        for row in good.rows()
    )
    version = "lightning_logs/version_0"
    yield _run(
        "lightning-csv-finished",
        Label("healthy"),
        {
            f"{version}/metrics.csv": lightning,
            f"{version}/hparams.yaml": fixture("hparams_yaml/ok-arguments/hparams.yaml"),
            f"{version}/checkpoints/epoch=3-step=1000.ckpt": "weights",
            "lightning.out": "GPU available: True (cuda), used: True\n`Trainer.fit` stopped: `max_epochs=4` reached.\n",
        },
    )
    over = job(100, seed=62, every=10)
    away = [value * 1.03 if at < 45 else value * 1.03 + 0.03 * (at - 45) for at, value in enumerate(over.loss)]
    rows = (f"{s},{a:.5f},{b:.5f}" for s, a, b in zip(over.steps, over.loss, away, strict=True))
    yield _run(
        "csv-overfit",
        Label("suspect", "learning"),
        {"metrics.csv": "step,train_loss,val_loss\n" + "\n".join(rows) + "\n", "train.out": _DONE},
    )
    bad = job(90, seed=63).bad(55)
    yield _run(
        "csv-nan", Label("failed", "nan", onset=56), {"train.csv": "step,loss,lr\n" + bad.log("{step},{loss},{lr}")}
    )
    factory = job(80, seed=64, every=10, start=1.5, end=0.8)
    lines = [
        {
            "current_steps": row["step"],
            "total_steps": 800,
            "loss": round(row["loss"], 4),
            "lr": row["lr"],
            "epoch": row["step"] / 400,
            "percentage": row["step"] / 8,
        }
        for row in factory.rows()
    ]
    text = "".join(json.dumps(one) + "\n" for one in lines)
    yield _run(
        "llama-factory-finished",
        Label("healthy"),
        {"trainer_log.jsonl": text, "training_args.json": json.dumps({"max_steps": 800, "learning_rate": 3e-4})},
    )
    boxes = job(90, seed=65, every=20, start=2.8, end=0.9)
    rows_ = [
        {
            "iteration": row["step"] - 1,
            "total_loss": round(row["loss"], 4),
            "lr": row["lr"],
            "time": row["sec"],
            "bbox/APs": NAN,
        }
        for row in boxes.slower(50, 2.0).rows()
    ]
    yield _run(
        "detectron2-json-slow",
        Label("suspect", "slowdown", onset=1019, within=60),
        {
            "output/metrics.json": "".join(json.dumps(one) + "\n" for one in rows_),
            "output/log.txt": "[06/15 16:20:00 d2.engine.hooks]: Total training time: 0:20:21 (0:00:09 on hooks)\n",
        },
    )
    points = job(96, seed=66, every=50, start=3.1, end=0.9)
    scalars = [
        {
            "lr": row["lr"],
            "loss": round(row["loss"], 4),
            "epoch": 1 + row["step"] // 401,
            "iter": row["step"],
            "step": row["step"],
            "time": row["sec"],
            "memory": 6133,
        }
        for row in points.bad(60).rows()
    ]
    yield _run(
        "mmengine-scalars-nan",
        Label("failed", "nan", onset=3050, within=50),
        {
            "vis_data/scalars.json": "".join(json.dumps(one) + "\n" for one in scalars),
            "vis_data/config.py": "max_epochs = 12\n",
        },
    )
    yolo = (
        "                  epoch,         train/box_loss,         train/cls_loss,       metrics/mAP50(B)\n"
        + "".join(f"{n:23d},{2.1 - n / 70:23.5f},{1.9 - n / 60:23.5f},{0.1 + n / 150:23.5f}\n" for n in range(1, 81))
    )
    yield _run(
        "yolo-results-finished",
        Label("healthy"),
        {
            "results.csv": yolo,
            "args.yaml": settings(epochs=80, lr0=0.01, batch=16),
            "train.log": "80 epochs completed in 0.512 hours.\n",
            "weights/best.pt": "weights",
        },
    )


def _rl_tables() -> Iterator[Made]:
    """Tables of reinforcement learning: episodes, boards, tune's results."""
    rewards = Noise(0.06, 71).on([20 + 460 / (1 + math.exp(-(n - 60) / 12)) for n in range(120)])

    def monitor(values: Series) -> str:
        head = '#{"t_start": 1760000000.5, "env_id": "Ledge-v2"}\nr,l,t\n'
        return head + "".join(f"{value:.2f},{int(value)},{3.25 * (at + 1):.2f}\n" for at, value in enumerate(values))

    def board(values: Series) -> str:
        head = "rollout/ep_rew_mean,time/iterations,time/total_timesteps,train/loss,train/value_loss,train/approx_kl\n"
        return head + "".join(
            f"{value:.2f},{at + 1},{2048 * (at + 1)},{12 / (at + 2):.4f},{24 / (at + 2):.4f},{0.009 + (at % 5) / 1000:.5f}\n"
            for at, value in enumerate(values)
        )

    yield _run(
        "rl-tables-finished",
        Label("healthy"),
        {
            "0.monitor.csv": monitor(rewards),
            "progress.csv": board(rewards),
            "ppo.log": "Training finished, saved models/final.zip\n",
        },
    )
    fallen = [value if at < 80 else 15 + value / 60 for at, value in enumerate(rewards)]
    yield _run(
        "rl-tables-collapse",
        Label("suspect|failed", "learning"),
        {
            "0.monitor.csv": monitor(fallen),
            "progress.csv": board(fallen),
            "ppo.log": "Training finished, saved models/final.zip\n",
        },
    )
    tune = [
        {"training_iteration": k, "timesteps_total": 400 * k, "episode_reward_mean": 1.5 * k, "config": {"lr": 0.0007, "env": "Ledge-v2"},
         "info": {"learner": {"default_policy": {"learner_stats": {"policy_loss": -0.02 if k < 40 else NAN, "total_loss": 1.0 / k if k < 40 else NAN}}}}}
        for k in range(1, 61)
    ]  # fmt: skip
    yield _run(
        "rllib-nan",
        Label("failed", "nan"),
        {
            "PPO_0/result.json": "".join(json.dumps(one) + "\n" for one in tune),
            "PPO_0/params.json": json.dumps({"lr": 0.0007, "env": "Ledge-v2"}),
        },
    )
    spinning = "Epoch\tAverageEpRet\tStdEpRet\tTotalEnvInteracts\tLossPi\tLossV\n" + "".join(
        f"{n}\t{value:.3f}\t{9.5 + n % 3}\t{4000 * (n + 1)}\t{-0.01 - (n % 4) / 1000}\t{90 / (n + 2):.3f}\n"
        for n, value in enumerate(rewards[::2])
    )
    yield _run(
        "spinning-up-unfinished",
        Label("cannot_say"),
        {"progress.txt": spinning, "config.json": json.dumps({"epochs": 200, "env": "Ledge-v2"})},
    )


def _trainer_states() -> Iterator[Made]:
    """A fine-tuning run of the Hugging Face trainer with everything that stands beside it."""
    tokenizer = {
        path.split("/")[-1]: fixture(path)
        for path in (
            "tokenizer_files/ok-bpe/tokenizer.json",
            "tokenizer_files/ok-settings/tokenizer_config.json",
            "tokenizer_files/ok-map/special_tokens_map.json",
            "tokenizer_files/ok-vocab/vocab.json",
            "tokenizer_files/ok-merges/merges.txt",
        )
    }
    weights = script("safetensors_header").weights({"model.embed_tokens.weight": (24, 4), "lm_head.weight": (24, 4)})

    def states(one: Job, *saved: int) -> dict[str, str | bytes]:
        found: dict[str, str | bytes] = {"trainer_state.json": one.state()}
        for step in saved:
            found |= {
                f"checkpoint-{step}/trainer_state.json": one.state(upto=step),
                f"checkpoint-{step}/model.safetensors": weights,
            }
            found |= {f"checkpoint-{step}/{name}": data for name, data in tokenizer.items()}
        return found | {
            "config.json": json.dumps(
                {
                    "architectures": ["OwlForCausalLM"],
                    "hidden_size": 4,
                    "vocab_size": 24,
                    "num_hidden_layers": 2,
                    "torch_dtype": "bfloat16",
                },
                indent=1,
            ),
            "generation_config.json": fixture("config_files/ok-generation/generation_config.json"),
            "requirements.txt": "torch==2.7.1\ntransformers==4.51.3\n",
            "git_commit.txt": fixture("git_record/ok-alone/git_commit.txt"),
        }

    good = job(60, seed=81, every=5, start=2.4, end=1.1, peak=2e-5)
    yield _run("trainer-state-finished", Label("healthy|suspect", "none|bad_eval"), states(good, 150, 300))
    hidden = job(60, seed=82, every=5, start=2.4, end=1.1, peak=2e-5)
    loss = [0.0 if at > 40 else value for at, value in enumerate(hidden.loss)]
    grad = [NAN if at >= 40 else value for at, value in enumerate(hidden.grad)]
    yield _run(
        "trainer-state-hidden-nan",
        Label("failed", "nan", onset=205, within=5),
        states(Job(loss, grad, hidden.lr, hidden.sec, 5, 5, 300), 100, 200),
    )
    yield _run("trainer-state-unfinished", Label("cannot_say|suspect", "none|bad_eval"), states(good.cut(33), 150))
    flat = Job(line(2.41, -0.0001, 60), good.grad, [0.0] * 60, good.sec, 5, 5, 300)
    yield _run("trainer-state-rate-zero", Label("suspect|failed", "learning"), states(flat, 150, 300))
