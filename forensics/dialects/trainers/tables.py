r"""Trainers from their tables: every `*.toml` of the folders beside this module is one dialect, named after its file.

A table has `title`, `doc` and `lines`, and may have `extends` (a trainer whose table it begins from, all but its
metrics, `sniff`, `stores` and examples), `steps` (a way of `steps.NAMED`), `sniff`, `restart`, `option`, `stores`,
`times_one_step`, `nan` (with `prints`, `skips`, `show`), `names` and `parts`; the fields of `Dialect`, `Nan` and `Line`
say what each is. Of a line the key that is a meaning holds the pattern: `saved = 'Saved (?P<path>\S+)'`; beside it
stand `needle`, `tail`, `names`, `carry`, `step_offset`, and `each` (names, for each of which there is such a line, with
`{key}` in its place and its number in the group `value`).

In a pattern `{N}` and `{NS}` are printed numbers, `{NAME}` is one of `parts`, and a break of the line is left out with
the blanks behind it, as are those that a pattern begins with. In `names` an empty text drops a number, and
`{ is = "mfu", times = 0.01 }` scales it. `examples` are tests: what the lines of `log` give, nothing without `gives`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final, get_args

from forensics.dialects.spec import NS, Dialect, Line, Meaning, N, Name, Nan
from forensics.dialects.trainers.steps import NAMED
from forensics.patterns import lazily

Table = Mapping[str, Any]
#: A table up to here is what the program reads; its examples are for people and tests.
_EXAMPLES = "\n[[examples]]"
_MEANINGS = frozenset(get_args(Meaning))
_KEYS = frozenset(
    (
        "title",
        "doc",
        "extends",
        "steps",
        "sniff",
        "restart",
        "option",
        "stores",
        "times_one_step",
        "nan",
        "names",
        "parts",
        "lines",
    )
) | {"examples"}
_LINE_KEYS = frozenset(("needle", "tail", "names", "carry", "step_offset", "each"))
#: What a table does not take from the one that it extends.
_OWN = frozenset(("title", "doc", "sniff", "stores", "examples"))
_BREAK, _PART = lazily(r"(?:^|\n) +"), lazily(r"\{([A-Z]+)\}")
_META, _BETWEEN = lazily(r"[\\.+*?()|\[\]{}^$]"), lazily(r"\W+")


def dialects(tables: Mapping[str, Table]) -> tuple[Dialect, ...]:
    """Give the dialect of each table, in the order of their names.

    Raises `ValueError` for a table with a key, a meaning or a part that nobody knows.
    """
    return tuple(_dialect(name, _whole(name, tables)) for name in sorted(tables))


def tables(folder: Traversable, *, examples: bool = False) -> dict[str, Table]:
    """Read every table below a folder, by the name of its file; without `examples` those are passed over."""
    return {name: tomllib.loads(text if examples else text.partition(_EXAMPLES)[0]) for name, text in _texts(folder)}


def _texts(folder: Traversable) -> Iterator[tuple[str, str]]:
    for place in folder.iterdir():
        if place.is_dir():
            yield from _texts(place)
        elif place.name.endswith(".toml"):
            yield place.name.removesuffix(".toml"), place.read_text(encoding="utf-8")


def _whole(name: str, every: Mapping[str, Table]) -> Table:
    """A table with what it takes from the one that it extends."""
    own = every[name]
    if unknown := sorted(own.keys() - _KEYS):
        msg = f"{name}: unknown keys {', '.join(unknown)}"
        raise ValueError(msg)
    if "extends" not in own:
        return own
    base = _whole(own["extends"], every)
    merged = {key: {**base.get(key, {}), **own.get(key, {})} for key in ("names", "parts")}
    lines = [*own["lines"], *(line for line in base["lines"] if "metrics" not in line)]
    return {key: value for key, value in base.items() if key not in _OWN} | {**own, **merged, "lines": lines}


def _dialect(name: str, table: Table) -> Dialect:
    parts = {"N": N, "NS": NS}
    for part, pattern in table.get("parts", {}).items():
        parts[part] = _pattern(name, pattern, parts)
    names = _names(table.get("names", {}))
    lines = tuple(line for row in table["lines"] for line in _lines(name, row, parts, names))
    return Dialect(
        name=name,
        title=table["title"],
        lines=lines,
        sniff=tuple(_pattern(name, pattern, parts) for pattern in table.get("sniff", ())),
        finish=NAMED[table["steps"]] if "steps" in table else None,
        nan=Nan(**table.get("nan", {})),
        restart=table.get("restart", ""),
        option=table.get("option", ""),
        times_one_step=table.get("times_one_step", False),
        stores=tuple(table.get("stores", ())),
        doc=table["doc"],
    )


def _lines(name: str, row: Table, parts: Mapping[str, str], names: Mapping[str, Name | None]) -> Iterator[Line]:
    meanings = sorted(row.keys() - _LINE_KEYS)
    if len(meanings) != 1 or meanings[0] not in _MEANINGS:
        msg = f"{name}: a line has one meaning, not {', '.join(meanings) or 'none'}"
        raise ValueError(msg)
    meaning: Meaning = meanings[0]  # type: ignore[assignment] # it is one of them
    pattern, needle = _pattern(name, row[meaning], parts), row["needle"]
    rest = {key: row[key] for key in ("tail", "carry", "step_offset") if key in row}
    own = {**names, **_names(row.get("names", {}))}
    if "each" not in row:
        yield Line(meaning, needle, pattern, names=own, **rest)
    for key, known in _names(row.get("each", {})).items():
        group = _BETWEEN.sub("_", key).strip("_")  # the printed name, which tells series apart
        exact = pattern.replace("{key}", _META.sub(r"\\\g<0>", key)).replace("(?P<value>", f"(?P<{group}>")
        yield Line(meaning, needle.replace("{key}", key), exact, names={**own, group: known}, **rest)


def _pattern(name: str, written: str, parts: Mapping[str, str]) -> str:
    """A pattern as the engines read it."""
    try:
        return _PART.sub(lambda found: parts[found[1]], _BREAK.sub("", written))
    except KeyError as error:
        msg = f"{name}: no part is called {error.args[0]}"
        raise ValueError(msg) from error


def _names(rows: Mapping[str, Any]) -> dict[str, Name | None]:
    return {printed: _name(given) for printed, given in rows.items()}


def _name(given: str | Table) -> Name | None:
    if isinstance(given, str):
        return Name(given) if given else None
    return Name(given["is"], given["times"])


#: The trainers of this package.
DIALECTS: Final = dialects(tables(files("forensics.dialects.trainers")))
#: What any log may print, whatever its trainer: each table of `any_log` by the name of its file.
ANY_LOG: Final = {one.name: one for one in dialects(tables(files("forensics.dialects") / "any_log"))}
