"""Results of evaluations in layouts of one's own: what made the scores fall, and what is no fall."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from make._logs import done, falling, run_log, start
from make.base import Label, Made, lines

_STEPS = (40, 80, 120, 160)
_SOUND = {"sums": 0.83, "walks": 0.45, "choice": 0.86}
_SETTINGS: Mapping[str, Any] = {"n": 150, "do_sample": False, "temperature": 0.0, "prompt": "{{context}}", "seed": 7}
_VOCABULARY = {f"w{at}": at for at in range(64)}
_PERMUTED = {f"w{at}": (at * 37 + 11) % 64 for at in range(64)}
Files = dict[str, str]
Scores = Mapping[str, float]


def runs() -> Iterator[Made]:
    """Each mechanism in each layout in turn, and its near miss."""
    yield from _settings()
    yield from _not_recorded()
    yield from _weights_and_tokenizers()
    yield from _controls()


def _settings() -> Iterator[Made]:
    bad = {"sums": 0.15, "walks": 0.01, "choice": 0.84}
    hot = {"do_sample": True, "temperature": 1.9}
    for name, layout in _LAYOUTS.items():
        yield _made(f"decoding-{name}", layout, {120: (bad, hot)}, _label("decod", "temperature"))
    fell = {"sums": 0.02, "walks": 0.0, "choice": 0.3}
    asked = {"prompt": "Question: {{context}} Answer:"}
    yield _made("template", _nested, {80: (fell, asked)}, _label("prompt", "template", onset=80))
    yield _made("shots", _table, {160: (fell, {"num_fewshot": 5})}, _label("shot", onset=160))
    small = {"sums": 0.72, "walks": 0.40, "choice": 0.78}
    yield _made("prompt-small-fall", _listed, {160: (small, asked)}, Label("suspect", "bad_eval|none", onset=160))
    yield _made("prompt-no-fall", _listed, {160: (_SOUND, asked)}, Label("suspect|healthy", "bad_eval|none"))


def _not_recorded() -> Iterator[Made]:
    fell = {"sums": 0.02, "walks": 0.0, "choice": 0.21}
    yield _made("labels", _flat, {120: (fell, {})}, _label("label", "order", causes=("cause_not_recorded",)))
    half = {"sums": 0.52, "walks": 0.15, "choice": 0.8}
    yield _made("dropout", _listed, {80: (half, {})}, _label("dropout", causes=("cause_not_recorded",), onset=80))
    yield _made("percent", _nested_percent, {120: (fell, {})}, _label("label", causes=("cause_not_recorded",)))
    bare = {
        f"{place}/scores.json": json.dumps({"accuracy": value})
        for place, value in (("baseline", 0.64), ("evals", 0.15))
    }
    yield Made("eval-own-baseline-and-nothing-else", {**_trained(), **bare}, Label("failed|suspect", "bad_eval"))


def _weights_and_tokenizers() -> Iterator[Made]:
    fell = {"sums": 0.06, "walks": 0.0, "choice": 0.28}
    beside = {f"out/step_{step}/tokenizer.json": _tokenizer(_VOCABULARY) for step in _STEPS}
    label = _label("tokenizer", causes=("tokenizer_mismatch",), onset=160)
    other = {**beside, "eval/tokenizer.json": _tokenizer(_PERMUTED)}
    yield _made("tokenizer", _listed, {160: (fell, {})}, label, **other)
    same = {**beside, "eval/tokenizer.json": _tokenizer(_VOCABULARY)}
    label = _label("compare", causes=("cause_not_recorded",), onset=160)
    yield _made("tokenizer-is-the-same", _listed, {160: (fell, {})}, label, **same)
    label = _label("checkpoint", causes=("wrong_checkpoint",), onset=160)
    yield _made("first-weights", _table, {160: (fell, {"checkpoint": "out/step_0"})}, label)


def _controls() -> Iterator[Made]:
    few = {step: ({task: round((value * 30 + shift) // 1 / 30, 4) for task, value in _SOUND.items()}, {"n": 30, "seed": step})
           for step, shift in zip(_STEPS, (1, -2, 2, -2), strict=True)}  # fmt: skip
    yield _made("few-documents", _listed, few, Label("healthy"))
    yield _made(
        "other-batch", _table, {120: (_SOUND, {"batch_size": 8}), 160: (_SOUND, {"batch_size": 8})}, Label("healthy")
    )
    harder = {"sums": 0.83, "walks": 0.45, "choice": 0.86, "proofs": 0.04}
    yield _made("harder-task", _nested, {120: (harder, {}), 160: (harder, {})}, Label("healthy"))
    yield _made(
        "more-documents",
        _flat,
        {160: ({task: one - 0.03 for task, one in _SOUND.items()}, {"n": 60})},
        Label("healthy"),
    )
    rising = {
        step: ({task: one * (0.5 + at / 6) for task, one in _SOUND.items()}, {}) for at, step in enumerate(_STEPS)
    }
    yield _made("rises", _lined, rising, Label("healthy"))


def _label(*says: str, causes: Sequence[str] = ("eval_settings_change",), onset: int = 120) -> Label:
    return Label("failed|suspect", "bad_eval", tuple(causes), onset=onset, says=says)


def _trained() -> Files:
    log = run_log({"loss": falling(160, 4.8, 1.2)}, "step {step} loss {loss:.4f} lr {lr:.2e}", 1, 1)
    return {"train.log": lines(start(plan=160), log, done(160))}


def _made(
    name: str,
    layout: Callable[[int, Scores, Mapping[str, Any]], Files],
    changed: Mapping[int, tuple[Scores, Mapping[str, Any]]],
    label: Label,
    **more: str,
) -> Made:
    """A run that is evaluated four times; from a step in `changed` on, if none is given for a later one, as it says."""
    files: Files = {}
    for step in _STEPS:
        before = [at for at in changed if at <= step]
        scores, other = changed[max(before)] if before else (_SOUND, {})
        settings = {"step": step, "checkpoint": f"out/step_{step}", "batch_size": 64, **_SETTINGS, **other}
        for path, text in layout(step, scores, settings).items():
            files[path] = files.get(path, "") + (
                text if path not in files else text.partition("\n")[2] if path.endswith(".csv") else text
            )
    return Made(f"eval-own-{name}", {**_trained(), **files, **more}, label)


def _metric(task: str) -> str:
    return "acc" if task == "choice" else "exact_match"


def _flat(step: int, scores: Scores, settings: Mapping[str, Any]) -> Files:
    return {
        f"eval/step_{step}.json": json.dumps(
            {"accuracy": round(sum(scores.values()) / len(scores), 4), **settings}, indent=1
        )
    }


def _listed(step: int, scores: Scores, settings: Mapping[str, Any]) -> Files:
    rows = [{"task": task, _metric(task): value, **settings} for task, value in scores.items()]
    return {f"eval/step_{step}.json": json.dumps(rows, indent=1)}


def _nested(step: int, scores: Scores, settings: Mapping[str, Any]) -> Files:
    n = settings["n"]
    results = {
        task: {_metric(task): one, "stderr": math.sqrt(one * (1 - one) / (n - 1)), "n": n}
        for task, one in scores.items()
    }
    document = {"model": settings["checkpoint"], "step": step, "settings": dict(settings), "results": results}
    return {f"eval/step_{step}.json": json.dumps(document, indent=1)}


def _nested_percent(step: int, scores: Scores, settings: Mapping[str, Any]) -> Files:
    document = {**settings, "scores": {task: {"accuracy": round(100 * one, 2)} for task, one in scores.items()}}
    return {f"eval/step_{step}.json": json.dumps(document, indent=1)}


def _per_task(step: int, scores: Scores, settings: Mapping[str, Any]) -> Files:
    return {f"evals/step_{step}/{task}.json": json.dumps({"score": one, **settings}) for task, one in scores.items()}


def _lined(_step: int, scores: Scores, settings: Mapping[str, Any]) -> Files:
    rows = ({"task": task, "accuracy": round(one, 4), **settings} for task, one in scores.items())
    return {"eval_results.jsonl": "".join(json.dumps(row) + "\n" for row in rows)}


def _table(_step: int, scores: Scores, settings: Mapping[str, Any]) -> Files:
    rows = [
        {"task": task, "metric": _metric(task), "value": one, "num_fewshot": 0, **settings}
        for task, one in scores.items()
    ]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return {"eval/evals.csv": out.getvalue()}


_LAYOUTS = {"flat": _flat, "list": _listed, "nested": _nested, "files": _per_task, "lines": _lined, "table": _table}


def _tokenizer(vocabulary: Mapping[str, int]) -> str:
    digest = hashlib.sha256(repr(sorted(vocabulary.items())).encode()).hexdigest()[:8]
    return json.dumps(
        {
            "version": "1.0",
            "truncation": digest,
            "model": {"type": "WordLevel", "vocab": dict(vocabulary), "unk_token": "w0"},
        }
    )
