"""Lines of loops that people wrote for themselves: what counts, what is measured, and on which data."""

from __future__ import annotations

from math import exp
from random import Random

import polars as pl
import pytest

from forensics.dialects.engine import parse_text
from forensics.dialects.learned.generic import learn
from forensics.dialects.learned.masking import slots


def metrics(lines: list[str]) -> pl.DataFrame:
    dialect = learn(lines)
    return parse_text(dialect, "\n".join(lines) + "\n")["metrics"] if dialect is not None else pl.DataFrame()


def told(lines: list[str]) -> dict[str, tuple[int, int | None, int | None]]:
    """Each name with its count, its first and its last step."""
    rows = metrics(lines)
    if not rows.height:
        return {}
    own = rows.group_by("name", maintain_order=True).agg(pl.len(), pl.col("step").first(), last=pl.col("step").last())
    return {name: (count, first, last) for name, count, first, last in own.iter_rows()}


def trained(form: str, count: int = 60) -> list[str]:
    noise = Random(1)
    losses = (3 * exp(-at / 20) + 0.3 + noise.gauss(0, 0.03) for at in range(1, count + 1))
    return [
        form.format(s=10 * at, e=1 + (at - 1) // 20, b=1 + (at - 1) % 20, v=loss, a=at / count, d=at % 10)
        for at, loss in enumerate(losses, 1)
    ]


EVALUATIONS = [
    "[val] step {s} loss {v:.3f} acc {a:.3f}",
    "step {s} val loss {v:.3f} acc {a:.3f}",
    "Validation | step {s} | loss {v:.3f} | acc {a:.3f}",
    "eval @ step {s}: loss={v:.3f} acc={a:.3f}",
]


@pytest.mark.parametrize("form", EVALUATIONS)
def test_a_line_that_begins_as_an_evaluation_measures_held_out_data(form: str) -> None:
    lines = trained("step {s} loss {v:.3f} acc {a:.3f}")
    for at, line in reversed([*enumerate(trained(form))][9::10]):
        lines.insert(at + 1, line)
    found = told(lines)
    assert found["loss"] == found["acc"] == (60, 10, 600)
    assert found["eval_loss"] == found["val acc"] == (6, 100, 600)


@pytest.mark.parametrize(
    ("own", "held_out"),
    [
        ("[Train] loss {v:.3f} | f1 {a:.3f} | dcg {a:.2f}", "[Test] loss {v:.3f} | f1 {a:.3f} | dcg {a:.2f}"),
        ("\tTrain: loss = {v:.3f} | f1 = {a:.3f}", "\tTest: loss = {v:.3f} | f1 = {a:.3f}"),
        ("loss={v:.3f}, f1={a:.3f}", "val: loss={v:.3f}, f1={a:.3f}"),
    ],
)
def test_a_line_of_held_out_data_is_told_from_one_of_training_where_a_heading_counts(own: str, held_out: str) -> None:
    lines = [line for at in range(30) for line in (f"Epoch: {at}", *trained(own)[at:][:1], *trained(held_out)[at:][:1])]
    found = told(lines)
    assert {name: found[name][0] for name in ("loss", "f1", "eval_loss", "val f1")} == dict.fromkeys(
        ("loss", "f1", "eval_loss", "val f1"), 30
    )


def test_a_name_of_a_script_that_stands_in_every_line_is_no_evaluation() -> None:
    assert told(trained("test_run step {s} loss {v:.3f}"))["loss"] == (60, 10, 600)
    assert told(trained("dev | step {s} | loss {v:.3f}"))["loss"] == (60, 10, 600)


def test_a_line_of_both_losses_is_no_evaluation() -> None:
    found = told([*trained("step {s} loss {v:.3f}"), *trained("step {s} val loss {v:.3f} train acc {a:.3f}")])
    assert "val train acc" not in found


@pytest.mark.parametrize(
    "form",
    [
        "[{s}] {v:.4f}",
        "step {s} -> {v:.4f}",
        "{s} | train | {v:.4f} |",
        "({e}, {s}, {v:.4f}, {a:.3f})",
        "loss({s}) = {v:.4f}",
        "{s}it [00:1{d}, 3.2{d}it/s, loss={v:.3f}, v_num=3]",
    ],
)
def test_a_loss_without_a_name_beside_its_counter_is_read(form: str) -> None:
    assert told(trained(form))["loss"] == (60, 10, 600)


def test_batches_and_epochs_without_a_name_count_on() -> None:
    assert told(trained("Epoch {e}, Batch {b}, Loss, {v:.4f}, Accuracy, {a:.3f}"))["loss"] == (60, 1, 60)


@pytest.mark.parametrize("form", ["file {s} | {m:.1f}", "[{s}] {n:.3f}", "[{s}] {r:.6f}", "request {s} -> {n:.2f}"])
def test_what_does_not_fall_by_half_up_and_down_is_no_loss(form: str) -> None:
    noise = Random(2)
    lines = [form.format(s=at, m=300 - 0.7 * at, n=noise.uniform(0.2, 3), r=1e-3 * 0.99**at) for at in range(1, 301)]
    assert not told(lines)


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("第 12 轮 第 300 批 损失 0.5321", ["轮", "批", "损失"]),
        ("—— 第 3 轮结束,验证损失 0.5", ["轮", "验证损失"]),
        ("第3步: 损失=0.4", ["步", "损失"]),
        ("Эпоха 3 — потери: 0.9", ["Эпоха", "потери"]),
        ("độ chính xác 0.5", ["độ chính xác"]),
        ("psnr=18.00dB vram=6.10G", ["psnr", "vram"]),
        ("loss: total=0.3 rec=0.1", ["loss total", "rec"]),
    ],
)
def test_names_of_any_alphabet_are_keys(line: str, keys: list[str]) -> None:
    assert [slot.key for slot in slots(line)] == keys


def test_a_unit_stands_before_the_maximum_of_its_number() -> None:
    assert [(slot.unit, slot.over) for slot in slots("RSS 8.4 GB / 64 GB")] == [("GB", False), ("GB", True)]
    assert [slot.unit for slot in slots("lr 3 m / rate")] == [""]


@pytest.mark.parametrize(
    ("head", "steps"),
    [
        ("task {t} epoch {e}: ", (24, 1, 24)),
        ("cycle {t}/3, epoch {e}/8: ", (24, 1, 24)),
        ("fold {t} epoch {e}: ", (24, 1, 8)),
    ],
)
def test_epochs_that_begin_anew_within_a_task_count_on_and_those_of_a_fold_do_not(
    head: str, steps: tuple[int, int, int]
) -> None:
    lines = [head.format(t=t, e=e) + f"train loss {1 / (e + t):.4f}" for t in (1, 2, 3) for e in range(1, 9)]
    assert told(lines)["loss"] == steps


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("ckpt -> out/000500.pt", "out/000500.pt"),
        ("-> ckpt_300.npz", "ckpt_300.npz"),
        ("Stand gesichert: lauf/stand_200.pt", "lauf/stand_200.pt"),
        ("Váhy uloženy: vahy_240.pt", "vahy_240.pt"),
        ("モデル保存: model_e3.pt", "model_e3.pt"),
        ("Instantané enregistré (snap_1.pt)", "snap_1.pt"),
        ("image -> out/000500.png", None),
        ("config: model.pt", None),
    ],
)
def test_files_of_weights_are_saved_behind_an_arrow_or_in_any_language(line: str, path: str | None) -> None:
    lines = trained("step {s} loss {v:.3f}")
    dialect = learn(lines)
    assert dialect is not None
    saved = parse_text(dialect, "\n".join([*lines, line]) + "\n").get("checkpoints", pl.DataFrame())
    paths = saved["path"].to_list() if saved.height else []
    assert paths == ([] if path is None else [path])


@pytest.mark.parametrize(
    ("line", "saved"),
    [
        ("model saved (iter 700)", (700, None)),
        ("Model and optimizer are saved, step: 700", (700, None)),
        ("** snapshot at iteration 700 stored **", (700, None)),
        ("persisted trainer state @ 700", (700, None)),
        ("ckpt pushed: s3://bucket/run/700/", (600, "s3://bucket/run/700/")),
        ("checkpoint was written to /mnt/b/700", (600, "/mnt/b/700")),
        # without a number of its own: at the record before
        ("torch.save -> runs/a/net_700.pt", (600, "runs/a/net_700.pt")),
        ("storing weights to w/700.weights.h5", (600, "w/700.weights.h5")),
        ("exported net700.safetensors", (600, "net700.safetensors")),
        ("restored model at step 700", None),
        ("state restored from x/700.pt", None),
        ("uploaded the images to /mnt/b/700", None),
        ("exported figures_700.npz", None),
        ("model: wrote 5 summaries at step 700", None),
    ],
)
def test_a_save_is_told_by_the_deed_and_a_thing_or_a_file_of_weights_in_any_order(
    line: str, saved: tuple[int | None, str | None] | None
) -> None:
    dialect = learn(lines := trained("step {s} loss {v:.3f}"))
    assert dialect is not None
    rows = parse_text(dialect, "\n".join([*lines, line]) + "\n").get("checkpoints", pl.DataFrame())
    assert (rows.select("step", "path").rows() if rows.height else []) == ([] if saved is None else [saved])


@pytest.mark.parametrize(
    ("behind", "read"),
    [
        ("{s}00us", {"time"}),
        ("{s}00 us", {"time"}),
        ("118.2 samples/min", {"samples/min"}),
        ("118.2 MB/min", set[str]()),
    ],
)
def test_microseconds_and_rates_of_a_minute_behind_a_number_are_read(behind: str, read: set[str]) -> None:
    assert told(trained(f"step {{s}} loss {{v:.3f}}, {behind}")).keys() - {"loss"} == read


@pytest.mark.parametrize("sign", [" | ", " / ", ", ", " "])
def test_two_rates_named_behind_their_numbers_stand_in_one_row(sign: str) -> None:
    read = told(trained(f"step {{s}} | loss {{v:.3f}} | 0.132 s/step{sign}248{{s}} tok/s"))
    assert read == dict.fromkeys(("loss", "step_time_s", "tokens_per_sec"), (60, 10, 600))


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("epoch {s}: loss(train)={v:.4f} loss(val)={v:.3f} acc(val)={a:.4f}", ["loss", "eval_loss", "acc (val)"]),
        ("epoch {s}, Loss(train): {v:.4f}, Loss(val): {v:.3f}", ["loss", "eval_loss"]),
        ("it {s} | loss={v:.4f} | acc(cur)={a:.3f} | acc(old)={a:.3f}", ["loss", "acc (cur)", "acc (old)"]),
        ("it {s} | mean(loss)={v:.4f} | lr={a:.4f}", ["loss", "lr"]),  # the bracket holds the quantity itself
        ("it {s} | acc(loss)={v:.4f} | lr={a:.4f}", ["loss", "lr"]),
    ],
)
def test_a_bracket_glued_to_a_quantity_says_of_which_data_it_is(form: str, names: list[str]) -> None:
    assert list(told(trained(form))) == names


def test_a_counter_of_thousands_of_images_counts_although_it_is_printed_in_parts() -> None:
    lines = [f"kimg {at * 12.8:.1f} G {1.2 + at % 3 / 10:.3f} fid {200 / at:.2f}" for at in range(1, 41)]
    rows = metrics(lines).filter(pl.col("name") == "fid")
    assert rows["step"].to_list() == [int(at * 12.8) for at in range(1, 41)]


def test_a_share_of_an_epoch_counts_no_steps() -> None:
    lines = [f"frac {at * 12.8:.1f} G {1.2 + at % 3 / 10:.3f} fid {200 / at:.2f}" for at in range(1, 41)]
    assert metrics(lines)["step"].null_count() == metrics(lines).height


def test_letters_name_the_losses_of_training_and_validation_where_both_stand_in_a_line() -> None:
    both = trained("{e:3d}/30 tl {v:.4f} vl {v:.4f} va {a:.3f}")
    assert {"loss", "eval_loss"} <= {*told(both)}
    assert "eval_loss" not in told(trained("{e:3d}/30 pl 0.0{d} vl {v:.4f} va {a:.3f}"))


def test_a_nan_between_two_words_is_the_value_of_the_first_where_numbers_alternate_with_words() -> None:
    assert [(slot.key, slot.text) for slot in slots("12/30 tl 0.4131 vl nan va 0.000")][-2:] == [
        ("vl", "nan"),
        ("va", "0.000"),
    ]
    assert all(slot.text != "nan" for slot in slots("skipped 3 since nan in 12 layers"))


def saves(lines: list[str]) -> list[int | None]:
    dialect = learn(lines)
    assert dialect is not None
    return parse_text(dialect, "\n".join(lines) + "\n")["checkpoints"]["step"].to_list()


@pytest.mark.parametrize("gap", [3, 60])
def test_a_save_has_the_step_in_the_name_of_its_file_and_none_of_another_counter(gap: int) -> None:
    lines = [f"[{50 * at:05d}] fit_loss: {3 / at + at % 2 / 9:.4f}  evals: {at * 640}" for at in range(1, 61)]
    for turn, at in enumerate(range(20, 61, 20), 1):
        lines.insert(at + turn - 1, f"saved pop_{50 * at + gap // 4}.pt | gen={turn}")
    expected = [50 * at + gap // 4 for at in (20, 40, 60)]
    assert saves(lines) == expected


def test_a_number_in_the_name_of_a_file_far_from_the_records_is_no_step() -> None:
    lines = [f"[{50 * at:05d}] fit_loss: {3 / at + at % 2 / 9:.4f}" for at in range(1, 61)]
    lines.insert(20, "saved resnet_18.pt")
    assert saves(lines) == [1000]


def test_a_save_has_its_own_counter_where_the_records_count_the_same() -> None:
    lines = [f"gen={at} best_loss: {3 / at + at % 2 / 9:.4f}" for at in range(1, 61)]
    lines = [
        text
        for at, line in enumerate(lines, 1)
        for text in (line, f"saved pop.pt | gen={at}")
        if at % 9 == 0 or text == line
    ]
    assert saves(lines) == [9, 18, 27, 36, 45, 54]


@pytest.mark.parametrize(
    ("line", "total"),
    [
        ("epoch 3/40 total = 0.860 + 1.311 + 0.500 = 2.671", "2.671"),
        ("epoch 3/40 total 2.671 = 0.860 (cls) + 1.311 (box) + 0.500 (obj)", "2.671"),
        ("epoch 3/40 total: 0.860 (cls) + nan (box) = nan", "nan"),
        ("epoch 3/40 total = 0.860 lr = 0.1", "0.860"),
    ],
)
def test_a_sum_has_the_number_behind_its_parts(line: str, total: str) -> None:
    assert [slot.text for slot in slots(line) if slot.key == "total"] == [total]


@pytest.mark.parametrize(
    "form", ["[trial {n}/60] lr={lr:g} wd={wd:g} -> val_loss {v:.4f} (31s)", "run {n} | bs {b} | f1 {v:.3f}"]
)
def test_results_of_a_search_are_no_course_of_one_training(form: str) -> None:
    every = [
        form.format(n=n, lr=10 ** -(n % 5), wd=n % 3 / 100, b=16 << n % 4, v=0.3 + n % 7 / 20) for n in range(1, 61)
    ]
    assert told(every) == {}


def test_a_search_whose_rate_only_decays_is_a_training() -> None:
    every = [f"run {n} lr={0.1 * 0.9**n:g} loss {2.5 / n + n % 3 / 50:.4f}" for n in range(1, 61)]
    assert told(every)["loss"] == (60, 1, 60)
    assert told([line.replace("run", "step").replace("lr=0", f"lr={at % 2}") for at, line in enumerate(every)])["loss"]


@pytest.mark.parametrize("epochs", [3, 12])
def test_epochs_that_begin_anew_with_each_task_count_on_whatever_their_number(epochs: int) -> None:
    lines = [f"task {t} ep {e}: ce {2.1 * exp(-e) + 0.15 + t / 90:.4f}" for t in range(8) for e in range(1, epochs + 1)]
    assert metrics(lines)["step"].unique().sort().to_list() == [*range(1, 8 * epochs + 1)]


@pytest.mark.parametrize(
    ("sums", "held_out"),
    [
        (" * Prec@1 {a:.3f} Prec@5 {v:.3f}", 18),  # below the batches of a test: of the test
        (" * Prec@1 {a:.3f} Rec@5 {v:.3f}", 12),  # what the test does not print is its own
    ],
)
def test_a_line_that_sums_up_the_batches_of_a_test_is_of_the_test(sums: str, held_out: int) -> None:
    lines: list[str] = []
    for e in range(6):
        lines += [f"Epoch: [{e}][{b}/500] Loss {2 / (1 + e + b / 500):.4f} Prec@1 {e:.3f}" for b in range(0, 500, 100)]
        lines += [f"Test: [{b}/80] Loss {2.2 / (1 + e):.4f} Prec@1 {e - 0.1:.3f} Prec@5 {e + 1:.3f}" for b in (0, 40)]
        lines.append(sums.format(a=e - 0.1, v=e + 1.0))
    found = told(lines)
    assert found["loss"][0] == 30
    assert "Test" not in found
    assert (found["val Prec@1"][0], found["Prec@1"][0]) == (held_out, 48 - held_out)


def test_a_share_of_a_test_without_brackets_is_no_batch() -> None:
    lines = [f"epoch {e} loss {2 / (1 + e):.3f} Test: {300 + 2 * e}/500" for e in range(20)]
    assert told(lines)["Test"][0] == 20


def _tested(*, sums_in_training: bool) -> list[str]:
    lines: list[str] = []
    for e in range(6):
        lines += [
            f"Epoch: [{e}][{b}/500] Time 0.4{b % 7} Loss {2 / (1 + e):.4f} Prec@1 {e:.3f}" for b in range(0, 500, 100)
        ]
        lines += [" * Prec@1 0.500"] * (sums_in_training and e == 3)
        lines += [f"Test: [{b}/80] Time 0.13{e} Loss {2.2 / (1 + e):.4f} Prec@1 {e - 0.1:.3f}" for b in (0, 40)]
        lines.append(f" * Prec@1 {e - 0.1:.3f}")
    return lines


def test_the_times_of_a_test_are_none_of_training() -> None:
    found = told(_tested(sums_in_training=False))
    assert (found["val Time"][0], found["Time"][0]) == (12, 30)


@pytest.mark.parametrize(("sums_in_training", "held_out"), [(False, 18), (True, 12)])
def test_a_line_that_sums_up_training_too_is_of_no_test(*, sums_in_training: bool, held_out: int) -> None:
    assert told(_tested(sums_in_training=sums_in_training))["val Prec@1"][0] == held_out
