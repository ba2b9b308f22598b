"""Whether two evaluations were the same test: the effect of each setting, and the settings that differ.

One table of patterns (`families.tsv`) recognises the settings of every layout. Prompt, few-shot examples, documents,
decoding, tokenizer and the mode of the model make another test; precision, seed, version and batch may only shift
values; the checkpoint is what is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache

from msgspec import Struct

from forensics.analyses.evals.results import Row, members_of, settings_of
from forensics.io.tables import table_rows
from forensics.knowledge.vocabulary import keys_of
from forensics.patterns import lazily

#: Families that make another test of an evaluation, the likeliest to move a score first.
BLOCKS = ("decoding", "tokenizer", "prompt", "few-shot", "documents", "model mode")
_CARE = ("precision", "version", "batch", "seed")
#: Everything that can make a score fall, the most telling first.
RANKS = ("checkpoint", *BLOCKS, *_CARE, "other")
_GENERATE = frozenset(keys_of("output_that_is_generated"))
#: Metrics of the likelihood of given answers, on which decoding cannot act.
_SCORED = frozenset(keys_of("score_of_likelihood"))
_COLUMNS = {"task_version": "documents", "fewshot": "few-shot", "n": "documents"}
_NAMES = {"n": "documents", "fewshot": "few-shot examples", "task_version": "task version", "task_hash": "prompt hash"}
_PREFIXES = lazily(r"^(?:task\.generation_kwargs\.|gen_kwargs\.|task\.|model_args\.generation_parameters\.|settings\.)")


class Unlike(Struct, frozen=True):
    """A setting that differs: both values as printed, and where both stand; `task` is a group's member."""

    key: str
    base: str
    cand: str
    base_place: str
    cand_place: str
    task: str | None = None
    family: str = "other"

    @property
    def name(self) -> str:
        """Give the setting as one says it: `few-shot examples`, `temperature`."""
        plain = _PREFIXES.sub("", self.key)
        return _NAMES.get(plain, plain.replace("_", " "))

    @property
    def words(self) -> str:
        """Give it as `few-shot examples 0 → 5`, with the member of a group before it."""
        member = f"{self.task}: " if self.task else ""
        return f"{member}{self.name} {self.base} → {self.cand}"


class Compared(Struct, frozen=True):
    """The differences: `blocks` make a comparison meaningless, `care` may shift values, `model` is what is compared."""

    blocks: tuple[Unlike, ...] = ()
    care: tuple[Unlike, ...] = ()
    model: tuple[Unlike, ...] = ()

    @property
    def same_model(self) -> bool:
        """Give whether nothing says that two models were evaluated."""
        return not self.model


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    rows = table_rows("forensics.analyses.evals", "families.tsv")
    return tuple((re.compile(pattern), family) for pattern, family in rows)


@lru_cache(maxsize=4096)
def family_of(key: str) -> str | None:
    """The family that a setting acts on, by its key; None for a setting without a known effect on a score."""
    plain = key.lower()
    return next((family for pattern, family in _patterns() if pattern.search(plain)), None)


def compared(base: Row, cand: Row) -> Compared:
    """Compare the settings of two results of one task."""
    differ = list(_differ(base, cand))
    models = (Unlike(column, _shown(base[column]), _shown(cand[column]), *_places(base, cand), family="checkpoint")
              for column in ("model", "step") if base[column] != cand[column])  # fmt: skip
    return Compared(
        (*_columns(base, cand), *(u for u in differ if u.family in BLOCKS)),
        tuple(u for u in differ if u.family in _CARE),
        (*models, *(u for u in differ if u.family == "checkpoint")),
    )


def inherited(group: tuple[Row, Row], members: Mapping[str, Compared]) -> tuple[Unlike, ...]:
    """Give the blocks of a group: other members, or the blocks of its first member that is not comparable."""
    base, cand = group
    left, right = members_of(base), members_of(cand)
    if left and right and left != right:
        only = sorted(set(left) ^ set(right))
        words = f"{len(left)}", f"{len(right)} ({', '.join(only[:3])})"
        return (Unlike("members", *words, *_places(base, cand), family="documents"),)
    worst = [(task, members[task].blocks) for task in left or right if task in members and members[task].blocks]
    if not worst:
        return ()
    task, first = worst[0]
    return tuple(Unlike(u.key, u.base, u.cand, u.base_place, u.cand_place, task, u.family) for u in first)


def generates(*rows: Row) -> bool:
    """Give whether decoding can act on a result: by the kind of its task, else by its metric."""
    kinds = {str(settings_of(row).get("task.output_type", "")) for row in rows} - {""}
    return bool(kinds & _GENERATE) if kinds else rows[0]["metric"] not in _SCORED


def _columns(base: Row, cand: Row) -> Iterator[Unlike]:
    columns = ("n",) if members_of(base) or members_of(cand) else tuple(_COLUMNS)
    for column in columns:
        if base[column] is not None and cand[column] is not None and base[column] != cand[column]:
            words = str(base[column]), str(cand[column])
            yield Unlike(column, *words, *_places(base, cand), family=_COLUMNS[column])


def _differ(base: Row, cand: Row) -> Iterator[Unlike]:
    """Settings of a known family that both state and that differ; one of generation that is not set has its default."""
    left, right = settings_of(base), settings_of(cand)
    digest = left.get("task_hash")
    same_prompts = digest is not None and digest == right.get("task_hash")
    is_group = bool(members_of(base) or members_of(cand))
    with_shots = (base["fewshot"] or 0) > 0 and not same_prompts
    for key in (*left, *(key for key in right if key not in left)):
        family = family_of(key)
        if family is None or (family == "prompt" and same_prompts):
            continue
        if family == "few-shot" and base["fewshot"] is not None and cand["fewshot"] is not None:
            continue  # the column says it
        if family == "decoding":
            if is_group or not generates(base, cand):
                continue
        elif key not in left or key not in right:
            continue
        if key.startswith("fewshot_seed"):
            if not with_shots:
                continue
            family = "few-shot"
        if _plain(left.get(key)) != _plain(right.get(key)):
            yield Unlike(key, _shown(left.get(key)), _shown(right.get(key)), *_places(base, cand), family=family)


def _plain(value: object) -> str:
    return str(value).removeprefix("torch.").strip().lower()


def _shown(value: object) -> str:
    return "not set" if value is None else str(value)[:60]


def _places(base: Row, cand: Row) -> tuple[str, str]:
    return place_of(base), place_of(cand)


def place_of(row: Row) -> str:
    """Give the file of a result, with the line where it has one."""
    return f"{row['source']}:{row['line']}" if row["line"] else str(row["source"])
