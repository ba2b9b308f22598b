"""From the user's text to a place; the only way from a name to a place, and the only one that may ask a network."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from urllib.parse import unquote, urlsplit

from forensics.errors import UsageError
from forensics.io.places.local import Local
from forensics.io.places.place import Place
from forensics.patterns import lazily

#: A place, or what a user calls it.
Where = Place | str | PathLike[str]
_SCHEME = lazily(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_BUCKET = lazily(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_HELP = "a folder, a file, or as {}"


def place_of(where: Where) -> Place:
    """Give the place of this name: an address of object storage, or a path of this machine.

    A `Path` is always one of this machine. Raises `UsageError` for an address of another kind, one that no key can
    have, or one that carries credentials.
    """
    if isinstance(where, PathLike):
        return Local(Path(where))
    if not isinstance(where, str):
        return where
    address = _SCHEME.fullmatch(where)
    return Local(Path(where)) if address is None else _addressed(address["scheme"].lower(), address["rest"])


def _addressed(scheme: str, rest: str) -> Place:
    from forensics.io.places.services import services  # noqa: PLC0415 - few runs lie in a bucket

    known = services()
    if scheme == "file":
        host, path = urlsplit(f"file://{rest}")[1:3]
        if host not in ("", "localhost") or not path:
            raise UsageError("file:// names a path of this machine", help="write file:///path/of/run")
        return Local(Path(unquote(path)))
    examples = ", ".join(service.example for service in known.values())
    if scheme not in known:
        message = f"{scheme}:// is no place that can be read"
        raise UsageError(message, help=_HELP.format(examples))
    bucket, _, prefix = rest.partition("/")
    if "@" in bucket or "?" in rest:  # not repeated: the typed text may hold a key
        message = f"{scheme}:// takes a bucket and a prefix; credentials come from the environment"
        raise UsageError(message, help=f"set {known[scheme].credentials}")
    parts = prefix.strip("/").split("/")
    if not _BUCKET.fullmatch(bucket) or (prefix and any(part in ("", ".", "..") for part in parts)):
        message = f"{scheme}://{rest} names no bucket and prefix"
        raise UsageError(message, help=f"write {known[scheme].example}")

    from forensics.io.places.bucket import bucket_at  # noqa: PLC0415 - few runs lie in a bucket

    return bucket_at(scheme, bucket, "/".join(parts) if prefix else "")
