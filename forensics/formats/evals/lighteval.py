"""Results of lighteval: `config_general`, and tasks named `suite|task|shots` with their metrics.

The number of few-shot examples is in the name of the task, its version and settings under the name without it; the task
`all` is the mean of the others. The details of single documents are in Parquet files and are not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.formats.evals._document import Document, Object, parsed
from forensics.formats.evals._rows import EvalRow, measured, text_of, whole, write_rows
from forensics.formats.evals._settings import TASK_KEYS, flat, known, settings_text
from forensics.formats.evals.checkpoint_names import stamp_ns, step_in
from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.text import document, settle_document
from forensics.io.tolerant_json import as_object

_HEAD = 1 << 16
_MOST_BYTES = 64 << 20
_NAME = lazily(r"^(?P<task>.+?)\|(?P<shots>\d{1,4})(?:\|(?P<cut>\w+))?$")
_GENERAL = {
    "lighteval_sha": "git_hash",
    "model_sha": "model_sha",
    "model_dtype": "model_dtype",
    "num_fewshot_seeds": "fewshot_seeds",
    "override_batch_size": "batch_size",
    "max_samples": "limit",
    "use_chat_template": "chat_template",
    "system_prompt": "system_instruction",
}


_MAGIC = tuple(b'{%s"config_general"' % space for space in (b"", b"\n  ", b"\n    ", b"\n\t"))


@ingester("lighteval", version=1, sniff=Sniff(glob=("*results*.json",), magic=_MAGIC), emits=("evals",))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one document of results; raises `NotMine` when it is no document of lighteval."""
    head = opened.text_head(_HEAD)
    if b'"config_general"' not in head or opened.size_bytes > _MOST_BYTES:
        raise NotMine("no config_general")
    found = parsed(document(opened, limits), "results")
    if not any(measured(metrics) for metrics in found.tasks.values()) and not found.why:
        raise NotMine("no results of tasks")
    out.format("lighteval")
    count = write_rows(out, _rows(found, opened.source.path))
    settle_document(opened, out, records=count, lost_bytes=found.lost_bytes)
    if found.why:
        out.issue("damaged", f"{found.why}; {len(found.tasks)} whole tasks were read, their settings were not")


def _rows(found: Document, path: str) -> Iterator[EvalRow]:
    general = found.part("config_general")
    config = as_object(general.get("model_config"))
    model = text_of(general.get("model_name")) or text_of(config.get("model_name"))
    names = [str(x) for x in (config.get("revision"), general.get("model_name"), path.rpartition("/")[2], path) if x]
    step, t_ns = step_in(names), stamp_ns(path)
    for seq, (name, metrics) in enumerate(found.tasks.items()):
        task, shots = _split(name)
        own = _own(found, name)
        settings = settings_text(_settings(found, general, config, (name, own)))
        for one in measured(metrics):
            line, byte = found.place(name, one.key)
            yield EvalRow(
                seq=seq,
                line=line,
                byte=byte,
                task=task,
                task_version=text_of(found.part("versions").get(name)) or text_of(own.get("version")),
                metric=one.metric,
                filter=one.filter,
                value=one.value,
                stderr=one.stderr,
                n=_count(own),
                fewshot=shots,
                higher_is_better=None,
                model=model,
                step=step,
                t_ns=t_ns,
                settings=settings,
            )


def _split(name: str) -> tuple[str, int | None]:
    found = _NAME.match(name)
    return (found["task"], int(found["shots"])) if found else (name, None)


def _own(found: Document, name: str) -> Object:
    """Settings of a task: under its whole name, or under the name without the number of shots."""
    tasks = found.part("config_tasks")
    return as_object(tasks.get(name)) or as_object(tasks.get(_split(name)[0]))


def _count(own: Object) -> int | None:
    found = whole(own.get("effective_num_docs"))
    return found if found is None or found > 0 else None


def _settings(found: Document, general: Object, config: Object, at: tuple[str, Object]) -> Iterator[tuple[str, object]]:
    name, own = at
    for key, told in _GENERAL.items():
        if key in general and general[key] != "?":
            yield told, "none" if general[key] is None and told in ("limit", "chat_template") else general[key]
    yield from flat("model_args", config)
    yield from flat("model_args.generation_parameters", as_object(general.get("generation_parameters")))
    for key, cell in known("task", own, TASK_KEYS):
        yield key, cell
    if whole(own.get("original_num_docs")) not in (None, -1):
        yield "n_original", own["original_num_docs"]
    summary = as_object(as_object(found.part("summary_tasks").get(name)).get("hashes"))
    if digest := summary.get("hash_full_prompts") or summary.get("full_prompts"):
        yield "task_hash", str(digest)[:16]
    if name == "all":
        yield "members", ",".join(sorted(_split(other)[0] for other in found.tasks if other != "all"))
