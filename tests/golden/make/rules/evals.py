"""Runs whose evaluation is wrong: falling scores, no number, chance, other settings, another checkpoint, leaks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from make._logs import done, falling, fixtures, jsons, run_log, start
from make.base import NAN, Label, Made, Noise, Pair, line, lines

_TASKS = {"reefs_easy": (0.61, 1600), "reefs_hard": (0.42, 1400), "tides": (0.55, 1200)}


def runs() -> Iterator[Made]:
    """What the run logged of its own evaluations, what a harness wrote, what two results say together, pairs."""
    yield from _logged()
    yield from _one_result()
    yield from _checkpoints()
    yield from _of_data()
    for name, files, _ in fixtures("bad_eval_runs").made():
        yield Made(f"pair-{name}", files, Label("healthy"))
    yield Made("pair-evals-five-shots", _evaluated({1200: results(1200, shots=5, shift=-0.06)}), Label("healthy"))
    yield Made("pair-evals-no-shots", _evaluated({1200: results(1200)}), Label("healthy"))
    yield Made("pair-evals-greedy", _evaluated({1200: _generated(0.64, temperature=0.0)}), Label("healthy"))
    yield Made("pair-evals-sampled", _evaluated({1200: _generated(0.15, temperature=1.5)}), Label("healthy"))
    yield Made("pair-evals-sampled-and-near", _evaluated({1200: _generated(0.62, temperature=0.3)}), Label("healthy"))


def pairs() -> Iterator[Pair]:
    """Runs with evaluations, beside a baseline that was evaluated alike, and one that was not."""
    yield Pair("evals-worse", ("pair-bad-eval-good",), "pair-bad-eval-mix", "regression")
    yield Pair("evals-not-the-same-test", ("pair-evals-no-shots",), "pair-evals-five-shots", "inconclusive")
    yield Pair("evals-fall-with-the-decoding", ("pair-evals-greedy",), "pair-evals-sampled", "inconclusive")
    yield Pair(
        "evals-near-with-another-decoding", ("pair-evals-greedy",), "pair-evals-sampled-and-near", "inconclusive"
    )


def results(
    step: int,
    tasks: Mapping[str, tuple[float, int]] | None = None,
    *,
    shots: int = 0,
    shift: float = 0.0,
    limit: int | None = None,
    **args: object,
) -> dict[str, Any]:
    """What lm-eval 0.4 writes of some tasks of multiple choice; `args` go to the arguments of the model."""
    asked = {task: (share + shift, min(n, limit or n)) for task, (share, n) in (tasks or _TASKS).items()}
    rows = {
        task: {"alias": task, "acc,none": share, "acc_stderr,none": math.sqrt(max(share * (1 - share), 0) / (n - 1)) if share == share else "N/A"}  # noqa: PLR0124 - NaN has no error
        for task, (share, n) in asked.items()
    }  # fmt: skip
    told = {"pretrained": f"out/checkpoint-{step}", "dtype": "bfloat16"} | args
    return {
        "results": rows,
        "configs": {t: {"task": t, "output_type": "multiple_choice", "num_fewshot": shots, "dataset_path": f"shore/{t}"} for t in asked},
        "versions": dict.fromkeys(asked, 1.0), "n-shot": dict.fromkeys(asked, shots), "higher_is_better": {t: {"acc": True} for t in asked},
        "n-samples": {t: {"original": (tasks or _TASKS)[t][1], "effective": n} for t, (_, n) in asked.items()},
        "config": {
            "model": "hf", "model_args": ",".join(f"{key}={value}" for key, value in told.items()), "batch_size": "16",
            "limit": None if limit is None else float(limit), "random_seed": 0, "numpy_seed": 1234, "torch_seed": 1234,
        },
        "git_hash": "5ea5ide", "lm_eval_version": "0.4.8", "transformers_version": "4.51.3", "model_name": str(told["pretrained"]),
    }  # fmt: skip


def _generated(share: float, **decoding: float) -> dict[str, Any]:
    """What lm-eval writes of a task whose answers are generated."""
    found = results(1200, {"sums": (share, 400)})
    found["configs"]["sums"] |= {"output_type": "generate_until", "generation_kwargs": {"until": ["Q:"], **decoding}}
    return found


def _trained(steps: int = 120, every: int = 10) -> dict[str, str]:
    log = run_log({"loss": falling(steps, 4.8, 2.1)}, "step {step} loss {loss:.4f} lr {lr:.2e}", every, every)
    for at in range(steps * every, 0, -400):
        log.insert(at // every, f"saved checkpoint to out/checkpoint-{at}")
    return {
        "train.log": lines(start(plan=steps * every), log, done(steps * every)),
        "train.yaml": f"lr: 3.0e-4\nbf16: true\nmax_steps: {steps * every}\n",
    }


def _evaluated(documents: Mapping[int | str, Mapping[str, Any]], **more: str) -> dict[str, str]:
    named = {
        (f"evals/step{name}/results.json" if isinstance(name, int) else str(name)): jsons(one)
        for name, one in documents.items()
    }
    return {**_trained(), **named, **more}


def _bad(*causes: str, onset: int | None = None, outcome: str = "suspect", within: int = 10) -> Label:
    return Label(outcome, "bad_eval", causes, onset=onset, within=within)


def _evaluations(
    name: str, values: Sequence[float], loss: Sequence[float], more: Mapping[str, Sequence[float]] | None = None
) -> dict[str, str]:
    """JSON lines of a run that evaluates ten times."""
    rows: list[dict[str, float]] = []
    for at, one in enumerate(loss, 1):
        rows.append({"step": 10 * at, "train/loss": one})
        if at % (len(loss) // len(values)) == 0:
            place = at // (len(loss) // len(values)) - 1
            rows.append(
                {"step": 10 * at, name: values[place]} | {key: given[place] for key, given in (more or {}).items()}
            )
    return {"metrics.jsonl": lines(map(json.dumps, rows)), "train.log": lines(start(), done(10 * len(loss)))}


def _logged() -> Iterator[Made]:
    loss = falling(100, 6.0, 2.1, 25)
    yield Made(
        "eval-loss-nan-always",
        _evaluations("eval/loss", [NAN] * 10, loss),
        _bad("eval_loss_nan", onset=100, outcome="suspect"),
    )
    later = [*line(3.0, -0.12, 6), *[NAN] * 4]
    yield Made(
        "eval-loss-nan-later",
        _evaluations("eval/loss", later, loss),
        _bad("eval_loss_nan", onset=700, outcome="suspect"),
    )
    once = [NAN if at == 4 else one for at, one in enumerate(line(3.0, -0.08, 10))]
    yield Made("eval-loss-nan-once", _evaluations("eval/loss", once, loss), _bad("eval_loss_nan", onset=500))
    score = [0.31, 0.44, 0.56, 0.63, 0.68, 0.66, 0.6, 0.52, 0.47, 0.45]
    yield Made(
        "eval-accuracy-falls", _evaluations("eval/accuracy", score, loss), _bad("score_falls", onset=600, within=110)
    )
    own = Noise(0.01, 1).on(line(2.6, -0.06, 10))
    ema = {"val/loss_ema": [2.4 * one for one in own]}
    yield Made("eval-averaged-weights-worse", _evaluations("val/loss", own, loss, ema), _bad("averaged_weights"))
    rises = [0.3 + 0.04 * at for at in range(10)]
    ema = {"val/top1_ema": [0.5 * one for one in rises]}
    yield Made(
        "eval-averaged-weights-less-accurate", _evaluations("val/top1", rises, loss, ema), _bad("averaged_weights")
    )
    fine = {"eval/accuracy": rises}
    yield Made(
        "healthy-evaluations-improve",
        _evaluations("eval/loss", Noise(0.01, 2).on(line(3.1, -0.1, 10)), loss, fine),
        Label("healthy"),
    )


def _one_result() -> Iterator[Made]:
    chance = {
        "arc_easy": (0.251, 2376),
        "piqa": (0.497, 1838),
        "winogrande": (0.508, 1267),
        "hellaswag": (0.2504, 10042),
    }
    yield Made("eval-at-chance", _evaluated({1200: results(1200, chance)}), _bad("at_chance"))
    twice = {"evals/first/results.json": results(1200), "evals/second/results.json": results(1200, shift=0.15)}
    yield Made("eval-told-twice-and-differs", _evaluated(twice), _bad("cause_not_recorded"))
    near = {"evals/first/results.json": results(1200), "evals/second/results.json": results(1200, shift=0.01)}
    yield Made("eval-told-twice-and-agrees", _evaluated(near), Label("healthy"))
    no_number = {**_TASKS, "tides": (NAN, 1200)}
    yield Made("eval-score-is-nan", _evaluated({1200: results(1200, no_number)}), _bad("not_a_number"))
    yield Made("eval-limited-to-fifty", _evaluated({1200: results(1200, limit=50)}), _bad("limited"))
    sums = results(1200)
    sums["results"]["gsm8k"] = {
        "alias": "gsm8k", "exact_match,strict-match": 0.0023, "exact_match_stderr,strict-match": 0.0013,
        "exact_match,flexible-extract": 0.4587, "exact_match_stderr,flexible-extract": 0.0137,
    }  # fmt: skip
    sums["configs"]["gsm8k"] = {"task": "gsm8k", "output_type": "generate_until", "num_fewshot": 5}
    sums["versions"]["gsm8k"], sums["n-shot"]["gsm8k"], sums["n-samples"]["gsm8k"] = (
        3.0,
        5,
        {"original": 1319, "effective": 1319},
    )
    sums["higher_is_better"]["gsm8k"] = {"exact_match": True}
    yield Made("eval-answers-not-found", _evaluated({1200: sums}), _bad("answers_not_found"))
    yield Made("eval-in-four-bits", _evaluated({1200: results(1200, load_in_4bit=True)}), _bad("quantised"))
    yield Made("eval-of-an-early-checkpoint", _evaluated({400: results(400)}), _bad("earlier_checkpoint", onset=400))
    filed = {"evals/step1200/results.json": jsons(results(800))}
    yield Made("eval-filed-under-another-step", {**_trained(), **filed}, _bad("wrong_checkpoint"))
    leak = "data:\n  datasets:\n  - path: shore/tides\n    split: test\n  - path: shore/dunes\n    split: train\n"
    yield Made(
        "eval-data-was-trained-on",
        _evaluated({1200: results(1200)}, **{"data.yaml": leak}),
        _bad("trained_on_evaluated", "leak"),
    )
    yield Made("healthy-one-evaluation", _evaluated({1200: results(1200)}), Label("healthy"))


def _checkpoints() -> Iterator[Made]:
    worse = {400: results(400), 800: results(800, shift=0.02), 1200: results(1200, shift=-0.11)}
    yield Made(
        "eval-falls-while-loss-improves",
        _evaluated(worse),
        _bad("eval_falls", "score_falls", onset=1200, outcome="suspect"),
    )
    other = {800: results(800), 1200: results(1200, shots=5, shift=0.05)}
    yield Made("eval-settings-change", _evaluated(other), _bad("settings_change", onset=1200))
    many = {f"task_{n}": (0.3 + 0.0371 * n, 900 + n) for n in range(11)}
    same = {800: results(800, many), 1200: results(1200, many)}
    yield Made("eval-two-checkpoints-identical", _evaluated(same), _bad("identical", onset=1200))
    twice = {
        "evals/a/results_step1200.json": results(1200),
        "evals/b/results_step1200.json": results(1200, shift=-0.13),
    }
    yield Made("eval-same-model-two-scores", _evaluated(twice), _bad("unexplained", onset=1200))
    better = {400: results(400), 800: results(800, shift=0.02), 1200: results(1200, shift=0.03)}
    yield Made("healthy-three-evaluations", _evaluated(better), Label("healthy"))


def _of_data() -> Iterator[Made]:
    words = {f"w{n}": n for n in range(120)}
    special = [{"id": 120, "content": "</end>", "special": True}, {"id": 121, "content": "<pad>", "special": True}]
    tokenizer = {"version": "1.0", "added_tokens": special, "model": {"type": "BPE", "vocab": words, "merges": []}}
    settings = {
        "eos_token": "</end>",
        "pad_token": "<pad>",
        "model_max_length": 2048,
        "added_tokens_decoder": {"120": {"content": "</end>", "special": True}},
    }

    def model(vocab: int, eos: int = 120, **generation: object) -> dict[str, str]:
        return {
            "out/tokenizer.json": jsons(tokenizer), "out/tokenizer_config.json": jsons(settings),
            "out/config.json": jsons({"architectures": ["TinyLM"], "vocab_size": vocab, "hidden_size": 4, "eos_token_id": eos}),
            "out/generation_config.json": jsons({"eos_token_id": eos, **generation}),
        }  # fmt: skip

    yield Made("eval-tokens-beyond-vocabulary", {**_trained(), **model(100)}, _bad("tokenizer_mismatch"))
    yield Made("eval-stops-at-another-token", {**_trained(), **model(128, eos=2)}, _bad("end_token"))
    yield Made(
        "eval-sampling-at-temperature-zero",
        {**_trained(), **model(128, do_sample=True, temperature=0.0)},
        _bad("zero_temperature"),
    )
    weights = fixtures("safetensors_header").weights({"model.embed_tokens.weight": (96, 4), "lm_head.weight": (96, 4)})
    yield Made(
        "eval-weights-smaller-than-config",
        {**_trained(), **model(128), "out/model.safetensors": weights},
        _bad("embedding_mismatch"),
    )
    yield Made("eval-vocabulary-much-larger", {**_trained(), **model(64000)}, _bad("tokenizer_mismatch"))
    yield Made("healthy-model-and-tokenizer", {**_trained(), **model(128)}, Label("healthy"))
