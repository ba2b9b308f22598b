"""Which way a score is better is a row of knowledge, for keys of results and for names of logged metrics."""

from __future__ import annotations

import pytest

from forensics.knowledge.scores import counts_right, direction, is_higher_better, is_of_loss, is_share, metric_of


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("acc,none", (None, "acc")),
        ("eval/f1", (None, "f1")),
        ("gsm8k_exact_match", ("gsm8k", "exact_match")),
        ("eval_loss", (None, "loss")),
        ("loss", None),
        ("target_accuracy", None),
        ("acc_stderr", None),
        ("error", None),
        ("reward", None),
    ],
)
def test_a_key_of_a_result_names_a_task_and_a_metric_or_is_none(key: str, found: tuple[str | None, str] | None) -> None:
    assert metric_of(key) == found


@pytest.mark.parametrize(
    ("name", "higher"),
    [
        ("eval/wer", False),
        ("val/error_rate", False),
        ("eval/masked_loss", False),
        ("test/acc_top1", True),
        ("eval/reward_mean", True),
        ("val.pass@8", True),
        ("valid_perplexity", False),
        ("valid_code_perplexity", None),  # of the codes in use
        ("val_dice", True),
        ("val_dice_loss", False),
        ("val/cohen_kappa", True),
        ("test_hits@10", True),
        ("eval/cider", True),
        ("val_epe", False),
        ("val/order", None),
        ("eval/samples", None),
        ("eval/lr", None),
    ],
)
def test_a_word_of_a_logged_name_tells_which_way_it_is_better(name: str, higher: bool | None) -> None:
    assert direction(name) is higher


@pytest.mark.parametrize(("name", "is_share"), [("val top1_acc", True), ("val top1_err", False), ("top5_error", False)])
def test_the_share_that_is_wrong_counts_nothing_right(name: str, is_share: bool) -> None:
    assert counts_right(name) is is_share


def test_a_whole_name_alone_decides_for_a_key_of_a_result() -> None:
    assert (is_higher_better("acc"), is_higher_better("wer"), is_higher_better("loss")) == (True, False, False)
    assert is_higher_better("accumulated") is None
    assert is_share("pass@1")
    assert not is_share("rouge-l")


def test_what_is_computed_from_the_loss_says_nothing_beside_it() -> None:
    assert is_of_loss("eval/perplexity")
    assert is_of_loss("val_bpb")
    assert not is_of_loss("eval/wer")
