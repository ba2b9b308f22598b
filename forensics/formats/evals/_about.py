"""What a document of lm-evaluation-harness says of all its tasks, and the settings of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forensics.formats.evals._document import Document, Object, as_object, members
from forensics.formats.evals._rows import text_of, whole
from forensics.formats.evals._settings import CONFIG_KEYS, FILE_KEYS, TASK_KEYS, arguments, flat, known, settings_text
from forensics.formats.evals.checkpoint_names import stamp_ns, step_in
from forensics.formats.rows.json_records import number
from forensics.formats.rows.metrics import nanoseconds


@dataclass(frozen=True, slots=True)
class About:
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


def settings_of_task(found: Document, about: About, task: str) -> str:
    """Everything that the comparability of one task's results depends on, as a JSON object."""
    return settings_text(_settings(found, about, task))


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
