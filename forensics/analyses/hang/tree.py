"""Stacks of all ranks as one prefix tree, outermost frame first: each node with the ranks that have it and lack it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from forensics.analyses.hang.stacks import Stack


class Node(Struct, frozen=True):
    """One frame of the tree; `depth` counts from the outermost, `lack` are ranks of the parent without this frame."""

    frame: str
    depth: int
    have: tuple[int, ...]
    lack: tuple[int, ...]


def prefix_tree(found: Mapping[int, Stack]) -> tuple[Node, ...]:
    """Merge stacks from their outermost frames; frames that do not branch are given by the innermost of them.

    A node is followed by its children, those that most ranks have first.
    """
    paths = {rank: tuple(f.text for f in reversed(stack.frames)) for rank, stack in found.items()}
    return tuple(_walk(paths))


def _walk(paths: Mapping[int, Sequence[str]]) -> Iterator[Node]:
    todo = list(reversed(list(_children(paths, tuple(sorted(paths)), 0))))
    depth = [0] * len(todo)
    while todo:
        (have, lack, place), deep = todo.pop(), depth.pop()
        end = _straight(paths, have, place)
        yield Node(paths[have[0]][end - 1], deep, have, lack)
        below = list(reversed(list(_children(paths, have, end))))
        todo.extend(below)
        depth.extend([deep + 1] * len(below))


def _children(
    paths: Mapping[int, Sequence[str]], ranks: tuple[int, ...], place: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Group ranks by their frame at a place: who has it, who lacks it."""
    groups: dict[str, list[int]] = {}
    for rank in ranks:
        if place < len(paths[rank]):
            groups.setdefault(paths[rank][place], []).append(rank)
    for having in sorted(groups.values(), key=lambda r: (-len(r), r)):
        inside = set(having)
        yield tuple(having), tuple(r for r in ranks if r not in inside), place


def _straight(paths: Mapping[int, Sequence[str]], ranks: tuple[int, ...], place: int) -> int:
    """Follow frames that all of these ranks share; give the place after them."""
    first, end = paths[ranks[0]], place
    while end < len(first) and all(end < len(paths[r]) and paths[r][end] == first[end] for r in ranks):
        end += 1
    return end
