"""Names of collectives in one spelling: `nccl:_all_gather_base`, `ALLGATHER`, `_ALLGATHER_BASE` are all_gather."""

from __future__ import annotations

import re

_PRINTED = re.compile(r"^(?:[\w.]+:)?(?P<op>\w+?)(?: (?P<a>\d{1,7})(?P<way><-|->)(?P<b>\d{1,7}))?$")
_SPELLINGS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "reducescatter": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
    "alltoall": "all_to_all",
    "all_to_all_single": "all_to_all",
}
_OP_CHARS = 60


def parsed(printed: str) -> tuple[str, tuple[int, int] | None]:
    """One printed name as `op` and, for send and recv, the ranks in the group `(source, destination)`."""
    found = _PRINTED.match(printed.strip())
    if found is None:
        return printed.strip().lower()[:_OP_CHARS], None
    pair = None
    if found["way"]:
        left, right = int(found["a"]), int(found["b"])
        pair = (left, right) if found["way"] == "->" else (right, left)
    return canonical(found["op"]), pair


def canonical(op: str) -> str:
    """The one spelling of an operation; an unknown name in lower case."""
    name = op.lower().lstrip("_")[:_OP_CHARS]
    coalesced = name.endswith("_coalesced")
    name = name.removesuffix("_coalesced").removesuffix("_base")
    name = _SPELLINGS.get(name, name)
    return f"{name}_coalesced" if coalesced else name
