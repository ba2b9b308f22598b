from __future__ import annotations

import pytest

from forensics.dialects.names import canonical
from forensics.io.tables import table_rows
from forensics.knowledge import vocabulary
from forensics.knowledge.vocabulary import in_english, stands_for


@pytest.mark.parametrize(
    ("printed", "english"),
    [
        ("Validierungsverlust", "validation loss"),
        ("Trainingsverlust", "train loss"),
        ("perda_val", "loss_val"),
        ("потери валидации", "loss validation"),
        ("验证集损失", "validation loss"),
        ("勾配ノルム", "grad_norm"),
        ("độ chính xác", "accuracy"),
        ("Готово. Точность", "finished. accuracy"),
        ("Prüfverlust", "validation loss"),
        ("pérdida de prueba", "loss test"),
        ("потеря на проверке", "loss validation"),
        ("Valideringsförlust", "validation loss"),
        ("t_rechnen_ms", "t_compute_ms"),
        ("DOĞRULAMA KAYBI", "validation loss"),
        ("ADIM", "step"),
        ("val_loss", "val_loss"),
    ],
)
def test_a_name_in_another_language_is_that_of_its_english_words(printed: str, english: str) -> None:
    assert in_english(printed) == english


@pytest.mark.parametrize(
    "word",
    ["verlustfrei", "experte", "apertes", "passage", "Schrittweite", "lottery", "passoire", "Überprüfung", "erwarten"],
)
def test_a_longer_word_is_another_one(word: str) -> None:
    assert in_english(word) == word


def test_a_long_text_is_a_line_and_no_name() -> None:
    assert in_english("perda " * 13).startswith("loss")
    assert in_english("perda " * 14).startswith("perda")


def _known_words() -> list[str]:
    rows = table_rows("forensics.knowledge", "vocabulary/languages.tsv")
    return [word for _, words, *_ in rows for word in words.split()]


def test_each_word_stands_in_one_row() -> None:
    words = _known_words()
    assert sorted({*words}) == sorted(words)


@pytest.mark.parametrize("around", ["{}", "_{}_", "9 {}: 7", "({})"])
def test_each_word_is_found_wherever_it_begins(around: str) -> None:
    names = [around.format(word.strip("-").replace("_", " ")) for word in _known_words()]
    unknown = [name for name in names if in_english(name) == name and in_english(name.upper()) == name.upper()]
    assert unknown == []


@pytest.mark.parametrize(
    ("printed", "known"),
    [
        ("平均验证损失", "eval_loss"),
        ("perte (valid.)", "eval_loss"),
        ("Lernrate", "lr"),
        ("学習率", "lr"),
        ("taxa_aprendizado", "lr"),
        ("tasa de aprendizaje", "lr"),
        ("taxa_acerto", "taxa_acerto"),
        ("acurácia_val", "val accuracy"),
        ("步长", "step 长"),
    ],
)
def test_canonical_names_know_every_language(printed: str, known: str) -> None:
    assert canonical(printed).canonical == known


@pytest.mark.parametrize("word", ["步", "迭代次数", "ステップ", "스텝", "schritt", "étape", "paso", "шаг"])
def test_counters_of_steps_are_known_in_every_language(word: str) -> None:
    assert stands_for("counter_of_steps", word)


@pytest.mark.parametrize("word", ["轮", "エポック", "에폭", "epoche", "época", "эпоха", "epoka"])
def test_counters_of_epochs_are_known_in_every_language(word: str) -> None:
    assert stands_for("counter_of_epochs", word)


@pytest.mark.parametrize(("means", "word"), [("counter_of_steps", "步长"), ("counter_of_epochs", "周期性")])
def test_a_word_with_more_behind_it_counts_nothing(means: str, word: str) -> None:
    assert not stands_for(means, word)


def test_the_head_of_a_log_is_searched_and_not_kept() -> None:
    head = "epoch 1 step 2\n" * 1_000
    asked = [cache.cache_info().currsize for cache in (vocabulary._names, vocabulary._translated)]
    assert stands_for("printed_loss", head + "loss 3.2")
    assert not stands_for("printed_loss", head)
    assert in_english(head) == head
    assert [cache.cache_info().currsize for cache in (vocabulary._names, vocabulary._translated)] == asked


@pytest.mark.parametrize("name", ["perda", "x" * 75 + " perda"])
def test_a_name_means_the_same_whenever_it_is_asked_for(name: str) -> None:
    assert [stands_for("printed_loss", name) for _ in range(2)] == [len(name) < 80] * 2
