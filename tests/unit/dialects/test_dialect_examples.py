"""Every dialect's docstring is its specification: the example lines give exactly the records written under them.

A block is `Example:` or `Not this:`, an indented fence that begins with three backticks and `log`, and, for an example,
one `=>` line for each record, in the order of the log:

    => loss=9.18 step=50        a metrics record: canonical names, values in the unit of the name; more may be there
    => loss=9.18 epoch=2        the epoch of the record
    => saved step=100 path=a/b  a checkpoints row: saved, committed, removed or resumed
    => event name.nan step=37   an events row
    => nothing                  no record at all

`step=none` says that the step is unknown. The records of one example are complete: one more or one less is a failure,
and a `Not this:` block gives none.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
from dataclasses import dataclass
from textwrap import dedent

import polars as pl
import pytest

import forensics.dialects
from forensics.dialects._engine import parse_text
from forensics.dialects.names import canonical
from forensics.dialects.spec import TAILS, Dialect

_BLOCK = re.compile(
    r"^ {0,4}(?P<kind>Example|Not this)[^\n]*:\n(?P<indent> +)```log\n(?P<log>.*?)\n(?P=indent)```\n?"
    r"(?P<after>(?: +=>[^\n]*\n?)*)",
    re.MULTILINE | re.DOTALL,
)
_CHECKPOINTS = ("saved", "committed", "removed", "resumed")


@dataclass(frozen=True)
class Block:
    dialect: Dialect
    positive: bool
    log: str
    expected: tuple[str, ...]


def _modules() -> dict[str, Dialect]:
    names = [m.name for m in pkgutil.iter_modules(forensics.dialects.__path__) if not m.name.startswith("_")]
    loaded = {name: importlib.import_module(f"forensics.dialects.{name}") for name in names}
    return {name: module.DIALECT for name, module in loaded.items() if hasattr(module, "DIALECT")}


DIALECTS = _modules()
_LAGGING = ((4, 5), (10, 10), (13, 15), (19, 20))


def _doc(name: str) -> str:
    return importlib.import_module(f"forensics.dialects.{name}").__doc__ or ""


def _blocks(name: str) -> list[Block]:
    found: list[Block] = []
    for match in _BLOCK.finditer(_doc(name)):
        expected = tuple(line.strip()[2:].strip() for line in match["after"].splitlines())
        log = re.sub(rf"^{match['indent']}", "", match["log"], flags=re.MULTILINE)
        found.append(Block(DIALECTS[name], match["kind"] == "Example", log + "\n", expected))
    return found


BLOCKS = [pytest.param(block, id=f"{name}-{i}") for name in sorted(DIALECTS) for i, block in enumerate(_blocks(name))]


def _pairs(words: list[str]) -> dict[str, str]:
    return dict(word.rsplit("=", 1) for word in words)


def _step_is(said: str | None, found: int | None) -> bool:
    return said is None or (found is None if said == "none" else found == int(said))


def _records(metrics: pl.DataFrame) -> list[tuple[int | None, dict[str, float]]]:
    if metrics.is_empty():
        return []
    return [
        (group["step"][0], dict(zip(group["name"], group["value"], strict=True)) | {"epoch": group["epoch"][0]})
        for group in metrics.partition_by("seq", maintain_order=True)
    ]


def _same(said: str, found: float | None) -> bool:
    if found is None:
        return False
    wanted = float(said)
    return math.isnan(found) if math.isnan(wanted) else math.isclose(found, wanted, rel_tol=1e-5, abs_tol=1e-12)


def _check_metrics(said: list[str], found: list[tuple[int | None, dict[str, float]]]) -> None:
    assert len(found) == len(said), found
    for line, (step, values) in zip(said, found, strict=True):
        wanted = _pairs(line.split())
        assert _step_is(wanted.pop("step", None), step), (line, step)
        wrong = {name: (text, values.get(name)) for name, text in wanted.items() if not _same(text, values.get(name))}
        assert not wrong, (line, values)


def _check_rows(said: list[str], rows: list[dict[str, object]], kind: str) -> None:
    assert len(rows) == len(said), rows
    for line, row in zip(said, rows, strict=True):
        name, *words = line.split()
        wanted = _pairs(words)
        assert row[kind] == name, (line, row)
        assert _step_is(wanted.get("step"), row["step"]), (line, row)  # type: ignore[arg-type]
        assert wanted.get("path", row.get("path")) == row.get("path"), (line, row)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_docstring_log_gives_the_records_written_under_it(block: Block) -> None:
    assert block.expected or not block.positive, "an Example needs at least one => line"
    tables = parse_text([block.dialect], block.log)
    said = [line for line in block.expected if line != "nothing"]
    checkpoints = [line for line in said if line.split()[0] in _CHECKPOINTS]
    events = [line.removeprefix("event ") for line in said if line.startswith("event ")]
    metrics = [line for line in said if line not in checkpoints and not line.startswith("event ")]
    _check_metrics(metrics, _records(tables["metrics"]))
    _check_rows(checkpoints, tables["checkpoints"].sort("seq", maintain_order=True).to_dicts(), "kind")
    _check_rows(events, tables["events"].to_dicts(), "code")


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_every_dialect_shows_what_it_reads_and_what_it_refuses(name: str) -> None:
    blocks = _blocks(name)
    assert len(blocks) == len(re.findall(r"^ {0,4}(?:Example|Not this)[^\n]*:$", _doc(name), re.MULTILINE))
    assert any(block.positive and any(line != "nothing" for line in block.expected) for block in blocks)
    assert any(not block.positive for block in blocks)


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_patterns_compile_for_rust_and_have_the_groups_they_promise(name: str) -> None:
    for line in DIALECTS[name].lines:
        pl.Series([line.needle]).str.contains(line.pattern)
        assert line.tail is None or line.tail in TAILS
        assert (line.tail is not None) == ("tail" in re.compile(line.pattern).groupindex), line.pattern
    for pattern in DIALECTS[name].sniff:
        pl.Series([""]).str.contains(pattern)


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_needle_stands_in_every_example_line_that_its_pattern_reads(name: str) -> None:
    lines = pl.Series([line for block in _blocks(name) for line in block.log.splitlines()])
    for line in DIALECTS[name].lines:
        read = lines.filter(lines.str.contains(line.pattern))
        assert read.str.contains(line.needle, literal=True).all(), (line.needle, read.to_list())


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_name_given_by_a_dialect_is_not_renamed_again(name: str) -> None:
    given = {value for line in DIALECTS[name].lines for value in line.names.values() if value is not None}
    assert {value.canonical for value in given} == {canonical(value.canonical).canonical for value in given}


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_dialect_is_named_after_its_file(name: str) -> None:
    assert DIALECTS[name].name == name
    assert DIALECTS[name].title
    assert dedent(_doc(name)).strip()


def test_a_step_of_a_hugging_face_dict_ignores_the_evaluation_bar() -> None:
    frames = [
        f" 10%|# | {step}/90 [00:01<00:09]\r" + f"{{'loss': {step / 10}, 'epoch': 0.1}}\n" for step in (10, 20, 30)
    ]
    evaluation = " 50%|#####     | 2/4 [00:00<00:00]\r{'eval_loss': 2.5, 'eval_steps_per_second': 3.0, 'epoch': 0.1}\n"
    metrics = parse_text([DIALECTS["hf_trainer"]], "".join(frames) + evaluation)["metrics"]
    assert metrics.filter(pl.col("name") == "loss")["step"].to_list() == [10, 20, 30]
    assert metrics.filter(pl.col("name") == "eval_loss")["step"].to_list() == [30]


def test_a_frame_drawn_too_early_does_not_age_the_step_when_the_bar_is_redrawn() -> None:
    frames = [
        f"  5%|# | {old}/90 [00:01<00:09]\n{{'loss': 1.5, 'epoch': 0.1}}\n  5%|# | {n}/90 [0" for old, n in _LAGGING
    ]
    metrics = parse_text([DIALECTS["hf_trainer"]], "\n".join(frames) + "\n")["metrics"]
    assert metrics["step"].to_list() == [5, 10, 15, 20]


def test_a_record_of_composer_may_be_indented_by_a_tab() -> None:
    metrics = parse_text([DIALECTS["composer"]], "[batch=7/90]:\n\t Train loss/train/total: 2.5\n")["metrics"]
    assert metrics.select("step", "name", "value").rows() == [(7, "loss", 2.5)]


def test_one_dict_is_read_by_one_of_the_dialects_that_share_its_shape() -> None:
    family = [DIALECTS[name] for name in ("hf_trainer", "llama_factory", "trl")]
    for dialect in family:
        for block in _blocks(dialect.name):
            for pattern in (p for other in family if other is not dialect for p in other.sniff):
                assert not pl.Series(block.log.splitlines()).str.contains(pattern).any(), (dialect.name, pattern)
