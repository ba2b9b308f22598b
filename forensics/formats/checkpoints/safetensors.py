"""The header of a safetensors file: rows of the embedding, precision, number of parameters; never the tensors.

A file begins with the length of its header (8 bytes, little-endian), then the header as a JSON object: name, dtype,
shape and place of each tensor. Only that much is read. A length beyond the file or of more than 8 MiB is refused. A
file that ends before its tensors do was cut: the checkpoint is not complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import cast

from forensics.formats.kit import InputError, Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.facts import ConfigFacts
from forensics.formats.rows.out import write_row
from forensics.io.tolerant_json import loads
from forensics.knowledge.paths import named
from forensics.knowledge.vocabulary import stands_for

LENGTH_BYTES = 8
#: Headers of the largest models with thousands of experts have some MB; the format itself allows 100 MB.
_MOST_BYTES = 8 << 20


def header_bytes(head: bytes, size_bytes: int) -> int | None:
    """Length of the header that the first nine bytes state; None where it cannot be one."""
    if len(head) <= LENGTH_BYTES or head[LENGTH_BYTES:] != b"{":
        return None
    length = int.from_bytes(head[:LENGTH_BYTES], "little")
    return length if 2 <= length <= min(_MOST_BYTES, size_bytes - LENGTH_BYTES) else None


_MOST_TENSORS, _MOST_DIM = 200_000, 1 << 40
_NOTES, _CHARS = 32, 200
#: Shards of tensor parallelism hold parts of rows, so their shapes tell nothing of the vocabulary.
_SPLIT = lazily(r"tp[-_]rank[-_]\d+[-_]of[-_](?!1(?:\D|$))\d+|mp_rank_\d+")


@ingester("safetensors_header", version=1, sniff=Sniff(glob=("*.safetensors",)), emits=("facts", "checkpoints"))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one header; raises `NotMine` when the file does not begin with the length of a JSON object."""
    del limits
    size = header_bytes(opened.head(LENGTH_BYTES + 1), opened.size_bytes)
    if size is None:
        raise NotMine("no header of safetensors")
    out.format("safetensors header")
    data = opened.span(LENGTH_BYTES, size)
    try:
        found = loads(data.rstrip(b" "))
    except InputError as error:
        found = None
        out.issue("damaged", f"the header cannot be read: {error.message}", byte=LENGTH_BYTES)
    if not isinstance(found, dict):
        _checkpoint(opened.source.path, out, complete=False)
        out.account(skipped_bytes=opened.size_bytes, reason="the header is damaged")
        return
    header = cast("dict[str, object]", found)
    facts, end = _facts(header, split=_SPLIT.search(opened.source.path) is not None)
    cut = LENGTH_BYTES + size + end > opened.size_bytes
    if cut:
        out.issue("damaged", f"the tensors need {LENGTH_BYTES + size + end} bytes, the file has {opened.size_bytes}")
    facts.write(out)
    _checkpoint(opened.source.path, out, complete=False if cut else None)
    # nothing of the run was lost by leaving the tensors, so the file counts as skipped, not as read in part
    out.account(skipped_bytes=opened.size_bytes, reason=f"weights: of them only the header, {size} bytes, was read")
    out.account(records=len(facts))


def _facts(header: dict[str, object], *, split: bool) -> tuple[ConfigFacts, int]:
    """The facts of a header, and where its last tensor ends, behind the header."""
    facts = ConfigFacts()
    kinds, parameters, end = Counter[str](), 0, 0
    for name, dtype, shape, stop in _tensors(header):
        kinds[dtype] += prod(shape)
        parameters += prod(shape)
        end = max(end, stop)
        if (
            len(shape) == 2
            and not split
            and stands_for("embedding_weight", name)
            and not stands_for("other_embedding", name)
        ):
            facts.put(f"weights.{name}.rows", shape[0], family="weights")
            facts.put(f"weights.{name}.width", shape[1], family="weights")
    if kinds:
        facts.put("weights.dtype", kinds.most_common(1)[0][0], family="weights")
        facts.put("weights.parameters", parameters, family="weights")
    notes = header.get("__metadata__")
    for key, value in list(cast("dict[str, object]", notes).items())[:_NOTES] if isinstance(notes, dict) else ():
        facts.put(f"weights.metadata.{key}"[:_CHARS], str(value)[:_CHARS], family="weights")
    return facts, end


def _tensors(header: dict[str, object]) -> Iterator[tuple[str, str, tuple[int, ...], int]]:
    """Name, dtype, shape and end of each tensor that is described as one."""
    for name, cell in list(header.items())[:_MOST_TENSORS]:
        if name == "__metadata__" or not isinstance(cell, dict):
            continue
        told = cast("dict[str, object]", cell)
        shape, place = _sizes(told.get("shape")), _sizes(told.get("data_offsets"))
        if shape is not None and place is not None and len(place) == 2 and len(shape) <= 8:
            yield name, str(told.get("dtype"))[:16], shape, place[1]


def _sizes(cell: object) -> tuple[int, ...] | None:
    if not isinstance(cell, list) or len(cast("list[object]", cell)) > 16:
        return None
    whole = [
        n for n in cast("list[object]", cell) if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < _MOST_DIM
    ]
    return tuple(whole) if len(whole) == len(cast("list[object]", cell)) else None


def _checkpoint(path: str, out: Out, *, complete: bool | None) -> None:
    found = named(path)
    if found is not None:
        done = False if found.temporary else complete
        row = {"seq": 0, "step": found.step, "path": found.path, "kind": "directory", "complete": done}
        write_row(out, "checkpoints", row)
