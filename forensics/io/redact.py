"""Names of people and machines, addresses and secrets out of a text, each replaced by a numbered word.

Equal names get equal words (`<host-1>`), so that what happened where stays readable. What is hidden: user names (of
home folders, and those stated), hosts, IP and e-mail addresses, and secrets in every form of `secret_forms.tsv`. Times,
steps, ranks and numbers are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv6Address

from msgspec import Struct, field

from forensics.io.secrets import without_secrets
from forensics.patterns import lazily

_B, _E = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"
_EMAIL = lazily(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})*\.[A-Za-z]{2,24}(?![\w-])")
_SSH = lazily(r"(?<![\w.+-])([A-Za-z_][\w.-]{0,31})@([A-Za-z][\w.-]{1,252})")
_HOME = lazily(r"(?i)((?:/(?:home|users)/|[a-z]:[\\/]+users[\\/]+))(?!<)([^/\\\s:\"'<>|,;()\]]+)")
_ROOT_HOME = lazily(r"(?<![\w.<>-])/root(?=[/\s:\"',;)]|$)")
_MAIL_LIKE_HOME = lazily(
    r"(?i)((?:/(?:scratch|work|data|fsx|lustre|gpfs|nfs|mnt|projects?|u|export/home)/(?:users?|home)/))(?!<)([^/\\\s:\"']+)"
)
_USER_KEY = lazily(
    r"(?i)(\b(?:user(?:_?name)?|login|logname|owner|email)[\"']?\s*[=:]\s*[\"']?)(?!<)([A-Za-z_][\w.-]{1,63})"
)
_HOST_KEY = lazily(
    r"(?i)(\b(?:host(?:_?name)?|node(?:_?name|_?list)?|master_addr|slurmd_nodename|slurm_(?:job_)?nodelist|server|machine)"
    r"[\"']?\s*[=:]\s*[\"']?)(?!<)(?!(?:null|none|true|false|localhost|rank|\d+)\b)([A-Za-z0-9][\w.\[\],-]{1,253})"
)
_FQDN = lazily(
    r"(?i)(?<![\w@./<-])(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+"
    r"(?:internal|local|lan|corp|cluster|hpc|intranet|compute|svc|com|net|org|edu|gov|io|ai|dev|cloud|ac\.[a-z]{2}"
    r"|de|fr|uk|ch|eu|jp|cn|us|ca)(?![\w-]|\.\w)"
)
_NODE = lazily(
    r"(?i)(?<![\w./<-])(?:ip-\d{1,3}(?:-\d{1,3}){3}|(?:gpu|node|compute|worker|host|nid|dgx|cn|hgx)(?:[-_]?[a-z]+)?-?\d{2,6}"
    r"(?:-\d+)?)(?![\w])"
)
_IPV4 = lazily(r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w]|\.\d)")
_IPV6 = lazily(r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![\w:])")
_LONG_HEX = lazily(rf"{_B}[0-9a-f]{{40}}{_E}")
_LEAST = 3
_COMMON = frozenset(
    {"root", "user", "none", "null", "true", "false", "localhost", "train", "model", "data", "run", "runs"}
)


class Redactor(Struct):
    """Hides names; what it met before gets the word that it got then. `users` and `hosts` are known by other means."""

    users: Iterable[str] = ()
    hosts: Iterable[str] = ()
    _words: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _literals: re.Pattern[str] | None = None
    _kinds: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        """Compile the names that are known beforehand, the longest first."""
        for kind, names in (("host", self.hosts), ("user", self.users)):
            self._kinds |= {n.lower(): kind for n in names if len(n) >= _LEAST and n.lower() not in _COMMON}
        if self._kinds:
            every = "|".join(re.escape(n) for n in sorted(self._kinds, key=lambda n: (-len(n), n)))
            self._literals = re.compile(rf"(?i){_B}(?:{every}){_E}")

    def text(self, text: str) -> str:
        """Give the text without names and secrets."""
        if not text or text.isdigit():
            return text
        text = _LONG_HEX.sub("<token>", without_secrets(text, "<secret>"))
        text = _EMAIL.sub(lambda m: self._word("email", m[0]), text)
        text = _SSH.sub(lambda m: f"{self._word('user', m[1])}@{self._word('host', m[2])}", text)
        for pattern in (_HOME, _MAIL_LIKE_HOME, _USER_KEY):
            text = pattern.sub(lambda m: m[1] + self._word("user", m[2]), text)
        text = _ROOT_HOME.sub("/<home>", text)
        text = _IPV6.sub(lambda m: self._word("ip", m[0]) if _is_ipv6(m[0]) else m[0], text)
        text = _IPV4.sub(lambda m: self._word("ip", m[0]), text)
        text = _HOST_KEY.sub(lambda m: m[1] + self._word("host", m[2]), text)
        for pattern in (_FQDN, _NODE):
            text = pattern.sub(lambda m: self._word("host", m[0]), text)
        if self._literals is not None:
            text = self._literals.sub(lambda m: self._word(self._kinds[m[0].lower()], m[0]), text)
        return text

    def _word(self, kind: str, name: str) -> str:
        if name.startswith("<"):
            return name
        key = (kind, name.lower())
        if key not in self._words:
            self._words[key] = f"<{kind}-{1 + sum(k == kind for k, _ in self._words)}>"
        return self._words[key]


def _is_ipv6(text: str) -> bool:
    if text.count(":") < 3 and "::" not in text:
        return False  # a time of day
    try:
        IPv6Address(text)
    except (AddressValueError, ValueError):
        return False
    return any(c in "abcdefABCDEF" for c in text) or "::" in text or text.count(":") == 7
