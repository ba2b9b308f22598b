"""The mutants' own tool: its operators do what they say, and what it changes is changed in the whole program."""

from __future__ import annotations

import ast
import importlib
import multiprocessing
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import coverage
import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "golden"), str(HERE.parent / "lab")]
import killed  # noqa: E402 - the folder is no package
from cases import BESIDE, TRACED, Shelf, asked, keep  # noqa: E402 - same
from loading import ROOT, Program, dependents  # noqa: E402 - same
from operators import changes, mutated  # noqa: E402 - same
from touching import Touching, failing  # noqa: E402 - same

SOURCE = '''
"""Words of 3 lines."""
_MOST = 5
_ORDER = ("first", "second", "third")

@dataclass(frozen=True)
class Limits:
    share: float = 0.5
    strict: bool = True

def decide(rows: tuple[int, 2], limits: Limits) -> str:
    """Never 7."""
    near = [one for one in rows if not one.far and one.value > limits.share or one.left <= 3]
    worst = max(near, key=lambda one: (one.rank, one.name)) - len(near) / 2
    return f"{worst:.3f} of {100 * len(rows)}" if rows.filter(a & ~b).height >= _MOST else round(worst, 2)
'''


@pytest.fixture
def program() -> Iterator[Program]:
    one = Program(BESIDE)
    yield one
    one.close()


def test_every_operator_makes_the_change_that_it_names() -> None:
    found = [(one.words, ast.unparse(mutated(SOURCE, one.number))) for one in changes(SOURCE)]
    plain = ast.unparse(ast.parse(SOURCE))
    assert len({text for _, text in found} | {plain}) == len(found) + 1
    for words, part in (
        ("5 -> 10", "_MOST = 10"),
        ("5 -> 6", "_MOST = 6"),
        ("0.5 -> 1.0", "share: float = 1.0"),
        ("True -> False", "strict: bool = False"),
        ("> -> <=", "one.value <= limits.share"),
        ("<= -> >", "one.left > 3"),
        ("<= -> <", "one.left < 3"),
        (">= -> >", ".height > _MOST"),
        ("and -> or", "(not one.far or one.value > limits.share)"),
        ("or -> and", "limits.share) and one.left <= 3"),
        ("not dropped", "one.far and"),
        ("not dropped", "filter(a & b)"),
        ("& -> |", "filter(a | ~b)"),
        ("max -> min", "min(near"),
        ("- -> +", "+ len(near) / 2"),
        ("/ -> *", "len(near) * 2"),
        ("places 1 and 2 swapped", "(one.name, one.rank)"),
    ):
        assert any(name == words and part in text for name, text in found), (words, part)


def test_numbers_of_words_and_edges_of_values_that_are_no_counts_are_left_alone() -> None:
    every = "\n".join(ast.unparse(mutated(SOURCE, one.number)) for one in changes(SOURCE))
    for part in (
        "Words of 6",
        "Never 14",
        "tuple[int, 4]",
        "200 *",
        "100 / len",
        ".6f",
        "round(worst, 4)",
        "value >= ",
    ):
        assert part not in every, part


def test_a_preference_is_swapped_where_its_index_is_asked() -> None:
    source = '_ORDER = ("a", "b", "c")\nbest = min(rows, key=_ORDER.index)\n'
    assert [one.words for one in changes(source)] == [
        "places 1 and 2 swapped",
        "places 2 and 3 swapped",
        "min -> max",
    ]
    assert "('b', 'a', 'c')" in ast.unparse(mutated(source, 0))


def _changed(module: str, words: str, line: str) -> ast.Module:
    source = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    texts = source.splitlines()
    number = next(one.number for one in changes(source) if one.words == words and line in texts[one.line - 1])
    return mutated(source, number)


def test_a_constant_changes_where_it_is_imported_by_name_and_comes_back(program: Program) -> None:
    module, user = "forensics.analyses.memory.shape", "forensics.rules.oom.growth"
    before = importlib.import_module(user)
    anew = program.change(module, _changed(module, "8 -> 16", "FEWEST = "))
    assert user in anew
    assert importlib.import_module(user).FEWEST == 16
    program.change("forensics.diagnosis.verdict", None)
    assert importlib.import_module(user).FEWEST == 8
    program.close()
    assert importlib.import_module(user) is before
    assert sys.modules["forensics.rules.oom"].growth is before


def test_a_default_of_a_rules_thresholds_changes_for_the_rule(program: Program) -> None:
    module = "forensics.analyses.pace.account"
    program.change(module, _changed(module, "1.3 -> 2.6", "grave: float"))
    rule = next(one for one in importlib.import_module("forensics.registry").load("rules").rules if one.id == "SLO001")
    assert rule.config().grave == 2.6


def test_modules_that_walk_a_folder_depend_on_what_lies_in_it() -> None:
    assert "forensics.rules.hang.decide" in dependents("forensics.rules.hang.no_progress")
    assert "forensics.model" not in dependents("forensics.case.nonfinite")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("mutants")
    (place / "runs").mkdir()
    wanted = {"bundled-oom-then-hang-torchrun", "bundled-nan-blowup-kempnerforge", "edge-pace-jump-1.32"}
    cases = [one for one in killed.cases_of(place / "runs") if one.name in wanted | {"edge-diff-ratio-1.025"}]
    assert len(cases) == 4
    for one in cases:
        keep(one, place)
    return {"shelf": Shelf(place), "cases": {one.name: one for one in cases}}


@pytest.mark.parametrize(
    "module", ["forensics.diagnosis.verdict", "forensics.stats.changes", "forensics.rules.hang.decide"]
)
def test_a_program_loaded_anew_from_its_own_text_answers_as_before(
    module: str, kept: dict[str, Any], program: Program
) -> None:
    path = ROOT / f"{module.replace('.', '/')}.py"
    anew = program.change(module, ast.parse(path.read_text(encoding="utf-8")))
    kept["shelf"].forget(anew)
    for _ in range(2):  # the second time with what was derived before
        for one in kept["cases"].values():
            assert kept["shelf"].answer(one, anew) == kept["shelf"].of(one).answer


def test_an_answer_of_kept_parts_is_the_answer_of_the_whole_program(kept: dict[str, Any]) -> None:
    answers = importlib.import_module("answers")
    for one in kept["cases"].values():
        runs = [answers.read(place) for place in one.places]
        assert asked(answers, one, runs) == kept["shelf"].of(one).answer


def test_a_threshold_that_decides_a_run_is_noticed_by_it(kept: dict[str, Any], program: Program) -> None:
    module, case = "forensics.analyses.pace.account", kept["cases"]["edge-pace-jump-1.32"]
    anew = program.change(module, _changed(module, "1.3 -> 2.6", "grave: float"))
    kept["shelf"].forget(anew)
    assert kept["shelf"].answer(case, anew) != kept["shelf"].of(case).answer


def test_every_survivor_that_has_a_reason_can_be_made() -> None:
    every = {(one.path, one.text, one.change.words) for one in killed.mutants()}
    assert set(killed.reasons()) <= every


def test_each_area_gives_as_many_mutants_and_a_seed_the_same_ones() -> None:
    every = killed.mutants()
    drawn = killed.chosen(every, 30 * len(killed.AREAS), 0)
    assert drawn == killed.chosen(every, 30 * len(killed.AREAS), 0) != killed.chosen(every, 30 * len(killed.AREAS), 1)
    assert {area: sum(one.area == area for one in drawn) for area in killed.AREAS} == dict.fromkeys(killed.AREAS, 30)


def test_what_is_mutated_is_traced_so_that_no_mutant_survives_untried() -> None:
    folders = {pattern.split("/")[0] for patterns in killed.AREAS.values() for pattern in patterns}
    assert folders <= set(TRACED)


def test_unit_tests_of_a_place_are_those_that_run_it_and_whole_files_where_a_fixture_did(tmp_path: Path) -> None:
    path, data = str(ROOT / "forensics/stats/trend.py"), coverage.CoverageData(str(tmp_path / "contexts"))
    for context, lines in (
        ("tests/unit/rules/test_a.py::test_far|run", [30, 31]),
        ("tests/unit/stats/test_b.py::test_near|run", [30]),
        ("tests/unit/stats/test_b.py::test_near|teardown", [30]),
        ("tests/unit/case/test_c.py::test_first|setup", [30]),
        ("tests/unit/case/test_c.py::test_second|run", [30]),
        ("tests/unit/case/test_d.py::test_elsewhere|run", [32]),
        ("", [30, 31, 32]),
    ):
        data.set_context(context)
        data.add_lines({path: lines})
    data.write()
    found = Touching(tmp_path / "contexts")
    assert found.tests({path: frozenset((30,))}) == [
        "tests/unit/stats/test_b.py::test_near",
        "tests/unit/case/test_c.py",
        "tests/unit/rules/test_a.py::test_far",
    ]
    assert found.tests({path: frozenset((33,))}) == []


def _tried(words: str, line: str, tests: str) -> str:
    path = "forensics/stats/student.py"
    source = (ROOT / path).read_text(encoding="utf-8")
    texts = source.splitlines()
    number = next(one.number for one in changes(source) if one.words == words and line in texts[one.line - 1])
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(failing, path, number, [tests]).result()


def test_a_change_fails_the_unit_test_that_holds_its_line_and_no_other() -> None:
    held = "tests/unit/stats/test_student.py::test_degrees_of_freedom_of_a_difference_are_those_of_welch"
    assert _tried("+ -> -", "return (a * a + b * b)", held) == held
    other = "tests/unit/stats/test_student.py::test_a_hypotenuse_is_the_root_of_the_squares"
    assert not _tried("+ -> -", "return (a * a + b * b)", other)


def test_a_constant_is_looked_for_where_it_is_mentioned() -> None:
    mutants = killed.mutants()
    constant = next(one for one in mutants if one.path.endswith("memory/shape.py") and one.text == "FEWEST = 8")
    places = killed.places_of(constant)
    assert places[str(ROOT / "forensics/rules/oom/growth.py")]
    own = next(one for one in mutants if one.path.endswith("stats/student.py") and "half = 0.5" in one.text)
    assert killed.places_of(own) == {str(ROOT / own.path): frozenset((own.change.line,))}
