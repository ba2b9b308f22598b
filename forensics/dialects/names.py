"""Canonical metric names: which printed names mean the same quantity, and the factor to the unit in the name.

The tables are data, with the source of each row: `names.tsv` (printed name, canonical name, scale), `roles.tsv` (short
names that mean something only where their numbers show it) and `units.tsv`; this module reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from itertools import pairwise
from math import isfinite, log2

from forensics.dialects._numbers import SUFFIXES
from forensics.dialects.spec import Name
from forensics.io.tables import table_rows
from forensics.knowledge.vocabulary import in_english, stands_for, words_for
from forensics.patterns import lazily
from forensics.stats.spread import median_of

_PACKAGE = "forensics.dialects"
#: Characters of the longest name that is looked up: patterns take 0.3 ms for a kilobyte, and a hostile file has many.
_MOST_CHARS = 512
_BETWEEN = lazily(r"[\s/._-]+")
_BRACKETS = lazily(r"[()\[\]]")
_WITH_UNIT = lazily(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)? ?([A-Za-zµ]{1,3})")
#: `gpu.3.memory.used`, `gpu/3/power`, `system/gpu_3_power_usage_watts`: the device is no part of the quantity.
_DEVICE = lazily(r"(?:system[./])?gpu[._/]\d{1,3}[._/]")
#: `lr-AdamW`, `lr-SGD/pg1`, `lr-DecoupledAdamW/group0` of monitors of Lightning and Composer: the first group of the
#: first optimizer, by the name of its class.
_OF_OPTIMIZER = lazily(r"lr-\w+(?:/pg1|/group0)?")
#: A unit or the data behind a name: `time (s)`, `acc (%)`, `loss (val)`.
_IN_BRACKETS = lazily(r"(?P<bare>.*\S)\s*\((?P<inner>\w+|%)\)")
#: `ms/step`, `s per batch`, `sec/Schritt`.
_EACH = lazily(r"(?P<unit>\w+?)(?:/| ?per )(?P<counter>[^\W\d_]+)")
#: `step_ms`, `data_time_sec`; `steps_sec` may be a rate whose stroke a tracker replaced, as no name in `ms` is.
_IN_TIME = lazily(r"(?P<bare>\w+)_(?P<unit>ns|us|ms|s|secs?|seconds)")
#: Words for one thing in names of memories.
_SHORT = {"memory": "mem", "allocated": "alloc", "max": "peak", "cuda": "gpu", "device": "gpu"}


@cache
def table() -> dict[str, Name]:
    """Printed name (lower case) → canonical name and scale."""
    return {
        printed.lower(): Name(known, float(scale))
        for printed, known, scale, *_ in table_rows(_PACKAGE, "names/names.tsv")
    }


@cache
def _groups() -> dict[str, str]:
    """First part of a name that says where it is logged → what it means: `own`, `device` or `eval`."""
    return {group: means for group, means, *_ in table_rows(_PACKAGE, "names/groups.tsv")}


@cache
def meanings() -> frozenset[str]:
    """Every canonical name that a printed one can have."""
    return frozenset(name.canonical for name in table().values()) | {
        known for _, known, *_ in table_rows(_PACKAGE, "names/roles.tsv")
    }


@cache
def _by_words() -> dict[str, Name]:
    """The table by the words of its names, whatever is between them; where these mean two things, neither.

    Words of a memory do not count: `gpu.mem` of nvidia-smi is a use in percent, `gpu_mem` in a log is a size.
    """
    found: dict[str, set[Name]] = {}
    for printed, name in table().items():
        found.setdefault(_words(printed), set()).add(name)
    alone = {words: next(iter(names)) for words, names in found.items() if len(names) == 1 and "_" in words}
    return {words: name for words, name in alone.items() if words not in _roles("sized")}


@cache
def _joined() -> dict[str, Name]:
    """The table by words that are written as one (`gradnorm`, `steptime`); where these mean two things, neither."""
    found: dict[str, set[Name]] = {}
    for words, name in _by_words().items():
        found.setdefault(words.replace("_", ""), set()).add(name)
    return {joined: next(iter(names)) for joined, names in found.items() if len(names) == 1}


@cache
def _roles(holds: str) -> dict[str, str]:
    """Words of a name → what it means where its numbers hold that."""
    return {printed: known for printed, known, told, *_ in table_rows(_PACKAGE, "names/roles.tsv") if told == holds}


@cache
def _sizes() -> dict[str, str]:
    """Words of a memory → what they mean, beside a unit of bytes."""
    return _roles("bytes") | _roles("counted") | _roles("sized")


@cache
def _units(of: str) -> dict[str, float]:
    """Units of one kind (bytes, name, time) → the factor to GiB or to seconds."""
    return {unit: float(factor) for unit, kind, factor, *_ in table_rows(_PACKAGE, "names/units.tsv") if kind == of}


@cache
def _joined_sizes() -> dict[str, str]:
    """Words of a memory that are written as one (`MaxMem`) → what they mean."""
    return {printed.replace("_", ""): known for printed, known in _sizes().items()}


@cache
def _sizes_in_any_order() -> dict[frozenset[str], str]:
    """Words of a memory, in whatever order (`peak_mem`, `memory_peak`) → what they mean."""
    return {_set_of(printed): known for printed, known in _sizes().items()}


def _set_of(words: str) -> frozenset[str]:
    return frozenset(_SHORT.get(word, word) for word in words.split("_"))


def _words(printed: str) -> str:
    return _BETWEEN.sub("_", printed.strip().lower()).strip("_")


def _sized(key: str) -> Name | None:
    """The meaning of a name whose last word is a unit of bytes: `mem_gb`, `memory (MiB)`."""
    bare, _, unit = _words(_BRACKETS.sub(" ", key)).rpartition("_")
    words = _set_of(bare)
    known = _joined_sizes().get(bare) or _sizes_in_any_order().get(words) or _sizes_in_any_order().get(words - {"gpu"})
    factor = _units("name").get(unit)
    return None if known is None or factor is None else Name(known, factor)


def _turned(key: str) -> str:
    """The name with its group first, where a known quantity precedes the group alone: `loss/train`."""
    quantity, _, group = key.rpartition("/")
    is_turned = key not in table() and quantity in table() and _groups().get(group) in {"own", "eval"}
    return f"{group}/{quantity}" if is_turned else key


def _in_order(key: str) -> str:
    """A name in English whose words say first on which data: `loss_val` and `loss validation` are a `val loss`."""
    words = _words(_BRACKETS.sub(" ", key)).split("_")
    return " ".join(sorted(words, key=lambda word: _groups().get(word) not in {"own", "eval"}))


def canonical(printed: str) -> Name:
    """Canonical name of a printed one: exact (case-blind), then without a `train/`-like prefix, else itself, unscaled.

    Last by its words, whatever is between them or nothing: `Grad/norm` and `gradnorm` are `grad_norm`, and `mem_gb` is
    a memory in GiB. The number of a device is left out: `gpu.3.memory.used` is looked up as `gpu.memory.used`. A prefix
    that names an evaluation in `groups.tsv` (`val`, `eval`, `test`) makes `loss` an `eval_loss`. TensorBoard's own
    examples turn it round: `Loss/train` is a `loss`, `Loss/test` an `eval_loss`. A name in another language means what
    its English words do. A name of more than 512 characters means nothing.
    """
    return Name(printed.strip()) if len(printed) > _MOST_CHARS else _meaning(printed)


def _meaning(printed: str) -> Name:
    english = in_english(printed)
    printed = printed if english == printed else _in_order(english)
    known = table()
    key = _turned(printed.strip().lower())
    if key in known:
        return known[key]
    if _OF_OPTIMIZER.fullmatch(key) is not None:
        return Name("lr")
    if (device := _DEVICE.match(key)) is not None:
        return known.get(f"gpu.{key[device.end() :]}", Name(printed.strip()))
    head, _, last = key.replace(".", "/").rpartition("/")
    means = known.get(last) or _sized(last) or _joined().get(last) or _timed(last)
    if means is not None:
        first = head.split("/")[0]
        group = _groups().get(first)
        if group == "eval":
            return Name(f"eval_{means.canonical}", means.scale)
        if not first or group == "own" or (group == "device" and means.canonical.endswith("_gib")):
            return means
    name = _by_words().get(_words(key)) or _sized(key) or _each(english.strip().lower()) or _bracketed(key)
    return Name(printed.strip()) if name is None else name


def of_each_rank(key: str) -> str:
    """What a list has of each rank, by its name: the `iter_time` of `iter_time_per_rank`; empty for any other name."""
    found = re.search(words_for("word_for_ranks"), key)
    if found is None:
        return ""
    left, right = key[: found.start()].rstrip(" _-./"), key[found.end() :].lstrip(" _-./")
    between = found[0][-1] if left and right else ""
    bare = f"{left}{between}{right}"
    singular = (bare.removesuffix(end) for end in ("", "es", "s"))
    return next((one for one in singular if one.lower() in table() or is_duration(one)), bare)


def of_rank(name: str, rank: int) -> str:
    """The name of one number of such a list."""
    return f"{name} rank {rank}"


def _timed(key: str) -> Name | None:
    """The meaning of a name whose last word is a unit of time: of a step (`step_ms`, `t_step_ms`), or its bare name."""
    found = _IN_TIME.fullmatch(key)
    if found is None:
        return None
    bare, seconds = found["bare"].removeprefix("t_"), _units("time")[found["unit"]]
    name = table().get(bare)
    means = name.canonical if name is not None else _roles("each_time").get(bare, "")
    counter = bare.removesuffix("_time")
    if means == "data_time_s" or (name is not None and means.endswith("_s")):
        return Name(means, seconds)
    if found["unit"] == "s":  # `step_s` is a time or a rate, as its numbers show
        return None
    is_time = counter != bare or seconds < 1  # nobody counts how often in a thousandth of a second
    return Name("step_time_s", seconds) if is_time and stands_for("counter_of_steps", counter) else None


def _each(key: str) -> Name | None:
    """The time of a step in the unit of a name: `ms/step`, `s per batch`; None where it is none."""
    found = _EACH.fullmatch(key)
    seconds = None if found is None else _units("time").get(found["unit"])
    if found is None or seconds is None or not stands_for("counter_of_steps", found["counter"]):
        return None
    return Name("step_time_s", seconds)


def _mean_loss(printed: str) -> Name | None:
    """A loss whose name says what it is a mean or a sum over: `avg_val_loss`, `batch train loss`, `Loss_AVG`."""
    words = _words(printed).split("_")
    kept = [word for word in words if not stands_for("word_of_a_mean", word)]
    name = table().get("_".join(kept)) or table().get(" ".join(kept)) if 0 < len(kept) < len(words) else None
    return name if name is not None and name.canonical in {"loss", "eval_loss"} else None


def _bracketed(key: str) -> Name | None:
    """The meaning of a name that is followed by a unit or the data in brackets; None where it has none."""
    found = _IN_BRACKETS.fullmatch(key)
    if found is None:
        return None
    bare, inner = found["bare"], found["inner"]
    if inner in _groups():
        bare = f"{inner}/{bare}"
    name, seconds = canonical(bare), _units("time").get(inner)
    if seconds is not None:
        return Name(name.canonical, name.scale * seconds) if name.canonical.endswith("_s") else None
    return name if name.canonical != bare and (inner == "%" or inner in _groups()) else None


def of_pair(printed: str, before: str) -> str:
    """A name that says only on which data (`val`), with the quantity of the one before it (`loss train`)."""
    words = _words(in_english(before)).split("_")
    quantity = [word for word in words if _groups().get(word) != "own"]
    is_second = _groups().get(in_english(printed).strip().lower()) == "eval" and 0 < len(quantity) < len(words)
    return " ".join([printed, *quantity]) if is_second else printed


def unit_of(cell: str) -> str:
    """The unit of bytes or of time behind the number of a cell (`4100MB`, `0.5 ms`); empty where none is."""
    found = _WITH_UNIT.fullmatch(cell.strip())
    unit = found[1] if found is not None else ""
    return unit if unit in _units("bytes") or unit in _units("time") else ""


def measured(printed: str, units: Collection[str], values: Callable[[], Sequence[float]]) -> Name:
    """Canonical name of a printed one whose numbers are known, with the factor to its unit.

    `units` are the units behind the numbers, empty where there are none. Some short names mean something only where
    their numbers show it: an `rss` has a unit of bytes, a loss `scale` is a power of two, an `objective` falls.
    """
    unit = next(iter(units)) if len(set(units)) == 1 else ""
    within = _IN_BRACKETS.fullmatch(printed.strip())
    if not unit and within is not None and within["inner"] in _units("time"):
        printed, unit = within["bare"], within["inner"]
    words = _words(in_english(printed))
    factor = _units("bytes").get(unit)
    if factor is not None and (size := _sizes().get(words) or _sizes().get(_last_part(printed))) is not None:
        return Name(size, factor)
    if factor is None and unit and words in _roles("sized"):
        return Name(f"{printed} ({unit})")  # no size: what else it may be is not asked for
    factor = _units("time").get(unit)
    if factor is not None and words in _roles("each_time"):
        return Name(_roles("each_time")[words] if is_each_time(values()) else canonical(printed).canonical, factor)
    for holds, holding in _HOLDING.items():
        if words in _roles(holds) and holding(values()):
            return Name(_roles(holds)[words])
    name = _mean_loss(printed) or canonical(printed)
    if name.canonical.endswith("_s"):
        return Name(name.canonical, _units("time").get(unit, 1.0)) if name.scale == 1.0 else name
    factor = seconds_in(printed, unit) if unit else None
    return name if factor is None else Name(f"{words}_seconds", factor)  # no loss and no rate has seconds


def seconds_in(printed: str, unit: str) -> float | None:
    """How many seconds are one of what a number counts, by the unit behind it or that in its name; None for no time.

    An `m` may mean millions, too; of a rate it is the time of an epoch.
    """
    unit, _, per = unit.partition("/")
    if per and not stands_for("counter_of_epochs", per):
        return None
    if unit:
        return None if unit.upper() in SUFFIXES else _units("time").get(unit)
    if not stands_for("time_by_its_unit", printed):
        return None
    return next((_units("time")[word] for word in _words(printed).split("_") if word in _units("time")), None)


#: Least, most and factor to GiB of a device's memory in GiB, MiB and bytes: half as much again as the 192 GiB of the
#: largest in `devices.jsonl`, and less than the least of the next unit.
_SIZES: tuple[tuple[float, float, float], ...] = (
    (1.0, 300.0, 1.0), (512.0, 300.0 * 1024, 1 / 1024), (2.0**29, 300.0 * 2**30, 1 / 2**30)
)  # fmt: skip


def counted(printed: str) -> str | None:
    """What a name that counts an allocator's memory means where its numbers have the size of one (`to_gib`)."""
    return _roles("counted").get(_last_part(printed))


def sized(printed: str) -> str | None:
    """What a name of a memory means where its numbers are too large for a share of one (`to_gib`)."""
    return _roles("sized").get(_last_part(printed))


def _last_part(printed: str) -> str:
    """The words behind the last point or slash of a name: `memory_allocated` of `torch.cuda.memory_allocated`."""
    return _words(printed.replace(".", "/").rpartition("/")[2])


def to_gib(largest: float) -> float | None:
    """The factor to GiB of numbers without a unit, by the largest of them; None where it fits no memory."""
    return next((factor for least, most, factor in _SIZES if least < largest <= most), None)


def is_duration(printed: str) -> bool:
    """Whether a name names a time that passed: `time`, `Time elapsed`; the time that is left does not count."""
    words = _words(printed)
    named = {words, words.rpartition("_")[2]} & _roles("each_time").keys()
    return bool(named) or canonical(printed).canonical == "step_time_s"


#: The largest loss scale is worth printing; a guidance or a weight may be a small power of two.
_LEAST_SCALE = 16.0
#: Of so many times that are measured anew one at least is below the one before; half of them are where none drifts.
_ANEW = 10
#: Dips of a time that grows all along: two or more, one in twenty.
_FEWEST_DIPS, _DIPS = 2, 20
#: A clock that begins again with each epoch is read so often in one, in the mean.
_LEAST_TURN = 3
#: A clock that is printed so often shows more than two times.
_STAYING = 20
#: A time of each step does not become so many times its first one without a dip.
_GROWN = 10
#: Fewer numbers show no course.
_COURSE = 6
#: The medians of so many numbers at either end of the first third, and how far the later one is below the earlier.
_FEWEST_BEGUN, _BEGUN = 2, 0.8
#: So many numbers enumerate folds, classes or trials as often as steps.
ENUMERATED = 12


def counts(values: Sequence[float], begins: Collection[int] = ()) -> bool:
    """Whether so many numbers rise by the same whole number that they count steps; at `begins` others count anew."""
    rises = {b - a for at, (a, b) in enumerate(pairwise(values), 1) if at not in begins}
    return len(values) > ENUMERATED and len(rises) == 1 and min(rises) > 0 and min(rises).is_integer()


def enumerates(values: Sequence[float]) -> bool:
    """Whether numbers stay or go on by one, as epochs do."""
    return {b - a for a, b in pairwise(values)} == {0.0, 1.0}


def falls(values: Sequence[float]) -> bool:
    """Whether the last third of the finite values lies below the first, as that of what training makes small.

    Or within the first third the numbers fell by a fifth: a loss that rises later on is one, too, and one that rose
    before that third was over if each of so many numbers on end had fallen so far below each of the first ones.
    """
    told = [value for value in values if isfinite(value)]
    third = len(told) // 3
    if len(told) < _COURSE or third == 0:
        return False
    if median_of(told[-third:]) < median_of(told[:third]):
        return True
    begun = told[:third]
    part = third // 3
    if part < _FEWEST_BEGUN or median_of(begun[:part]) <= 0:
        return False
    fell = 0 < median_of(begun[-part:]) < _BEGUN * median_of(begun[:part])
    least = min(max(begun[at : at + part]) for at in range(third - part))
    return fell or 0 < least < _BEGUN * min(begun[:part])


def _are_powers(values: Sequence[float]) -> bool:
    """Whether numbers are powers of two as a loss scale is; one that collapses falls far below its largest."""
    powers = all(isfinite(value) and value > 0 and log2(value).is_integer() for value in values)
    return powers and max(values, default=0.0) >= _LEAST_SCALE


def is_anew(values: Sequence[float]) -> bool:
    """Whether a time is measured anew each time: one in ten lies below the one before, as no clock's does."""
    return sum(b < a for a, b in pairwise(values)) * _ANEW >= len(values) > 1


def is_each_time(values: Sequence[float]) -> bool:
    """Whether a time is measured for each step: measured anew, or a climb with dips, as no clock that begins again has.

    A clock falls where it starts again, to less than half; of a time that grows all along few are below the one before.
    """
    dips = sum(a / 2 < b < a for a, b in pairwise(values))
    if not dips and _begins_again(values):
        return False
    return is_anew(values) or (dips >= _FEWEST_DIPS and dips * _DIPS >= len(values)) or _stays(values)


def _begins_again(values: Sequence[float]) -> bool:
    """Whether numbers rise in each record but where a clock begins again, after three records or more in the mean."""
    down, stays = sum(b < a for a, b in pairwise(values)), sum(a == b for a, b in pairwise(values))
    return not stays and 0 < down * _LEAST_TURN <= len(values)


def _stays(values: Sequence[float]) -> bool:
    """Whether a time is the same in all records but for one or two rises, as no clock of so many records is."""
    changes = [(a, b) for a, b in pairwise(values) if a != b]
    return len(values) >= _STAYING and 0 < len(changes) <= _FEWEST_DIPS and values[0] > 0


def is_since_start(values: Sequence[float]) -> bool:
    """Whether a time is a clock that began with the records: it never falls, and became many times its first value."""
    rises = all(a <= b for a, b in pairwise(values))
    return rises and len(values) > ENUMERATED and values[0] * _GROWN <= values[-1]


def _are_above_one(values: Sequence[float]) -> bool:
    return min(values, default=0.0) > 1


_HOLDING = {"powers": _are_powers, "falls": falls, "above_one": _are_above_one}
