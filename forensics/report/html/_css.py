"""The style sheet: light and dark, narrow and wide, screen and paper; no colour carries a meaning alone."""

from __future__ import annotations

from importlib.resources import files

from forensics.patterns import lazily

#: Selectors of one rule; only `@media` holds other rules.
_SELECTORS = lazily(r"(?<=[{}\n])([^@{}\n][^{}\n]*)\{(?=[^{}]*\})")

_LIGHT = (
    "--bg:#fff;--fg:#1b1f24;--soft:#57606a;--line:#d0d7de;--box:#f6f8fa;--bad:#b3261e;--good:#1a6b36;--warn:#7d5200;"
    "--c0:#0b5cad;--c1:#b35900;--c2:#1a7f37;--c3:#8a3ffc;--c4:#9f1853;--c5:#007d79;--c6:#6f5200;--c7:#4d5358;--c8:#a8a8a8"
)
_DARK = (
    "--bg:#14171a;--fg:#e6e9ec;--soft:#a3adb7;--line:#3a424a;--box:#1d2226;--bad:#ff8a80;--good:#7ee2a8;--warn:#f2c14e;"
    "--c0:#6cb6ff;--c1:#ffa657;--c2:#7ee787;--c3:#c8a6ff;--c4:#ff9bce;--c5:#56d4c9;--c6:#e3c567;--c7:#b7c0c8;--c8:#6b747c"
)
_STROKES = "".join(f".c{n}{{stroke:var(--c{n})}}.dot.c{n},.p{n}{{fill:var(--c{n})}}" for n in range(9))
_ROOM = files("forensics.report.html")
_PAGE = "\n" + _ROOM.joinpath("page.css").read_text(encoding="utf-8")
#: Rules for verdict, tables and drawings anywhere on the page; each selector is complete by itself.
_CORE = "\n" + _ROOM.joinpath("core.css").read_text(encoding="utf-8")
CSS = (
    f":root{{{_LIGHT}}}@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    f"{_CORE}{_STROKES}{_PAGE}@media print{{:root{{{_LIGHT}}}}}"
)


def scoped(name: str) -> str:
    """Give the sheet for a box of the class `name` in a page of somebody else: nothing outside of it is touched."""
    box = f".{name}"
    own = "background:var(--bg);color:var(--fg);padding:.8rem;overflow-wrap:anywhere;font:14px/1.5 system-ui,sans-serif"
    rules = _SELECTORS.sub(
        lambda found: ",".join(f"{box} {one.strip()}" for one in found[1].split(",")) + "{", _CORE + _STROKES
    )
    colors = f"{box}{{{_LIGHT}}}@media (prefers-color-scheme:dark){{{box}{{{_DARK}}}}}"
    return f"{colors}{box}{{{own}}}{box} *{{box-sizing:border-box}}{rules}"
