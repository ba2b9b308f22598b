"""Values of both kinds: Structs, and the data classes of others."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from msgspec import Struct

from forensics.report.redacted import redacted
from forensics.values import field_names, firsts, is_value, replace


class Place(Struct, frozen=True):
    path: str
    line: int | None = None


@dataclass(frozen=True)
class Limits:
    least: int = 3
    names: tuple[str, ...] = field(default=())


@pytest.mark.parametrize(("value", "name", "new"), [(Place("a.log"), "line", 7), (Limits(), "least", 4)])
def test_a_value_is_given_with_another_content_of_a_field_and_stays_as_it_was(
    value: object, name: str, new: object
) -> None:
    before = repr(value)
    changed = replace(value, **{name: new})
    assert getattr(changed, name) == new
    assert (type(changed), repr(value)) == (type(value), before)
    assert changed != value
    assert replace(changed, **{name: getattr(value, name)}) == value


def test_fields_are_named_in_their_order_for_a_value_and_for_its_class() -> None:
    assert field_names(Place("a")) == field_names(Place) == ("path", "line")
    assert field_names(Limits()) == field_names(Limits) == ("least", "names")


def test_a_class_and_a_text_are_no_values() -> None:
    assert [is_value(one) for one in (Place("a"), Limits(), Place, Limits, "a", 3, None)] == [True] * 2 + [False] * 5


def test_a_field_that_a_value_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError):
        replace(Place("a"), nothing=1)


def test_texts_of_a_struct_are_redacted_as_those_of_a_data_class_are() -> None:
    assert redacted(Place("/home/rowan/a.log", 3)) == Place("/home/<user-1>/a.log", 3)


def test_the_first_of_the_items_for_each_key_are_kept_in_their_order() -> None:
    places = [Place("b", 2), Place("a", 1), Place("b", 1), Place("a", 1)]
    assert firsts(places, lambda place: place.path) == places[:2]
    assert firsts(places, lambda place: place) == places[:3]
    assert firsts([], str) == []
