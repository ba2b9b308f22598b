"""Loops of strangers that name, order and frame their numbers in their own way, from the log to the verdict."""

from __future__ import annotations

from math import exp
from pathlib import Path

import pytest

from forensics import open_run, triage
from forensics.dialects.engine import parse_text
from forensics.dialects.events.last_words import last_words
from forensics.dialects.learned.generic import learn
from forensics.knowledge.vocabulary import in_english
from forensics.model import Verdict


def verdict(folder: Path, *lines: str) -> Verdict:
    (folder / "out.log").write_text("\n".join(lines) + "\n")
    return triage(folder, figures=False).verdict


def with_comma(value: float) -> str:
    return f"{value:.4f}".replace(".", ",")


@pytest.mark.parametrize(
    ("printed", "english"),
    [
        ("Fehler (Prüfung)", "error (validation)"),
        ("Prüfgenauigkeit", "validation accuracy"),
        ("Trainingsfehler", "train error"),
        ("retorno medio", "return mean"),
        ("累计回报", "累计 return"),
        ("entropía", "entropy"),
        ("mediocre", "mediocre"),
    ],
)
def test_words_of_other_languages(printed: str, english: str) -> None:
    assert in_english(printed) == english


@pytest.mark.parametrize(("rise", "cause"), [(0.03, "overfit"), (-0.004, "")])
def test_an_error_may_be_the_loss_in_any_language(tmp_path: Path, rise: float, cause: str) -> None:
    rows = (
        f"Durchgang {at} von 40 | Fehler (Training) {with_comma(0.62 * exp(-at / 7))} | "
        f"Fehler (Prüfung) {with_comma(0.68 + rise * at)}"
        for at in range(1, 41)
    )
    assert verdict(tmp_path, *rows, "Fertig.").cause == cause


def returns(at: int, *, falls: bool) -> str:
    gained = 230 - 320 * (1 - exp(-(at - 90) / 5)) if falls and at > 90 else 320 / (1 + exp(-(at - 40) / 9)) - 90
    entropy = 0.9 * exp(-(at - 90) / 5) if falls and at > 90 else 2.0 - at / 100
    return f"act. {at}/150 -> retorno medio {gained + 5 * (at % 3):.2f}, entropía {max(entropy, 0.02):.3f}, kl 0.012"


@pytest.mark.parametrize(("falls", "cause"), [(True, "entropy_collapse"), (False, "")])
def test_what_a_policy_earns_is_known_in_any_language(tmp_path: Path, *, falls: bool, cause: str) -> None:
    found = verdict(tmp_path, *(returns(at, falls=falls) for at in range(1, 151)), "Fin")
    assert found.cause == cause


def tuples(bad: int, last: str = "nan") -> list[str]:
    """Epoch, batch, a loss that does not fall, and a norm."""
    rows = ((at, 3 + at % 5 / 9, 0.4 + at % 7 / 50) for at in range(60))
    return [
        f"({at // 10}, {at % 10 * 4}, {last if at >= bad else round(loss, 4)}, {last if at >= bad else round(norm, 3)})"
        for at, loss, norm in rows
    ]


def test_a_bare_number_that_is_lost_for_good_is_a_loss(tmp_path: Path) -> None:
    found = verdict(tmp_path, *tuples(43))
    assert (found.outcome, found.shape, found.onset.step) == ("failed", "nan", 4 * 40 + 3 * 4)


@pytest.mark.parametrize(
    ("rows", "is_read"),
    [
        (tuples(57), True),
        (tuples(58), False),  # two records
        (tuples(60), False),
        (tuples(13), True),
        (tuples(12), False),  # too few before
        (tuples(43, "7"), False),  # a number that stays
    ],
)
def test_three_records_that_are_lost_are_enough_behind_thirteen(rows: list[str], *, is_read: bool) -> None:
    assert (learn(rows) is not None) == is_read


def boxes(name: str, mark: str, count: int = 12) -> str:
    head = "┏━━━━━━━┳━━━━━━┳━━━━━━┓\n┃ split ┃ loss ┃   f1 ┃\n┡━━━━━━━╇━━━━━━╇━━━━━━┩"
    return "\n".join(
        f"  Epoch {at}/12\n{head}\n│ train │ {2 - at / 10:.3f} │ 0.{at + 50} │\n"
        f"│ {name}{mark if at % 2 else '  '} │ {2.2 - at / 10:.3f} │ 0.{at + 40} │\n└───────┴──────┴──────┘"
        for at in range(1, count + 1)
    )


@pytest.mark.parametrize(
    ("name", "mark", "names"),
    [
        ("valid", " *", {"loss": 12, "f1": 12, "eval_loss": 12, "val f1": 12}),
        ("other", "  ", {"loss": 24, "f1": 24}),  # no name of data
    ],
)
def test_rows_between_bars_may_say_on_which_data(name: str, mark: str, names: dict[str, int]) -> None:
    text = boxes(name, mark)
    dialect = learn(text.splitlines())
    assert dialect is not None
    rows = parse_text(dialect, text)["metrics"]
    assert {one: rows["name"].to_list().count(one) for one in {*rows["name"]}} == names


@pytest.mark.parametrize(
    ("lines", "ends"),
    [
        ("INFO no better f1 for 5 epochs, stopping early\nINFO best epoch 25, weights in best.pt", True),
        ("finished: wall time 4h 12m\nmodel written to pot.nn", True),
        ("All done!\nSaved out/last.pt", True),
        ("All done!\nevaluating the last checkpoint", False),  # it goes on
        ("epoch 12\nmodel written to pot.nn", False),
        ("done in 3 s\nsaved to a.pt\n" * 4 + "done in 3 s\nsaved to a.pt", False),  # a part each
    ],
)
def test_what_is_kept_in_the_end_may_follow_the_last_words(lines: str, ends: bool) -> None:
    earlier, _, last = lines.rpartition("\n")
    assert (last_words(last, f"{earlier}\n".encode()) is not None) == ends


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        ("2026-05-01 10:00:00 [info     ] done                           kimg=601.6 rank=0", True),
        ("2026-05-01 10:00:00 [info     ] done loading                   kimg=601.6", False),
    ],
)
def test_values_behind_an_event_are_no_words(line: str, ends: bool) -> None:
    assert (last_words(line, b"") is not None) == ends


def test_letters_of_two_players_are_losses_without_a_counter() -> None:
    rows = [f"[info ] tick   aug={6.016 * at:.1f} g={0.7 + at % 5 / 50} d={1.3 + at % 7 / 50}" for at in range(40)]
    dialect = learn(rows)
    assert dialect is not None
    assert {*parse_text(dialect, "\n".join(rows))["metrics"]["name"]} >= {"g_loss", "d_loss"}
    assert learn([row.replace(" g=", " q=") for row in rows]) is None


def test_an_evaluation_beside_a_known_trainer_is_one_though_only_its_line_says_so(tmp_path: Path) -> None:
    rows = (
        f"Train Epoch: {at} [0/2400 (0%)]\tLoss: {2 * exp(-at / 9):.6f}\n"
        f"Test set: pixAcc 0.73{at % 9}, mIoU 0.0{at + 10}"
        for at in range(30)
    )
    (tmp_path / "out.log").write_text("\n".join(rows))
    assert {*open_run(tmp_path)["metrics"].collect()["name"]} == {"loss", "pixAcc", "val mIoU"}


def numbered(number_of: dict[int, int], bad: int = 900) -> list[str]:
    lines: list[str] = []
    for step in range(0, 1000, 10):
        lines.append(f"step {step}: loss {'nan' if step >= bad else 2 - step / 1000 + step % 7 / 100}")
        lines += [f"saved out/model-{number_of[step]}.pt"] if step in number_of else []
    return lines


@pytest.mark.parametrize(
    ("number_of", "step"),
    [
        ({200: 1, 400: 2, 600: 3}, 600),
        ({200: 200, 400: 400, 600: 600}, 600),  # they are the steps
        ({200: 1, 500: 2, 600: 3}, 600),  # no share of their steps, yet one after the other
        ({200: 1, 500: 2, 600: 4}, 4),
        ({600: 3}, 3),  # one number is a share of any step
    ],
)
def test_saves_may_be_numbered_one_after_the_other(tmp_path: Path, number_of: dict[int, int], step: int) -> None:
    found = verdict(tmp_path, *numbered(number_of))
    assert found.checkpoint is not None
    assert found.checkpoint.step == step


def clocked(rises: list[float], before: str = "[") -> list[str]:
    at = [sum(rises[: n + 1]) for n in range(len(rises))]
    return [f"{before}{seconds:.2f}] step {10 * n} loss {2 * exp(-n / 30):.4f}" for n, seconds in enumerate(at)]


SLOWER = [(5.0 if n < 60 else 15.0) * (1 + n * 7 % 11 / 200) for n in range(100)]


def test_a_clock_rises_unevenly() -> None:
    lines = clocked([5.0 + n % 2 * 0.04 for n in range(100)])
    dialect = learn(lines)
    assert dialect is not None
    assert "elapsed" in {*parse_text(dialect, "\n".join(lines))["metrics"]["name"]}


def test_a_number_before_each_line_may_be_a_clock(tmp_path: Path) -> None:
    found = verdict(tmp_path, *clocked(SLOWER), "training finished")
    assert (found.shape, found.onset.step) == ("slowdown", 600)


@pytest.mark.parametrize(
    "lines",
    [
        clocked([0.05] * 100),  # a share of an epoch
        clocked([5.0 + n % 2 * 0.02 for n in range(100)]),  # to the digits that are printed
        clocked([5.0 * (-1) ** n for n in range(100)]),  # it falls
        clocked([900.0, *SLOWER]),  # it did not begin with the program
        clocked(SLOWER, before="lr ["),  # it has a name
    ],
)
def test_another_number_there_is_no_clock(lines: list[str]) -> None:
    dialect = learn(lines)
    assert dialect is not None
    assert "elapsed" not in {*parse_text(dialect, "\n".join(lines))["metrics"]["name"]}


@pytest.mark.parametrize(
    ("parts", "shape"),
    [
        ("dati {data:.3f}s avanti 0.061s indietro 0.118s", "slowdown"),
        ("dati {data:.3f}s prove 0.061s riprove 0.118s", None),  # no parts of a step
    ],
)
def test_the_parts_of_a_step_are_known_in_any_language(tmp_path: Path, parts: str, shape: str | None) -> None:
    waits = [(0.4 if n > 50 else 0.011) * (1 + n * 7 % 11 / 200) for n in range(100)]
    lines = [f"passo {n}: perdita {2 * exp(-n / 30):.4f} {parts.format(data=wait)}" for n, wait in enumerate(waits)]
    assert verdict(tmp_path, *lines, "addestramento terminato").shape == shape
