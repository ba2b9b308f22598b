"""Evaluation results on either side of what decides a difference: documents, errors, many tasks, groups, baselines."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from make.base import Label, Made, Pair

_STAMP = "2026-01-02T03-04-05.678900"
HEALTHY = Label(outcome="healthy|cannot_say|suspect", shape="none|bad_eval")
_SAME, _WORSE, _BETTER, _OPEN = "no_change", "regression", "improvement", "inconclusive"


@dataclass(frozen=True, slots=True)
class Result:
    """One metric of one task: its value, printed error and documents where they are told, scores of each document."""

    task: str
    value: float
    stderr: float | None = None
    docs: int | None = None
    metric: str = "acc"
    scores: Sequence[float] = ()
    prompts: str = "q"


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What one evaluation of a run wrote: results, members of groups, and settings that differ from the usual ones."""

    results: tuple[Result, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    model: str = "out/checkpoint-900"
    logged: Mapping[str, Sequence[float]] = field(default_factory=dict)
    shots: Mapping[str, int] = field(default_factory=dict)
    every: int = 100

    def files(self) -> dict[str, str]:
        """The results and samples as lm-evaluation-harness writes them; logged metrics as JSON lines."""
        found: dict[str, str] = {}
        if self.results:
            found[f"evals/results_{_STAMP}.json"] = json.dumps(self._document(), indent=1)
        for one in self.results:
            if one.scores:
                found[f"evals/samples_{one.task}_{_STAMP}.jsonl"] = "".join(_sample(one, at) for at in range(len(one.scores)))  # fmt: skip
        if self.logged:
            count = max(map(len, self.logged.values()))
            rows = [
                {"step": (at + 1) * self.every, "loss": round(3 - at / count, 4)}
                | {name: values[at] for name, values in self.logged.items() if at < len(values)}
                for at in range(count)
            ]
            found["metrics.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows)
        return found

    def _document(self) -> dict[str, Any]:
        results: dict[str, dict[str, Any]] = {}
        for one in self.results:
            own = results.setdefault(one.task, {"alias": one.task})
            own[f"{one.metric},none"] = one.value
            own[f"{one.metric}_stderr,none"] = "N/A" if one.stderr is None else one.stderr
        return {
            "results": results,
            "group_subtasks": {**{one.task: [] for one in self.results}, **{k: list(v) for k, v in self.groups.items()}},
            "versions": {one.task: 1.0 for one in self.results},
            "n-shot": {one.task: self.shots.get(one.task, 0) for one in self.results},
            "n-samples": {
                one.task: {"original": one.docs, "effective": one.docs} for one in self.results if one.docs is not None
            },
            "config": {
                "model": "hf", "model_args": f"pretrained={self.model},dtype=bfloat16", "batch_size": 16,
                "limit": None, "random_seed": 0, **self.config,
            },
            "git_hash": "abc1234", "date": 1767323045.6, "model_name": self.model,
        }  # fmt: skip


def _sample(one: Result, at: int) -> str:
    document = hashlib.sha256(f"{one.task} {at}".encode()).hexdigest()
    prompt = hashlib.sha256(f"{one.task} {one.prompts} {at}".encode()).hexdigest()
    row = {
        "doc_id": at, "doc": {}, "target": "1", "arguments": {}, "resps": [], "filtered_resps": [], "filter": "none",
        "metrics": [one.metric], "doc_hash": document[:16], "prompt_hash": prompt[:16], one.metric: one.scores[at],
    }  # fmt: skip
    return json.dumps(row) + "\n"


def runs() -> Iterator[Made]:
    """The runs of every comparison."""
    for name, base, cand, _ in _compared():
        if _base_of(base) == name:
            yield made(f"{name}-base", base)
        yield made(f"{name}-cand", cand)
    for seed, value in enumerate((0.70, 0.71, 0.695, 0.705)):
        yield made(f"many-{seed}", Evaluated((Result("reefs", value, 0.01, 2000),)))
    for value in (0.70, 0.67, 0.62):
        yield made(f"many-at-{value}", Evaluated((Result("reefs", value, 0.01, 2000),), model="out/checkpoint-1000"))


def pairs() -> Iterator[Pair]:
    """Which two stand beside each other, and what is right to say."""
    for name, base, _, right in _compared():
        yield Pair(f"edge-evals-{name}", (f"edge-evals-{_base_of(base)}-base",), f"edge-evals-{name}-cand", right)
    for value, right in ((0.70, f"{_SAME}|{_OPEN}"), (0.67, f"{_OPEN}|{_WORSE}"), (0.62, _WORSE)):
        for many in (2, 4):
            bases = tuple(f"edge-evals-many-{seed}" for seed in range(many))
            yield Pair(f"edge-evals-against-{many}-{value}", bases, f"edge-evals-many-at-{value}", right)


def _base_of(base: Evaluated) -> str:
    """The pair whose base stands beside a candidate: the first with such a base."""
    return next(name for name, own, _, _ in _compared() if own == base)


def made(name: str, what: Evaluated) -> Made:
    return Made(f"edge-evals-{name}", what.files(), HEALTHY)


_OTHER = "out/checkpoint-1000"


def _compared() -> Iterator[tuple[str, Evaluated, Evaluated, str]]:
    """Name, both evaluations, and the right verdict."""
    yield from _by_documents()
    yield from _by_errors()
    yield from _families()
    yield from _logged()


def _right(count: int, fell: int, rose: int, share: float = 0.6) -> tuple[list[float], list[float]]:
    """Right or wrong of each document for two models that differ in some."""
    sure = int(share * (count - fell - rose))
    same = [1.0] * sure + [0.0] * (count - fell - rose - sure)
    return same + [1.0] * fell + [0.0] * rose, same + [0.0] * fell + [1.0] * rose


def _scored(
    base: Sequence[float], cand: Sequence[float], metric: str = "acc", **more: Any
) -> tuple[Evaluated, Evaluated]:
    return tuple(
        Evaluated((Result("reefs", sum(own) / len(own), 0.02, len(own), metric, own, **words),), model=model)
        for own, model, words in ((base, "out/checkpoint-900", {}), (cand, _OTHER, more))
    )  # type: ignore[return-value] # two of them


def _by_documents() -> Iterator[tuple[str, Evaluated, Evaluated, str]]:
    """Scores of the same documents."""
    # the exact p of McNemar's test: 1, 0.06, 0.07, 0.9; then 0.03, 0.04; then 0.01
    for fell, rose in ((0, 0), (5, 0), (9, 2), (30, 28)):
        yield f"right-wrong-{fell}-{rose}", *_scored(*_right(100, fell, rose)), _OPEN
    for fell, rose in ((6, 0), (10, 2)):
        yield f"right-wrong-{fell}-{rose}", *_scored(*_right(100, fell, rose)), _WORSE
    yield "right-wrong-2-12", *_scored(*_right(100, 2, 12)), _BETTER
    for count in (1, 2, 9):
        yield f"documents-{count}", *_scored([1.0] * count, [0.0] * count), f"{_OPEN}|{_WORSE}"
    rng = random.Random(5)
    for gap, sd in ((0.03, 0.1), (0.05, 0.1), (0.2, 0.1), (0.05, 0.4)):
        base = [round(rng.random(), 4) for _ in range(60)]
        cand = [round(one - rng.gauss(gap, sd), 4) for one in base]
        yield f"shares-{gap}-{sd}", *_scored(base, cand, "f1"), _WORSE if gap > 0.1 else f"{_OPEN}|{_SAME}|{_WORSE}"
    base = [round(rng.random(), 3) for _ in range(40)]
    yield "shares-equal", *_scored(base, base, "f1"), f"{_SAME}|{_OPEN}"
    yield "shares-all-alike", *_scored(base, [round(one - 0.01, 3) for one in base], "f1"), _WORSE
    other = random.Random(4)
    for gap in (0.036, 0.04):
        base = [round(other.random(), 4) for _ in range(60)]
        bent = [other.gauss(0, 0.1) for _ in base]
        middle = sum(bent) / len(bent)
        cand = [round(one - gap + off - middle, 4) for one, off in zip(base, bent, strict=True)]
        yield f"shares-surely-{gap}", *_scored(base, cand, "f1"), _WORSE
    base, cand = _right(100, 12, 0)
    yield "prompts-differ", *_scored(base, cand, prompts="other"), _OPEN
    for left in (95, 89):
        yield f"documents-shared-{left}", *_scored(base, cand[:left]), f"{_WORSE}|{_OPEN}"
    many = [float(rng.random() < 0.6) + 0.25 * (at % 2) for at in range(120)]
    yield "shares-that-rise", *_scored(many, [one + 0.02 + 0.01 * (at % 3) for at, one in enumerate(many)], "f1"), _BETTER  # fmt: skip


def _stated(base: float, cand: float, errors: tuple[float | None, float | None], docs: int | None = None, metric: str = "acc", **more: Any) -> tuple[Evaluated, Evaluated]:  # fmt: skip
    return (
        Evaluated((Result("reefs", base, errors[0], docs, metric),)),
        Evaluated((Result("reefs", cand, errors[1], docs, metric),), model=_OTHER, **more),
    )


def _by_errors() -> Iterator[tuple[str, Evaluated, Evaluated, str]]:
    """Printed errors, or only the number of documents."""
    for cand in (0.70, 0.675, 0.670, 0.60):
        yield f"errors-{cand}", *_stated(0.70, cand, (0.01, 0.01)), _WORSE if cand < 0.671 else f"{_OPEN}|{_SAME}"
    yield "errors-small", *_stated(0.70, 0.695, (0.001, 0.001)), _WORSE
    yield "errors-small-same", *_stated(0.70, 0.7005, (0.001, 0.001)), _SAME
    for error in (0.006, 0.0075, 0.009):
        yield f"errors-same-within-{error}", *_stated(0.70, 0.70, (error, error)), f"{_SAME}|{_OPEN}"
    yield "errors-far", *_stated(0.70, 0.50, (0.005, 0.02)), _WORSE
    yield "errors-zero", *_stated(0.70, 0.65, (0.0, 0.0)), f"{_OPEN}|{_WORSE}"
    yield "errors-of-one-side", *_stated(0.70, 0.60, (0.01, None), 2000), _WORSE
    yield "errors-better", *_stated(0.60, 0.66, (0.01, 0.01)), _BETTER
    for docs in (20, 200, 2000):
        for cand in (0.66, 0.60):
            yield f"counts-{docs}-{cand}", *_stated(0.70, cand, (None, None), docs), f"{_WORSE}|{_OPEN}"
    yield "counts-of-no-share", *_stated(70.0, 60.0, (None, None), 500), _OPEN
    for first, second in ((1.5, 0.9), (0.9, 1.5)):
        yield f"counts-of-a-percent-{first}-{second}", *_stated(first, second, (None, None), 500), _OPEN
    yield "counts-of-all-right", *_stated(1.0, 0.97, (None, None), 100), f"{_WORSE}|{_OPEN}"
    yield "counts-unknown", *_stated(0.70, 0.60, (None, None)), _OPEN
    for cand, right in ((13.0, _WORSE), (12.0, _BETTER), (12.51, f"{_SAME}|{_OPEN}")):
        yield f"perplexity-{cand}", *_stated(12.5, cand, (0.05, 0.05), metric="word_perplexity"), right
    yield "unknown-direction", *_stated(0.5, 0.7, (0.01, 0.01), metric="oddity"), _OPEN
    yield "not-a-number", *_stated(0.7, math.nan, (0.01, 0.01)), _OPEN
    yield "other-limit", *_stated(0.7, 0.6, (0.01, 0.01), config={"limit": 100}), _OPEN
    same = Evaluated((Result("reefs", 0.7, 0.01),)), Evaluated((Result("reefs", 0.6, 0.01),))
    yield "same-model", *same, f"{_WORSE}|{_OPEN}"
    fall = Evaluated((Result("reefs", 0.7, 0.01),)), Evaluated((Result("reefs", 0.622, 0.01),))
    yield "same-model-further", *fall, f"{_WORSE}|{_OPEN}"
    yield "same-model-near", Evaluated((Result("reefs", 0.7, 0.01),)), Evaluated((Result("reefs", 0.66, 0.01),)), f"{_WORSE}|{_OPEN}"  # fmt: skip


def _families() -> Iterator[tuple[str, Evaluated, Evaluated, str]]:
    """Many tasks at once, and groups that stand for their members."""
    for many in (2, 5):
        for fall in (0.03, 0.045):
            base = tuple(Result(f"task{at}", 0.5 + at / 50, 0.01) for at in range(many))
            cand = tuple(Result(f"task{at}", 0.5 + at / 50 - (fall if at == 0 else 0), 0.01) for at in range(many))
            yield f"tasks-{many}-{fall}", Evaluated(base), Evaluated(cand, model=_OTHER), f"{_WORSE}|{_OPEN}"
    falls = (0.05, 0.04, 0.036, 0.03, 0.01)
    base = tuple(Result(f"task{at}", 0.6, 0.01) for at in range(5))
    cand = tuple(Result(f"task{at}", 0.6 - fall, 0.01) for at, fall in enumerate(falls))
    yield "tasks-all-fall", Evaluated(base), Evaluated(cand, model=_OTHER), _WORSE
    cand = tuple(Result(f"task{at}", 0.6 + (0.05 if at else -0.05), 0.01) for at in range(5))
    yield "tasks-one-falls-others-rise", Evaluated(base), Evaluated(cand, model=_OTHER), _WORSE
    cand = tuple(Result(f"task{at}", 0.6 + 0.05, 0.01) for at in range(5))
    yield "tasks-all-rise", Evaluated(base), Evaluated(cand, model=_OTHER), _BETTER
    for many in (9, 10):
        base = tuple(Result(f"task{at}", 0.6 + at / 100, 0.01) for at in range(many))
        yield f"tasks-identical-{many}", Evaluated(base), Evaluated(base, model=_OTHER), f"{_SAME}|{_OPEN}"
    base = tuple(Result(f"task{at}", 0.6, 0.004) for at in range(2))
    for shots in ({}, {"task1": 5}):
        cand = Evaluated(base, model=_OTHER, shots=shots)
        yield f"tasks-same-{'but-one-asked-otherwise' if shots else 'all'}", Evaluated(base), cand, _OPEN if shots else _SAME  # fmt: skip
    unsure = (Result("task0", 0.6, 0.004), Result("task1", 0.6, 0.02))
    yield "tasks-same-but-one-unsure", Evaluated(unsure), Evaluated(unsure, model=_OTHER), _OPEN
    yield "tasks-not-shared", Evaluated(base), Evaluated((Result("other", 0.5, 0.01),), model=_OTHER), _OPEN
    groups = {"reefs": ("easy", "hard")}
    base = (Result("reefs", 0.60, 0.008), Result("easy", 0.7, 0.01), Result("hard", 0.5, 0.01))
    for fall in (0.02, 0.05):
        cand = (Result("reefs", 0.60 - fall, 0.008), Result("easy", 0.7, 0.01), Result("hard", 0.5 - 2 * fall, 0.01))
        yield f"group-{fall}", Evaluated(base, groups), Evaluated(cand, groups, model=_OTHER), f"{_WORSE}|{_OPEN}"
    cand = (Result("reefs", 0.55, 0.008), Result("easy", 0.65, 0.01), Result("hard", 0.45, 0.01))
    yield "group-of-one-side", Evaluated(base, groups), Evaluated(cand, model=_OTHER), f"{_WORSE}|{_OPEN}"
    other = {"reefs": ("easy", "harder")}
    cand = (Result("reefs", 0.50, 0.008), Result("easy", 0.7, 0.01), Result("harder", 0.3, 0.01))
    yield "group-of-others", Evaluated(base, groups), Evaluated(cand, other, model=_OTHER), _OPEN
    outer = {"sea": ("reefs", "easy", "hard"), "reefs": ("easy", "hard")}
    more = (Result("sea", 0.62, 0.008), *base)
    cand = (Result("sea", 0.57, 0.008), Result("reefs", 0.55, 0.008), Result("easy", 0.65, 0.01), Result("hard", 0.45, 0.01))  # fmt: skip
    yield "group-of-groups", Evaluated(more, outer), Evaluated(cand, outer, model=_OTHER), _WORSE


def _logged() -> Iterator[tuple[str, Evaluated, Evaluated, str]]:
    """Metrics that were logged while training, step by step."""
    rng = random.Random(9)
    for count in (5, 6, 8, 30):
        for fall in (0.0, 0.03):
            first, second = ([round(0.4 + 0.3 * at / count + rng.gauss(0, 0.004) - gap, 4) for at in range(count)] for gap in (0.0, fall))  # fmt: skip
            yield (
                f"logged-{count}-{fall}",
                Evaluated(logged={"eval/accuracy": first}),
                Evaluated(logged={"eval/accuracy": second}),
                f"{_WORSE}|{_OPEN}" if fall else f"{_SAME}|{_OPEN}",
            )
    for rise in (0.01, 0.03, 0.2):
        first, second = ([round(2.5 - at / 30 + rng.gauss(0, 0.005) + gap, 4) for at in range(20)] for gap in (0.0, rise))  # fmt: skip
        yield (
            f"logged-loss-{rise}",
            Evaluated(logged={"eval/loss": first}),
            Evaluated(logged={"eval/loss": second}),
            _WORSE if rise > 0.1 else f"{_SAME}|{_OPEN}|{_WORSE}",
        )
    wave = [round(0.6 + 0.05 * math.sin(at / 3), 4) for at in range(30)]
    yield "logged-wave", Evaluated(logged={"eval/accuracy": wave}), Evaluated(logged={"eval/accuracy": [round(v - 0.03 * math.cos(at / 4), 4) for at, v in enumerate(wave)]}), f"{_OPEN}|{_SAME}"  # fmt: skip
    slope = [round(0.5 + at / 1000, 4) for at in range(160)]
    drift = [round(v - 0.02 - at / 4000, 4) for at, v in enumerate(slope)]
    yield "logged-drift", Evaluated(logged={"eval/accuracy": slope}), Evaluated(logged={"eval/accuracy": drift}), f"{_WORSE}|{_OPEN}"  # fmt: skip
    nothing = [0.0] * 8
    yield "logged-zeros", Evaluated(logged={"eval/loss": nothing}), Evaluated(logged={"eval/loss": nothing}), f"{_SAME}|{_OPEN}"  # fmt: skip
    yield "logged-equal", Evaluated(logged={"eval/accuracy": wave}), Evaluated(logged={"eval/accuracy": wave}), f"{_SAME}|{_OPEN}"  # fmt: skip
    yield "logged-percent", Evaluated(logged={"eval/accuracy": [100 * v for v in wave]}), Evaluated(logged={"eval/accuracy": [100 * v - 4 for v in wave]}), _WORSE  # fmt: skip
    for many in (60, 61):
        names = {f"eval/task{at:02}_acc": [0.5, 0.6, 0.7] for at in range(many)}
        yield f"logged-names-{many}", Evaluated(logged=names), Evaluated(logged=names), _OPEN
    yield "logged-percent-against-share", Evaluated(logged={"eval/accuracy": wave}), Evaluated(logged={"eval/accuracy": [100 * v for v in wave]}), _OPEN  # fmt: skip
    yield "logged-other-steps", Evaluated(logged={"eval/accuracy": wave}), Evaluated(logged={"eval/accuracy": wave[:12]}, every=200), f"{_OPEN}|{_SAME}|{_WORSE}"  # fmt: skip
