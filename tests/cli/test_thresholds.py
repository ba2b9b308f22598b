"""A setting changes every command that shows what it decides."""

from __future__ import annotations

import json
import math
from pathlib import Path

from .conftest import Call


def test_a_setting_of_the_nan_rule_acts_on_triage_and_on_nan_origin_alike(call: Call, tmp_path: Path) -> None:
    losses = [math.nan if s % 8 == 0 else 2.0 + s / 1e4 for s in range(1, 206)]
    records = [json.dumps({"step": s, "loss": v}) + "\n" for s, v in enumerate(losses, start=1)]
    log = tmp_path / "m.jsonl"
    log.write_text("".join(records))

    def asked() -> tuple[str, str, int | None]:
        triage, nan = (json.loads(call(name, log, "--format", "json").out) for name in ("triage", "nan-origin"))
        return triage["verdict"]["outcome"], nan["kind"], triage["verdict"]["onset"]["step"]

    usual = asked()
    Path("forensics.toml").write_text("[rules.NAN001]\nfault_share = 0.1\n")
    strict = asked()
    assert usual[0] != "failed"
    assert (strict[0], strict[2]) == ("failed", 8)
    assert strict[1] != "none"
