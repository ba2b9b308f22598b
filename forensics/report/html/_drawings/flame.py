"""Stacks as blocks lying on each other, the outermost frame on top: the wider, the more it holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forensics.figure import Block, Flame
from forensics.io.safe_text import for_html
from forensics.report.html._axes import WIDTH, short
from forensics.report.html._elements import Markup, tag
from forensics.report.html._figures import COLORS, Drawing, Live, Table, patch, svg

_ROW, _EDGE = 21.0, 2.0
#: Narrower blocks are not drawn: they are no wider than their border.
_NARROW = 1.2
#: Blocks narrower than this hold no word.
_WORDS_FROM = 28.0


def flame(figure: Flame, ident: str) -> Markup:
    """Draw the blocks from the outermost frames down, each in its own box, which cuts longer names."""
    placed = list(_placed(figure))
    deepest = max((depth for _, _, _, depth in placed), default=0)
    parts = [_block(figure, one, x, wide, depth) for one, x, wide, depth in placed]
    drawing = svg(figure, ident, _ROW * (deepest + 1) + 2 * _EDGE, WIDTH, tag("g", parts, aria_hidden="true"))
    # words in blocks cannot grow on a small screen, so there the drawing keeps its width and scrolls
    return tag("div", drawing, class_="scroll wide", tabindex="0", role="region", aria_label=figure.title)


def legend(figure: Flame) -> Markup:
    used = sorted({one.kind for one, *_ in _placed(figure)})
    return tag("ul", [tag("li", patch(kind), figure.kinds[kind]) for kind in used], class_="legend")


def table(figure: Flame) -> Table:
    return figure.head, list(figure.rows)


def live(figure: Flame, most: int) -> Live:
    """Give the same for Plotly, where a click on a block zooms to it and its callees."""
    ids, parents, labels, told = list[str](), list[str](), list[str](), list[str]()
    values, colors = list[float](), list[int]()
    waiting: list[tuple[Block, str]] = [(one, "") for one in figure.roots]
    while waiting:
        one, parent = waiting.pop(0)
        ident = str(len(ids))
        ids.append(ident)
        parents.append(parent)
        labels.append(for_html(_shortly(one.label)))
        told.append(for_html(f"{one.label}, {figure.kinds[one.kind]}"))
        colors.append(one.kind % COLORS)
        values.append(one.value)
        waiting += [(child, ident) for child in one.children]
    if len(ids) > most:
        return Live([], {}, 0)
    trace: dict[str, Any] = {"type": "icicle", "ids": ids, "parents": parents, "labels": labels, "values": values}
    trace |= {"branchvalues": "total", "tiling": {"orientation": "v"}, "maxdepth": 24, "pathbar": {"visible": True}}
    hover = f"%{{hovertext}}<br>%{{value:.4g}} {for_html(figure.unit)}<extra></extra>"
    trace |= {"hovertext": told, "kinds": colors, "hovertemplate": hover, "sort": False}
    return Live([trace], {"height": 480, "margin": {"l": 4, "r": 4, "t": 30, "b": 4}}, len(ids), figure.note)


def _placed(figure: Flame) -> Iterator[tuple[Block, float, float, int]]:
    """Blocks with place, width and depth, a parent before its children."""
    scale = WIDTH / (figure.total or 1.0)
    waiting: list[tuple[tuple[Block, ...], float, int]] = [(figure.roots, 0.0, 0)]
    while waiting:
        blocks, x, depth = waiting.pop()
        for one in blocks:
            wide = one.value * scale
            if wide >= _NARROW:
                yield one, x, wide, depth
                waiting.append((one.children, x, depth + 1))
            x += wide


def _block(figure: Flame, one: Block, x: float, wide: float, depth: int) -> Markup:
    share = one.value / (figure.total or 1.0)
    said = tag("title", f"{one.label}: {short(one.value)} {figure.unit}, {share:.1%}, {figure.kinds[one.kind]}")
    box = tag("rect", said, class_=f"block p{one.kind % COLORS}", x=0, y=0, width=max(0.6, wide - 1), height=_ROW - 1.5)
    words = [tag("text", _shortly(one.label), class_="inside", x=4, y=_ROW - 6.5)] if wide >= _WORDS_FROM else []
    # an inner drawing cuts at its edges, whatever the size of letters on a small screen
    return tag("svg", box, words, x=x, y=_EDGE + depth * _ROW, width=max(0.6, wide - 1), height=_ROW - 1.5)


def _shortly(label: str) -> str:
    """The function, then the file without its folders, for a label `path:line function`."""
    place, _, function = label.partition(" ")
    return f"{function} {place.rsplit('/', 1)[-1]}" if function and ":" in place else label


DRAWING = Drawing(Flame, flame, legend, table, live)
