"""The pictures of README.md and the site: `python docs/make_pictures.py [terminal]`, from the root of the repository.

terminal.svg is what `forensics triage` prints in colour, letter by letter; a test makes it anew and compares.
report.png is the page of `forensics report` in a browser; it needs playwright and the system's chromium, and is left
as it is without them.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from make_reference import answer

PICTURES = Path(__file__).parent / "pictures"
RUN = "fixtures/runs/nan-blowup-kempnerforge"
_SGR = re.compile(r"\x1b\[([0-9;]*)m")
_WIDTH, _HEIGHT, _MARGIN = 8.4, 19, 18
#: The screen of a laptop, on which the answer and its chart are seen without scrolling.
_PAGE = {"width": 1280, "height": 900}
_CLASSES = {"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "36": "c"}
_CSS = (
    "text{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#d7dce2;white-space:pre}"
    ".b{font-weight:bold}.d{fill:#8b949e}.r{fill:#ff7b72}.g{fill:#7ee787}.y{fill:#e3b341}.c{fill:#79c0ff}"
)


def terminal(command: str) -> str:
    """Draw a command and what it prints in colour as SVG; each run of letters is as wide as its columns."""
    _, printed = answer(f"{command} --color always")
    rows = [f"\x1b[2m$\x1b[0m \x1b[1mforensics {command}\x1b[0m", *printed.splitlines()]
    columns = max(len(_SGR.sub("", row)) for row in rows)
    width, height = round(columns * _WIDTH + 2 * _MARGIN), len(rows) * _HEIGHT + 2 * _MARGIN
    texts = "\n".join(text for index, row in enumerate(rows) for text in _texts(row, _MARGIN + (index + 1) * _HEIGHT))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img">\n<title>What forensics {escape(command)} prints</title>\n<style>{_CSS}</style>\n'
        f'<rect width="100%" height="100%" rx="8" fill="#14171a"/>\n{texts}\n</svg>\n'
    )


def _texts(row: str, y: int) -> Iterator[str]:
    parts = _SGR.split(row)  # text, codes, text, codes, …
    column, classes = 0, ""
    for index, part in enumerate(parts):
        if index % 2:
            classes = " ".join(_CLASSES[code] for code in part.split(";") if code in _CLASSES)
            continue
        if part.strip():
            lead = len(part) - len(part.lstrip())
            words = part.strip()
            at, long = _MARGIN + (column + lead) * _WIDTH, len(words) * _WIDTH
            named = f' class="{classes}"' if classes else ""
            yield f'<text x="{at:.1f}" y="{y - 5}" textLength="{long:.1f}"{named}>{escape(words)}</text>'
        column += len(part)


def report(into: Path) -> bool:
    """Take the picture of the page as it opens; False where there is no browser."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - it may not be installed
    except ImportError:
        return False
    if chromium is None:
        return False
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        page_file = Path(folder) / "report.html"
        code, _ = answer(f"report {RUN} -o {page_file}")
        if code not in {0, 1}:
            return False
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page: Any = opened.new_page(viewport=_PAGE, color_scheme="light")
        page.goto(page_file.as_uri())
        page.screenshot(path=str(into))
        opened.close()
    return True


def main() -> int:
    """Write both pictures, or the one of the terminal only."""
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / "terminal.svg").write_text(terminal(f"triage {RUN}"), encoding="utf-8")
    if sys.argv[1:] == ["terminal"]:
        return 0
    made = report(PICTURES / "report.png")
    print("terminal.svg" + (", report.png" if made else "; no browser, so report.png stays as it is"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
