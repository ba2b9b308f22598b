"""Results of lm-evaluation-harness, every schema from 0.3 on, and documents of the same form written by scripts.

A document holds `results`: tasks, and under each its metrics as `acc` (0.3) or `acc,none` (metric, filter; 0.4), with
the standard error beside it. What the comparability of two results depends on is kept with every row: task version,
few-shot examples, limit, documents scored, prompt and chat template (as hashes), decoding, arguments and revision of
the model, precision, batch size, seeds, and the commits of harness and libraries. A group carries its members. The
`eval_results.json` of the Hugging Face Trainer, one flat object, is one task, `eval`. A file that was cut gives the
tasks that are whole, without their settings.
"""

from __future__ import annotations

import re

from forensics.errors import InputError, NotMine
from forensics.ingest._eval_about import About, about_of, count_of, settings_of_task
from forensics.ingest._eval_document import Document, Object, as_object, parsed, tasks_of
from forensics.ingest._eval_places import eval_places
from forensics.ingest._eval_rows import EvalRow, EvalRows, Measured, measured, text_of, whole
from forensics.ingest._json_records import number
from forensics.ingest._out import Out
from forensics.ingest._rows_of_text import document, settle_document
from forensics.io.limits import Limits
from forensics.io.reading import Opened
from forensics.io.tolerant_json import loads
from forensics.registry import Sniff, ingester

_HEAD = 1 << 16
_MOST_BYTES = 64 << 20
_RESULTS = re.compile(rb'"results"\s*:\s*\{')
_FLAT_NAMES = re.compile(r"(?:^|/)(?:eval|test|predict|all)_results\.json$")
_FLAT_KEY = re.compile(r"^(eval|test|predict)_(\w+)$")
_COSTS = re.compile(r"_(?:runtime|samples|steps_per_second|samples_per_second|model_preparation_time)$|_per_second$")
#: Names by which a bare table of tasks is known to be one of evaluation results.
_SCORES = frozenset(
    [
        "acc",
        "acc_norm",
        "accuracy",
        "exact_match",
        "em",
        "f1",
        "mcc",
        "bleu",
        "rouge1",
        "rougeL",
        "ppl",
        "perplexity",
        "word_perplexity",
        "byte_perplexity",
        "bits_per_byte",
        "pass@1",
        "pass_at_1",
        "score",
        "brier_score",
        "chrf",
        "ter",
        "mc1",
        "mc2",
        "likelihood_difference",
        "pct_stereotype",
    ]
)
_SAID = ("versions", "configs", "n-shot", "config", "higher_is_better", "num_fewshot", "tasks", "groups")


_MAGIC = tuple(b'{%s"results"' % space for space in (b"", b"\n  ", b"\n    ", b"\n\t"))


@ingester("eval_results", version=1, sniff=Sniff(glob=("*.json",), magic=_MAGIC), emits=("evals",))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one document of results.

    Raises:
        NotMine: when it is no document of evaluation results.
    """
    head = opened.text_head(_HEAD)
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") or opened.size_bytes > _MOST_BYTES:
        raise NotMine("no object, or too long for evaluation results")
    if _RESULTS.search(head) and b'"config_general"' not in head:
        found = parsed(document(opened, limits), "results")
        if not _is_results(found, opened.source.path):
            raise NotMine("no results of an evaluation")
        _write(found, opened, out)
    else:
        found = _without_results(head, opened, limits)
        _write(found, opened, out)
    if found.why:
        out.issue("damaged", f"{found.why}; {len(found.tasks)} whole tasks were read, their settings were not")


def _is_results(found: Document, path: str) -> bool:
    if not any(m.value is not None for metrics in found.tasks.values() for m in measured(metrics)):
        return False
    if found.why:
        return _scores(found) or "results" in path
    return any(key in found.whole for key in _SAID) or _scores(found)


def _scores(found: Document) -> bool:
    names = [{m.metric for m in measured(metrics)} for metrics in found.tasks.values()]
    return bool(names) and all(n & _SCORES for n in names if n) and any(names)


def _without_results(head: bytes, opened: Opened, limits: Limits) -> Document:
    """A table of tasks that is the whole document, or the flat object of the Trainer.

    Raises:
        NotMine: for anything else.
    """
    name = opened.source.path
    if _FLAT_NAMES.search(name) is None and (
        b"acc" not in head and b"perplexity" not in head and b"_match" not in head
    ):
        raise NotMine("no scores of tasks")
    data = document(opened, limits)
    try:
        whole_ = as_object(loads(data))
    except InputError:
        raise NotMine("damaged, and not recognised as evaluation results") from None
    if _FLAT_NAMES.search(name) is not None and (flat_ := _flat(whole_)):
        return Document({}, flat_)
    tasks = tasks_of(whole_)
    found = Document({}, tasks, eval_places(data, None))
    if not tasks or len(tasks) < len(whole_) or not _scores(found):
        raise NotMine("no results of an evaluation")
    return found


def _flat(cells: Object) -> dict[str, Object]:
    tasks: dict[str, dict[str, object]] = {}
    for key, cell in cells.items():
        found = _FLAT_KEY.match(key)
        if found and not _COSTS.search(key) and number(cell) is not None:
            tasks.setdefault(found[1], {})[found[2]] = cell
    return dict(tasks)


def _write(found: Document, opened: Opened, out: Out) -> None:
    rows = EvalRows(out)
    about = about_of(found, opened.source.path)
    for seq, (task, metrics) in enumerate(found.tasks.items()):
        settings = settings_of_task(found, about, task)
        for one in measured(metrics):
            rows.add(_row(found, about, (seq, task, settings), one))
    out.format(_version(found))
    count = rows.close()
    settle_document(opened, out, records=count, lost_bytes=found.lost_bytes)


def _version(found: Document) -> str:
    if "configs" in found.whole or "n-shot" in found.whole:
        return "lm-eval 0.4"
    if "config" in found.whole and "versions" in found.whole:
        return "lm-eval 0.3"
    return "evaluation results"


def _row(found: Document, about: About, at: tuple[int, str, str], one: Measured) -> EvalRow:
    seq, task, settings = at
    line, byte = found.places.of(task, one.key)
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
