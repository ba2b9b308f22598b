"""Results of evaluations: documents of lm-evaluation-harness, of the Trainer of Hugging Face, and of any script.

A document of the harness holds `results`: tasks, and under each its metrics as `acc` (0.3) or `acc,none` (metric,
filter; 0.4), with the standard error beside it. What the comparability of two results depends on is kept with every
row: task version, few-shot examples, limit, documents scored, prompt and chat template (as hashes), decoding, arguments
and revision of the model, precision, batch size, seeds, and the commits of harness and libraries. A group carries its
members. The `eval_results.json` of the Trainer, one flat object, is one task, `eval`. A file that was cut gives the
tasks that are whole, without their settings.

Any other layout is read as a tree: a score is a number under the name of one, its task is what stands beside, above or
in the name of the file, and everything else that stands there is a setting (`_eval_tree.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from forensics.formats.evals._document import Document, Object, members, parsed
from forensics.formats.evals._own import own_rows
from forensics.formats.evals._rows import EvalRow, Measured, measured, text_of, whole, write_rows
from forensics.formats.evals._settings import CONFIG_KEYS, FILE_KEYS, TASK_KEYS, arguments, flat, known, settings_text
from forensics.formats.evals._tree import scores_in
from forensics.formats.evals.checkpoint_names import stamp_ns, step_in
from forensics.formats.kit import InputError, Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.json_records import number, offsets_of
from forensics.formats.rows.metrics import nanoseconds
from forensics.formats.rows.text import document, settle_document
from forensics.io.tolerant_json import as_object, loads
from forensics.knowledge.vocabulary import stands_for

_HEAD = 1 << 16
_MOST_BYTES = 64 << 20
_RESULTS = lazily(rb'"results"\s*:\s*\{')
_FLAT_NAMES = lazily(r"(?:^|/)(?:eval|test|predict|all)_results\.json$")
_FLAT_KEY = lazily(r"^(eval|test|predict)_(\w+)$")
_COSTS = lazily(r"_(?:runtime|samples|steps_per_second|samples_per_second|model_preparation_time)$|_per_second$")
#: A document without any of these has no score that is known by its name.
_HINT = lazily(
    rb"(?i)acc|exact_match|\"em\"|f1|bleu|rouge|score|pass|ppl|perplex|win_?rate|mcc|auc|_rate|bits_per|wer\"|cer\"|ndcg"
    rb"|metric|recall|chrf|result|iou|psnr|mrr"
)
#: What only the harness writes beside its results.
_OF_HARNESS = ("versions", "configs", "n-shot", "higher_is_better", "group_subtasks", "config_tasks")
_MAGIC = tuple(b'{%s"results"' % space for space in (b"", b"\n  ", b"\n    ", b"\n\t"))


@ingester("eval_results", version=3, sniff=Sniff(glob=("*.json",), magic=_MAGIC), emits=("evals",))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one document of results; raises `NotMine` when it is no document of evaluation results."""
    head = opened.text_head(_HEAD)
    path = opened.source.path
    begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if begins not in (b"{", b"[") or opened.size_bytes > _MOST_BYTES or stands_for("never_results_file", path):
        raise NotMine("no document, or too long for evaluation results")
    if _HINT.search(head) is None and _FLAT_NAMES.search(path) is None:
        raise NotMine("no scores")
    if begins == b"{" and _RESULTS.search(head) and b'"config_general"' not in head:
        found = parsed(document(opened, limits), "results")
        if _is_of_harness(found, path):
            _write(found, opened, out)
            if found.why:
                out.issue("damaged", f"{found.why}; {len(found.tasks)} whole tasks were read, their settings were not")
            return
    _own(opened, out, limits)


def _is_of_harness(found: Document, path: str) -> bool:
    if not any(m.value is not None for metrics in found.tasks.values() for m in measured(metrics)):
        return False
    return "results" in path if found.why else any(key in found.whole for key in _OF_HARNESS)


def _own(opened: Opened, out: Out, limits: Limits) -> None:
    """Read the flat object of the Trainer, or the scores of a document of any layout.

    Raises `NotMine` for anything else.
    """
    path = opened.source.path
    data = document(opened, limits)
    try:
        whole_ = loads(data)
    except InputError:
        raise NotMine("damaged, and not recognised as evaluation results") from None
    if _FLAT_NAMES.search(path) is not None and (flat := _flat(as_object(whole_))):
        _write(Document({}, flat), opened, out)
        return
    scores = scores_in(whole_)
    count = write_rows(out, own_rows(scores, path, offsets_of(data, {one.path for one in scores})))
    out.format("evaluation results")
    settle_document(opened, out, records=count)


def _flat(cells: Object) -> dict[str, Object]:
    tasks: dict[str, dict[str, object]] = {}
    for key, cell in cells.items():
        found = _FLAT_KEY.match(key)
        if found and not _COSTS.search(key) and number(cell) is not None:
            tasks.setdefault(found[1], {})[found[2]] = cell
    return dict(tasks)


def _write(found: Document, opened: Opened, out: Out) -> None:
    about = about_of(found, opened.source.path)
    out.format(_version(found))
    rows = (
        _row(found, about, (seq, task, settings), one)
        for seq, (task, metrics) in enumerate(found.tasks.items())
        for settings in (settings_text(_settings(found, about, task)),)
        for one in measured(metrics)
    )
    settle_document(opened, out, records=write_rows(out, rows), lost_bytes=found.lost_bytes)


def _version(found: Document) -> str:
    if "configs" in found.whole or "n-shot" in found.whole:
        return "lm-eval 0.4"
    if "config" in found.whole and "versions" in found.whole:
        return "lm-eval 0.3"
    return "evaluation results"


# What a document of lm-evaluation-harness says of all its tasks, and the settings of each.


class About(Struct, frozen=True):
    """What holds for all tasks of a document: settings, model, step of its checkpoint, time, examples in the prompt."""

    common: tuple[tuple[str, object], ...]
    model: str | None
    step: int | None
    t_ns: int | None
    fewshot: int | None


def about_of(found: Document, path: str) -> About:
    """Collect it; the step is that of the model's revision or path, else that in the path of the file."""
    config = found.part("config")
    args = arguments(config.get("model_args"))
    named = found.whole.get("model_name") or args.get("pretrained") or args.get("model") or found.whole.get("model")
    steps = [str(args[key]) for key in ("revision", "peft", "pretrained", "model", "path") if args.get(key)]
    steps += [str(name) for name in (named, path.rpartition("/")[2], path) if name]
    return About(
        common=tuple(_common(found, config, args)),
        model=text_of(named) or text_of(config.get("model")),
        step=step_in(steps),
        t_ns=nanoseconds(number(found.whole.get("date"))) or stamp_ns(path),
        fewshot=whole(config.get("num_fewshot", found.whole.get("num_fewshot"))),
    )


def _common(found: Document, config: Object, args: dict[str, object]) -> Iterator[tuple[str, object]]:
    for key, cell in known("", found.whole, FILE_KEYS):
        yield key, "none" if cell is None and key in ("chat_template", "system_instruction") else _ids(key, cell)
    if found.whole.get("chat_template") is None and (sha := found.whole.get("chat_template_sha")) is not None:
        yield "chat_template", f"sha256:{str(sha)[:16]}"
    for key, cell in known("", config, CONFIG_KEYS):
        if key == "gen_kwargs":
            yield from flat(key, arguments(cell))
        else:
            yield key, "none" if cell is None and key == "limit" else cell
    yield from flat("model_args", args)


def _ids(key: str, cell: object) -> object:
    """Token and id as `token 5`: ids are numbers or texts by version."""
    if key.startswith("tokenizer_") and isinstance(cell, list):
        return " ".join(str(part) for part in cell)  # type: ignore[reportUnknownArgumentType] - any JSON prints
    return cell


def count_of(found: Document, task: str) -> int | None:
    """Documents that were scored: of a task as printed, of a group the sum of its members."""
    counts = found.part("n-samples")
    own = whole(as_object(counts.get(task)).get("effective"))
    if own is not None:
        return own
    inside = [whole(as_object(counts.get(name)).get("effective")) for name in _members(found, task)]
    if inside and all(n is not None for n in inside):
        return sum(n for n in inside if n is not None)
    return whole(found.tasks[task].get("sample_len"))


def _members(found: Document, task: str) -> tuple[str, ...]:
    return members(found.part("group_subtasks"), task)


def _settings(found: Document, about: About, task: str) -> Iterator[tuple[str, object]]:
    """Everything that the comparability of one task's results depends on."""
    yield from about.common
    own = as_object(found.part("configs").get(task))
    for key, cell in known("task", own, TASK_KEYS):
        yield from flat(key, as_object(cell)) if key.endswith("generation_kwargs") else ((key, cell),)
    if (first := as_object(found.part("n-samples").get(task)).get("original")) is not None:
        yield "n_original", first
    if (digest := found.part("task_hashes").get(task)) is not None:
        yield "task_hash", str(digest)[:16]
    if inside := _members(found, task):
        yield "members", ",".join(inside)


def _row(found: Document, about: About, at: tuple[int, str, str], one: Measured) -> EvalRow:
    seq, task, settings = at
    line, byte = found.place(task, one.key)
    better = as_object(found.part("higher_is_better").get(task)).get(one.metric)
    shots = whole(found.part("n-shot").get(task))
    return EvalRow(
        seq=seq,
        line=line,
        byte=byte,
        task=task,
        task_version=text_of(found.part("versions").get(task)),
        metric=one.metric,
        filter=one.filter,
        value=one.value,
        stderr=one.stderr,
        n=count_of(found, task),
        fewshot=shots if shots is not None else about.fewshot,
        higher_is_better=better if isinstance(better, bool) else None,
        model=about.model,
        step=about.step,
        t_ns=about.t_ns,
        settings=settings,
    )
