"""What is written to a place by its name: a file of this machine, or an object of a bucket, whole or not at all."""

from __future__ import annotations

from pathlib import Path

from forensics.errors import UsageError
from forensics.io.atomic import write_atomic
from forensics.io.places.bucket import Bucket
from forensics.io.places.client import told_of
from forensics.io.places.named import Where, place_of

_FORCE = "give --force to replace it, or another name to -o"


def write(where: Where, data: bytes, *, force: bool) -> None:
    """Write a result.

    Raises `UsageError` when something has that name and `force` is not given, or when it names no file; `PlaceError`
    when the place cannot be written to.
    """
    place = place_of(where)
    if not isinstance(place, Bucket):
        write_atomic(_path(where), data, force=force)
        return
    if not place.prefix:
        message = f"{place.name} names a bucket, and no object of it"
        raise UsageError(message, help=f"-o {place.name}/report.html")
    if not written_once(place, data, force=force):
        message = f"{place.name} exists"
        raise UsageError(message, help=_FORCE)


def written_once(place: Bucket, data: bytes, *, force: bool = False) -> bool:
    """Write an object unless another one has its name, in one request: of several that try, one wins.

    False where another one is there. One with the same bytes is ours: a request without an answer may have had success.
    Raises `PlaceError` when the bucket refuses, or answers no more.
    """
    with told_of(place.name):
        put = place.client.put(place.prefix, data, force=force)
        return put or place.client.whole(place.prefix, len(data)) == data


def is_taken(where: Where) -> bool:
    """Whether a file or an object has this name.

    Raises `PlaceError` when a bucket refuses to say, or answers no more.
    """
    place = place_of(where)
    if not isinstance(place, Bucket):
        return _path(where).is_file()
    with told_of(place.name):
        return bool(place.prefix) and place.client.is_object(place.prefix)


def _path(where: Where) -> Path:
    folder = place_of(where).folder
    assert folder is not None
    return folder
