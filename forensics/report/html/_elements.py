"""Elements of HTML and SVG as text: every attribute and every text is escaped here, so nowhere else."""

from __future__ import annotations

from collections.abc import Iterable

from forensics.io.safe_text import for_html

_VOID = frozenset({"meta", "br"})


class Markup(str):
    """Text that is markup already; only the functions of this file make it."""

    __slots__ = ()


def tag(name: str, /, *children: str | Iterable[str], **attributes: object) -> Markup:
    """Give one element; a child that is not `Markup` is escaped, an attribute of None or False is left out.

    A trailing underscore of an attribute's name is dropped (`class_`), other underscores become hyphens.
    """
    said = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    return Markup(f"<{name}{said}>" if name in _VOID else f"<{name}{said}>{join(*children)}</{name}>")


def some(name: str, /, *children: str | Iterable[str], **attributes: object) -> Markup:
    """Give one element as `tag` does; nothing where it would be empty."""
    inside = join(*children)
    return tag(name, inside, **attributes) if inside else inside


def definitions(pairs: Iterable[tuple[str, str | Iterable[str]]]) -> Markup:
    """Give labels with their contents; nothing without labels."""
    return some("dl", [join(tag("dt", label), tag("dd", value)) for label, value in pairs])


def markup(text: str) -> Markup:
    return text if isinstance(text, Markup) else Markup(for_html(text))


def style_sheet(css: str) -> Markup:
    """Give a style sheet of our own; never text of an input."""
    return Markup(f"<style>{css}</style>")


def script(code: str) -> Markup:
    """Give a script of our own; texts of an input stand in it as encoded by `_live` only."""
    return Markup(f"<script>{code}</script>")


def join(*parts: str | Iterable[str]) -> Markup:
    """Join parts; all but `Markup` is escaped."""
    return Markup("".join(markup(p) if isinstance(p, str) else "".join(map(markup, p)) for p in parts))


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
    return f' {name}="{for_html(text)}"'
