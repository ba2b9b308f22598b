"""Evaluations of runs and of pairs of them, drawn from seeds; `evaluations.txt` holds what is said of them."""
# ruff: noqa: E501, PLR0917 - rows of tables and sentences of many parts

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from math import sqrt
from typing import Any

import numpy as np
import polars as pl

from forensics.analyses.evals.causes import diagnosed
from forensics.analyses.evals.curves import eval_curves
from forensics.analyses.evals.results import chance_of, error_of
from forensics.analyses.evals.sittings import of_wrong_checkpoint, sittings
from forensics.analyses.evals.vocabulary import configured_rows, embedding_rows, special_ids, token_ids
from forensics.compare.evals._logged import by_steps
from forensics.compare.evals._tests import Tested, by_counts, by_errors, paired, two_sided
from forensics.compare.evals.comparison import compare_all, identical
from forensics.compare.model import Options
from forensics.compare.sections.evals import compare
from forensics.registry import load
from forensics.store.run import Run, run_of

#: Tasks, their metric, whether more is better as the file says it (None: it does not), and the score of a sound model.
TASKS = (
    ("arc_easy", "acc", True, 0.62), ("hellaswag", "acc_norm", None, 0.48), ("gsm8k", "exact_match", True, 0.31),
    ("wikitext", "word_perplexity", False, 12.5), ("mmlu_anatomy", "acc", True, 0.41), ("mmlu_virology", "acc", None, 0.37),
    ("squad", "f1", True, 71.0), ("made_up", "oddness", None, 3.0), ("boolq", "acc", True, 0.97),
)  # fmt: skip
#: Settings that may change between two evaluations, and to what.
CHANGES: tuple[tuple[str, Any, Any], ...] = (
    ("task.generation_kwargs.temperature", 0.0, 0.9), ("num_fewshot", 0, 5), ("chat_template", "a", "b"),
    ("model_args.dtype", "bfloat16", "torch.float16"), ("tokenizer", "one", "other"), ("limit", None, 20),
    ("seed", 1, 2), ("odd_knob", 3, 4), ("training", False, True), ("batch_size", 8, 16), ("task.description", "", "x"),
    ("model_args.pretrained", "out/step-1000", "out/step-9000"),
)  # fmt: skip


class Evaluated:
    """Rows of the tables of one run that was evaluated."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rows: list[dict[str, Any]] = []
        self.samples: list[dict[str, Any]] = []
        self.metrics: list[dict[str, Any]] = []
        self.facts: list[dict[str, Any]] = []

    def add(self, source: str, task: tuple[str, str, bool | None, float], value: float, **more: Any) -> None:
        name, metric, higher, _ = task
        own = {"source": source, "seq": len(self.rows), "line": len(self.rows) + 1, "task": name, "metric": metric}
        own |= {"value": value, "higher_is_better": higher, "filter": None, "model": "m", "step": None, "n": None}
        own |= {"stderr": None, "fewshot": None, "task_version": None, "t_ns": None, "settings": {}} | more
        self.rows.append(own | {"settings": json.dumps(own["settings"])})

    def score(self, source: str, task: str, metric: str, values: Iterable[float], words: str, docs: str = "d") -> None:
        for doc, value in enumerate(values):
            hashes = {"doc_hash": f"{docs}{doc}", "prompt_hash": f"{words}{doc}"}
            row = {"source": source, "seq": len(self.samples), "line": doc + 1, "task": task, "metric": metric}
            self.samples.append(row | {"doc": str(doc), "value": float(value)} | hashes)

    def log(self, name: str, steps: Iterable[int], values: Iterable[float], source: str = "train.log") -> None:
        for step, value in zip(steps, values, strict=True):
            row = {"source": source, "seq": len(self.metrics), "line": len(self.metrics) + 1, "name": name}
            self.metrics.append(row | {"raw_name": name, "step": step, "value": float(value), "value_class": "finite"})

    def state(self, source: str, family: str, key: str, value: object) -> None:
        self.facts.append({"source": source, "family": family, "key": key, "value": json.dumps(value)})

    def run(self) -> Run:
        wide = {"evals": self.rows, "eval_samples": self.samples, "metrics": self.metrics, "facts": self.facts}
        types = {"step": pl.Int64, "n": pl.Int64, "fewshot": pl.Int64, "t_ns": pl.Int64, "stderr": pl.Float64}
        types |= {"filter": pl.String, "task_version": pl.String, "higher_is_better": pl.Boolean, "model": pl.String}
        tables = {
            name: pl.DataFrame(rows, infer_schema_length=None).cast({k: t for k, t in types.items() if k in rows[0]})
            for name, rows in wide.items()
            if rows
        }
        return run_of("made", tables)


def _course(seed: int) -> Run:
    """Two to five evaluations of one run, of which one may be worse, with what may have changed there."""
    rng = random.Random(seed)
    made = Evaluated(rng)
    tasks = rng.sample(TASKS, rng.choice((1, 2, 3, 5)))
    n, with_error = rng.choice((None, 25, 25, 1000, 5000, 5000)), rng.random() < 0.6
    traded, slowly = rng.random() < 0.15, rng.random() < 0.15
    steps = [1000 * (at + 1) for at in range(rng.choice((2, 3, 3, 5)))]
    worse, fall = rng.choice((None, 1, 1, len(steps) - 1)), rng.choice((0.1, 0.14, 0.2, 0.35, 0.35, 0.6, 0.9))
    only, back = rng.random() < 0.3, rng.random() < 0.3
    named = rng.choice(("step", "step", "model", "path", "time", "none", "baseline"))
    settings: dict[str, Any] = {key: before for key, before, _ in CHANGES if rng.random() < 0.4}
    changes = rng.sample(CHANGES, rng.choice((0, 1, 1, 2)))
    for at, step in enumerate(steps):
        low = worse is not None and (at == worse or (at > worse and not back))
        if low:
            settings = settings | {key: after for key, _, after in changes}
        folder = (
            "baseline" if named == "baseline" and not at else f"step-{step}" if named in {"path", "baseline"} else "r"
        )
        source = f"{folder}/results_{at}.json"
        for place, task in enumerate(tasks):
            drop = fall if low and (not only or not place) else 0.004 * at * rng.choice((-1, 1))
            drop = -fall if low and traded and place else fall * at / len(steps) if slowly else drop
            value = task[3] * max(0.05, 1 + drop * 3 if task[2] is False else 1 - drop)
            share = min(value / (100 if value > 1 else 1), 1.0)
            error = sqrt(share * (1 - share) / (n or 200)) * (100 if value > 1 else 1) if with_error else None
            if task[2] is False:
                error = 0.02 * value
            told = {"model": f"out/step-{step}" if named == "model" else "m", "n": n, "stderr": error}
            told |= {"step": step if named == "step" else None, "t_ns": step if named == "time" else None}
            told |= {"fewshot": settings.get("num_fewshot"), "settings": settings}
            made.add(source, task, value, **told)
            if n == 25 and task[1] == "acc":
                words, docs = ("v", "d") if not low else rng.choice((("v", "d"), ("v", "e"), ("w", "d")))
                made.score(f"{folder}/samples_{at}.jsonl", task[0], task[1], _right(value, 25), words, docs)
        if rng.random() < 0.3:
            made.state(
                f"{folder}/tokenizer.json", "tokenizer", "tokenizer.base_sha256", f"{'b' if low else 'a'}0123456789"
            )
    if rng.random() < 0.6:
        rise = rng.choice((0.0, 0.0, 0.05, 0.2, 0.5))
        at = range(0, steps[-1] + 1, 100)
        late = steps[worse - 1] if worse else steps[-1]
        made.log("loss", at, [2.0 * (1 + rise * (step > late)) + 0.01 * (step % 3) for step in at])
    return made.run()


def _right(share: float, count: int) -> list[float]:
    return [1.0] * round(share * count) + [0.0] * (count - round(share * count))


def _one_of_pair(seed: int, side: int) -> Run:
    """One of two runs whose evaluations are compared."""
    rng, own = random.Random(5000 + seed), random.Random(f"{seed} {side}")
    made = Evaluated(own)
    n, with_error = rng.choice((None, 40, 400, 3000)), rng.random() < 0.6
    fall, models = rng.choice((0.0, 0.0, 0.02, 0.1, 0.3, -0.1, -0.2)), rng.random() < 0.7
    changed = rng.sample(CHANGES, rng.choice((0, 0, 0, 1)))
    tasks, group, scored = rng.sample(TASKS, rng.choice((1, 3, 6))), rng.random() < 0.3, rng.random() < 0.5
    steps = rng.choice(([None], [None], [100, 200], [100 + 100 * side, 300]))
    settings: dict[str, Any] = {key: after if side == 1 else before for key, before, after in changed}
    told = {"model": f"model-{side}" if models else "model", "fewshot": settings.get("num_fewshot"), "n": n}
    for step in steps:
        source = f"results_{step}_2026-01-0{side + 1}T00-00-00.json"
        for task in tasks:
            value = task[3] * (1 - fall * (side == 1) + own.gauss(0, 0.004))
            if scored and n == 40 and task[3] < 1:
                value = float(np.mean(_right(value, 40)))
                values = _right(value, 40)
                own.shuffle(values)
                made.score(f"samples_{step}.jsonl", task[0], task[1], values, rng.choice(("w", "w", f"w{side}")))
            share = min(max(value / (100 if value > 1 else 1), 0.0), 1.0)
            error = sqrt(share * (1 - share) / (n or 400)) * (100 if value > 1 else 1) if with_error else None
            made.add(source, task, value, stderr=error, step=step, settings=settings, **told)
        if group:
            members = {"members": ",".join(task[0] for task in tasks[: 2 + side * rng.choice((0, 0, 1))])}
            made.add(source, ("group", "acc", True, 0.5), 0.5 - fall * (side == 1), stderr=0.01, step=step,
                     settings=settings | members, **told)  # fmt: skip
    if rng.random() < 0.5:
        at = range(100, 100 * rng.choice((5, 6, 7, 20)) + 1, 100)
        noise = np.random.default_rng(seed * 2 + side).normal(0, rng.choice((0.0, 0.004, 0.02)), len(at))
        made.log("eval_loss", at, 2.0 + 0.3 * fall * (side == 1) + noise)
        made.log("eval_accuracy", at, 0.6 - fall * (side == 1) + noise)
    return made.run()


def _vocabularies(seed: int) -> Run:
    rng = random.Random(9000 + seed)
    made = Evaluated(rng)
    for key in rng.sample(
        ("vocab_size", "padded_vocab_size", "model.vocab_size", "text_config.vocab_size", "n_vocab"), 2
    ):
        made.state("config.json", "config", key, rng.choice((0, 32000, 32000, 32128, 1 << 41)))
    for key in ("tokenizer.max_id", "tokenizer.n_tokens", "tokenizer.special.2"):
        made.state(
            "tokenizer.json", "tokenizer", key, rng.choice((31999, 31999, 32000)) if "special" not in key else "</s>"
        )
    if rng.random() < 0.5:
        made.state("model.safetensors", "weights", "embed.rows", rng.choice((32000, 32064)))
    return made.run()


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


def _tested(one: Tested | None) -> str:
    if one is None:
        return "not tested"
    figures = " ".join(map(_number, (one.delta, one.se, one.p, *one.interval, one.detectable)))
    return f"{one.method} {figures} of {one.n} fell {one.fell} rose {one.rose}"


def _of_course(of: Run) -> Iterator[str]:
    every = sittings(of)
    for one in every:
        yield f"sitting {one.step} baseline {one.is_baseline} of {len(one.rows)}"
        yield from (f"{row['task']} error {_number(error_of(row))}" for row in one.rows.values())
    yield f"wrong {len(of_wrong_checkpoint([row for one in every for row in one.rows.values()]))}"
    found = diagnosed(of)
    if found is not None:
        fall = found.fall
        figures = f"{_number(fall.errors)} {_number(fall.lost)}"
        tasks = " ".join(
            f"{t.after['task']} {_number(t.gap)} {_number(t.noise)} {_number(t.level)}" for t in fall.tasks
        )
        yield f"fall at {fall.step} after {fall.step_before} {figures} abrupt {fall.is_abrupt} losses {len(fall.losses)} {tasks}"
        yield f"sound {len(fall.sound)} fallen {len(fall.fallen)} for {found.cause} traded {found.is_traded}"
        yield "; ".join(f"{one.family} {one.words}" for one in found.changed)
    for rule in load("rules").rules:
        if rule.id.startswith("EVL"):
            yield from (f"{rule.id} {f.severity} {f.confidence} {f.onset.step} {f.cause}" for f in rule(of))


def _of_pair(bases: list[Run], cand: Run) -> Iterator[str]:
    pairs = compare_all(bases, cand)
    for one in pairs:
        flags = f"worse {one.worse} real {one.significant} member {one.member} odd {one.unexplained} of {one.baselines}"
        blocks = "; ".join(unlike.words for unlike in (*one.settings.blocks, *one.settings.care, *one.settings.model))
        yield f"{one.name} {_tested(one.tested)} p {_number(one.p_holm)} {flags} passed over {one.others} {blocks}"
    yield f"identical {identical(pairs)} {identical(pairs, 1)}"
    section = compare(bases, cand, Options())
    if section is not None:
        yield f"{section.answer} of {section.metric} {_number(section.change)} {section.numbers}"


def _of_tests() -> Iterator[tuple[str, str]]:
    for seed in range(24):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([1, 2, 5, 30, 400, 1999, 2000]))
        base = rng.random(n)
        cand = base + rng.normal(0.03 * (seed % 3), 0.1, n)
        yield f"scores {seed}", _tested(paired(base, cand))
        yield f"right and wrong {seed}", _tested(paired(np.round(base), np.round(rng.random(n) * 0.9)))
        gaps = np.cumsum(rng.normal(0, 0.01, 5 + seed)) if seed % 2 else rng.normal(0.02, 0.01, 5 + seed)
        level = np.full(5 + seed, 0.7)
        told = (by_steps(level, level + gaps, is_share=share) for share in (True, False))
        yield f"steps {seed}", " and ".join(map(_tested, told))
        share, other = rng.random(2).tolist()
        counts = by_counts((share, 10 * seed), (other, 40)), by_counts((1.0, 30), (0.0, 10 * seed))
        yield f"counts {seed}", " and ".join(map(_tested, (*counts, by_errors(share - other, share / 9, other / 9))))
    for z in (0.0, 0.3, 1.96, 4.99, 5.0, 5.01, 8.0, 30.0):
        yield f"z of {z}", f"{_number(two_sided(z))} {_number(two_sided(-z))}"
    for task in (
        "mmlu_pro",
        "leaderboard_mmlu_pro",
        "arc_easy",
        "boolq",
        "lighteval|mmlu:anatomy",
        "hendrycksTest-law",
        "x",
    ):
        yield f"chance of {task}", str(chance_of(task))


def answers() -> Iterable[tuple[str, str]]:
    """What is said of each of them."""
    for seed in range(110):
        yield f"course {seed}", " | ".join(_of_course(_course(seed)))
    for seed in range(60):
        runs = [_one_of_pair(seed, side) for side in (0, 1)]
        yield f"pair {seed}", " | ".join(_of_pair(runs[:1], runs[1])) or "nothing in common"
        if seed < 20:
            curves = [
                f"{c.name} {c.higher} {len(c.steps)} {_number(float(c.values.mean()))}" for c in eval_curves(runs[1])
            ]
            yield f"curves {seed}", " | ".join(curves) or "none"
    for seed in range(12):
        bases = (
            [_one_of_pair(seed, side) for side in (0, 2, 3)[: 2 + seed % 2]]
            if seed % 4
            else [_one_of_pair(seed, 0)] * 2
        )
        yield f"baselines {seed}", " | ".join(_of_pair(bases, _one_of_pair(seed, 1))) or "nothing in common"
    for seed in range(16):
        of = _vocabularies(seed)
        told = (embedding_rows(of), configured_rows(of, ""), token_ids(of, "max_id"), token_ids(of, "n_tokens"))
        rows = " ".join("none" if one is None else str(one.value) for one in told)
        yield f"vocabulary {seed}", f"{rows} {sorted(special_ids(of, '</s>'))}"
    yield from _of_tests()
