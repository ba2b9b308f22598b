"""The style sheet: light and dark, narrow and wide, screen and paper; no colour carries a meaning alone."""

from __future__ import annotations

import re

#: Selectors of one rule, of a sheet in which only `@media` holds other rules.
_SELECTORS = re.compile(r"(?<=[{}\n])([^@{}\n][^{}\n]*)\{(?=[^{}]*\})")

_LIGHT = (
    "--bg:#fff;--fg:#1b1f24;--soft:#57606a;--line:#d0d7de;--box:#f6f8fa;--bad:#b3261e;--good:#1a6b36;--warn:#7d5200;"
    "--c0:#0b5cad;--c1:#b35900;--c2:#1a7f37;--c3:#8a3ffc;--c4:#9f1853;--c5:#007d79;--c6:#6f5200;--c7:#4d5358;--c8:#a8a8a8"
)
_DARK = (
    "--bg:#14171a;--fg:#e6e9ec;--soft:#a3adb7;--line:#3a424a;--box:#1d2226;--bad:#ff8a80;--good:#7ee2a8;--warn:#f2c14e;"
    "--c0:#6cb6ff;--c1:#ffa657;--c2:#7ee787;--c3:#c8a6ff;--c4:#ff9bce;--c5:#56d4c9;--c6:#e3c567;--c7:#b7c0c8;--c8:#6b747c"
)
_STROKES = "".join(f".c{n}{{stroke:var(--c{n})}}.dot.c{n},.p{n}{{fill:var(--c{n})}}" for n in range(9))
_PAGE = """
*{box-sizing:border-box}
html{color-scheme:light dark}
body{margin:0 auto;max-width:80rem;padding:.8rem 1.25rem 4rem;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere}
.skip{position:absolute;left:-999rem}
.skip:focus{position:static}
.still,svg.chart.still{display:none}
@media (max-width:40rem){body{padding:.7rem .8rem 3rem}}
@media print{body{max-width:none;padding:0;font-size:10.5pt}figure,.finding,pre,tr{break-inside:avoid}
h2,h3{break-after:avoid}details:not([open])::details-content{content-visibility:visible;display:block;height:auto}
.skip,summary,.live{display:none}.still,svg.chart.still{display:block}}
"""
#: What verdict, tables and drawings need, wherever they stand; each selector stands for itself.
_CORE = """
h1{font-size:1.4rem;line-height:1.25;margin:.3rem 0 .5rem}
h2{font-size:1.1rem;margin:1.5rem 0 .4rem}
h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{margin:.3rem 0}
p,li,dd,pre{max-width:62rem}
ol,ul{margin:.3rem 0;padding-left:1.4rem}
a{color:var(--c0)}
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:3px solid var(--c0);outline-offset:2px}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(26rem,100%),1fr));gap:0 2rem;align-items:start}
.columns>div{min-width:0}
.columns>div>:first-child,.fix>h2:first-child{margin-top:.4rem}
.outcome{display:inline-block;font-weight:700;border:2px solid currentColor;border-radius:.4rem;padding:0 .5rem}
.failed{color:var(--bad)}.suspect{color:var(--warn)}.healthy{color:var(--good)}.cannot_say{color:var(--warn)}
.run{color:var(--soft)}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.15rem 1rem;margin:.4rem 0}
dt{color:var(--soft);min-width:4.6rem}
dd{margin:0}
.fix{border-left:4px solid var(--good);padding-left:.8rem;margin:.8rem 0}
.fix li{margin:.2rem 0}
.option{display:inline-block;max-width:100%}
.quote{font:.86em/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.checks{list-style:none;padding-left:0}.checks .done{color:var(--good)}.checks .missing{color:var(--warn)}
code,pre,.when{font:.86em/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background:var(--box);border:1px solid var(--line);border-radius:.3rem;padding:.35rem .6rem;margin:.2rem 0 .5rem;
white-space:pre-wrap;overflow-wrap:anywhere}
.soft,.note{color:var(--soft);font-size:.88rem}
figure{container-type:inline-size;min-width:0;margin:.4rem 0 .8rem;padding:.5rem .7rem;border:1px solid var(--line);
border-radius:.5rem}
figcaption{margin-bottom:.2rem}
svg.chart{display:block;width:100%;max-width:48rem;height:auto}.wide svg.chart{max-width:none}
svg text{fill:var(--fg);font:14px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
svg .tick,svg .name{fill:var(--soft)}
svg .culprit{fill:var(--bad);font-weight:700}
li.culprit{color:var(--bad);font-weight:700}
svg .number{fill:var(--bg);font-weight:700}
svg .said{paint-order:stroke;stroke:var(--bg);stroke-width:4px;stroke-linejoin:round}
.grid,.axis{stroke:var(--line);stroke-width:1}
.axis{stroke:var(--soft)}
.curve{fill:none;stroke-width:1.8;stroke-linejoin:round}
.curve.bad{stroke:var(--bad);stroke-width:2.6}.dot.bad{fill:var(--bad)}
.faint{opacity:.5}
.ahead{stroke-dasharray:6 5}
.level{stroke:var(--fg);stroke-width:3;opacity:.75}
.gap{fill:var(--bad)}
.mark{stroke-width:1.5;stroke:var(--soft)}
.mark.onset{stroke:var(--bad);stroke-width:2.5}
.mark.clean{stroke:var(--good);stroke-width:2.5;stroke-dasharray:8 3}
.mark.checkpoint{stroke-dasharray:2 4}
.mark.limit{stroke:var(--warn);stroke-width:2;stroke-dasharray:10 4}
svg .said.onset{fill:var(--bad);font-weight:700}svg .said.clean{fill:var(--good);font-weight:700}
svg .said.limit{fill:var(--warn);font-weight:700}
.block{stroke:none}
svg .inside{fill:var(--bg);font-size:12px}svg .p8+.inside{fill:var(--fg)}
.flag{fill:var(--bg);stroke:var(--bad);stroke-width:2}
.row{fill:var(--box)}.cell{fill:var(--c0)}.cell.bad{fill:var(--bad)}
.moment circle{fill:var(--soft);stroke:var(--soft);stroke-width:2}
.moment.main circle{fill:var(--bad);stroke:var(--bad)}
.moment.undated circle{fill:var(--bg)}svg .moment.undated .number{fill:var(--fg)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;margin:.2rem 0;padding:0;font-size:.85rem}
.swatch{width:22px;height:12px;margin-right:.4rem;vertical-align:-1px}
.swatch .curve{stroke-width:4}
.small,.large{display:grid;gap:.8rem;align-items:start}
.small{grid-template-columns:repeat(auto-fill,minmax(min(20rem,100%),1fr))}
.large{grid-template-columns:repeat(auto-fit,minmax(min(34rem,100%),1fr))}
.small>figure,.large>figure{margin:0}
.small>figure:has(details[open]),.large>figure:has(details[open]){grid-column:1/-1}
.moments{padding-left:1.6rem;font-size:.92rem}
.when{color:var(--soft)}
.finding{border-left:4px solid var(--line);padding-left:.8rem;margin:.5rem 0}
.finding.error{border-color:var(--bad)}.finding.warning{border-color:var(--warn)}
.group{margin:.8rem 0}
.one{border:1px solid var(--line);border-radius:.4rem;margin:.3rem 0}
.one>summary{display:grid;grid-template-columns:.7rem 9rem minmax(9rem,18rem) 10rem minmax(0,1fr);gap:.1rem 1rem;
padding:.3rem .7rem;align-items:center}
.one>summary::before{content:"▸";color:var(--soft)}.one[open]>summary::before{content:"▾"}
.one>summary>:first-child{justify-self:start}
.one>summary .soft{display:block}
.spark{display:block;width:160px;height:44px}.spark .curve{stroke-width:1.5}
.one>div{padding:.2rem .9rem 1rem;border-top:1px solid var(--line)}
.one>div>h2{margin-top:.3rem}
.live{max-width:48rem}
.scroll{overflow-x:auto}
.wide svg.chart{min-width:38rem}
table{border-collapse:collapse;font-size:.86rem;margin:.5rem 0}
th,td{text-align:left;vertical-align:top;border-bottom:1px solid var(--line);padding:.2rem .7rem .2rem 0;
overflow-wrap:normal}
td{min-width:4.5rem}
td.long{min-width:14rem;overflow-wrap:anywhere}
details{margin:.3rem 0}
figure details{font-size:.88rem}
summary{cursor:pointer}
figure summary{color:var(--soft)}
@container (max-width:34rem){svg.chart text{font-size:18px}}
@container (max-width:27rem){svg.chart text{font-size:22px}svg.chart .odd{display:none}svg.chart .inside{font-size:12px}
svg.chart .number{font-size:15px}}
@media (max-width:40rem){.one>summary{grid-template-columns:.7rem minmax(0,1fr);gap:.1rem .6rem}
.one>summary>*{grid-column:2}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.4rem}figure{padding:.4rem}}
"""
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
