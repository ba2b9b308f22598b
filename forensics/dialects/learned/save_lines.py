"""Save lines as custom loops print them: the step is in the path, in the text, or on the nearest earlier line."""

from __future__ import annotations

from forensics.dialects.spec import Line

_SAVE = r"(?i)\bsav(?:ed|ing)\b"
_THING = r"(?:checkpoint|ckpt|model|weights|state|snapshot)"
_PATH = r"[^\s'\",]*"
#: The patterns of save lines, the most telling first. What was written or dumped, and not saved, is a checkpoint where
#: its path ends as files of weights do.
CHECKPOINT_LINES: tuple[Line, ...] = (
    Line(
        "saved",
        "av",
        rf"{_SAVE}.*?(?P<path>{_PATH}(?:step|iter|update|checkpoint|ckpt|model|state)[a-z]*[-_=/]?(?P<step>\d+){_PATH})",
    ),
    Line(
        "saved",
        "av",
        rf"{_SAVE}[^/]*?{_THING}[^/]*?\b(?:step|iter(?:ation)?|update)s?[ :=#]*(?P<step>\d+)"
        rf"(?:.*?(?P<path>{_PATH}[/\\]{_PATH}))?",
    ),
    Line(
        "saved",
        "av",
        rf"{_SAVE}.*?(?P<path>{_PATH}(?:[/\\]{_PATH}{_THING}{_PATH}|\.(?:pth?|ckpt|safetensors|h5|keras|tar)\b))",
    ),
    *(
        Line("saved", end, rf"(?i)\b\w+{end}\b.*?(?P<path>{_PATH}\.(?:pth?|ckpt|safetensors|h5|keras|tar)\b)")
        for end in ("rote", "riting", "ritten", "umped", "umping")
    ),
)
