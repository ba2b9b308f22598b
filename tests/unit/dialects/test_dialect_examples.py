"""Every trainer's table is its specification: the lines of an example give exactly the records written beside them.

`log` holds lines as they are printed, and `gives` one text for each record, in the order of the log:

    loss=9.18 step=50        a metrics record: canonical names, values in the unit of the name; more may be there
    loss=9.18 epoch=2        the epoch of the record
    saved step=100 path=a/b  a checkpoints row: saved, committed, removed or resumed
    event name.nan step=37   an events row

`step=none` says that the step is unknown. The records of one example are complete: one more or one less is a failure,
and an example without `gives` gives none.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from importlib.resources import files

import polars as pl
import pytest

from forensics import registry
from forensics.dialects.engine import parse_text
from forensics.dialects.names import canonical
from forensics.dialects.sniff import literals_of
from forensics.dialects.spec import TAILS, Dialect
from forensics.dialects.trainers.tables import dialects, tables

_CHECKPOINTS = ("saved", "committed", "removed", "resumed")


@dataclass(frozen=True)
class Block:
    dialect: Dialect
    log: str
    expected: tuple[str, ...]


TABLES = tables(files("forensics.dialects.trainers"), examples=True)
DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in registry.load("dialects").dialects}
_LAGGING = ((4, 5), (10, 10), (13, 15), (19, 20))


def _blocks(name: str) -> list[Block]:
    examples = TABLES[name]["examples"]
    return [Block(DIALECTS[name], example["log"], tuple(example.get("gives", ()))) for example in examples]


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
def test_the_lines_of_an_example_give_the_records_written_beside_them(block: Block) -> None:
    tables = parse_text([block.dialect], block.log)
    checkpoints = [line for line in block.expected if line.split()[0] in _CHECKPOINTS]
    events = [line.removeprefix("event ") for line in block.expected if line.startswith("event ")]
    metrics = [line for line in block.expected if line not in checkpoints and not line.startswith("event ")]
    _check_metrics(metrics, _records(tables["metrics"]))
    _check_rows(checkpoints, tables["checkpoints"].sort("seq", maintain_order=True).to_dicts(), "kind")
    _check_rows(events, tables["events"].to_dicts(), "code")


@pytest.mark.parametrize("name", [n for n in sorted(DIALECTS) if any("each" in row for row in TABLES[n]["lines"])])
def test_numbers_on_lines_of_their_own_are_series_of_their_own(name: str) -> None:
    for block in _blocks(name):
        series = parse_text([block.dialect], block.log)["metrics"].group_by("raw_name").agg(pl.col("name").n_unique())
        assert series["name"].to_list() == [1] * series.height


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_every_trainer_shows_what_it_reads_and_what_it_refuses(name: str) -> None:
    blocks = _blocks(name)
    assert any(block.expected for block in blocks)
    assert any(not block.expected for block in blocks)


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_patterns_compile_for_rust_and_have_the_groups_they_promise(name: str) -> None:
    for line in DIALECTS[name].lines:
        pl.Series([line.needle]).str.contains(line.pattern)
        assert line.tail is None or line.tail in TAILS
        assert (line.tail is not None) == ("tail" in re.compile(line.pattern).groupindex), line.pattern
    for pattern in DIALECTS[name].sniff:
        pl.Series([""]).str.contains(pattern)


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_every_line_that_a_pattern_finds_holds_its_literals(name: str) -> None:
    lines = [line for block in _blocks(name) for line in block.log.splitlines()]
    for pattern in (*DIALECTS[name].sniff, *(line.pattern for line in DIALECTS[name].lines)):
        texts = [text for text in lines if re.search(pattern, text)]
        assert all(literal in text for text in texts for literal in literals_of(pattern)), pattern


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
def test_a_trainer_is_named_after_its_file_and_described(name: str) -> None:
    assert name in TABLES
    assert DIALECTS[name].title
    assert DIALECTS[name].doc.strip()


_LINE = {"metrics": r"^it=(?P<step>\d+) ce=(?P<ce>{N})", "needle": "it="}
_TABLE = {"title": "Tidewheel", "doc": "Made up.", "lines": [_LINE]}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"titel": "Tidewheel"}, "tidewheel: unknown keys titel"),
        ({"lines": [{"mertics": "x", "needle": "x"}]}, "tidewheel: a line has one meaning, not mertics"),
        ({"lines": [{"needle": "x"}]}, "tidewheel: a line has one meaning, not none"),
        ({"lines": [{"metrics": "{NUMBER}", "needle": "x"}]}, "tidewheel: no part is called NUMBER"),
    ],
)
def test_a_table_with_a_word_that_nobody_knows_says_so(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        dialects({"tidewheel": _TABLE | wrong})


def test_a_table_takes_over_what_it_does_not_say_itself_but_no_metrics() -> None:
    base = _TABLE | {
        "restart": "--from {path}",
        "nan": {"prints": "number", "show": "Set show=1"},
        "parts": {"PATH": r"\S+"},
        "names": {"ce": "loss", "gn": "grad_norm"},
        "lines": [_LINE, {"saved": "kept (?P<path>{PATH})", "needle": "kept "}],
    }
    own = {"extends": "tidewheel", "title": "Neap", "doc": "Made up, too.", "names": {"gn": ""}}
    neap, _ = dialects({"tidewheel": base, "neap": own | {"lines": [{"metrics": "ce (?P<ce>{N})", "needle": "ce "}]}})
    assert [line.meaning for line in neap.lines] == ["metrics", "saved"]
    assert (neap.title, neap.restart, neap.nan.prints, neap.nan.show) == (
        "Neap",
        "--from {path}",
        "number",
        "Set show=1",
    )
    found = parse_text([neap], "ce 2.5\nkept out/a\n")
    assert found["metrics"].select("name", "value").rows() == [("loss", 2.5)]
    assert found["checkpoints"]["path"].to_list() == ["out/a"]
    assert neap.lines[0].names["gn"] is None


def test_a_line_stands_once_for_each_of_its_names() -> None:
    each = {"CE (mean)": "loss", "MFU": {"is": "mfu", "times": 0.01}}
    line = {"metrics": r"^\s+{key}=(?P<value>{N})$", "needle": " {key}=", "each": each}
    (tidewheel,) = dialects({"tidewheel": _TABLE | {"lines": [line]}})
    found = parse_text([tidewheel], "  CE (mean)=2.5\n  MFU=40\n")["metrics"]
    assert found.select("name", "value").rows() == [("loss", 2.5), ("mfu", 0.4)]


def test_a_pattern_may_go_on_over_lines_and_loses_none_of_its_own_blanks() -> None:
    folded = {"metrics": "\n  ^it=(?P<step>\\d+)\n  (?: ce=(?P<ce>{N}))", "needle": "it="}
    (tidewheel,) = dialects({"tidewheel": _TABLE | {"lines": [folded], "names": {"ce": "loss"}}})
    assert parse_text([tidewheel], "it=3 ce=2.5\n")["metrics"]["step"].to_list() == [3]


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
