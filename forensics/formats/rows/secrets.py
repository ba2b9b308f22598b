"""What must never reach the store: secrets by the name of their key or by their own form, mail addresses, persons."""

from __future__ import annotations

import re
from functools import lru_cache

from forensics.io.secrets import HIDDEN, is_empty, is_setting, looks_random, names_a_secret, without_secrets
from forensics.patterns import lazily

_ALSO = lazily(r"(?i)bearer|authorization|(?:^|_)(?:pwd|cookies?|creds?)$")
_PERSON = lazily(r"(?i)(?:^|_)(?:user|user_?name|e?_?mail|author|author_?email|user_?id)$")
_MAYBE = lazily(r"(?i)(?:^|_|-)(?:token|tokens|key|keys|auth|pat|pass)$|[a-z](?:Token|Key)$")


def masked(key: str, value: object) -> object:
    """Give the value, or `***` where its key or its form says that it is a secret or names a person."""
    if value is None or isinstance(value, bool):
        return value
    if is_secret(key):
        return HIDDEN
    if not isinstance(value, str):
        return value
    last = _last(key)
    if _MAYBE.search(last) and not is_empty(value):
        sounds = is_setting(last) or last.lower().endswith(("key", "keys", "pass"))
        if not sounds or looks_random(value):
            return HIDDEN
    return without_forms(value)


def is_secret(key: str) -> bool:
    """Whether a key, or a key above it, names a secret, or the key a person."""
    parts = re.split(r"[./]", key[:1000].replace("-", "_"))
    return any(_part_is_secret(part) for part in parts) or _PERSON.search(_last(key)) is not None


@lru_cache(maxsize=4096)
def _part_is_secret(part: str) -> bool:
    """The same of one part of a key; most keys of a file share the parts above them."""
    return names_a_secret(part) or _ALSO.search(part) is not None


def without_forms(text: str) -> str:
    """Give a text with everything that has the form or the name of a secret, or is a mail address, replaced."""
    return without_secrets(text, persons=True)


def _last(key: str) -> str:
    return re.split(r"[./]", key.rstrip("./0123456789") or key)[-1].replace("-", "_")
