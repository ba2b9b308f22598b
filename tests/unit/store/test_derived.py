from __future__ import annotations

from forensics.store.run import Run, derived

ASKED: list[str] = []


@derived
def letters(run: Run) -> int:
    """Count the letters of a run's name."""
    ASKED.append(run.name)
    return len(run.name)


def test_what_is_derived_is_computed_once_for_each_run_and_never_for_another() -> None:
    first, second = Run("night"), Run("noon")
    assert [letters(first), letters(second), letters(first)] == [5, 4, 5]
    assert ASKED == ["night", "noon"]


def test_a_derived_function_keeps_its_name_and_its_words() -> None:
    assert (letters.__name__, letters.__doc__) == ("letters", "Count the letters of a run's name.")
