"""The iterations of a boosted model, as CatBoost writes them into `catboost_training.json`.

Each has a list of numbers for each set, whose names stand in the head of the document: `{"meta": {"learn_metrics":
[{"name": "Logloss"}], …}, "iterations": [{"learn": [0.69], "test": [0.7], "iteration": 0}, …]}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from forensics.formats.rows.json_records import number, offsets_of, record_of
from forensics.formats.rows.text import Line
from forensics.io.tolerant_json import as_list, as_object


class Boosted(Struct, frozen=True):
    """The records of such a document, one for each iteration; all stand in the line where their list begins."""

    rows: Sequence[object]
    #: the names of the numbers of each set
    names: Mapping[str, tuple[str, ...]]
    line: Line
    #: sets that are trained on, whose metrics have plain names, as in `learn_error.tsv`
    own: frozenset[str]

    #: It says so itself, whatever its name.
    is_of_metrics: bool = True

    def __iter__(self) -> Iterator[tuple[Line, dict[str, object]]]:
        """Give them in order, each metric of held-out data below the name of its set."""
        for row in self.rows:
            cells = as_object(row)
            own = {"iteration": cells.get("iteration")}
            for key, names in self.names.items():
                own |= {
                    name if key in self.own else f"{key}/{name}": cell
                    for name, cell in zip(names, as_list(cells.get(key)), strict=False)
                }
            yield self.line, own


def may_be_boosted(head: bytes) -> bool:
    """Whether a document speaks of metrics of a learning set and of iterations."""
    return head.lstrip()[:1] == b"{" and b'"learn_metrics"' in head and b'"iterations"' in head


def boosted_of(data: bytes) -> Boosted | None:
    """Read the iterations of a document that names its metrics; None for another one."""
    document = record_of(data) or {}
    meta, rows = as_object(document.get("meta")), as_list(document.get("iterations"))
    names: dict[str, tuple[str, ...]] = {}
    for kind in ("learn", "test"):
        every = tuple(str(as_object(one).get("name")) for one in as_list(meta.get(f"{kind}_metrics")))
        names |= {str(name): every for name in as_list(meta.get(f"{kind}_sets"))}
    own = frozenset(map(str, as_list(meta.get("learn_sets"))))
    if not any(names.values()) or not rows or number(as_object(rows[0]).get("iteration")) is None:
        return None
    line, at = offsets_of(data, {("iterations",)}).of(("iterations",))
    return Boosted(rows, names, Line(line or 1, at or 0, b"", ended=True), own)
