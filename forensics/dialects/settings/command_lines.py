"""Command lines that a log or a script prints: options of the program as settings, those of its launcher apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from msgspec import Struct

from forensics.dialects.settings.literal import Scalar, scalar
from forensics.patterns import lazily

LITERALS = (
    *(b"torchrun ", b"python ", b"python3 ", b"accelerate launch", b"deepspeed --", b".py --"),
    b"torch.distributed",
)
_WORD = lazily(r"(?:[^\s'\"]+|'[^']*'|\"[^\"]*\")+")
_RUNS = lazily(r"(?:^|[\s/])(?:torchrun|python[\d.]*|accelerate|deepspeed|srun|mpirun)\s")
_OPTION = lazily(r"^--?([A-Za-z_][\w.-]*)(?:=(.*))?$", re.DOTALL)
_OVERRIDE = lazily(r"^[+~]{0,2}([A-Za-z_][\w.@/]*)=(.*)$", re.DOTALL)
_WORDS, _FEWEST, _LINES = 1000, 2, 200


class Argument(Struct, frozen=True):
    """One option: its name with underscores, its value, `config`, or `env` where it is the launcher's."""

    key: str
    value: Scalar
    family: str


def arguments(text: str) -> list[Argument]:
    """Options of the command that the first line prints; continued lines are joined; fewer than two are none."""
    line = _joined(text)
    if not _RUNS.search(line) and ".py --" not in line:
        return []
    words = [found.group() for found in islice(_WORD.finditer(line), _WORDS)]
    script = next((n for n, word in enumerate(words) if word.endswith(".py")), None)
    if script is None:
        modules = (n + 1 for n, word in enumerate(words[:-1]) if word == "-m" and "torch" not in words[n + 1])
        script = next(modules, None)
    if script is None:
        return []
    own = _options(words[script + 1 :], "", "config")
    if len(own) < _FEWEST:
        return []
    first = next((n for n, word in enumerate(words[:script]) if word.startswith("-")), script)
    return [*_options(words[first:script], "launcher.", "env"), *own]


def options(words: Sequence[str]) -> list[Argument]:
    """Options of a program whose arguments are given word by word; what is no option is passed over."""
    first = next((n for n, word in enumerate(words) if word.startswith("-") or _OVERRIDE.match(word)), len(words))
    return _options(list(words[first : first + _WORDS]), "", "config")


def _joined(text: str) -> str:
    lines = text.split("\n", _LINES)
    parts: list[str] = []
    for line in lines[:_LINES]:
        plain = line.rstrip()
        parts.append(plain.removesuffix("\\"))
        if not plain.endswith("\\"):
            break
    return " ".join(parts)


def _options(words: list[str], before: str, family: str) -> list[Argument]:
    found: list[Argument] = []
    waiting: str | None = None
    for word in words:
        option = _OPTION.match(word)
        if option and not re.fullmatch(r"-\d[\d.e-]*", word):
            if waiting is not None:
                found.append(Argument(waiting, True, family))  # noqa: FBT003 - the value of a switch
            name = before + option[1].replace("-", "_")
            waiting = name if option[2] is None else None
            if option[2] is not None:
                found.append(Argument(name, _value(option[2]), family))
        elif waiting is not None:
            found.append(Argument(waiting, _value(word), family))
            waiting = None
        elif override := _OVERRIDE.match(word):
            found.append(Argument(before + override[1], _value(override[2]), family))
        elif found and not word.startswith(("-", "|", ">", "&")) and isinstance(found[-1].value, (str, int, float)):
            last = found[-1]
            found[-1] = Argument(last.key, f"{last.value} {word}", family)
        else:
            break
    if waiting is not None:
        found.append(Argument(waiting, True, family))  # noqa: FBT003 - the value of a switch
    return found


def _value(word: str) -> Scalar:
    plain = word[1:-1] if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0] else word
    return scalar(plain) if plain else ""
