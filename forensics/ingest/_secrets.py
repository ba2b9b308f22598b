"""What must never reach the store: secrets by the name of their key or by their own form, mail addresses, persons."""

from __future__ import annotations

import re

HIDDEN = "***"
_ALWAYS = re.compile(r"(?i)passw|passphrase|secret|credential|private_?key|api_?key|access_?key|bearer|authorization")
_PERSON = re.compile(r"(?i)(?:^|_)(?:user|user_?name|e?_?mail|author|author_?email|user_?id)$")
_MAYBE = re.compile(r"(?i)(?:^|_|-)(?:token|tokens|key|keys|auth|pat)$|[a-z](?:Token|Key)$")
#: Names that end in `token` or `key` and are settings of a model or of a data set.
_SETTING = re.compile(
    r"(?i)(?:bos|eos|pad|unk|sep|cls|mask|bod|eod|eot|boi|eoi|image|video|audio|speech|start|end|stop|think|thinking"
    r"|prefix|suffix|middle|special|tokens?|forced|first|last|new|prompt|column|text|response|input|output|label|image"
    r"|question|answer|messages?|conversations?|metric|primary|sort|reward_fn|chosen|rejected|source|target|data|query"
    r"|max|min|num|n|total|per|value|role|content)_?(?:tokens?|keys?)$"
)
_FORM = re.compile(
    r"hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}"
    r"|AKIA[0-9A-Z]{16}|xox[abeoprs]-[\w-]{10,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|AIza[\w-]{30,}|dop_v1_\w{16,}"
    r"|-----BEGIN[A-Z ]*PRIVATE KEY-----|[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}\w|(?<=://)[^\s/@:]*:[^\s/@]*(?=@)"
    r"|(?i:(?<=token=)|(?<=key=)|(?<=password=)|(?<=secret=)|(?<=Bearer ))[^\s&,;\"']{4,}"
)


def masked(key: str, value: object) -> object:
    """Give the value, or `***` where its key or its form says that it is a secret or names a person."""
    if value is None or isinstance(value, bool):
        return value
    last = re.split(r"[./]", key.rstrip("./0123456789") or key)[-1].replace("-", "_")
    if _ALWAYS.search(last) or _PERSON.search(last):
        return HIDDEN
    if not isinstance(value, str):
        return value
    if _MAYBE.search(last) and not _SETTING.search(last) and not _is_mark(value):
        return HIDDEN
    return without_forms(value)


def without_forms(text: str) -> str:
    """Give a text with everything that has the form of a secret or of a mail address replaced."""
    return _FORM.sub(HIDDEN, text)


def _is_mark(value: str) -> bool:
    """Whether it is nothing, or a special token as it is printed: `<s>`, `[PAD]`, `<|end|>`."""
    return not value or (len(value) <= 64 and value[0] in "<[" and value[-1] in ">]")
