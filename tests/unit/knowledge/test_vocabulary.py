from __future__ import annotations

import re
import time
from pathlib import Path

import polars as pl
import pytest

import forensics
from forensics.knowledge.vocabulary import Wording, stands_for, wordings, words_for

EVERY = pytest.mark.parametrize("row", wordings(), ids=lambda row: row.row)
ASKED = r"""(?:(?:stands_for|words_for)\(|holding\(run,|partial\(_minimised,)\s*["'](\w+)["']"""


@EVERY
def test_the_words_of_a_row_fit_what_they_are_like(row: Wording) -> None:
    assert row.like
    assert [text for text in row.like if re.search(row.words, text) is None] == []


@EVERY
def test_no_row_of_a_meaning_fits_a_near_miss(row: Wording) -> None:
    assert [text for text in row.unlike if stands_for(row.means, text)] == []


@EVERY
def test_polars_reads_a_pattern_as_re_does(row: Wording) -> None:
    texts = [*row.like, *row.unlike]
    fits = pl.Series(texts).str.contains(words_for(row.means)).to_list()
    assert fits == [stands_for(row.means, text) for text in texts]


def test_every_meaning_is_asked_for_and_every_one_that_is_asked_for_has_a_row() -> None:
    code = [path.read_text(encoding="utf-8") for path in Path(forensics.__file__).parent.rglob("*.py")]
    listed = {"measured", "judged", "of_pace"}
    asked = {means for text in code for means in re.findall(ASKED, text)} | listed
    assert asked == {row.means for row in wordings()}


def test_a_meaning_without_a_row_is_a_mistake_of_the_program() -> None:
    with pytest.raises(KeyError):
        words_for("nothing_of_the_kind")


@pytest.mark.parametrize("means", ["record_of_a_job", "outcome_of_a_run"])
@pytest.mark.parametrize("piece", ["\n", " ", "\r\n", "{\n", "\n{", '"status": ', "a", "0"])
def test_a_meaning_that_a_whole_file_is_asked_for_takes_time_in_proportion(means: str, piece: str) -> None:
    begin = time.process_time()
    assert not stands_for(means, piece * (200_000 // len(piece)))
    assert time.process_time() - begin < 0.5  # the square of the length takes 6 s
