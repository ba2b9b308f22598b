"""The `attrs` of an event as strings."""

from __future__ import annotations

import json
from typing import cast


def attributes(text: str | None) -> dict[str, str]:
    """Read the JSON object of `attrs`; empty when absent or damaged."""
    try:
        found: object = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(key): str(value) for key, value in cast("dict[object, object]", found).items()}
