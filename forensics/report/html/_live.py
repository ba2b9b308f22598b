"""The scripts of an interactive page: Plotly's own, and one of ours that gives it the figures of the page.

Each drawing stays where it is, for readers without scripts and for paper; the script puts a chart that can be zoomed in
its place. Everything is inline: nothing is loaded, and no button offers to send anything anywhere. Plotly takes some
markup in its texts, so every text of an input is escaped for HTML before it is encoded for the script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forensics.figure import Figure
from forensics.io.optional import optional
from forensics.io.tolerant_json import dumps
from forensics.report.html._figures import Live, drawing_of

#: So many points are given to a page at most, over all of its charts.
MOST_POINTS = 20_000
_CONFIG = {"responsive": True, "displaylogo": False, "showSendToCloud": False, "plotlyServerURL": ""}
_FRAME: dict[str, Any] = {"margin": {"l": 70, "r": 20, "t": 34, "b": 50}, "showlegend": False}
_OURS = """
(function(){var dark=matchMedia('(prefers-color-scheme: dark)').matches,fg=dark?'#e6e9ec':'#1b1f24',
grid=dark?'#3a424a':'#d0d7de';css=getComputedStyle(document.documentElement),
colors=[0,1,2,3,4,5,6,7,8].map(function(n){return css.getPropertyValue('--c'+n).trim();});
GIVEN.figures.forEach(function(f){var box=document.getElementById(f.id),
svg=box&&box.querySelector('svg.chart');if(!svg)return;var div=document.createElement('div');div.className='live';
div.setAttribute('role','group');div.setAttribute('aria-labelledby',svg.getAttribute('aria-labelledby'));
svg.after(div);f.layout.colorway=colors;f.data.forEach(function(t){
if(t.kinds){t.marker={colors:t.kinds.map(function(k){return colors[k];})};delete t.kinds;}
if(t.firm){t.line.color=fg;delete t.firm;}});
f.layout.font={color:fg};f.layout.paper_bgcolor=f.layout.plot_bgcolor='rgba(0,0,0,0)';
['xaxis','yaxis'].forEach(function(a){if(f.layout[a]){f.layout[a].gridcolor=f.layout[a].zerolinecolor=grid;}});
if(!f.layout.height)f.layout.height=Math.max(230,Math.round(Math.min(box.clientWidth,768)*.48));
var fit=function(){if(div.clientWidth)Plotly.Plots.resize(div);};
[box.querySelector('details'),box.closest('details.one')].forEach(function(d){if(d)d.addEventListener('toggle',fit);});
var said=document.createElement('p');said.className='note live';said.textContent=f.note;
Plotly.newPlot(div,f.data,f.layout,GIVEN.config).then(function(){
box.querySelectorAll('svg.chart,p.note:not(.live)').forEach(function(e){e.classList.add('still');});div.after(said);});});})();
"""


def scripts(figures: Sequence[tuple[str, Figure]]) -> tuple[str, str]:
    """Give the text of both scripts for figures with the ids of their boxes."""
    plotly = optional("plotly.offline", "plotly")  # large, and only for an interactive page
    head = f"var GIVEN={_encoded({'figures': _given(figures), 'config': _CONFIG})};"
    return str(plotly.get_plotlyjs()).replace("</script", "<\\/script"), head + _OURS


def _given(figures: Sequence[tuple[str, Figure]]) -> list[dict[str, Any]]:
    """Every figure that can be zoomed, until the points are spent; each may use its share of the rest."""
    able = [(ident, f, d.live) for ident, f in figures if (d := drawing_of(f)) is not None and d.live is not None]
    found: list[dict[str, Any]] = []
    room = MOST_POINTS
    for index, (ident, shown, live) in enumerate(able):
        made = live(shown, room // (len(able) - index))
        room -= made.points
        if made.data:
            layout = {**_FRAME, **made.layout}
            found.append({"id": ident, "data": made.data, "layout": layout, "note": _said(made)})
    return found


def _said(made: Live) -> str:
    kept = f": {made.note}" if made.note else ", all there are"
    return f"Zoomable; holds {made.points:,} points{kept}."


def _encoded(value: Mapping[str, object]) -> str:
    """JSON that no parser of HTML can take for the end of a script."""
    text = dumps(value).decode("utf-8").strip()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text
