"""Lines that are program text, not output: logs often print the script that they come from."""

from __future__ import annotations

#: Searched in a segment as printed; a match is never a metric or an error, whatever words it holds.
SOURCE = (
    r"^[+-]?\s*(?:(?:async )?(?:def|class) \w+.*:|import \w|from [\w.]+ import\b"
    r"|(?:if|elif|while|for|with|except|try|else|finally|async)\b.*:\s*(?:#.*)?$"
    r"|raise [\w.]+|return\b|assert\b|print0?\(|@\w+|#|\"\"\"|'''|f?r?[\"'].*[\"'][,)+]\s*$|[fr][\"'].*[\"']\s*$"
    r"|\w+(?:\.\w+|\[[^\]]*\])*\s*[-+*/]?=\s*[A-Za-z_(\[{\"'])"
    r"|\b(?:print0?|log(?:ger|ging)?\.\w+|log0|warnings\.warn|RuntimeError|ValueError|Exception)\(f?[\"']"
    r"|\braise [\w.]+\(|^[+-]?\s+[\"'].*[\"']\s*$"  # at its line's start a program prints what it prints in quotes
)
