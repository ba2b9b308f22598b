"""Secrets of every form, planted where runs hold them: none reaches the store, a renderer or a crash file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from html import unescape
from pathlib import Path

import polars as pl
import pytest

from forensics import pipeline
from forensics.registry import renderer_named
from forensics.report.redacted import redacted
from forensics.report.style import Style
from forensics.store._masking import OURS, texts_of, without_secrets
from forensics.store.schema import TABLES, conform
from tests.made_secrets import Planted, planted

from .conftest import Call

SECRETS = list(planted(7))
SHAPES = [secret for secret in SECRETS if secret.has_shape]
RENDERERS = ("text", "json", "markdown", "github", "junit", "html")
#: A log quotes some tracebacks only, so each file has a few.
_PER_FILE = 10


def traceback(number: int, said: str) -> str:
    return (
        f'Traceback (most recent call last):\n  File "/srv/train.py", line {number + 1}, in main\n    client.get()\n'
        f"ConnectionError: request {number} {said}\n"
    )


def args(secrets: list[tuple[int, Planted]]) -> str:
    words = [word for n, s in secrets for word in (f"--n{n}", f"request {n}", f"--{s.name}", s.value)]
    return json.dumps({"program": "train.py", "args": words, "env": {s.name: s.value for _, s in secrets}})


Many = Callable[[list[tuple[int, Planted]]], str]


def each(line: Callable[[int, Planted], str]) -> Many:
    return lambda secrets: "".join(line(n, secret) for n, secret in secrets)


PLACES: dict[str, tuple[str, Many]] = {
    "bare in a log": ("{}/train.log", each(lambda n, s: traceback(n, f"refused for {s.value}"))),
    "KEY=value in a log": ("{}/train.log", each(lambda n, s: traceback(n, f"failed with {s.name}={s.value}"))),
    "URL in a log": ("{}/train.log", each(lambda n, s: traceback(n, f"to https://api.example/v1?x=1&{s.name}={s.value}"))),
    "settings in YAML": (
        "conf/{}/config.yaml",
        each(lambda n, s: f"r{n}:\n  what: request {n}\n  {s.name}: {json.dumps(s.value)}\n"),
    ),
    "metadata of W&B": ("{}/wandb-metadata.json", args),
    "launch script": (
        "{}/launch.sh",
        each(lambda n, s: f"export {s.name}='{s.value}'\npython train.py --what='request {n}' --{s.name}={s.value}\n"),
    ),
    "console of W&B": ("{}/wandb/run-1/files/output.log", each(lambda n, s: traceback(n, f"in {s.name}: '{s.value}'"))),
}  # fmt: skip


def plant(run: Path, place: str, secrets: list[Planted]) -> Path:
    name, write = PLACES[place]
    numbered = list(enumerate(secrets))
    for start in range(0, len(numbered), _PER_FILE):
        file = run / name.format(f"p{start}")
        file.parent.mkdir(parents=True)
        file.write_text(write(numbered[start : start + _PER_FILE]), encoding="utf-8")
    return run


def visible(texts: Iterable[str], secrets: list[Planted]) -> list[str]:
    text = "\n".join(texts)
    plain = text.replace("\\\\", "\\").replace('\\"', '"')
    return [secret.name for secret in secrets if secret.seen_in(text) or secret.seen_in(plain)]


@pytest.mark.parametrize("place", PLACES)
def test_no_table_on_disk_holds_a_planted_secret(tmp_path: Path, place: str) -> None:
    secrets = SHAPES if place == "bare in a log" else SECRETS
    pipeline.ingest_run(plant(tmp_path / "run", place, secrets), store=tmp_path / "store")
    parts = [part for part in (tmp_path / "store").rglob("*") if part.is_file()]
    texts = [
        str(cell)
        for part in parts
        for row in (
            pl.read_parquet(part).rows() if part.suffix == ".parquet" else [(part.read_text(encoding="utf-8"),)]
        )
        for cell in row
    ]
    told = {int(n) for text in texts for n in re.findall(r"request (\d+)", text)}
    assert len(told) >= 0.9 * len(secrets) or place == "launch script"  # what was planted is read
    assert visible(texts, secrets) == []


@pytest.mark.parametrize("secret", SECRETS[::12], ids=lambda secret: secret.name)
def test_no_renderer_shows_one_by_default_nor_redacted(tmp_path: Path, secret: Planted) -> None:
    said = f"{secret.name}={secret.value}" + (f" or {secret.value}" if secret.has_shape else "")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "train.log").write_text(f"step 1 loss 2.5\n{traceback(1, said)}", encoding="utf-8")
    run = pipeline.ingest_run(folder)
    report = pipeline.with_figures(run, pipeline.report_of(run))
    for told in (report, redacted(report, run)):
        for form in RENDERERS:
            renderer = renderer_named(form)
            assert renderer is not None
            text = "\n".join(renderer.render(told, Style(verbose=True)) if renderer.styled else renderer.render(told))
            assert secret.name in text or form == "github"
            assert visible([unescape(text), "".join(text.split())], [secret]) == [], form


def test_a_path_with_a_secret_is_hidden_where_names_are(call: Call, tmp_path: Path) -> None:
    secret = next(s for s in SHAPES if s.form.name == "hugging-face")
    folder = tmp_path / f"run-{secret.value}"
    folder.mkdir()
    (folder / f"{secret.value}.log").write_text("step 1 loss nan\nstep 2 loss nan\n", encoding="utf-8")
    for form in RENDERERS:
        done = call("triage", folder, "-f", form, "-v", "--redact")
        assert visible([done.out, done.err], [secret]) == []
    done = call("query", folder, "SELECT * FROM metrics", "-f", "json", "--redact")
    assert visible([done.out], [secret]) == []
    assert ".log" in done.out


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_column_of_text_is_looked_through_but_our_own(table: str) -> None:
    texts = {name for name, dtype in TABLES[table].items() if isinstance(dtype, pl.String | pl.Categorical)}
    assert set(texts_of(table)) == texts - OURS
    secret = next(s for s in SHAPES if s.form.name == "groq")
    columns = {name: [f"a {secret.value} b", "plain", None] * 200 for name in texts}  # more rows than are told apart
    many = conform(table, pl.DataFrame(columns, schema=dict.fromkeys(texts, pl.String)))
    for frame in (many, many.head(3)):
        shown = without_secrets(table, frame)
        assert shown.schema == frame.schema
        for name in texts - OURS - ({"value"} if table == "facts" else set()):
            assert shown[name].cast(pl.String).to_list()[:3] == ["a *** b", "plain", None], name


def test_a_table_without_a_secret_is_given_as_it_is() -> None:
    frame = conform("events", pl.DataFrame({"text": ["step 1 loss 2.5 tokens_per_sec 51200"] * 1000}))
    assert without_secrets("events", frame) is frame


def test_a_secret_without_a_literal_of_its_own_is_found_in_many_rows() -> None:
    telegram = next(s for s in SHAPES if s.form.name == "telegram")
    frame = conform("events", pl.DataFrame({"text": [f"line {n}" for n in range(2000)] + [f"x {telegram.value} y"]}))
    assert without_secrets("events", frame)["text"][-1] == "x *** y"


def test_a_crash_file_holds_neither_secrets_nor_names(
    call: Call, monkeypatch: pytest.MonkeyPatch, good_run: Path
) -> None:
    told = " ".join(secret.value for secret in SHAPES if "\n" not in secret.value)

    def broken(*_args: object, **_options: object) -> None:
        message = f"cannot read {told} of /home/mwinter/x"
        raise ValueError(message)

    monkeypatch.setattr(pipeline, "ingest_run", broken)
    done = call("triage", good_run)
    crash = Path(done.err.splitlines()[1].removeprefix("  file: "))
    said = crash.read_text(encoding="utf-8")
    crash.unlink()
    assert "in broken" in said
    assert "mwinter" not in said
    assert visible([said], SHAPES) == []
