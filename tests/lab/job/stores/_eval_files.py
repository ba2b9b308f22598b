"""How results of an evaluation are written: as lm-evaluation-harness 0.4 does, and as scripts at home do."""

import csv
import hashlib
import json
import math
import random
import time
from pathlib import Path

import common
from tokenizers import Tokenizer, models, pre_tokenizers

_CHAT = "{% for message in messages %}<|user|> {{ message['content'] }} <|assistant|>{% endfor %}"
_TEXT = {"plain": "{{context}}", "chat": "{{context}}", "text": "Question: {{context}} Answer:"}


def _order(permuted):
    """Ids of the words; a permuted vocabulary has the same words under other ids."""
    ids = list(range(common.VOCAB))
    if permuted:
        random.Random("vocabulary").shuffle(ids)
    return ids


_RIGHT, _PERMUTED = _order(permuted=False), _order(permuted=True)
_WORDS_OF_PERMUTED = {at: word for word, at in enumerate(_PERMUTED)}


def tokenizer(permuted):
    """A tokenizer of whole words; a word that it does not know is word 0."""
    vocabulary = {f"w{word}": at for word, at in enumerate(_PERMUTED if permuted else _RIGHT)}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made


_TOKENIZERS = {permuted: tokenizer(permuted) for permuted in (False, True)}


def encoded(text, permuted=False):
    """Ids of a text."""
    return _TOKENIZERS[permuted].encode(text).ids


def words(ids, permuted=False):
    """Words of ids."""
    return " ".join(f"w{_WORDS_OF_PERMUTED[at] if permuted else at}" for at in ids)


def _metric(task):
    return "acc" if task.endswith("choice") else "exact_match"


def _error(score, count):
    """The standard error of a mean, with n - 1 below it, as the harness has it."""
    return math.sqrt(score * (1 - score) / (count - 1))


def _decoding(how):
    return {"do_sample": how["temperature"] > 0, "temperature": how["temperature"]}


def _sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def _task_config(task, how):
    config = {
        "task": task, "dataset_path": "json", "test_split": "test", "doc_to_text": _TEXT[how["template"]],
        "doc_to_target": "{{target}}", "unsafe_code": False, "description": "", "target_delimiter": " ",
        "fewshot_delimiter": "\n\n", "num_fewshot": 0,
        "metric_list": [{"metric": _metric(task), "aggregation": "mean", "higher_is_better": True}],
    }  # fmt: skip
    if _metric(task) == "acc":
        config |= {"doc_to_choice": "{{choices}}", "output_type": "multiple_choice"}
    else:
        kwargs = {"until": ["\n\n"], **_decoding(how), "max_gen_toks": 3}
        config |= {"output_type": "generate_until", "generation_kwargs": kwargs}
    return config | {"repeats": 1, "should_decontaminate": False, "metadata": {"version": 1.0}}


def harness(place, step, how, done):
    """`results_<time>.json` and, where samples are logged, `samples_<task>_<time>.jsonl`."""
    folder = place / f"step_{step}"
    folder.mkdir(parents=True, exist_ok=True)
    _TOKENIZERS[how["permuted"]].save(str(folder / "tokenizer.json"))
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.localtime(now)) + f".{int(now % 1 * 1e6):06d}"
    tasks, chat = list(done.samples), how["template"] == "chat"
    results = {}
    for task in tasks:
        score, metric = done.score(task), _metric(task)
        error = _error(score, how["docs"])
        results[task] = {"alias": task, f"{metric},none": score, f"{metric}_stderr,none": error}
    gen_kwargs = _decoding(how) if how["temperature"] else None
    document = {
        "results": results,
        "group_subtasks": {task: [] for task in tasks},
        "configs": {task: _task_config(task, how) for task in tasks},
        "versions": dict.fromkeys(tasks, 1.0),
        "n-shot": dict.fromkeys(tasks, 0),
        "higher_is_better": {task: {_metric(task): True} for task in tasks},
        "n-samples": {task: {"original": how["docs"], "effective": how["docs"]} for task in tasks},
        "config": {
            "model": "hf", "model_args": f"pretrained={how['weights']},dtype=float32",
            "model_num_parameters": 15568, "model_dtype": "torch.float32", "model_revision": "main", "model_sha": "",
            "batch_size": how["batch_size"], "batch_sizes": [], "device": "cpu", "use_cache": None, "limit": None,
            "bootstrap_iters": 100000, "gen_kwargs": gen_kwargs, "random_seed": 0, "numpy_seed": 1234,
            "torch_seed": 1234, "fewshot_seed": how["seed"],
        },
        "git_hash": "8bc4afff", "date": now, "pretty_env_info": "PyTorch version: 2.13.0+cpu",
        "transformers_version": "5.23.0", "lm_eval_version": "0.4.9", "upper_git_hash": None,
        "tokenizer_pad_token": ["w0", "0"], "tokenizer_eos_token": ["w0", "0"], "tokenizer_bos_token": ["w0", "0"],
        "eot_token_id": 0, "max_length": common.LENGTH,
        "task_hashes": {task: _sha("".join(_sha(one.prompt) for one in done.samples[task])) for task in tasks},
        "model_source": "hf", "model_name": how["weights"], "model_name_sanitized": how["weights"].replace("/", "__"),
        "system_instruction": None, "system_instruction_sha": None, "fewshot_as_multiturn": chat,
        "chat_template": _CHAT if chat else None, "chat_template_sha": _sha(_CHAT) if chat else None,
        "start_time": now - 1.2, "end_time": now, "total_evaluation_time_seconds": "1.2",
    }  # fmt: skip
    (folder / f"results_{stamp}.json").write_text(json.dumps(document, indent=2))
    for task in tasks if how["samples"] else ():
        lines = (json.dumps(_sample(task, at, one, how)) for at, one in enumerate(done.samples[task]))
        (folder / f"samples_{task}_{stamp}.jsonl").write_text("".join(line + "\n" for line in lines))


def _sample(task, at, one, how):
    doc = {"context": one.context, "target": one.target} | ({"choices": one.choices} if one.choices else {})
    target = one.choices.index(one.target) if one.choices else one.target
    if one.choices:
        arguments = {f"gen_args_{n}": {"arg_0": one.prompt, "arg_1": f" {word}"} for n, word in enumerate(one.choices)}
        pairs = [[str(round(score, 4)), str(score == max(one.scores))] for score in one.scores]
        resps, filtered = [[pair] for pair in pairs], pairs
    else:
        arguments = {"gen_args_0": {"arg_0": one.prompt, "arg_1": {"until": ["\n\n"], **_decoding(how)}}}
        resps, filtered = [[one.answer]], [one.answer]
    return {
        "doc_id": at, "doc": doc, "target": target, "arguments": arguments, "resps": resps, "filtered_resps": filtered,
        "filter": "none", "metrics": [_metric(task)], "doc_hash": _sha(json.dumps(doc)), "prompt_hash": _sha(one.prompt),
        "target_hash": _sha(str(target)), _metric(task): float(one.right),
    }  # fmt: skip


def _about(step, how):
    about = {"step": step, "checkpoint": how["weights"], "n": how["docs"], "batch_size": how["batch_size"]}
    return about | _decoding(how) | {"prompt": _TEXT[how["template"]], "chat_template": how["template"] == "chat"}


def _written(place, step, how, document):
    """One JSON file for each evaluation, the tokenizer beside it."""
    place.mkdir(parents=True, exist_ok=True)
    _TOKENIZERS[how["permuted"]].save(str(place / "tokenizer.json"))
    (place / f"step_{step}.json").write_text(json.dumps(document, indent=2) + "\n")


def flat(place, step, how, done):
    """One accuracy, and what it was made with."""
    scores = done.scores()
    _written(place, step, how, {"accuracy": round(sum(scores) / len(scores), 4)} | _about(step, how))


def as_list(place, step, how, done):
    """A list of tasks."""
    about = _about(step, how)
    _written(
        place, step, how, [{"task": task, _metric(task): round(done.score(task), 4)} | about for task in done.samples]
    )


def nested(place, step, how, done):
    """Scores below their tasks, settings beside them."""
    scores = {
        task: {_metric(task): done.score(task), "stderr": _error(done.score(task), how["docs"]), "n": how["docs"]}
        for task in done.samples
    }
    _written(
        place, step, how, {"model": how["weights"], "step": step, "settings": _about(step, how), "results": scores}
    )


def table(place, step, how, done):
    """A table to which every evaluation adds its rows."""
    place.mkdir(parents=True, exist_ok=True)
    _TOKENIZERS[how["permuted"]].save(str(place / "tokenizer.json"))
    path = place / "evals.csv"
    rows = [
        {"task": task, "metric": _metric(task), "value": done.score(task)} | _about(step, how) for task in done.samples
    ]
    new = not Path(path).exists()
    with path.open("a", newline="") as out:
        writer = csv.DictWriter(out, rows[0])
        if new:
            writer.writeheader()
        writer.writerows(rows)


WRITERS = {"harness": harness, "flat": flat, "list": as_list, "nested": nested, "csv": table}
