"""The engine of a Ray cluster: the one that `RAY_ADDRESS` names, else one that is started for the command alone.

Every machine of it sees the run and the store under the same paths, and has forensics installed. Ray starts a task
again when its worker or its machine dies.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from msgspec import Struct

import forensics
from forensics.errors import MissingPackage, PlaceError
from forensics.io.optional import optional
from forensics.io.safe_text import printable
from forensics.scale import wire
from forensics.scale.second_try import W, tried_twice
from forensics.scale.worker import Reply, name_of, reply_to
from forensics.store.disk import Lost

R = TypeVar("R")
_PACKAGE = "ray"
_EXTRA = "pip install 'ml-run-forensics[ray]'"
_ADDRESS = "RAY_ADDRESS"
_MOST_CHARS = 300
_NO_CLUSTER = "look at the cluster, or leave --engine out"
#: Nothing is reported to anybody; what is started here for one command asks for no token, which would go into HOME.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0"}
_OWN = {"RAY_AUTH_MODE": "disabled"}
#: Ray starts a task so often again when its worker or its machine dies.
_RETRIES = 2
#: Memory that a task asks for: that of the program and its libraries, and of a file that is held whole, three times its
#: size (a memory snapshot takes 2.6 times, an event file 2.8 times); larger files are read in pieces or spooled.
_BASE_BYTES, _FILE_FACTOR, _WHOLE_BYTES = 512 << 20, 3, 256 << 20


def check() -> None:
    """Look for Ray; raises `MissingPackage` when it is not installed."""
    if importlib.util.find_spec(_PACKAGE) is None:
        missing = MissingPackage(_PACKAGE)
        missing.help = _EXTRA
        raise missing


class Cluster(Struct, frozen=True):
    """A Ray cluster; `jobs` is the number of processes of one that is started here, None for its cores."""

    jobs: int | None = None

    def map_unordered(self, function: Callable[[W], R], items: Sequence[W]) -> Iterator[tuple[W, R] | Lost[W]]:
        """Do every item.

        Raises `PlaceError` when there is no cluster to join or to start, or a machine refuses what an item writes to.
        """
        check()
        os.environ.update({**_QUIET, **os.environ})
        ray = optional(_PACKAGE, _PACKAGE)
        kind: type[R] = get_type_hints(function)["return"]
        with _connected(ray, self.jobs):
            yield from tried_twice(
                lambda several, alone: _done(ray, name_of(function), kind, several, alone=alone), items
            )


@contextlib.contextmanager
def _connected(ray: Any, jobs: int | None) -> Generator[None]:  # noqa: ANN401 - it has no types of its own
    """Join the cluster, and leave it: workers look for modules where forensics is, not in the working folder.

    Raises `PlaceError` when there is no cluster to join, or none can be started.
    """
    if ray.is_initialized():
        yield
        return
    given: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if not os.environ.get(_ADDRESS):
        os.environ.update({**_OWN, **os.environ})
        given |= {"address": "local", "num_cpus": jobs, "include_dashboard": False}
    with contextlib.chdir(Path(forensics.__file__).parents[1]):
        try:
            ray.init(**given)
        except Exception as error:  # ray raises what it likes, an Exception itself where a node is slow to start
            address = os.environ.get(_ADDRESS)
            place = f"ray, the cluster at {address}" if address else "ray, a cluster of its own"
            raise PlaceError(place, OSError(printable(str(error), _MOST_CHARS)), help=_NO_CLUSTER) from error
    with contextlib.redirect_stdout(sys.stderr):  # a thread of ray prints there that a worker died
        try:
            yield
        finally:
            ray.shutdown()


def _done(
    ray: Any,  # noqa: ANN401 - it has no types of its own
    named: str,
    kind: type[R],
    items: Sequence[W],
    *,
    alone: bool,
) -> Iterator[tuple[W, R | None, str]]:
    """Do items, two at once for each core of the cluster or one alone; give the record, or how the task died."""
    task = ray.remote(work)
    left, pending = deque(items), dict[Any, W]()
    while left or pending:
        most = 1 if alone else 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        while left and len(pending) < most:
            item = left.popleft()
            memory = _BASE_BYTES + _FILE_FACTOR * min(item.size_bytes, _WHOLE_BYTES)
            asked = task.options(num_cpus=1, max_retries=_RETRIES, memory=memory)
            pending[asked.remote(named, wire.packed(item))] = item
        ready, _ = ray.wait(list(pending), num_returns=1)
        for one in ready:
            item = pending.pop(one)
            try:
                yield item, wire.unpacked(ray.get(one), Reply).record_as(kind), ""
            except ray.exceptions.RayError as error:
                yield item, None, f"the task that reads it ends in {type(error).__name__}"


def work(named: str, data: bytes) -> bytes:
    """Do one item in a worker of Ray."""
    return wire.packed(reply_to(named, data))
