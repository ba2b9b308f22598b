from __future__ import annotations

from forensics.dialects.advice import advice
from forensics.dialects.events import signatures


def test_every_signature_gives_its_own_advice() -> None:
    for row in signatures.table():
        found = advice(row.id)
        assert found is not None
        assert found.fix == row.fix


def test_an_exception_is_known_by_its_message() -> None:
    found = advice("traceback", "RuntimeError: CUDA error: device-side assert triggered")
    assert found is not None
    assert found.fix.endswith(".")


def test_an_error_of_the_users_own_has_no_advice() -> None:
    assert advice("traceback", "ValueError: shard 17 is empty") is None
