"""The four kinds of plugin, and the walk that finds them: one new file is one new plugin, nothing else edited.

A decorator makes a rule of a function (`@rule`) or marks it (`@ingester`, `@renderer`); a dialect is a module-level
value named `DIALECT`, or one of `DIALECTS`, as the tables of trainers give them. `load()` walks the package folders in
sorted order, then the entry points `forensics.rules`, `.ingesters`, `.dialects` and `.renderers`. Nothing is ever
loaded from a run directory.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from importlib.resources import files
from types import FunctionType, ModuleType
from typing import Any, Literal, TypeVar, Unpack, cast

from msgspec import Struct, field

from forensics.declared import SHAPES, Declared, Fields, ShapeName, named
from forensics.model import Evidence, Finding, Onset, Shape

T = TypeVar("T")
Kind = Literal["rules", "ingesters", "dialects", "renderers"]
_FOLDERS: dict[Kind, str] = {
    "rules": "forensics.rules",
    "ingesters": "forensics.formats",
    "dialects": "forensics.dialects.trainers",
    "renderers": "forensics.report",
}
_MARK = "__forensics__"


class Sniff(Struct, frozen=True):
    """What makes a file look like a format: magic bytes at the start, globs on the path in the run or the base name.

    A file is offered to the ingesters whose `magic`, `path` or `glob` matches, in this order; `fallback` is asked last.
    """

    glob: tuple[str, ...] = ()
    magic: tuple[bytes, ...] = ()
    fallback: bool = False
    path: tuple[str, ...] = ()


class Ingester(Struct, frozen=True):
    """A reader of one format on disk: `read(opened, out, limits)`; raises `NotMine` for another's content.

    `growth`: bytes of rows in memory for each byte of a file; `device_growth`: the same under `Limits.device_only`.
    `beside`: other files that it reads with one, as pairs: the end of the name, and its replacement. `slicing`: the
    module that reads a large file of this format in slices (`store.slices.cutting.Slicing`), if any.
    """

    name: str
    version: int
    sniff: Sniff
    emits: tuple[str, ...]
    read: Callable[..., None]
    doc: str
    origin: str
    growth: float = 1.0
    device_growth: float = 1.0
    beside: tuple[tuple[str, str], ...] = ()
    slicing: str = ""


class Rule(Struct, frozen=True):
    """A symptom and the function that finds it.

    `config` is the class of the thresholds that its page lists; `find(run, config)` gives its findings, or `find(run)`
    where it reads none of them itself: they are those of an analysis, which asks the run for them. Where the rule is
    `about` something, that comes behind the run, and without it there is no finding.
    """

    id: str
    slug: str
    shape: Shape
    needs: tuple[str, ...]
    find: FunctionType
    config: type | None
    origin: str
    usual: Declared = field(default_factory=Declared)
    about: Callable[[Any], object] | None = None

    @property
    def doc(self) -> str:
        """The page of the rule, which begins with `ID slug: one sentence`; nothing but its readers opens the file."""
        return f"{self.id} {self.slug}: {_page_of(self.origin, self.id)}"

    def __call__(self, run: object, config: object = None) -> Iterator[Finding]:
        """Give what the rule finds in a run (a `Run` of the store); without `config` by its own thresholds."""
        given = [run]
        if self.about is not None:
            if (subject := self.about(run)) is None:
                return iter(())
            given.append(subject)
        if self.config is not None and self.find.__code__.co_argcount > len(given):
            given.append(config or self.config())
        return self.find(*given)

    def finding(
        self,
        title: str,
        because: str,
        evidence: tuple[Evidence, ...],
        onset: Onset | None = None,
        **fields: Unpack[Fields],
    ) -> Finding:
        """Make a finding of this rule; what is not given is as its declaration says, the onset where its proof is.

        Raises `TypeError` where neither says how bad or how sure it is.
        """
        told = named({"shape": self.shape, **self.usual, **fields})
        began = Onset(evidence[0].step, evidence[0].t_ns, evidence[0].rank) if onset is None and evidence else onset
        return Finding(self.id, title=title, because=because, evidence=evidence, onset=began or Onset(), **told)


class Renderer(Struct, frozen=True):
    """A way to write a report: `render(report) -> Iterator[str]`, and `many(reports)` where several are one document.

    `styled`: both take the style of the terminal, too; `drawn`: the report needs its figures.
    """

    name: str
    render: Callable[..., Iterator[str]]
    many: Callable[..., Iterator[str]] | None
    styled: bool
    drawn: bool
    doc: str
    origin: str


class Broken(Struct, frozen=True):
    """A plugin that could not be loaded, kept so that the report can say why."""

    kind: Kind
    name: str
    why: str


class Registry(Struct, frozen=True):
    """All plugins, by kind; built once and never changed."""

    rules: tuple[Rule, ...] = ()
    ingesters: tuple[Ingester, ...] = ()
    dialects: tuple[Any, ...] = ()
    renderers: tuple[Renderer, ...] = ()
    broken: tuple[Broken, ...] = field(default=())


def rule(
    name: str,
    needs: str | tuple[str, ...],
    *,
    about: Callable[[Any], object] | None = None,
    config: type | None = None,
    shape: ShapeName | None = None,
    **usual: Unpack[Declared],
) -> Callable[[Callable[..., Iterator[Finding]]], Rule]:
    """Make a rule of a function that reads the tables `needs`; its findings are `usual` where they say nothing else.

    `name` is `ID slug`, `needs` names tables with spaces between them (or is a tuple), and the rule's page is the file
    `pages/ID.md` beside its module. The shape is that of the id, `config` the class of the function's last parameter,
    unless another is given. `about` is what a run is asked for first: the function gets it behind the run, and only
    where there is something.
    """
    rule_id, slug = name.split()
    tables = tuple(needs.split()) if isinstance(needs, str) else needs
    of = Shape(shape or SHAPES[rule_id[:3]])

    def declared(function: Callable[..., Iterator[Finding]]) -> Rule:
        found = cast("FunctionType", function)
        asked = config or _parameter(found, 1 if about is None else 2)
        return Rule(rule_id, slug, of, tables, found, asked, function.__module__, usual, about)

    return declared


def ingester(  # noqa: PLR0913 - each is a fact of the format, and named
    name: str,
    *,
    version: int,
    sniff: Sniff,
    emits: tuple[str, ...],
    growth: float = 1.0,
    device_growth: float | None = None,
    beside: tuple[tuple[str, str], ...] = (),
    slicing: str = "",
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a function as the reader of one format; `device_growth` is `growth` where it is left out."""

    def mark(function: Callable[..., None]) -> Callable[..., None]:
        lean = growth if device_growth is None else device_growth
        doc, origin = _module_doc(function), function.__module__
        value = Ingester(name, version, sniff, emits, function, doc, origin, growth, lean, beside, slicing)
        setattr(function, _MARK, value)
        return function

    return mark


def renderer(
    name: str, *, many: Callable[..., Iterator[str]] | None = None, styled: bool = False, drawn: bool = False
) -> Callable[[Callable[..., Iterator[str]]], Callable[..., Iterator[str]]]:
    """Mark a function as a way to write a report; without `many`, several reports follow one another."""

    def mark(function: Callable[..., Iterator[str]]) -> Callable[..., Iterator[str]]:
        value = Renderer(name, function, many, styled, drawn, _module_doc(function), function.__module__)
        setattr(function, _MARK, value)
        return function

    return mark


def _module_doc(function: Callable[..., Any]) -> str:
    return str(function.__globals__.get("__doc__") or "")


def _parameter(function: FunctionType, place: int) -> type | None:
    """Give the class of one parameter of a function, which its annotation may name; None where it has none."""
    names = function.__code__.co_varnames[place : function.__code__.co_argcount]
    hint = function.__annotations__.get(names[0]) if names else None
    return function.__globals__.get(hint) if isinstance(hint, str) else hint


@cache
def _page_of(module: str, rule_id: str) -> str:
    place = files(module.rpartition(".")[0]) / "pages" / f"{rule_id}.md"
    return place.read_text(encoding="utf-8").rstrip()


@cache
def _entry_points() -> EntryPoints:
    # every installed distribution is looked at: once is enough; Python 3.11 has another type with the same `select`
    return cast("EntryPoints", entry_points())


def _modules(kind: Kind) -> Iterator[tuple[str, ModuleType | Exception]]:
    root = importlib.import_module(_FOLDERS[kind])
    names = sorted(m.name for m in pkgutil.walk_packages(root.__path__, root.__name__ + ".") if not m.ispkg)
    for name in names:
        if "._" not in name:
            yield name, importlib.import_module(name)
    yield from _installed(kind)


@cache
def _installed(kind: Kind) -> tuple[tuple[str, ModuleType | Exception], ...]:
    """What other distributions bring, or why it could not be loaded."""
    return tuple(_loaded_entries(kind))


def _loaded_entries(kind: Kind) -> Iterator[tuple[str, ModuleType | Exception]]:
    for entry in sorted(_entry_points().select(group=f"forensics.{kind}"), key=lambda e: e.name):
        try:
            loaded = entry.load()
            module = loaded if isinstance(loaded, ModuleType) else importlib.import_module(entry.module)
            for one in _plugins(module):
                _ = one.doc  # a rule without a page is as broken as one that cannot be imported
        except Exception as error:  # noqa: BLE001 - a third party's plugin may fail in any way; it is shown, not hidden
            yield entry.value, error
        else:
            yield entry.value, module


def values(package: str, name: str, kind: type[T]) -> tuple[T, ...]:
    """Give the value `name` of every module of a package that is not private, in the order of the modules' names.

    A tuple gives each of its values.

    This is the walk for parts of one layer (figures, sections of the page): one new file is one new part.
    """
    root = importlib.import_module(package)
    names = sorted(m.name for m in pkgutil.iter_modules(root.__path__) if not m.name.startswith("_"))
    modules = [importlib.import_module(f"{package}.{one}") for one in names]
    found = [getattr(module, name) for module in modules if hasattr(module, name)]
    each = (one for held in found for one in (cast("tuple[object, ...]", held) if isinstance(held, tuple) else (held,)))
    return tuple(one for one in each if isinstance(one, kind))


def _plugins(module: ModuleType) -> Iterator[Any]:
    if (dialect := getattr(module, "DIALECT", None)) is not None:
        yield dialect
    yield from getattr(module, "DIALECTS", ())
    for value in vars(module).values():
        # a module or a class is not looked into: some import what they are asked for
        plugin = getattr(value, _MARK, None) if isinstance(value, FunctionType) else value
        if isinstance(plugin, Rule | Ingester | Renderer) and plugin.origin == module.__name__:
            yield plugin


@cache
def _of_kind(kind: Kind) -> tuple[tuple[Any, ...], tuple[Broken, ...]]:
    found: list[Any] = []
    broken: list[Broken] = []
    for name, module in _modules(kind):
        if isinstance(module, Exception):
            broken.append(Broken(kind, name, f"{type(module).__name__}: {module}"))
        else:
            found.extend(_plugins(module))
    return tuple(found), tuple(broken)


def broken() -> tuple[Broken, ...]:
    """Plugins of other distributions that could not be loaded; the parts of this one are not loaded for it."""
    return tuple(
        Broken(kind, name, f"{type(found).__name__}: {found}")
        for kind in _FOLDERS
        for name, found in _installed(kind)
        if isinstance(found, Exception)
    )


def renderer_named(name: str) -> Renderer | None:
    """Give one renderer; of a module that has its name the other forms need not be loaded."""
    module = f"{_FOLDERS['renderers']}.{name}"
    if name.isidentifier() and not name.startswith("_") and importlib.util.find_spec(module) is not None:
        for one in _plugins(importlib.import_module(module)):
            if isinstance(one, Renderer) and one.name == name:
                return one
    return next((one for one in load("renderers").renderers if one.name == name), None)


@cache
def load(*kinds: Kind) -> Registry:
    """Find the plugins of the given kinds (all four when none is named), in a stable order."""
    asked = kinds or tuple(_FOLDERS)
    found = {kind: _of_kind(kind)[0] for kind in asked}
    return Registry(
        rules=tuple(sorted(found.get("rules", ()), key=lambda r: r.id)),
        ingesters=tuple(sorted(found.get("ingesters", ()), key=lambda i: i.name)),
        dialects=found.get("dialects", ()),
        renderers=tuple(sorted(found.get("renderers", ()), key=lambda r: r.name)),
        broken=tuple(b for kind in asked for b in _of_kind(kind)[1]),
    )
