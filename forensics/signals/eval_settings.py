"""Were two evaluations the same test: the settings that must be equal, and those that only make one careful."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from forensics.signals.evals import Row, members_of, settings_of

#: Settings that change the prompt; where the hash over all prompts is equal on both sides they are moot.
_PROMPT = (
    "chat_template",
    "system_instruction",
    "fewshot_as_multiturn",
    "task.doc_to_text",
    "task.doc_to_choice",
    "task.description",
    "task.target_delimiter",
    "task.fewshot_delimiter",
    "task.use_prompt",
    "task.fewshot_split",
    "model_args.use_chat_template",
    "model_args.enable_thinking",
)
_TEST = (
    "limit",
    "task_hash",
    "task.dataset_path",
    "task.dataset_name",
    "task.test_split",
    "task.validation_split",
    "task.doc_to_target",
    "task.output_type",
    "task.filter_list",
    "task.repeats",
    "task.hf_repo",
    "task.hf_subset",
    "task.generation_size",
    "task.stop_sequence",
    "model_args.add_bos_token",
    "model_args.max_length",
)
_DECODING = ("gen_kwargs.", "task.generation_kwargs.", "model_args.generation_parameters.")
_GENERATE = frozenset(("generate_until", "generate_until_multi_round"))
#: Metrics of the likelihood of given answers, on which decoding cannot act.
_SCORED = frozenset(
    (
        *("acc", "acc_norm", "ppl", "perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte"),
        *("mc1", "mc2", "brier_score", "likelihood_difference", "pct_stereotype"),
    )
)
_CARE = (
    "model_dtype",
    "model_args.dtype",
    "batch_size",
    "model_args.parallelize",
    "use_cache",
    "max_length",
    "tokenizer_pad_token",
    "tokenizer_eos_token",
    "tokenizer_bos_token",
    "eot_token_id",
    "random_seed",
    "numpy_seed",
    "torch_seed",
    "git_hash",
    "lm_eval_version",
    "transformers_version",
)
_MODEL = ("model_revision", "model_sha", "peft_sha", "model_args.revision", "model_args.peft", "model_num_parameters")
_NAMES = {"n": "documents", "fewshot": "few-shot examples", "task_version": "task version", "task_hash": "prompt hash"}
_PREFIXES = ("task.generation_kwargs.", "gen_kwargs.", "task.", "model_args.generation_parameters.")


@dataclass(frozen=True, slots=True)
class Unlike:
    """A setting that differs: both values as printed, and where both stand; `task` is a group's member."""

    key: str
    base: str
    cand: str
    base_place: str
    cand_place: str
    task: str | None = None

    @property
    def words(self) -> str:
        """Give it as `few-shot examples 0 → 5`, with the member of a group before it."""
        name = next((self.key.removeprefix(p) for p in _PREFIXES if self.key.startswith(p)), self.key)
        member = f"{self.task}: " if self.task else ""
        return f"{member}{_NAMES.get(name, name.replace('_', ' '))} {self.base} → {self.cand}"


@dataclass(frozen=True, slots=True)
class Compared:
    """What differs: `blocks` make a comparison meaningless, `care` may shift values, `model` is what is compared."""

    blocks: tuple[Unlike, ...] = ()
    care: tuple[Unlike, ...] = ()
    model: tuple[Unlike, ...] = ()

    @property
    def same_model(self) -> bool:
        """Give whether nothing says that two models were evaluated."""
        return not self.model


def compared(base: Row, cand: Row) -> Compared:
    """Compare the settings of two results of one task."""
    left, right = settings_of(base), settings_of(cand)
    return Compared(
        tuple(_blocks(base, cand, left, right)),
        tuple(_differ(_CARE, left, right, (base, cand))),
        tuple(_models(base, cand, left, right)),
    )


def inherited(group: tuple[Row, Row], members: Mapping[str, Compared]) -> tuple[Unlike, ...]:
    """Give what blocks a group: other members, or what blocks its first member that is not comparable."""
    base, cand = group
    left, right = members_of(base), members_of(cand)
    if left and right and left != right:
        only = sorted(set(left) ^ set(right))
        return (_unlike("members", f"{len(left)}", f"{len(right)} ({', '.join(only[:3])})", (base, cand)),)
    worst = [(task, members[task].blocks) for task in left or right if task in members and members[task].blocks]
    if not worst:
        return ()
    task, first = worst[0]
    return tuple(Unlike(u.key, u.base, u.cand, u.base_place, u.cand_place, task) for u in first)


def _blocks(base: Row, cand: Row, left: Mapping[str, object], right: Mapping[str, object]) -> Iterator[Unlike]:
    places = (base, cand)
    columns = ("n",) if members_of(base) or members_of(cand) else ("task_version", "fewshot", "n")
    for column in columns:
        if base[column] is not None and cand[column] is not None and base[column] != cand[column]:
            yield _unlike(column, str(base[column]), str(cand[column]), places)
    digest = left.get("task_hash")
    same_prompts = digest is not None and digest == right.get("task_hash")
    yield from _differ(_TEST if same_prompts else (*_TEST, *_PROMPT), left, right, places)
    if (base["fewshot"] or 0) > 0 and not same_prompts:
        yield from _differ(("fewshot_seed", "fewshot_seeds"), left, right, places)
    if not (members_of(base) or members_of(cand)) and generates(base, cand):
        yield from _decoding(left, right, places)


def generates(*rows: Row) -> bool:
    """Give whether decoding can act on a result: by the kind of its task, else by its metric."""
    kinds = {str(settings_of(row).get("task.output_type", "")) for row in rows} - {""}
    return bool(kinds & _GENERATE) if kinds else rows[0]["metric"] not in _SCORED


def _decoding(left: Mapping[str, object], right: Mapping[str, object], places: tuple[Row, Row]) -> Iterator[Unlike]:
    """Give settings of generation that differ; one that is not set has its default."""
    keys = [k for k in (*left, *(k for k in right if k not in left)) if k.startswith(_DECODING)]
    for key in keys:
        if left.get(key) != right.get(key):
            yield _unlike(key, _shown(left.get(key)), _shown(right.get(key)), places)


def _models(base: Row, cand: Row, left: Mapping[str, object], right: Mapping[str, object]) -> Iterator[Unlike]:
    for column in ("model", "step"):
        if base[column] != cand[column]:
            yield _unlike(column, _shown(base[column]), _shown(cand[column]), (base, cand))
    yield from _differ(_MODEL, left, right, (base, cand))


def _differ(
    keys: tuple[str, ...], left: Mapping[str, object], right: Mapping[str, object], places: tuple[Row, Row]
) -> Iterator[Unlike]:
    for key in keys:
        if key in left and key in right and _plain(left[key]) != _plain(right[key]):
            yield _unlike(key, _shown(left[key]), _shown(right[key]), places)


def _plain(value: object) -> str:
    return str(value).removeprefix("torch.").strip().lower()


def _shown(value: object) -> str:
    return "not set" if value is None else str(value)[:60]


def _unlike(key: str, base: str, cand: str, places: tuple[Row, Row]) -> Unlike:
    first, second = (f"{row['source']}:{row['line']}" if row["line"] else str(row["source"]) for row in places)
    return Unlike(key, base, cand, first, second)
