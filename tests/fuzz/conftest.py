"""The modules of this folder import one another by name, as they do when the harness is run as a script."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
