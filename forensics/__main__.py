"""`python -m forensics` is `forensics`."""

from __future__ import annotations

import sys

from forensics.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
