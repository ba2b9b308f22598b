"""Scalars of a YAML document that only an escape can write."""

from __future__ import annotations

import pytest

from forensics.formats.configs.yaml_leaves import leaves


@pytest.mark.parametrize("text", ['run: "\\ud800 a"\n', '"\\ud800": 1\n', 'run: "\\udfff"\nlr: 0.5\n'])
def test_a_lone_surrogate_stays_as_its_visible_escape(text: str) -> None:
    found = [(leaf.path, str(leaf.value)) for leaf in leaves(text)]

    assert found
    assert any("\\ud" in word for pair in found for word in pair)
    assert "".join(word for pair in found for word in pair).isascii()
