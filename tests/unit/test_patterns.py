"""Patterns that are compiled when they are first asked for."""

from __future__ import annotations

import re

import polars as pl
import pytest

from forensics.patterns import having, lazily


def test_a_pattern_is_compiled_at_its_first_use_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    compiled = re.compile
    monkeypatch.setattr(re, "compile", lambda text, flags=0: asked.append(text) or compiled(text, flags))
    word = lazily(r"(\w+)=", re.ASCII)
    assert asked == []
    assert [word.match("lr=1").group(1), word.match("x=2").group(1)] == ["lr", "x"]  # type: ignore[union-attr]
    assert asked == [r"(\w+)="]


@pytest.mark.parametrize("others", [0, 2_000])
def test_few_texts_and_many_have_a_pattern_alike(others: int) -> None:
    texts = pl.Series(["model.lr", None, "lr_min", "LR", *(f"layer.{n}" for n in range(others))])
    assert having(texts, r"(?i)(?:^|[./])lr$") == ["model.lr", "LR"]


@pytest.mark.parametrize(("texts", "compiled"), [([], []), (["lr"], [r"no texts, no pattern"])])
def test_a_pattern_that_no_text_is_asked_for_is_not_compiled(
    monkeypatch: pytest.MonkeyPatch, texts: list[str], compiled: list[str]
) -> None:
    asked: list[str] = []
    compiling = re.compile
    monkeypatch.setattr(re, "compile", lambda text, flags=0: asked.append(text) or compiling(text, flags))
    assert having(pl.Series(texts, dtype=pl.String), "no texts, no pattern") == []
    assert asked == compiled


def test_it_is_what_the_pattern_is() -> None:
    assert lazily(b"(?P<n>\\d+)").sub(rb"<\g<n>>", b"a1") == b"a<1>"
    assert lazily("a|b", re.IGNORECASE).pattern == "a|b"


def test_what_no_pattern_has_is_an_error() -> None:
    with pytest.raises(AttributeError):
        _ = lazily("a").nothing  # type: ignore[attr-defined]
    with pytest.raises(re.error):
        lazily("(").search("")
