"""Made-up secrets of every form in `secret_forms.tsv`: no literal in the repository has the form of one."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass

from forensics.io.secrets import Form, forms

_ALNUM = string.ascii_letters + string.digits
ALPHABETS = {
    "a": string.ascii_letters,
    "l": string.ascii_lowercase,
    "d": string.digits,
    "h": "0123456789abcdef",
    "x": _ALNUM,
    "n": string.ascii_lowercase + string.digits,
    "N": string.ascii_uppercase + string.digits,
    "w": _ALNUM + "-_",
    "s": _ALNUM + "+/",
    "B": string.ascii_uppercase + "234567",
}
_MADE = re.compile(r"\{([aldhxnNwsB])(\d+)\}")
#: Parts of a secret shorter than this may stand in a text by chance.
_TELLING_CHARS = 8


@dataclass(frozen=True)
class Planted:
    """One secret: the variable that usually holds it, and the parts of it that must not be seen."""

    form: Form
    name: str
    value: str
    parts: tuple[str, ...]

    @property
    def has_shape(self) -> bool:
        return self.form.kind == "shape"

    def seen_in(self, text: str) -> bool:
        return any(part in text for part in self.parts)


def made(template: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """Fill a template; give it with the parts that were made up, cut to what is telling."""
    parts: list[str] = []

    def fill(found: re.Match[str]) -> str:
        alphabet, chars = found[1], int(found[2])
        parts.append("".join(rng.choices(ALPHABETS[alphabet], k=chars)))
        return parts[-1]

    text = _MADE.sub(fill, template)
    return text, tuple(part[:_TELLING_CHARS] for part in parts if len(part) >= _TELLING_CHARS)


def planted(seed: int) -> Iterator[Planted]:
    """Give one secret for every example of the table."""
    rng = random.Random(seed)
    for form in forms():
        for example in form.examples:
            text, parts = made(example, rng)
            name, eq, value = text.partition("=")
            if eq and form.kind != "person":
                yield Planted(form, name, value, parts)
