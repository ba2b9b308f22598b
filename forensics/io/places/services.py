"""The kinds of object storage, their credentials, and the meaning of their refusals: two tables."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from forensics.io.tables import named_rows


class Service(Struct, frozen=True):
    """One kind: the prefix of its places, and its environment variables."""

    scheme: str
    credentials: str
    endpoint: str
    example: str
    source: str


class Refusal(Struct, frozen=True):
    """Why a request had no success, in words; `silent` where the service gave no answer of its own to it."""

    sign: str
    silent: bool
    words: str
    help: str


@cache
def services() -> dict[str, Service]:
    """Give every kind by its scheme."""
    return {row["scheme"]: Service(**row) for row in named_rows("forensics.io.places", "services.tsv")}


def refusal_of(error: BaseException, scheme: str) -> Refusal:
    """Give the meaning of an error of the client, none of whose words is repeated: they hold keys and signatures."""
    said = f"{type(error).__name__} {error}"
    found = next(one for one in _refusals() if one.sign in said)
    service = services()[scheme]
    words = {"credentials": service.credentials, "endpoint": service.endpoint, "example": service.example}
    return Refusal(found.sign, found.silent, found.words, found.help.format(**words))


@cache
def _refusals() -> tuple[Refusal, ...]:
    return tuple(
        Refusal(r["sign"], r["silent"] == "yes", r["words"], r["help"])
        for r in named_rows("forensics.io.places", "refusals.tsv")
    )
