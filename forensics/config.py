"""The configuration: options over `FORENSICS_*` over a file over defaults, each value with its origin.

The file is `forensics.toml`, or the table `[tool.forensics]` of `pyproject.toml`, of the working directory only. A run
is evidence from somebody else, so a file inside a run never configures the tool.
"""

from __future__ import annotations

import difflib
import math
import os
import tomllib
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from forensics.errors import UsageError
from forensics.model import Severity, Shape
from forensics.registry import Rule
from forensics.values import replace

KEYS = ("ignore", "fail-on", "metrics", "rules")
FAIL_ON = (*(s.value for s in Severity), "never", *(s.value for s in Shape))


class Config(Struct, frozen=True):
    """What the user asked for.

    `metrics` gives printed names their canonical ones, `origins` names where each value came from, and `notes` what was
    passed over and why.
    """

    ignore: tuple[str, ...] = ()
    fail_on: str = Severity.ERROR.value
    rule_tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    metrics: Mapping[str, str] = field(default_factory=dict[str, str])
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()

    def for_rule(self, rule: Rule) -> Any:  # noqa: ANN401 - the thresholds type is the rule's own
        """Give the thresholds of `rule`: its own defaults, overlaid with its table; None when it has none.

        Raises `UsageError` for a threshold that the rule does not have, or a value of another type.
        """
        table = {**self.rule_tables.get(rule.slug, {}), **self.rule_tables.get(rule.id, {})}
        where = f"rules.{rule.id}"
        if rule.config is None:
            _known(table, (), where)
            return None
        if not table:
            return rule.config()
        hints = typing.get_type_hints(rule.config)
        _known(table, tuple(hints), where)
        values = {key: _typed(f"{where}.{key}", value, hints[key]) for key, value in table.items()}
        return rule.config(**values)

    def named(self, known: Iterable[str]) -> Mapping[str, str]:
        """Give the names of metrics, after asking that each canonical one is known.

        Raises `UsageError` for a name that no analysis reads.
        """
        every = tuple(known)
        for raw, name in self.metrics.items():
            if name not in every:
                message = f"metrics.{raw}: no analysis reads {name!r}{suggestion(name, every)}"
                raise UsageError(message, help="docs/how-to/add-a-metric-name.md says which names there are")
        return self.metrics

    def checked(self, rules: Iterable[Rule]) -> Config:
        """Give the same configuration with slugs in `ignore` as ids, after asking that every rule named exists.

        Raises `UsageError` for an unknown rule or a wrong threshold.
        """
        every = tuple(rules)
        ids = {name: rule.id for rule in every for name in (rule.id, rule.slug)}
        _known(self.rule_tables, tuple(ids), "rules")
        _known(dict.fromkeys(self.ignore), tuple(ids), "ignore")
        for rule in every:
            self.for_rule(rule)
        return replace(self, ignore=tuple(ids[name] for name in self.ignore))


def load(
    *,
    cwd: Path,
    runs: Iterable[Path] = (),
    env: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Config:
    """Read the configuration of `cwd`; `options` are those given on the command line (None where not given).

    Raises `UsageError` for an unknown key, a wrong type, or a file that is not TOML.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {"ignore": "default", "fail-on": "default"}
    table, file, notes = _from_file(cwd, tuple(runs))
    _known(table, KEYS, file)
    env = os.environ if env is None else env
    layers = ((table, file), (_from_env(env), "environment"), (options or {}, "option"))
    for layer, origin in layers:
        for key in ("ignore", "fail-on"):
            if layer.get(key) is not None:
                values[key], origins[key] = layer[key], origin
    names = _typed("metrics", table.get("metrics", {}), dict)
    for raw, name in names.items():
        origins[f"metrics.{raw}"] = file
        _typed(f"metrics.{raw}", name, str)
    tables = _typed("rules", table.get("rules", {}), dict)
    for name, rule_table in tables.items():
        origins[f"rules.{name}"] = file
        _typed(f"rules.{name}", rule_table, dict)
    return Config(
        ignore=_typed("ignore", values.get("ignore", ()), tuple[str, ...]),
        fail_on=_fail_on(values.get("fail-on", Severity.ERROR.value)),
        rule_tables=MappingProxyType(tables),
        metrics=MappingProxyType(names),
        origins=MappingProxyType(origins),
        notes=notes,
    )


def suggestion(name: str, known: Iterable[str]) -> str:
    """Give ` (did you mean X?)` for the nearest known name, or nothing."""
    near = difflib.get_close_matches(name, tuple(known), n=1, cutoff=0.6) or difflib.get_close_matches(
        name.upper(), tuple(known), n=1, cutoff=0.6
    )
    return f" (did you mean {near[0]!r}?)" if near else ""


def _from_file(cwd: Path, runs: tuple[Path, ...]) -> tuple[dict[str, Any], str, tuple[str, ...]]:
    found = [name for name in ("forensics.toml", "pyproject.toml") if (cwd / name).is_file()]
    here = cwd.resolve()
    inside = any(root == here or root in here.parents for root in (run.resolve() for run in runs if run.is_dir()))
    for name in found:
        try:
            document = tomllib.loads((cwd / name).read_text(encoding="utf-8")) if not inside else {}
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            message = f"{name} is not valid TOML: {error}"
            raise UsageError(message, help=f"mend {name}, or run from another directory") from error
        table = document if name == "forensics.toml" else document.get("tool", {}).get("forensics")
        if inside:
            return {}, "default", (f"{name} is not read: it lies inside the run",)
        if table is not None:
            return table, name, ()
    return {}, "default", ()


def _from_env(env: Mapping[str, str]) -> dict[str, Any]:
    ignore, fail_on = env.get("FORENSICS_IGNORE"), env.get("FORENSICS_FAIL_ON")
    return {
        "ignore": tuple(part for part in ignore.replace(",", " ").split() if part) if ignore else None,
        "fail-on": fail_on or None,
    }


def _known(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            message = f"{where}: unknown name {key!r}{suggestion(key, known)}"
            raise UsageError(message, help="forensics rules lists the rules, forensics explain RULE its thresholds")


def _fail_on(value: object) -> str:
    if not isinstance(value, str) or value not in FAIL_ON:
        message = f"fail-on: {value!r} is not one of {', '.join(FAIL_ON)}{suggestion(str(value), FAIL_ON)}"
        raise UsageError(message, help="forensics triage --help")
    return value


def _typed(name: str, value: object, hint: Any) -> Any:  # noqa: ANN401 - the type is data here
    """Give `value` as `hint` asks (an integer may stand for a float, a list for a tuple)."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and isinstance(value, (list, tuple)):
        items = typing.cast("Iterable[object]", value)
        return tuple(_typed(f"{name}[{i}]", item, args[0]) for i, item in enumerate(items))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    plain = origin or hint
    wrong_bool = isinstance(value, bool) and plain is not bool
    if not isinstance(value, plain) or wrong_bool or (isinstance(value, float) and not math.isfinite(value)):
        wanted = getattr(plain, "__name__", str(plain))
        message = f"{name}: {value!r} is not a {'finite ' if plain is float else ''}{wanted}"
        raise UsageError(message, help="forensics explain RULE shows each threshold and its default")
    return value
