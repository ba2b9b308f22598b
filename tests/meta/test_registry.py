"""The registry finds every plugin by walking folders, names each once, and shows a broken one instead of hiding it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import get_type_hints

import polars as pl
import pytest

from forensics import registry
from forensics.dialects.spec import Dialect
from forensics.registry import Ingester, Rule
from forensics.report.pages.catalogue import thresholds
from forensics.store.schema import TABLES
from forensics.values import field_names

LOADED = registry.load()
FIXTURES = Path(__file__).parents[2] / "fixtures"
ID = re.compile(r"(NAN|OOM|HNG|SLO|EVL|LRN|RLX|RSM|HST|CRH|STP)\d{3}")


@pytest.mark.parametrize("kind", ["rules", "ingesters", "dialects", "renderers"])
def test_every_kind_of_plugin_is_found(kind: str) -> None:
    assert getattr(LOADED, kind)


@pytest.mark.parametrize("rule", LOADED.rules, ids=lambda r: r.id)
def test_a_rule_is_named_by_its_declaration(rule: Rule) -> None:
    assert ID.fullmatch(rule.id)
    assert re.match(rf"{rule.id} {rule.slug}: .+", rule.doc)
    assert set(rule.needs) <= set(TABLES)


@pytest.mark.parametrize("rule", [r for r in LOADED.rules if r.config is not None], ids=lambda r: r.id)
def test_a_threshold_is_a_number_that_a_user_can_set(rule: Rule) -> None:
    assert rule.config is not None
    assert set(get_type_hints(rule.config).values()) <= {float, int, tuple[int, ...]}
    assert [name for name, _, _ in thresholds(rule)] == list(field_names(rule.config))


def test_no_id_slug_or_name_is_used_twice() -> None:
    for names in (
        [r.id for r in LOADED.rules],
        [r.slug for r in LOADED.rules],
        [i.name for i in LOADED.ingesters],
        [d.name for d in LOADED.dialects],
        [r.name for r in LOADED.renderers],
    ):
        assert len(names) == len(set(names))


@pytest.mark.parametrize("ingester", LOADED.ingesters, ids=lambda i: i.name)
def test_an_ingester_writes_known_tables_and_can_be_offered_a_file(ingester: Ingester) -> None:
    assert set(ingester.emits) <= set(TABLES)
    assert ingester.doc
    assert ingester.sniff.glob or ingester.sniff.magic or ingester.sniff.fallback


@pytest.mark.parametrize("dialect", LOADED.dialects, ids=lambda d: d.name)
def test_the_patterns_of_a_dialect_compile_in_the_engine_that_runs_them(dialect: Dialect) -> None:
    for line in dialect.lines:
        assert line.needle
        pl.Series(["x"]).str.extract_groups(line.pattern)
        if line.tail:
            pl.Series(["x"]).str.extract_all(line.pattern)


def _forget() -> None:
    for cached in (registry.load, registry._of_kind, registry._installed, registry._entry_points):
        cached.cache_clear()


def broken_beside_ours(monkeypatch: pytest.MonkeyPatch, rule: str) -> list[tuple[str, str, str]]:
    """What of the rules is broken where another distribution names one."""
    named = EntryPoint(name="other", value=rule, group="forensics.rules")
    monkeypatch.setattr(registry, "entry_points", lambda: EntryPoints([named]))
    _forget()
    try:
        return [(b.kind, b.name, b.why) for b in registry.load("rules").broken]
    finally:
        _forget()


def test_a_broken_third_party_plugin_becomes_a_placeholder_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    found = broken_beside_ours(monkeypatch, "no_such_module:rule")
    assert [(kind, name) for kind, name, _ in found] == [("rules", "no_such_module:rule")]
    assert "ModuleNotFoundError" in found[0][2]


def test_a_rule_of_another_distribution_without_its_page_is_a_placeholder_that_names_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "tide_rules"
    (package / "pages").mkdir(parents=True)
    (package / "__init__.py").touch()
    declared = "from forensics.rules.kit import rule\n@rule('LRN901 tide', needs=())\ndef tide(run): ...\n"
    (package / "tide.py").write_text(declared, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    ((kind, name, why),) = broken_beside_ours(monkeypatch, "tide_rules.tide:tide")
    assert (kind, name) == ("rules", "tide_rules.tide:tide")
    assert "LRN901.md" in why
    (package / "pages/LRN901.md").write_text("the tide is out.", encoding="utf-8")
    assert broken_beside_ours(monkeypatch, "tide_rules.tide:tide") == []


def test_a_renderer_is_found_by_its_name_and_the_others_are_not_loaded_for_it() -> None:
    code = (
        "import sys\nfrom forensics import registry\nassert registry.renderer_named('text').name == 'text'\n"
        "assert registry.renderer_named('html').drawn\nassert registry.renderer_named('_many') is None\n"
        "assert registry.renderer_named('a.b') is None\n"
    )
    first = "import sys\nfrom forensics import registry\nregistry.renderer_named('text')\n"
    alone = first + "assert not [m for m in sys.modules if m.startswith('forensics.report.html')]\n"
    for program in (code, alone):
        subprocess.run([sys.executable, "-c", program], check=True)


def test_no_plugin_of_ours_is_broken() -> None:
    assert registry.broken() == registry.load().broken


def test_every_rule_has_a_page_and_every_page_a_rule() -> None:
    pages = {path.stem: path for path in (Path(registry.__file__).parent / "rules").rglob("pages/*.md")}
    assert set(pages) == {rule.id for rule in LOADED.rules}
    assert all(
        rule.doc == f"{rule.id} {rule.slug}: {pages[rule.id].read_text('utf-8').rstrip()}" for rule in LOADED.rules
    )
