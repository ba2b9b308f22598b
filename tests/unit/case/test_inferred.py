"""Names that no table knows are understood by what else the run logs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import polars as pl
import pytest

from forensics.case.series import keys_of, metric_rows
from forensics.dialects.names import canonical
from forensics.store.run import Run, run_of


def made(*printed: str, values: Sequence[float] = ()) -> Run:
    """A run that logs each of these names once."""
    rows = {
        "source": ["train.log"] * len(printed),
        "seq": range(len(printed)),
        "raw_name": printed,
        "name": [canonical(name).canonical for name in printed],
        "value": values or [1.0] * len(printed),
    }
    return run_of("run", {"metrics": pl.DataFrame(rows)})


def named(*printed: str) -> list[str]:
    """Give the canonical names of printed ones, in a run that logs each of them once."""
    return keys_of(made(*printed))["name"].to_list()


def in_gib(printed: str, value: float) -> list[tuple[str, float]]:
    """Give the canonical name and the value of a number that a run logs under a name."""
    run = made("loss", printed, values=[2.5, value])
    return metric_rows(run, pl.col("raw_name") == printed).select("name", "value").collect().rows()


@pytest.mark.parametrize(
    "name",
    [
        "train_nll_loss",
        "main loss",
        "trainer/lm_nll",
        "objective.cross_entropy",
        "L",
        "mse",
        "train cost",
        "Verlust",
        "perda",
    ],
)
def test_the_only_loss_of_a_run_is_its_loss(name: str) -> None:
    assert named("lr", name, "acc") == ["lr", "loss", "acc"]


def test_the_only_loss_of_held_out_data_is_the_loss_of_the_evaluation() -> None:
    assert named("main_loss", "dev_nll") == ["loss", "eval_loss"]


@pytest.mark.parametrize("name", ["gradient_l2", "grads/global_norm", "norm of gradients"])
def test_the_only_norm_of_the_gradients_is_their_norm(name: str) -> None:
    assert named("loss", name) == ["loss", "grad_norm"]


def test_two_losses_are_parts_of_one_or_of_two_models() -> None:
    assert named("span_loss", "mlm_loss") == ["span_loss", "mlm_loss"]


PARTS = ("train/box_loss", "train/obj_loss", "val/box_loss", "val/obj_loss")


def test_parts_of_a_loss_are_told_by_their_like_of_held_out_data() -> None:
    assert named(*PARTS) == ["loss", "loss", "eval_loss", "eval_loss"]
    assert named("train_span_loss", "span_loss_val", "train_tag_loss", "tag_loss_val") == [*["loss", "eval_loss"] * 2]


@pytest.mark.parametrize(
    "printed",
    [
        PARTS[:3],
        PARTS[:2],
        ("train/box_loss", "val/obj_loss", "train/cls_loss", "val/dfl_loss"),
        (*PARTS, "train/reward"),
    ],
    ids=["one pair", "no pair", "unlike names", "rewards"],
)
def test_a_part_without_its_like_or_beside_a_reward_keeps_its_name(printed: tuple[str, ...]) -> None:
    assert named(*printed)[:2] == [*printed[:2]]


def test_what_stands_beside_the_objective_or_is_nothing_is_no_part() -> None:
    kept = made(*PARTS, "train/kl_loss", "val/kl_loss", "train/cls_loss", "val/cls_loss", values=[*[1.0] * 6, 0.0, 0.0])
    assert keys_of(kept)["name"].to_list()[4:] == ["train/kl_loss", "val/kl_loss", "train/cls_loss", "val/cls_loss"]
    assert named("loss", *PARTS)[1:] == [*PARTS]


@pytest.mark.parametrize(
    ("train", "meant"),
    [
        ([3.0, 2.5, 2.0, 1.5, 1.0, 0.5], ["loss", "eval_loss"]),
        ([3.0, 2.5, 2.0, math.nan, math.nan, math.nan], ["loss", "eval_loss"]),
        ([0.5, 0.6, 0.7, 0.8, 0.9, 0.9], ["train", "valid"]),
    ],
    ids=["falls", "is lost", "rises as a score does"],
)
def test_what_names_only_its_data_is_a_loss_where_it_falls(train: list[float], meant: list[str]) -> None:
    pairs = [value for one in train for value in (one, one)]
    run = made(*("train", "valid") * len(train), values=pairs)
    assert keys_of(run)["name"].unique(maintain_order=True).to_list() == meant


JITTERS = [(8.0 * 0.7**at + 0.5) * (1.2 if at % 3 else 0.9) for at in range(20)]


@pytest.mark.parametrize(
    ("beside", "meant"),
    [
        ([0.1] * 20, "loss"),
        (JITTERS, "Fehlerquadrat"),
    ],
    ids=["a number that stays", "another one that falls"],
)
def test_the_only_number_that_falls_as_a_loss_does_is_the_loss(beside: list[float], meant: str) -> None:
    values = [value for pair in zip(JITTERS, beside, strict=True) for value in pair]
    assert keys_of(made(*("Fehlerquadrat", "anteil") * 20, values=values))["name"][0] == meant


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("eps", [0.9**at for at in range(20)]),
        ("Fehlerquadrat", [*reversed(JITTERS)]),
        ("val_Fehlerquadrat", JITTERS),
        ("feature_norm", JITTERS),
        ("games_lost", [float(round(9 * one)) for one in JITTERS]),
        ("L", [float(round(9 * one)) for one in JITTERS]),
    ],
    ids=["a schedule", "rises", "held out", "a norm", "a count", "a letter"],
)
def test_what_falls_without_jitter_or_rises_or_is_no_objective_is_no_loss(name: str, values: list[float]) -> None:
    assert keys_of(made(*[name] * 20, values=values))["name"][0] == name


def test_nothing_of_a_run_that_earns_rewards_is_named_by_its_course() -> None:
    values = [value for one in JITTERS for value in (one, one)]
    assert keys_of(made(*("reward", "td_gap") * 20, values=values))["name"].to_list()[1] == "td_gap"


@pytest.mark.parametrize("part", ["kl_loss", "aux_loss", "loss_D", "policy_loss"])
def test_a_part_of_a_loss_is_not_the_loss(part: str) -> None:
    assert named("lr", part) == ["lr", part]


def test_beside_a_loss_of_a_known_name_no_other_is_one() -> None:
    assert named("loss", "main_loss") == ["loss", "main_loss"]
    assert named("grad_norm", "gradient_l2") == ["grad_norm", "gradient_l2"]


def test_a_function_that_is_minimised_is_the_loss_of_a_run_that_names_no_loss() -> None:
    assert named("train/bce", "train/acc") == ["loss", "train/acc"]
    assert named("mse_train", "val_mse", "lr") == ["loss", "eval_loss", "lr"]
    assert named("train CE", "ema val CE") == ["loss", "eval_loss"]


def test_beside_a_loss_or_a_reward_such_a_function_is_a_score_or_a_price() -> None:
    assert named("loss", "train/mse", "val_mae") == ["loss", "train/mse", "val_mae"]
    assert named("dev_nll", "train/mse") == ["eval_loss", "train/mse"]
    assert named("reward", "cost") == ["reward", "cost"]
    assert named("mse", "mae") == ["mse", "mae"]


def test_of_functions_of_the_same_data_the_first_is_minimised() -> None:
    lightgbm = ("train's l2", "train's l1", "valid_1's l2", "valid_1's l1")
    assert named(*lightgbm) == ["loss", "train's l1", "eval_loss", "valid_1's l1"]
    assert named("train/mse", "ema/mse") == ["train/mse", "ema/mse"]
    assert named("train's l2", "train's auc") == ["loss", "train's auc"]


def waits(*values: float, names: tuple[str, str] = ("Data", "Batch")) -> list[str]:
    return keys_of(made(*names * (len(values) // 2), values=values))["name"].unique(maintain_order=True).to_list()


def test_the_wait_for_a_batch_and_the_whole_step_are_told_by_the_whole_being_more() -> None:
    assert waits(0.08, 0.09, 0.1, 0.1) == ["data_time_s", "step_time_s"]
    assert waits(9.0, 59.0) == ["data_time_s", "step_time_s"]
    assert waits(0.0, 0.3, names=("loading", "iter")) == ["data_time_s", "step_time_s"]


@pytest.mark.parametrize(
    "values", [(0.1, 0.09, 0.1, 0.2), (0.1, 0.1, 0.2, 0.2), (-1.0, 0.2), (math.nan, 0.2), (9.0, 60.0)]
)
def test_a_wait_that_is_no_part_of_the_step_has_no_meaning(values: tuple[float, ...]) -> None:
    assert waits(*values) == ["Data", "Batch"]


@pytest.mark.parametrize(
    ("printed", "gib"), [(48.0, 48.0), (300.0, 300.0), (51_200.0, 50.0), (307_200.0, 300.0), (48.0 * 2**30, 48.0)]
)
def test_a_memory_without_a_unit_has_that_of_its_size(printed: float, gib: float) -> None:
    assert in_gib("train/mem_alloc", printed) == [("mem_allocated_gib", gib)]
    assert in_gib("max_memory_reserved", printed) == [("mem_reserved_peak_gib", gib)]


@pytest.mark.parametrize("printed", [0.9, 1.0, 301.0, 512.0, 307_201.0, 2.0**29, 2.0**40])
def test_a_number_of_no_size_that_a_device_has_is_no_memory(printed: float) -> None:
    assert in_gib("mem_alloc", printed) == [("mem_alloc", printed)]


def test_a_use_of_memory_without_a_unit_may_be_a_share() -> None:
    assert in_gib("memory", 48.0) == [("memory", 48.0)]
    assert in_gib("gpu_mem", 100.0) == [("gpu_mem", 100.0)]


def test_a_use_of_memory_above_a_hundred_is_no_share() -> None:
    assert in_gib("gpu_mem", 101.0) == [("mem_allocated_gib", 101.0)]
    assert in_gib("rss", 20480.0) == [("process_rss_gib", 20.0)]
    assert in_gib("Free GPU ram", 20480.0) == [("gpu_mem_free_gib", 20.0)]
    assert in_gib("RAM used", 20480.0) == [("host_mem_used_gib", 20.0)]
    assert in_gib("peak", 20480.0) == [("peak", 20480.0)]


def course(name: str, values: Sequence[float]) -> set[str]:
    """Give the canonical names of a run that logs some values under one name, beside a rate."""
    rows = {
        "source": ["train.log"] * len(values) * 2,
        "seq": [*range(len(values))] * 2,
        "raw_name": [name] * len(values) + ["lr"] * len(values),
        "name": [name] * len(values) + ["lr"] * len(values),
        "value": [*values, *([0.1] * len(values))],
    }
    return {*keys_of(run_of("run", {"metrics": pl.DataFrame(rows)}))["name"].to_list()}


def test_what_went_up_and_down_until_it_was_nan_for_good_is_the_loss() -> None:
    told = [5.0, 4.8, 4.9, 4.7, 4.6, 4.7]
    assert course("ctc", [*told, *[math.nan] * 4]) == {"loss", "lr"}
    assert course("ctc", [*told, math.nan, *told, math.nan, math.nan]) == {"ctc", "lr"}  # it came back
    assert course("ctc", [*map(float, range(6)), *[math.nan] * 4]) == {"ctc", "lr"}  # a counter
    assert course("val_auc", [*told, *[math.nan] * 4]) == {"val_auc", "lr"}  # a score of an empty class


@pytest.mark.parametrize("printed", ["train-logloss", "training's binary_logloss", "rmse_tr"])
def test_losses_of_boosters_and_short_words_for_training_are_losses(printed: str) -> None:
    assert named("lr", printed) == ["lr", "loss"]


def test_va_is_short_for_data_that_are_held_out() -> None:
    assert named("tr_ce", "va_ce") == ["loss", "eval_loss"]


def test_an_error_beside_the_loss_of_an_evaluation_alone_is_the_training_loss() -> None:
    assert named("mse", "val_loss") == ["loss", "eval_loss"]
    assert named("mse", "loss", "val_loss") == ["mse", "loss", "eval_loss"]


@pytest.mark.parametrize(("printed", "known"), [("Perte entr.", "loss"), ("Perte (valid.)", "eval_loss")])
def test_a_name_that_ends_in_a_point_or_a_bracket_is_understood_by_its_words(printed: str, known: str) -> None:
    words = re.sub(r"\W+", "_", printed).strip("_")
    name = canonical(printed).canonical
    row = {"source": ["a.log"], "seq": [0], "raw_name": [words], "name": [name], "value": [1.0]}
    assert keys_of(run_of("run", {"metrics": pl.DataFrame(row)}))["name"].to_list() == [known]


@pytest.mark.parametrize(
    ("beside", "found"), [((), "loss"), (("lr",), "loss"), (("reward",), None), (("lr", "reward"), None)]
)
def test_what_falls_beside_a_reward_is_no_loss(beside: tuple[str, ...], found: str | None) -> None:
    printed = ("figure", *beside)
    rows = [
        {
            "source": "a.log",
            "seq": at,
            "raw_name": name,
            "name": canonical(name).canonical,
            "value": 1 + 5 / (1 + at) + at % 2 / 5,
        }
        for at in range(40)
        for name in printed
    ]
    names = keys_of(run_of("run", {"metrics": pl.DataFrame(rows)}))
    known = dict(names.select("raw_name", "name").iter_rows())
    assert known["figure"] == (found or "figure")


def meant(**printed: Sequence[float]) -> dict[str, str]:
    """Give the canonical name of each name, in a run whose records print one number under each."""
    n = len(next(iter(printed.values())))
    values = [own[at] for at in range(n) for own in printed.values()]
    rows = {"source": ["train.log"] * len(values), "seq": [at // len(printed) for at in range(len(values))]}
    names = [*printed] * n
    told = {"raw_name": names, "name": names, "value": values, "step": rows["seq"]}
    return dict(keys_of(run_of("run", {"metrics": pl.DataFrame({**rows, **told})})).select("raw_name", "name").rows())


def going(first: float, last: float, n: int = 40) -> list[float]:
    """Numbers that go from one level to another, up and down on the way."""
    return [first + (last - first) * at / (n - 1) + 0.02 * first * (-1) ** at for at in range(n)]


def summed(*parts: Sequence[float]) -> list[float]:
    return [sum(own) for own in zip(*parts, strict=True)]


def test_a_sum_of_two_parts_that_falls_is_the_loss() -> None:
    rec, kld = going(40, 25), going(1, 6)
    assert meant(REC=rec, KLD=kld, SUM=summed(rec, kld))["SUM"] == "loss"
    nothing = [math.nan] * 20
    assert meant(REC=rec[:20] + nothing, KLD=kld[:20] + nothing, SUM=summed(rec, kld)[:20] + nothing)["SUM"] == "loss"


@pytest.mark.parametrize("factor", [1.05, 0.92])
def test_a_sum_that_stays_and_one_that_is_only_near_are_no_loss(factor: float) -> None:
    one, two = going(40, 39), going(8, 8)
    assert meant(fwd=one, bwd=two, every=summed(one, two))["every"] == "every"
    rec, kld = going(40, 25), going(1, 6)
    assert meant(REC=rec, KLD=kld, SUM=[factor * value for value in summed(rec, kld)])["SUM"] == "SUM"


def test_parts_that_are_lost_in_one_record_tell_so_and_others_do_not() -> None:
    nothing = [math.nan] * 10
    assert meant(photo=going(2, 2)[:30] + nothing, smooth=going(1, 1)[:30] + nothing)["photo"] == "loss"
    apart = meant(photo=going(2, 2)[:30] + nothing, smooth=going(1, 1)[:25] + nothing + nothing[:5])
    assert "loss" not in apart.values()


FALLS = [2.0 - 0.1 * at for at in range(16)]
TURNS = [*FALLS[:8], *(1.3 + 0.02 * at for at in range(8))]


def placed(first: Sequence[float], second: Sequence[float], metric: str = "logloss") -> list[str]:
    names = [f"validation_{place}/{metric}" for place in (0, 1)] * len(first)
    values = [value for both in zip(first, second, strict=True) for value in both]
    return keys_of(made(*names, values=values))["name"].unique(maintain_order=True).to_list()


@pytest.mark.parametrize("metric", ["logloss", "rmse"])
def test_of_sets_named_by_their_place_the_first_is_trained_on_where_it_ends_lowest(metric: str) -> None:
    assert placed(FALLS, TURNS, metric) == ["loss", "eval_loss"]
    assert placed(TURNS, [2 * one for one in TURNS], metric) == ["eval_loss"]
    assert placed([2 * one for one in FALLS], FALLS, metric) == ["eval_loss"]


def test_sets_named_by_their_place_mean_nothing_in_a_few_records() -> None:
    assert placed(FALLS[:11], TURNS[:11]) == ["validation_0/logloss", "validation_1/logloss"]
    assert placed(FALLS[:12], TURNS[:12])[0] == "loss"


def test_of_a_model_with_a_hidden_code_the_bound_that_falls_is_the_loss_and_else_what_is_rebuilt() -> None:
    rec, kl = going(220, 60), going(1, 12)
    bound = summed(rec, kl)
    assert meant(ELBO=bound, recon=rec, KL=kl)["ELBO"] == "loss"
    assert meant(ELBO=[-value for value in bound], recon=rec, KL=kl)["recon"] == "loss"
    assert "loss" not in meant(ELBO=[-value for value in bound], recon=going(60, 90), KL=kl).values()


def test_a_total_that_falls_is_the_loss_and_one_that_counts_is_none() -> None:
    lr = [0.1] * 40
    assert meant(total=going(2.6, 0.3), lr=lr)["total"] == "loss"
    assert "loss" not in meant(total=[float(400 - at) for at in range(40)], lr=lr).values()
    assert "loss" not in meant(total=going(2.6, 0.3), reward=going(1, 2)).values()


#: Names of which two neighbouring ways find each another loss, and what the surer way finds.
NEIGHBOURS = [
    ({"ELBO": going(220, 60), "total": going(300, 80)}, {"ELBO"}),
    ({"total": going(9, 3), **{name: going(4, 2) for name in PARTS}}, {"total"}),
    (
        {"train_fwd_loss": going(6, 1), "train_bwd_loss": going(2, 2), "fwd_loss_val": [3.0], "bwd_loss_val": [2.0]},
        {"train_fwd_loss", "train_bwd_loss"},
    ),
    ({"figure": going(6, 1), "recon": going(60, 40)}, {"figure"}),
]


@pytest.mark.parametrize(("printed", "found"), NEIGHBOURS)
def test_of_two_ways_to_the_loss_only_the_surer_one_is_taken(
    printed: dict[str, Sequence[float]], found: set[str]
) -> None:
    names = meant(**{name: [*own] * (40 // len(own)) for name, own in printed.items()})
    assert {name for name, known in names.items() if known == "loss"} == found


@pytest.mark.parametrize(
    ("printed", "loss"),
    [(("loss_epoch_avg", "lr"), ["loss_epoch_avg"]), (("loss", "loss_epoch_avg"), ["loss"])],
)
def test_the_mean_loss_of_an_epoch_is_the_loss_where_no_other_is_printed(
    printed: tuple[str, ...], loss: list[str]
) -> None:
    assert keys_of(made(*printed)).filter(pl.col("name") == "loss")["raw_name"].to_list() == loss


def test_of_two_means_of_epochs_neither_is_the_loss() -> None:
    rows = {
        "source": ["a.log"] * 2,
        "seq": [0, 1],
        "raw_name": ["a", "b"],
        "name": ["loss_epoch_avg"] * 2,
        "value": [2.0, 1.0],
    }
    assert keys_of(run_of("run", {"metrics": pl.DataFrame(rows)}))["name"].to_list() == ["loss_epoch_avg"] * 2
