"""What must never reach the store: secrets by the name of their key or by their own form, mail addresses, persons."""

from __future__ import annotations

import re

HIDDEN = "***"
_ALWAYS = re.compile(
    r"(?i)passw|passphrase|secret|credential|api_?key|access_?key|bearer|authorization|(?:^|_)pwd$|(?:^|_)cookies?$"
    r"|(?:private|account|storage|encryption|signing|deploy|ssh|wandb|hf|hub|hugging_?face|openai|anthropic|azure|aws|gcp"
    r"|google|service|master|webhook)_?key|connection_?string|webhook_?url"
)
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
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}|(?<![A-Za-z0-9])eyJ[\w-]{8,1000}\.[\w-]{8,}(?:\.[\w-]*)?|AIza[\w-]{30,}"
    r"|dop_v1_\w{16,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|wandb_v\d_\w{20,}|hooks\.slack\.com/services/[\w/]{8,}"
    r"|-----BEGIN[A-Z ]*PRIVATE KEY-----(?:(?!-----END)[\s\S])*(?:-----END[A-Z ]*PRIVATE KEY-----)?"
    r"|(?<=://)[^\s/@\"']{1,512}(?=@)|[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}\w"
)
_WORDS = (
    r"(?:[\w-]{0,60}(?:api|access|private|account|storage|signing|deploy|ssh|wandb|hf|hub|openai|anthropic|azure|aws)"
    r"[_-]?key(?:[_-]?id)?|[\w-]{0,60}(?:secret|passw(?:or)?d|passphrase|credential)[\w-]{0,20}"
    r"|[\w-]{0,60}(?:auth|access|hf|hub|api|bearer|refresh|session|bot|github|git|gitlab|slack|wandb|npm|login|face)[_-]?token)"
)
_VALUE = r"(?!\*\*\*|[$<{\[(]|(?:none|null|true|false|nil)\b)[^\s,;&\"'\\<>})\]]"
_Q = r"\\?[\"']?"
#: A name and its value: `name=value`, `"name": "value"`, `--name value`, `"--name", "value"`.
_NAMED = re.compile(
    rf"(?i)(?<![\w-])((?:{_WORDS}){_Q}\s{{0,8}}(?:=>|[=:])\s{{0,8}}{_Q}"
    rf"|--?{_WORDS}{_Q}[\s,]{{1,8}}{_Q}(?!-))({_VALUE}+)"
)
_BARE = re.compile(
    rf"(?i)(?<![\w-])((?:--)?(?:token|key|auth|pat){_Q}(?:\s{{0,8}}[=:]\s{{0,8}}|(?<=token)[\s,]{{1,4}}){_Q})"
    r"(?=[A-Za-z_-]{0,64}\d)(?=[\d_-]{0,64}[A-Za-z])([\w./+-]{16,})"
)
_BEARER = re.compile(
    r"(?i)\b(bearer\s{1,4}|authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:basic|token)\s{1,4}"
    r"|wandb(?:\.| )login(?:\s{1,4}--?[\w-]{1,20}){0,3}\W{1,10}(?:key\W{1,4})?|password\s{1,4}(?=[0-9a-f]{40}\b))"
    r"([\w.~+/-]{8,}=*)"
)
#: One of these stands in every text that holds a secret, a text without any (in lower case) needs no search.
HINTS = (
    *(
        "hf_",
        "sk-",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "akia",
        "asia",
        "xox",
        "xapp-",
        "eyj",
    ),
    *(
        "aiza",
        "dop_v1_",
        "npm_",
        "pypi-",
        "wandb",
        "hooks.slack",
        "private key",
        "@",
        "key",
        "token",
        "passw",
        "secret",
    ),
    *("passphrase", "credential", "bearer", "authorization", "auth=", "auth:", "pat=", "pat:"),
)


def masked(key: str, value: object) -> object:
    """Give the value, or `***` where its key or its form says that it is a secret or names a person."""
    if value is None or isinstance(value, bool):
        return value
    if is_secret(key):
        return HIDDEN
    if not isinstance(value, str):
        return value
    last = _last(key)
    if _MAYBE.search(last) and not _SETTING.search(last) and not _is_mark(value):
        return HIDDEN
    return without_forms(value)


def is_secret(key: str) -> bool:
    """Whether a key, or one that it stands under, names a secret, or the key a person."""
    if any(_ALWAYS.search(part) for part in re.split(r"[./]", key[:1000].replace("-", "_"))):
        return True
    return _PERSON.search(_last(key)) is not None


def without_forms(text: str) -> str:
    """Give a text with everything that has the form or the name of a secret, or is a mail address, replaced."""
    lowered = text.lower()
    if not any(hint in lowered for hint in HINTS):
        return text
    text = _FORM.sub(HIDDEN, text)
    for pattern in (_NAMED, _BARE, _BEARER):
        text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    return text


def _last(key: str) -> str:
    return re.split(r"[./]", key.rstrip("./0123456789") or key)[-1].replace("-", "_")


def _is_mark(value: str) -> bool:
    """Whether it is nothing, or a special token as it is printed: `<s>`, `[PAD]`, `<|end|>`."""
    return not value or (len(value) <= 64 and value[0] in "<[" and value[-1] in ">]")
