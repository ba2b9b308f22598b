from __future__ import annotations

import math
import re
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.dialects.engine import parse_text
from forensics.dialects.learned import headers
from forensics.dialects.learned.generic import learn
from forensics.dialects.learned.masking import slots
from forensics.dialects.names import canonical
from forensics.dialects.spec import Name
from forensics.formats.text import log as text_log
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink

STEPS = range(10, 130, 10)


def read(lines: list[str]) -> pl.DataFrame:
    dialect = learn(lines)
    assert dialect is not None
    return parse_text(dialect, "\n".join(lines) + "\n")["metrics"]


def series(lines: list[str], name: str) -> list[tuple[int | None, float]]:
    return read(lines).filter(pl.col("name") == name).select("step", "value").rows()


def expected(factor: float = 1.0) -> list[tuple[int, float]]:
    return [(step, step * factor) for step in STEPS]


FORMS = {
    "key=value": "step={s} loss={v} lr=1e-4",
    "key: value": "[2026-01-02 03:04:05,678][root][INFO] - step: {s}, loss: {v}, lr: 0.001",
    "key value": "Iters {s} Train loss {v} Prune rate 0.3",
    "brackets": "Step [{s}/900], Loss: {v} (12.5 s)",
    "hash": "I0102 train.py:17] Step #{s}: accuracy 3.5%, loss {v}",
    "json": '{{"step": {s}, "loss": {v}, "note": "fine"}}',
    "dict": "{{'loss': {v}, 'lr': 0.001, 'step': {s}}}",
    "tensor": "step {s} loss tensor({v}, device='cuda:0')",
    "tensor of one": "step {s} loss=tensor([{v}], grad_fn=<AddBackward0>) gnorm=array([[0.5]])",
    "bars": "| step {s} | loss {v} | lr 0.001 |",
    "progress": " 10%|#   | {s}/900 [01:40<15:00,  1.00s/it, loss={v}, lr=1e-05]",
    "global_step": "global_step {s} train/loss {v} train/grad_norm 0.5",
    "semicolons": "Step {s}/ 900; acc: 39.1; loss: {v}; lr: 0.00200; 12500/12500 tok/s;",
    "arrow": "iteration {s} -> loss: {v}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_metric_line_in_any_common_form_is_read_with_its_step(form: str) -> None:
    lines = [form.format(s=step, v=step * 0.5) for step in STEPS]
    assert series(lines, "loss") == expected(0.5)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_nan_is_the_value_of_its_key(form: str) -> None:
    lines = [form.format(s=step, v="nan" if step > 60 else step * 0.5) for step in STEPS]
    found = series(lines, "loss")
    assert [step for step, value in found if math.isnan(value)] == [step for step in STEPS if step > 60]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_learned_patterns_are_rust_patterns_and_needles_stand_in_every_line(form: str) -> None:
    lines = [form.format(s=step, v=step * 0.5) for step in STEPS]
    dialect = learn(lines)
    assert dialect is not None
    for line in dialect.lines:
        hits = pl.Series(lines).str.contains(line.pattern)
        near = pl.Series(lines).str.contains(line.needle, literal=True)
        assert (near | ~hits).all()
        re.compile(line.pattern)


def test_a_loss_that_is_nan_from_the_first_line_is_still_a_loss() -> None:
    assert [s for s, v in series([f"step {s} loss nan" for s in STEPS], "loss") if math.isnan(v)] == list(STEPS)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["loss = nan", "loss = nan"], [(None, math.nan)] * 2),
        (["iteration 5 | loss nan"], [(5, math.nan)]),
        (['{"step": 10, "loss": 2.0}', '{"step": 20, "loss": NaN}'], [(10, 2.0), (20, math.nan)]),
        (["[12:01] step 10/100 - loss 2.5", "", "[12:02] step 11/100 - loss nan"], [(10, 2.5), (11, math.nan)]),
    ],
)
def test_an_excerpt_of_few_lines_is_read_where_its_loss_is_nan(
    lines: list[str], found: list[tuple[int | None, float]]
) -> None:
    assert str(series(lines, "loss")) == str(found)


@pytest.mark.parametrize(
    "lines",
    [
        ["step 10 loss 2.5", "step 11 loss 2.4"],
        ["best loss: inf", "starting"],
        ["min_loss = nan", "minimum learning rate 0.1"],
        ["nan values found in 3 files", "the loss may become nan later, see section 2"],
        [*(f"line {number} of something else" for number in "abcdefghijkl"), "loss = nan"],
        ["loss = nan", *[""] * 80, *(f"line {number} of something else" for number in "abcdefghijkl")],
    ],
)
def test_an_excerpt_without_a_nan_loss_and_a_lone_nan_in_a_longer_log_teach_nothing(lines: list[str]) -> None:
    assert learn(lines) is None


def test_batches_that_begin_again_in_each_epoch_count_on() -> None:
    lines = [f"Epoch [{e}/3] Batch [{b}/40] Loss: {e}.{b}" for e in (1, 2, 3) for b in (10, 20, 30, 40)]
    assert [step for step, _ in series(lines, "loss")] == list(range(10, 130, 10))


@pytest.mark.parametrize(("begin", "steps"), [(0, [0, 25, 50, 75, 100, 125]), (25, [25, 50, 75, 100, 125, 150])])
def test_batches_from_0_on_leave_the_last_of_an_epoch_unprinted(begin: int, steps: list[int]) -> None:
    places = [(epoch, begin + batch) for epoch in (1, 2) for batch in (0, 25, 50)]
    found = series([f"Epoch {epoch}, batch {batch}, loss: {9 - batch / 90:.3f}" for epoch, batch in places], "loss")
    assert [step for step, _ in found] == steps


def test_a_bar_without_an_epoch_counts_on_when_it_is_full() -> None:
    lines = [f" 50%|##  | {b}/40 [00:01<00:02, 5.00it/s, loss=0.5{b}]" for _ in range(3) for b in (10, 20, 30, 40)]
    assert [step for step, _ in series(lines, "loss")] == list(range(10, 130, 10))


def test_an_epoch_is_the_step_when_nothing_finer_is_printed() -> None:
    lines = [f"Epoch [{e}/50], Train Loss: {e}.5, Train L1: 2.5" for e in range(1, 9)]
    assert series(lines, "loss") == [(e, e + 0.5) for e in range(1, 9)]


def test_validation_lines_between_training_lines_are_kept_apart() -> None:
    lines: list[str] = []
    for e in range(1, 7):
        lines += [f"Epoch [{e}/50], Train Loss: {e}.5, LR: 0.1", f"Epoch [{e}/50], Validation Loss: {e}.25, acc: 0.5"]
    assert series(lines, "loss") == [(e, e + 0.5) for e in range(1, 7)]
    assert series(lines, "eval_loss") == [(e, e + 0.25) for e in range(1, 7)]


def test_a_column_that_is_printed_now_and_then_is_optional() -> None:
    lines = [f"step {s} loss 0.{s}" + (f" val_loss 0.{s}5" if s % 40 == 0 else "") for s in STEPS]
    assert len(series(lines, "loss")) == len(STEPS)
    assert [step for step, _ in series(lines, "eval_loss")] == [40, 80, 120]


def test_a_column_that_comes_with_each_epoch_does_not_hide_where_batches_begin_again() -> None:
    lines = [
        f"epoch {e} batch {b} loss {e}.{b}" + (" val_loss 0.5" if b == 40 else "")
        for e in range(4)
        for b in (10, 20, 30, 40)
    ]
    assert [step for step, _ in series(lines, "loss")] == list(range(10, 170, 10))


def test_a_word_in_a_name_is_no_number() -> None:
    lines = [f"step {s} loss 0.{s} number of nan iterations: 0" for s in STEPS]
    assert len(series(lines, "loss")) == len(STEPS)
    assert not read(lines)["value"].is_nan().any()


def test_settings_that_every_rank_prints_are_no_metrics() -> None:
    arguments = "Args(max_steps=-1, max_grad_norm=1.0, learning_rate=1e-4, label_loss_weight=0.5)"
    assert learn([arguments] * 16 + ["x"] * 60) is None


def test_loss_lines_below_epoch_lines_take_their_step() -> None:
    lines = [text for e in range(1, 8) for text in (f"----- Epoch {e}/7 -----", f"train loss: {e}.5 acc: 0.{e}")]
    assert series(lines, "loss") == [(e, e + 0.5) for e in range(1, 8)]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("| step | loss | lr |", "| {s} | {v} | 0.001 |"),
        ("epoch     train_loss  accuracy  time", "{s}         {v}    0.5       00:12"),
    ],
)
def test_a_table_takes_its_names_from_the_header(header: str, row: str) -> None:
    assert series([header, *(row.format(s=s, v=s * 0.5) for s in STEPS)], "loss") == expected(0.5)


def test_a_table_may_have_the_long_names_of_reinforcement_learning() -> None:
    name = "sampling/sampling_logp_difference/mean"
    assert series([f"  step  loss  {name}", *(f"  {s}  0.02  {s * 0.5}" for s in STEPS)], name) == expected(0.5)


@pytest.mark.parametrize(
    ("printed", "known"),
    [
        ("Loss/train", "loss"),
        ("Loss/test", "eval_loss"),
        ("loss/val", "eval_loss"),
        ("Loss/discriminator", "Loss/discriminator"),
        ("loss/gpu", "loss/gpu"),
        ("style/train", "style/train"),
        ("gpu_mem/allocated_gb", "mem_allocated_gib"),
        ("gpu_mem/loss", "gpu_mem/loss"),
        ("MaxMem(GB)", "mem_peak_gib"),
        ("MaxLen(GB)", "MaxLen(GB)"),
        ("memory_peak_gib", "mem_peak_gib"),
        ("gpu_mem_allocated_gb", "mem_allocated_gib"),
        ("host_mem_peak_gb", "host_mem_peak_gb"),
        ("lr-Lion", "lr"),
        ("lr-DecoupledAdamW/group0", "lr"),
        ("lr-AdamW/pg2", "lr-AdamW/pg2"),
        ("lr-AdamW-momentum", "lr-AdamW-momentum"),
        ("train_loss_step", "loss"),
        ("train_loss_epoch", "train_loss_epoch"),
    ],
)
def test_a_name_may_stand_beside_its_group_or_be_written_as_one_word(printed: str, known: str) -> None:
    assert canonical(printed).canonical == known


@pytest.mark.parametrize(("chars", "known"), [(512, True), (513, False)])
def test_a_name_of_more_than_512_characters_means_nothing(chars: int, known: bool) -> None:
    printed = "train/" + "loss".rjust(chars - 6, "_")
    assert (canonical(printed).canonical == "loss") is known


def test_a_table_without_a_counter_is_read_where_its_header_names_a_loss() -> None:
    rows = [f"{s * 0.5}\t{s * 2.0}\t{s}.25" for s in STEPS]
    assert [v for _, v in series(["train_loss\ttrain_EPE\tEPE", "", *rows], "loss")] == [s * 0.5 for s in STEPS]
    assert learn(["precision\trecall\tlost", "", *rows]) is None


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("epoch;batch;train_bce", "{e};{b};{v}"),
        ("| Époque | lot | perte |", "| {e} | {b} | {v} |"),
        ("epoch:  batch:  loss", "{e}  {b}  {v}"),
    ],
)
def test_a_table_may_count_batches_within_epochs_part_by_semicolons_and_be_in_another_language(
    header: str, row: str
) -> None:
    lines = [header, *(row.format(e=e, b=b, v=9.5 - e - b / 16) for e in range(3) for b in (0, 5, 10))]
    found = read(lines)
    assert found["epoch"].unique().sort().to_list() == [0, 1, 2]
    assert found["step"].unique().sort().to_list() == [15 * e + b for e in range(3) for b in (0, 5, 10)]


@pytest.mark.parametrize(("folds", "is_read"), [((1, 2, 3), True), ((), False)])
def test_the_counter_of_a_table_may_begin_again_in_each_fold_and_grows_otherwise(
    folds: tuple[int, ...], is_read: bool
) -> None:
    head = ["| epoch | train_loss | auc |", "|---|---|---|"]
    told = [e for _ in folds for e in range(8)] if folds else [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
    lines = [*head, *(f"| {e} | {0.7 - i / 90:.4f} | 0.{60 + e} |" for i, e in enumerate(told))]
    assert (learn(lines) is not None) == is_read
    if is_read:
        assert [step for step, _ in series(lines, "loss")] == told


def test_a_file_of_headers_alone_is_not_searched_for_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[object] = []

    def is_row(cells: list[str], *, has_bars: bool) -> bool:
        searched.append((cells, has_bars))
        return False

    monkeypatch.setattr(headers, "_is_row", is_row)
    list(headers.tables([f"step train_loss name{'x' * i}" for i in range(20)] * 10, 5))
    assert len(searched) <= 16 * 200


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("Epoch {s} 训练损失: {v}, 训练准确率: 3{s}.46%", "训练损失"),
        ("轮次\uff1a{s}\uff0c损失\uff1a{v}\uff0c学习率\uff1a0.001", "损失"),
        ("エポック {s} 学習損失 = {v}", "学習損失"),
        ("에포크 {s}: 학습 손실 {v}", "학습_손실"),
        ("epoch {s}, 训练loss: {v}, 验证loss: 7.5", "loss"),
        ("epoch {s} 当前平均 train_loss={v} 学习率lr=0.1", "train_loss"),
        ("epoch {s} 保存模型 (train_loss={v})", "train_loss"),
    ],
)
def test_names_in_other_scripts_are_names(row: str, name: str) -> None:
    lines = [row.format(s=s, v=s * 0.5) for s in STEPS]
    assert series(lines, "loss") == expected(0.5)
    assert name in read(lines)["raw_name"].to_list()


@pytest.mark.parametrize(
    "lead", ["Loss for epoch", "Average training loss after epoch", "train loss at step #", "LOSS (epoch"]
)
def test_a_counter_may_stand_between_a_name_and_its_value(lead: str) -> None:
    end = ")" if "(" in lead else ""
    assert series([f"{lead} {s}{end}: {s * 0.5}" for s in STEPS], "loss") == expected(0.5)


def test_a_time_behind_a_counter_is_no_metric() -> None:
    assert learn([f"Finished epoch {s}: {s * 0.5} s" for s in STEPS]) is None


def test_a_run_that_began_again_keeps_both_attempts() -> None:
    metrics = read([f"step {s} loss 0.{s}" for _ in range(2) for s in range(10, 200, 10)])
    assert metrics["attempt"].unique().sort().to_list() == [0, 1]


def test_save_lines_name_their_step_and_path() -> None:
    lines = [f"step {s} loss 0.{s}" for s in STEPS] + [
        "Saved checkpoint at step 120 to out/run",
        "saving model to out/ckpt_120.pt",
        "Saving model weights to out/final/model.safetensors",
        "wrote weights -> ckpts/weights_000120.pt",
        "dumped 12 tensors into out/last.ckpt",
        "wrote the summary to out/model.json",
        "overwrote nothing; rewriting plots to plots/model_3.png",
    ]
    dialect = learn(lines)
    assert dialect is not None
    saved = parse_text(dialect, "\n".join(lines))["checkpoints"]
    assert set(saved["step"].to_list()) == {120}
    paths = {"out/run", "out/ckpt_120.pt", "out/final/model.safetensors", "ckpts/weights_000120.pt", "out/last.ckpt"}
    assert set(saved["path"].to_list()) == paths


NOT_METRICS = {
    "source code": [f"    loss = loss + {i}.0 * step_{i}" for i in range(20)],
    "calls": [f"    train(step={i}, loss=0.5);" for i in range(20)],
    "arguments": [f"  {k}: {i}" for i, k in enumerate(["lr", "batch_size", "epochs", "steps", "warmup", "seed"])] * 3,
    "a repeated setting": ["learning rate 0.001"] * 30,
    "pip": [f"Downloading torch-2.{i}.0-cp311.whl ({i}.5 MB)" for i in range(20)],
    "downloads": [f"model.bin:  {i}%|#   | {i}.5M/90.0M [00:0{i}<00:10, 9.5MB/s]" for i in range(9)],
    "cProfile": [f"  {i}437956   68.{i}   0.000 8770.834   0.004 loss.py:{i}83(step)" for i in range(20)],
    "tracebacks": [f'  File "/a/b/train.py", line {i}, in step' for i in range(20)],
    "prose": [f"we found {i} files with nan in them and moved {i + 3} of them" for i in range(20)],
    "a bar alone": [f" {i}%|#   | {i}/100 [00:01<00:02, 5.00it/s]" for i in range(20)],
    "ports": [f"worker {i} listens on port {i + 9000}" for i in range(20)],
    "nothing": [],
}


@pytest.mark.parametrize("lines", NOT_METRICS.values(), ids=NOT_METRICS.keys())
def test_what_is_no_metric_line_is_not_learned(lines: list[str]) -> None:
    assert learn(lines) is None


def test_metric_lines_are_found_among_everything_else() -> None:
    noise = [line for lines in NOT_METRICS.values() for line in lines]
    metrics = [f"update {s} | reward 1.{s} | kl 0.{s}" for s in STEPS]
    names = read(noise + metrics + noise)["name"].unique().to_list()
    assert sorted(names) == ["kl", "reward"]


def test_dates_clocks_and_versions_are_no_numbers() -> None:
    assert [s.text for s in slots("2026-01-02 03:04:05,678 v1.2.3 eta: 1:02:03 top-1 acc@5 loss 0.5")] == ["0.5"]


NUMBER = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.floats(allow_nan=True, allow_infinity=True, width=32).map(repr),
    st.floats(1e-9, 1e9).map("{:.3e}".format),
)
KEY = st.sampled_from(["loss", "train_loss", "lr", "grad_norm", "acc", "reward", "kl", "ppl"])


@settings(max_examples=60, deadline=None)
@given(
    keys=st.lists(KEY, min_size=1, max_size=5, unique=True).filter(lambda ks: len({"loss", "train_loss"} & {*ks}) < 2),
    form=st.sampled_from([("{k}={v}", " "), ("{k}: {v}", " | "), ("{k} {v}", ", "), ("'{k}': {v}", ", ")]),
    data=st.data(),
)
def test_every_printed_number_comes_back(keys: list[str], form: tuple[str, str], data: st.DataObject) -> None:
    pattern, between = form
    values = [[data.draw(NUMBER) for _ in keys] for _ in range(8)]
    values[0] = [f"{i}.5" for i, _ in enumerate(keys)]
    lines = [
        between.join(pattern.format(k=k, v=v) for k, v in zip(["step", *keys], [str(10 * i), *row], strict=True))
        for i, row in enumerate(values, 1)
    ]
    found = read(lines)
    assert found.height == len(keys) * len(lines)
    for value, text in zip(found["value"].to_list(), [t for row in values for t in row], strict=True):
        assert value == pytest.approx(float(text), rel=1e-9, nan_ok=True)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(max_size=80), max_size=30))
def test_any_text_gives_a_dialect_or_none(lines: list[str]) -> None:
    dialect = learn([*lines, *lines, *lines])
    if dialect is not None:
        parse_text(dialect, "\n".join(lines))


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="step loss=:[](){}|/\\'\"0123456789.-+*?^$%#\t ", min_size=1, max_size=60))
def test_punctuation_around_numbers_never_breaks_a_learned_pattern(noise: str) -> None:
    lines = [f"{noise} step {s} {noise} loss 0.{s} {noise}" for s in STEPS]
    dialect = learn(lines)
    if dialect is not None:
        parse_text(dialect, "\n".join(lines))


def test_a_step_time_that_is_printed_in_milliseconds_is_kept_in_seconds() -> None:
    dialect = learn([f"step {i} loss {3 - i / 9:.3f} step_time {420 + i}.5ms" for i in range(1, 9)])
    assert dialect is not None
    names = next(line.names for line in dialect.lines if line.meaning == "metrics")
    assert names["step_time"] == Name("step_time_s", 0.001)


def test_a_counter_grows_within_each_rank_however_the_ranks_print() -> None:
    order = [(rank, 3 * turn + i) for turn in range(4) for rank in (0, 1, 2) for i in range(3)]
    lines = [f"step={step} loss=6.{step} data_time=0.000" for _, step in order]
    alone, told = learn(lines), learn(lines, [rank for rank, _ in order])
    assert told is not None
    assert "(?P<step>" in told.lines[0].pattern
    assert alone is None or "(?P<step>" not in alone.lines[0].pattern


@pytest.mark.parametrize("cell", ["{n}%", "nan.0", "{n}"])
def test_a_table_whose_counter_is_no_number_is_read_or_left_but_never_raises(cell: str) -> None:
    rows = "".join(f"{cell.format(n=n)} {3 - n / 10:.2f} 0.5\n" for n in range(1, 12))
    learned = learn(("step loss acc\n" + rows).splitlines())
    assert (learned is not None) == (cell == "{n}")


def test_a_bar_drawn_among_lines_that_name_their_step_takes_no_step_from_them() -> None:
    bar = " 71%|#######   | 100/140 [00:05<00:01, 20.51it/s, loss=nan, lr=0.00177]"
    lines = [f"01/22/2026 20:17:{s % 60:02} - INFO - step {s}: loss {s}, grad_norm 0.5, lr 0.001" for s in STEPS]
    assert series([lines[0], bar, *lines[1:]], "loss")[-len(STEPS) + 1 :] == expected()[1:]


@pytest.mark.parametrize(
    "form",
    [
        "2026-01-02 03:04:05,678 INFO [rank {r}] step={s} loss={v} compute_time=0.03{r}s",
        "2026-01-02 03:04:05 | INFO | rank={r} | step {s}/900 loss {v} lr 1.0e-03",
        "2026-01-02T03:04:05 rank={r} step={s} loss={v}",
        '{{"s": {s}, "rank": {r}, "loss": {v}}}',
    ],
)
def test_a_rank_that_a_line_states_behind_its_time_is_whose_line_it_is(form: str) -> None:
    lines = [form.format(r=rank, s=step, v=step * 0.5) for step in STEPS for rank in (0, 3)]
    losses = read(lines).filter(pl.col("name") == "loss").select("rank", "step", "value").rows()
    assert sorted(losses) == [(rank, step, step * 0.5) for rank in (0, 3) for step in STEPS]


@pytest.mark.parametrize("form", ["step={s} lora rank 16 loss={v}", "step={s} loss={v} node_rank={s}"])
def test_the_rank_of_a_matrix_or_of_a_machine_is_nobodys(form: str) -> None:
    lines = [form.format(s=step, v=step * 0.5) for step in STEPS]
    assert read(lines)["rank"].null_count() == read(lines).height


@pytest.mark.parametrize(("word", "loss"), [("Schritt", "loss"), ("paso", "loss"), ("tick", "loss"), ("pas", "perte")])
def test_the_first_number_that_rises_evenly_counts_steps_whatever_its_name(word: str, loss: str) -> None:
    lines = [f"{word} {10 * at} von 400: {loss} {3 - at / 50:.4f}, lr 0.001" for at in range(1, 41)]
    assert series(lines, "loss") == [(10 * at, round(3 - at / 50, 4)) for at in range(1, 41)]


@pytest.mark.parametrize(
    "lines",
    [
        [f"fold {at}: loss {3 - at / 50:.4f}" for at in range(1, 11)],
        [f"client {at % 7}: loss {3 - at / 50:.4f}" for at in range(40)],
        [f"loss {3 - at / 50:.4f} seen {8 * at} lr 0.001" for at in range(40)],
        [f"[{at * at}] loss {3 - at / 50:.4f}" for at in range(40)],
    ],
)
def test_an_enumeration_and_a_number_further_in_the_line_count_none(lines: list[str]) -> None:
    assert {step for step, _ in series(lines, "loss")} == {None}


@pytest.mark.parametrize(
    "form", ["[{s}] train/{k}={v}", "n={s} {k}={v} sps=900", "{s}% | {k} {v}", "[{s}]\tdata's {k}: {v}"]
)
def test_a_whole_number_that_rises_evenly_before_one_that_falls_counts_steps(form: str) -> None:
    told = [round(3 - at / 20 + at % 2 / 9, 4) for at in range(1, 41)]
    lines = [form.format(s=2 * at, k="ce", v=value) for at, value in enumerate(told, 1)]
    rows = read(lines).filter(pl.col("value").is_in(told))
    assert rows["step"].to_list() == [2 * at for at in range(1, 41)]


@pytest.mark.parametrize(
    "values",
    [[3 - at / 50 for at in range(40)], [1 + at % 3 / 9 for at in range(40)], [at % 5 for at in range(40)]],
    ids=["a schedule", "no course", "no fraction"],
)
def test_a_whole_number_before_what_does_not_fall_as_a_loss_counts_none(values: list[float]) -> None:
    assert learn([f"n={at} q={value:.4f}" for at, value in enumerate(values)]) is None


def wrapped(second: str = "                    lr={v}, step_time=0.0{s}s") -> list[str]:
    """What Rich's handler prints where no terminal is: 80 columns, the rest of a record indented on the next line."""
    first = "           INFO     Step {s}: loss={v}, grad_norm=0.9,       train.py:202"
    return [line.format(s=step, v=1 / step) for step in STEPS for line in (first, second)]


@pytest.mark.parametrize("form", ["[{s}]\ttrain-loss:{v}", "[{s}]\ttraining's loss: {v}\tvalid_1's auc: 0.5"])
def test_a_number_in_brackets_before_the_metrics_counts_rounds_but_for_the_best_one_at_last(form: str) -> None:
    lines = [form.format(s=s, v=90 - s) for s in (*range(1, 16), 9)]
    assert read(lines)["step"].unique().sort().to_list() == [*range(1, 16)]


def test_a_number_before_other_numbers_than_metrics_and_one_that_does_not_rise_evenly_count_nothing() -> None:
    assert learn([f"[{s}]\twidth: {s % 7}" for s in range(15)]) is None
    assert set(read([f"[{s * s}]\tloss: {9 - s / 9}" for s in range(15)])["step"]) == {None}


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("step {s} train: loss {v} top1 {t} | test: loss 0.9 top1 {t} | lr 0.1", "eval_loss"),
        (
            "step {s}, loss[loss={v}, over {t} frames. ], tot_loss[loss=0.9, over {t} frames. ], lr: 0.1",
            "tot_loss loss",
        ),
    ],
)
def test_a_key_that_stands_twice_takes_the_name_of_its_group(form: str, name: str) -> None:
    lines = [form.format(s=step, v=step * 0.5, t=step / 9) for step in STEPS]
    assert series(lines, "loss") == expected(0.5)
    assert [value for _, value in series(lines, name)] == [0.9] * len(STEPS)


def test_a_held_out_loss_behind_its_group_is_none_of_training() -> None:
    lines = [f"Epoch 1, step {step}, validation: loss={step}, wer={step / 9:.3f}" for step in STEPS]
    assert series(lines, "loss") == []
    assert series(lines, "eval_loss") == expected()
    lines = [line.replace("validation", "phase one") for line in lines]
    assert series(lines, "loss") == expected()


def test_statements_that_end_with_semicolons_are_no_records() -> None:
    assert learn([f"float loss = {s}.5; int step = {s};" for s in range(15)]) is None


def test_an_indented_line_below_each_record_is_its_second_half() -> None:
    assert series(wrapped(), "step_time_s") == [(step, float(f"0.0{step}")) for step in STEPS]


def test_a_line_of_each_record_continues_it_in_any_layout() -> None:
    assert [step for step, _ in series(wrapped("queue={v}, waiting=0.0{s}s"), "waiting_seconds")] == [*STEPS]


def test_a_line_of_some_records_is_one_of_its_own() -> None:
    lines = wrapped("queue={v}, waiting=0.0{s}s")
    assert len(series([line for at, line in enumerate(lines) if at != 7], "waiting_seconds")) == len(STEPS) - 1
    assert series([line for at, line in enumerate(lines) if at not in {7, 13}], "waiting_seconds") == []
    assert series([line for line in lines for _ in range(1 + line.startswith("queue"))], "waiting_seconds") == []
    assert series([*lines[:8], lines[7], *lines[8:]], "waiting_seconds") == []
    assert series(wrapped("queue={v}, waiting=0.0{s}s, (0.0{s})"), "waiting_seconds") == []


@pytest.mark.parametrize(
    "head", ["Step {s}", "=== step {s} of 900 ===", "## Epoch {s}", "# epoch: {s}/900", "starting epoch {s} ..."]
)
@pytest.mark.parametrize(
    "cell", ["{k}: {v}", "| {k:<9} | {v:>9} |", "│ {k} │ {v} │", "  > {k} -> {v}", "  {k:<12}{v:>12}"]
)
def test_metrics_below_a_counter_of_their_own_line_have_its_step(head: str, cell: str) -> None:
    lines: list[str] = []
    for step in STEPS:
        told = {"loss": f"{9 - step / 99:.3f}", "depth": f"0.0{step}", "rss": f"{step} MiB"}
        lines += [head.format(s=step), *(cell.format(k=k, v=v) for k, v in told.items()), "-" * 20]
    assert [step for step, _ in series(lines, "loss")] == [*STEPS]
    assert series(lines, "depth") == [(step, float(f"0.0{step}")) for step in STEPS]
    assert series(lines, "process_rss_gib") == [(step, step / 1024) for step in STEPS]


def test_an_indented_line_that_stands_elsewhere_is_no_second_half() -> None:
    lines = wrapped("nothing new")
    assert series([*lines, *["   queue=1, depth=2"] * 12], "depth") == []


def rows_of(form: str, count: int = 30) -> list[str]:
    """Records of one number a line; `n` is a count, `v` a value, `t` a count of another kind."""
    return [line for n in range(count) for line in form.format(n=n, v=3.5 - n / 10, t=n * 2048).splitlines()]


@pytest.mark.parametrize(
    ("form", "name"),
    [
        (
            "+----\n| update | {n} |\n| env steps | {t} |\n| policy loss | {v} |\n| fps (last 10) | {v} |",
            "fps (last 10)",
        ),
        ("+----\n│ update │ {n} │\n│ q │ {v} │\n│ policy loss │ {v} │", "q"),
        ("  - iter: {n}\n    ctc: {v}\n    loss: {v}", "ctc"),
        ("  - iter: {n}\n    loss: {v}\n    secs: {v}", "secs"),
        ("epoch {n}\n    train loss {v}\n    depth {v}", "depth"),
    ],
)
def test_a_record_of_one_number_a_line_has_one_step(form: str, name: str) -> None:
    told = series(rows_of(form), name)
    assert told == [(n, pytest.approx(3.5 - n / 10)) for n in range(30)]


@pytest.mark.parametrize(
    "form",
    [
        "  - iter: {n}\n    loss: {v}\n    zeta: {v} {t}",
        "| resnet | {n} | {t} |\n| zeta | {v} | {t} |",
    ],
)
def test_a_line_that_holds_a_number_without_a_name_is_no_part_of_a_record(form: str) -> None:
    dialect = learn(rows_of(form))
    assert dialect is None or series(rows_of(form), "zeta") == []


def test_lines_at_no_one_distance_below_a_record_are_no_part_of_it() -> None:
    lines = rows_of("  - iter: {n}\n    loss: {v}")
    loose = [text for at, line in enumerate(lines) for text in (line, *(["    ctc: 3"] if at % 7 == 0 else []))]
    assert series(loose, "ctc") == []


def test_a_counter_within_chinese_words_is_one() -> None:
    lines = [f"第{n}轮训练\uff0c损失0.{99 - n}\uff0c准确率0.{50 + n}" for n in range(1, 17)]
    assert series(lines, "loss") == [(n, pytest.approx((99 - n) / 100)) for n in range(1, 17)]


@pytest.mark.parametrize("word", ["/", "of", "sur", "von", "de", "из"])
def test_a_counter_goes_to_its_maximum_in_any_language(word: str) -> None:
    lines = rows_of(f"=== epoch {{n}} {word} 40 ===\n    loss {{v}}")
    found = parse_text(learn(lines) or pytest.fail("not learned"), "\n".join(lines) + "\n")["progress"]
    assert found.select("unit", "done", "plan").rows()[-1] == ("epoch", 29, 40)
    assert series(lines, "loss")[-1] == (29, pytest.approx(0.6))


def test_names_and_numbers_of_a_printed_tuple_belong_together() -> None:
    lines = [str(("episode", n, "return", n / 2, "len", 7)) for n in range(20)]
    assert series(lines, "return") == [(n, n / 2) for n in range(20)]


@pytest.mark.parametrize(
    ("beside", "name", "last"),
    [
        ("rss {v}MB", "process_rss_gib", 120 * 1e6 / 2**30),
        ("rss {v}MiB", "process_rss_gib", 120 / 1024),
        ("rss {v}", "rss", 120.0),
        ("scale {p}", "loss_scale", 65536.0),
        ("scale {v}", "scale", 120.0),
        ("Grad/norm {v}", "grad_norm", 120.0),
        ("consumed_samples {v}", "num_samples", 120.0),
        ("data/norm {v}", "data/norm", 120.0),
        ("norm {v}", "grad_norm", 120.0),
        ("time {j}ms", "step_time_s", 0.412),
        ("dt: {j}ms", "step_time_s", 0.412),
        ("({j}ms)", "step_time_s", 0.412),
        ("({v}s)", "time", 120.0),
        ("done in {j} ms", "step_time_s", 0.412),
        ("用时={j}秒", "step_time_s", 412.0),
        ("用时={j}秒 内存占用 {v}GB", "host_mem_used_gib", 120 * 1e9 / 2**30),
        ("第{j}次 内存 {v}GB", "host_mem_used_gib", 120 * 1e9 / 2**30),
        ("内存占用 {v}", "ram", 120.0),
        ("vram={v}/160G", "mem_allocated_gib", 120 * 1e9 / 2**30),
        ("vram={v}/160", "vram", 120.0),
        ("Accuracy: {v}/160", "Accuracy", 0.75),
        ("Accuracy: {v}/100", "Accuracy", 120.0),
        ("Seen: {v}/160", "Seen", 120.0),
        ("time {v}s", "time", 120.0),
        ("time {j}", "time", 412.0),
    ],
)
def test_a_short_name_is_told_by_its_words_its_unit_or_its_values(beside: str, name: str, last: float) -> None:
    lines = [
        f"step {step} | loss {3 - step / 100:.2f} | " + beside.format(v=step, p=65536, j=410 + step // 10 % 5)
        for step in STEPS
    ]
    assert dict(series(lines, name)).get(120) == pytest.approx(last)


@pytest.mark.parametrize(
    ("form", "steps"),
    [
        ("step {s}k | loss {v}", [380_000 + 10_000 * n for n in range(12)]),
        ("[{s}k/2M] loss={v}", [380_000 + 10_000 * n for n in range(12)]),
        ("step {t}k loss {v}", [38_000 + 1_000 * n for n in range(12)]),
        ("step {t}M loss {v}", [38_000_000 + 1_000_000 * n for n in range(12)]),
        ("step {s} k={s} loss {v}", [380 + 10 * n for n in range(12)]),
    ],
)
def test_a_step_in_thousands_is_multiplied_out(form: str, steps: list[int]) -> None:
    lines = [form.format(s=380 + 10 * n, t=(380 + 10 * n) / 10, v=3 - n / 10) for n in range(12)]
    assert [step for step, _ in series(lines, "loss")] == steps


def evaluated(count: int, line: str = "{{'eval_loss': {v}, 'step': {s}}}") -> list[str]:
    """A hundred training lines, with so many evaluations among them."""
    rows = [f"{{'loss': {3 - s / 100}, 'lr': 0.001, 'step': {s}}}" for s in range(1, 101)]
    for number in range(count):
        rows.insert(20 * (number + 1) + number, line.format(v=2.5 - number / 10, s=20 * (number + 1)))
    return rows


def test_two_evaluations_beside_training_lines_are_read() -> None:
    assert series(evaluated(2), "eval_loss") == [(20, 2.5), (40, 2.4)]


def test_one_evaluation_and_two_that_name_no_step_or_no_evaluation_are_not_learned() -> None:
    assert series(evaluated(1), "eval_loss") == []
    assert series(evaluated(2, "{{'eval_loss': {v}, 'part': {s}}}"), "eval_loss") == []
    names = read(evaluated(2, "{{'best_loss': {v}, 'step': {s}}}"))["raw_name"].unique()
    assert "best_loss" not in names.to_list()


@pytest.mark.parametrize("key", ["in/", "in", "in/x"])
def test_a_key_that_ends_with_a_slash_is_no_counter_with_a_maximum(key: str) -> None:
    lines = [f"step {step} {key} {step * 7 % 5} loss {3 - step / 50:.3f}" for step in range(30)]
    assert series(lines, "loss")[:2] == [(0, 3.0), (1, 2.98)]


@pytest.mark.parametrize(
    ("first", "growth", "sd", "is_norm"),
    [
        (0.8, 0.0, 0.2, True),
        (2.0, -0.025, 0.2, True),
        (0.41, 0.0, 0.03, False),
        (3e-4, -0.02, 0.0, False),
        (0.2, 0.008, 0.04, False),
        (51_000.0, 0.0, 0.2, False),
    ],
    ids=["norm", "norm that falls", "seconds", "rate", "accuracy", "throughput"],
)
def test_the_number_behind_a_nameless_loss_is_a_norm_where_it_jitters_as_one(
    first: float, growth: float, sd: float, *, is_norm: bool
) -> None:
    rng = Random(5)
    beside = [first * math.exp(growth * n + rng.gauss(0, sd)) for n in range(180)]
    lines = [f"{n} {2 + 3 * math.exp(-n / 30) + rng.gauss(0, 0.03):.4f} {x:.6f}" for n, x in enumerate(beside)]
    assert bool(series(lines, "grad_norm")) is is_norm


BEST = "epoch {s} best test acc: 0.912, train loss: {v}; train acc: 0.5 val acc: 0.25 test acc: 0.25"


def test_a_key_that_stands_twice_in_a_line_leaves_the_others_to_be_read() -> None:
    found = read([BEST.format(s=step, v=step * 0.5) for step in STEPS])
    assert set(found["name"]) == {"loss", "train acc", "val acc"}


def test_a_line_of_keys_that_all_stand_twice_is_no_record() -> None:
    assert learn([f"a {s} b {s} c {s} a {s} b {s} c {s}" for s in STEPS]) is None


def test_the_seconds_and_shares_of_a_table_may_carry_their_sign() -> None:
    rows = [f"   {s}  |  {s * 0.5}  |  73.50%  |  93.6s" for s in STEPS]
    found = read(["Epoch  |  Train loss  |  Valid acc  |  Dur", *rows])
    assert found.filter(pl.col("name") == "Dur")["value"].to_list() == [93.6] * len(STEPS)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("it {s} | loss train: {v}, val: {w}", "eval_loss"),
        ("it {s} | train loss: {v}, val: {w}", "eval_loss"),
        ("it {s} | loss: {v}, val: {w}", "val"),
        ("it {s} | acc train: {v}, val: {w} | loss 2.1", "val acc"),
    ],
)
def test_what_stands_behind_a_value_of_training_counts_the_same_on_other_data(line: str, name: str) -> None:
    found = read([line.format(s=step, v=step * 0.5, w=step * 0.25) for step in STEPS])
    assert found.filter(pl.col("raw_name") == "val")["name"].unique().to_list() == [name]


@pytest.mark.parametrize(("head", "bar"), [("|", "|"), ("│", "│"), ("┃", "│"), ("║", "║")])
def test_a_table_may_have_the_bars_of_a_box(head: str, bar: str) -> None:
    rows = [f"{bar} {s} {bar} {s * 0.5} {bar} 0.80 {bar}" for s in STEPS]
    rules = ["├──────┼──────┼──────┤"]
    assert series([f"{head} step {head} loss {head} gnorm {head}", *rules, *rows], "loss") == expected(0.5)


@pytest.mark.parametrize("line", ["{s},{v},0.5", "{s}, {v}, 0.5"])
def test_a_table_that_is_printed_with_commas_is_read(line: str) -> None:
    assert series(["step,loss,lr", *(line.format(s=s, v=s * 0.5) for s in STEPS)], "loss") == expected(0.5)


def test_the_thousands_of_a_table_between_blanks_are_no_cells() -> None:
    assert series(["step  loss  lr", *(f"{s},000  {s * 0.5}  0.5" for s in STEPS)], "loss") == [
        (1000 * s, s * 0.5) for s in STEPS
    ]


def test_a_counter_that_a_resume_sets_back_is_no_batch_of_an_epoch() -> None:
    lives = [*((s, 100) for s in range(2, 101, 2)), *((s, 300) for s in range(72, 301, 2))]
    rows = series([f"step {s}/{last} loss={s * 0.5}" for s, last in lives], "loss")
    assert rows == [(s, s * 0.5) for s, _ in lives]


@pytest.mark.parametrize("begin", [2, 50])
def test_a_counter_that_begins_again_at_its_maximum_is_the_batch_of_an_epoch(begin: int) -> None:
    batches = [s for _ in range(3) for s in range(begin, 101, begin)] * (25 if begin == 50 else 1)
    rows = series([f"step {s}/100 loss={n * 0.5}" for n, s in enumerate(batches)], "loss")
    assert [step for step, _ in rows] == [begin * n for n in range(1, len(batches) + 1)]


@pytest.mark.parametrize(
    "form",
    [
        "Schritt {s}: Verlust {v}  Lernrate 0,01",
        "Época {s} | perda {v} | taxa 5e-02",
        "étape {s} perte={v}",
    ],
)
def test_names_of_other_latin_alphabets_and_decimals_behind_a_comma_are_read(form: str) -> None:
    lines = [form.format(s=step, v=f"{step * 0.25:.4f}".replace(".", ",")) for step in STEPS]
    found = read(lines).filter(~pl.col("raw_name").str.contains("(?i)lernrate|taxa")).select("step", "value").rows()
    assert found == expected(0.25)


def test_the_variable_of_a_loop_counts_where_it_grows() -> None:
    lines = [f"{7 * step}|I|i={step} obj={9 - step * 0.05:.2f} took=3.{step % 7}ms" for step in STEPS]
    assert series(lines, "loss") == [(step, round(9 - step * 0.05, 2)) for step in STEPS]
    assert {step for step, _ in series(lines, "step_time_s")} == {*STEPS}


def german(number: float, digits: int) -> str:
    return f"{number:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def test_points_part_thousands_where_decimals_are_behind_a_comma() -> None:
    steps = range(800, 2400, 100)
    lines = [
        f"Schritt {german(s, 0)}: Verlust {german(3 - s / 1000, 2)}; Tok {german(12000 + s, 0)}; q {german(2.314, 3)}"
        for s in steps
    ]
    assert series(lines, "loss") == [(s, pytest.approx(3 - s / 1000)) for s in steps]
    assert series(lines, "Tok") == [(s, 12000.0 + s) for s in steps]
    assert series(lines, "q") == [(s, 2.314) for s in steps]


@pytest.mark.parametrize(
    "form", ["step {s}: loss {v:.3f} tok {t},50 lr 0.01", "step {s}: loss {v:.3f}", "[{s},2000] loss {v:.3f}"]
)
def test_points_are_decimals_where_nothing_else_is(form: str) -> None:
    lines = [form.format(s=s, v=1 + s / 100, t=s) for s in STEPS]
    assert [value for _, value in series(lines, "loss")] == [round(1 + s / 100, 3) for s in STEPS]


def test_exponents_of_fortran_are_read_in_lines_and_tables() -> None:
    told = [f"{s:6d}  0.{s:03d}D+01  0.5D-03" for s in STEPS]
    assert series(["  ITER  LOSS  GNORM", *told], "loss") == [(s, s / 100) for s in STEPS]
    lines = [f"iter {s:4d}    loss=  {s / 100:.5f}D+00    |proj g|=  2.5D-0{s % 3 + 1}" for s in STEPS]
    assert series(lines, "loss") == [(s, s / 100) for s in STEPS]
    assert [slot.text for slot in slots("conv 3D+2, acc 0.5")] == ["0.5"]


def test_a_comma_that_parts_thousands_everywhere_stays_one() -> None:
    lines = [f"step {step} tokens {step},000 loss {step * 0.5}" for step in STEPS]
    assert series(lines, "tokens") == expected(1000.0)


def test_a_batch_of_an_epoch_in_brackets_is_no_decimal() -> None:
    assert [slot.text for slot in slots("[1,2000] loss: 2.173")] == ["1", "2000", "2.173"]


def test_a_table_parted_by_blanks_may_name_its_loss_by_its_formula() -> None:
    rows = [f"{step:8d}{step * 0.5:10.4f}{0.25:8.3f}" for step in STEPS]
    assert series([f"{'step':>8}{'xent':>10}{'top1':>8}", *rows], "loss") == expected(0.5)


def test_a_table_and_an_epoch_have_their_decimals_behind_a_comma_too() -> None:
    rows = [f"{step:8d}{1.5 - step / 100:10.3f}".replace(".", ",") for step in STEPS]
    assert series([f"{'step':>8}{'loss':>10}", *rows], "loss") == [(step, round(1.5 - step / 100, 3)) for step in STEPS]
    lines = [f"epoch {step / 40:.3f} loss {step / 80:.4f}".replace(".", ",") for step in STEPS]
    assert read(lines)["epoch"].to_list() == [step / 40 for step in STEPS]


@pytest.mark.parametrize("piece_bytes", [1 << 23, 300, 90])
def test_decimals_behind_a_comma_are_those_of_the_file_and_not_of_a_piece(piece_bytes: int) -> None:
    losses = [3.214 - at * 0.0325 for at in range(90)]
    lines = [f"Schritt {at} Verlust {loss:.3f}".replace(".", ",") for at, loss in enumerate(losses, start=1)]
    opened = opened_bytes("train.log", "".join(f"{line}\n" for line in lines).encode())
    sink = SourceSink(opened.source)
    text_log.read(opened, sink, piece_bytes=piece_bytes)
    read_values = sink.frames()["metrics"].filter(raw_name="Verlust")["value"].to_list()
    assert read_values == [round(loss, 3) for loss in losses]


@pytest.mark.parametrize(
    "form",
    [
        "[{e}, {b:5d}] loss: {v}",
        "({e}/4) {b}/100 loss {v}",
        "[train] ({e}/4) {b}/100; ce:{v}",
        "train: loss={v} lr=0.1 [{e}, {b}]",
        "e={e:02d} i={b:04d} loss is {v}",
    ],
)
def test_two_numbers_without_a_name_are_an_epoch_and_its_batches(form: str) -> None:
    lines = [form.format(e=n // 10 + 1, b=n % 10 * 10 + 10, v=round(3 - n / 20, 3)) for n in range(40)]
    assert series(lines, "loss") == [(n * 10 + 10, round(3 - n / 20, 3)) for n in range(40)]


def test_two_numbers_of_which_the_second_goes_on_where_the_first_does_are_no_epoch_and_batch() -> None:
    lines = [f"[{n // 10 + 1}, {n}] loss: {3 - n / 20:.3f}" for n in range(1, 41)]
    assert [step for step, _ in series(lines, "loss")] == [*range(1, 41)]


@pytest.mark.parametrize(
    "form",
    [
        "epoch {s} - {v} loss - {w} acc",
        "[{s}] {v} lm loss\t{w} Acc@1\t77.5s took",
        "{v} train loss | {w} acc | step {s}",
        "step {s}  {v} nll  {w} acc  7003MiB rss",
    ],
)
def test_numbers_whose_names_are_behind_them_have_these_names(form: str) -> None:
    told = [(at, round(3 - at / 20, 3)) for at in range(1, 41)]
    lines = [form.format(s=at, v=value, w=round(at / 50 + at % 2 / 9, 3)) for at, value in told]
    rows = read(lines).filter(pl.col("value").is_in([value for _, value in told]))
    assert rows.select("step", "value").rows() == told
    assert {canonical(name).canonical for name in rows["name"]} <= {"loss", "nll"}


@pytest.mark.parametrize(
    "form", ["<{s}> loss {v}", "@{s}, loss={v}", "#{s} | loss {v}", "Ep.{s} loss {v}", "9.5 s <{s}> loss {v}"]
)
def test_a_counter_behind_a_sign_counts(form: str) -> None:
    lines = [form.format(s=at, v=round(3 - at / 20 + at % 2 / 9, 3)) for at in range(1, 41)]
    assert [step for step, _ in series(lines, "loss")] == [*range(1, 41)]


def test_a_split_with_a_plan_is_no_metric() -> None:
    lines = [f"[train] ({n // 10 + 1}/4) {n % 10 * 10 + 10}/100 loss {3 - n / 20:.3f}" for n in range(40)]
    assert {*read(lines)["name"]} == {"loss"}


def test_an_epoch_beside_a_loss_of_any_name_is_read() -> None:
    assert [step for step, _ in series([f"Epoch {n}: time=5ms ce={3 - n / 20:.3f}" for n in range(1, 31)], "loss")] == [
        *range(1, 31)
    ]


@pytest.mark.parametrize(("values", "counts"), [((0, 0, 1, 1, 2, 2), True), ((0.9, 0.8, 0.7, 0.6, 0.5, 0.4), False)])
def test_one_letter_names_epochs_where_it_counts_and_not_an_epsilon(values: tuple[float, ...], counts: bool) -> None:
    found = read([f"step {n} e={e} loss {3 - n / 9:.3f}" for n, e in enumerate(values * 2)])
    assert (found["epoch"].null_count() == 0) == counts


def test_a_table_of_epochs_at_the_end_has_the_steps_at_which_they_ended() -> None:
    lines = [f"ep {e} batch {b:02} ctc={9 - e - b / 30:.3f}" for e in range(1, 7) for b in (0, 5, 10, 15)]
    table = ["| epoch | loss |", *(f"| {e} | {9 - e}.5 |" for e in range(1, 7))]
    assert [step for step, _ in series([*lines, *table], "loss")] == [15, 35, 55, 75, 95, 115]
    among = [line for e in range(6) for line in (*lines[4 * e : 4 * e + 4], f"ep {e + 1} done: loss {8 - e}.5")]
    assert [step for step, _ in series(among, "loss")] == [15, 35, 55, 75, 95, 115]


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("{t:.3f} {s} loss={v}", True),
        ("{t:.0f}: step {s} loss {v}", True),
        ("{n} step {s} loss {v}", False),
        ("{t:.3f} t=4 step {s} loss {v}", True),
    ],
)
def test_a_unix_time_with_which_lines_begin_is_their_time_and_no_counter(form: str, *, told: bool) -> None:
    steps = range(10, 410, 10)
    found = read([form.format(t=1_764_200_000 + 3 * s, n=900_000_000 + s, s=s, v=s * 0.5) for s in steps])
    assert found.filter(pl.col("name") == "loss").select("step", "value").rows() == [(s, s * 0.5) for s in steps]
    assert (found["t_ns"].max() == (1_764_200_000 + 1200) * 10**9) == told


@pytest.mark.parametrize("form", ["({s} {p}%) {v:.4f}", "0m {p}s (- 3m 4s) ({s} {p}%) {v:.4f}", "{s} {p}% {v:.4f}"])
def test_the_share_of_the_plan_behind_a_counter_and_the_times_before_it_are_no_loss(form: str) -> None:
    values = [(s, round(3 - s / 900 + s % 3 / 20, 4)) for s in range(50, 1550, 50)]
    assert series([form.format(s=s, p=s // 15, v=v) for s, v in values], "loss") == values


def test_a_box_that_counts_its_steps_is_read() -> None:
    rows = [[("step", at), ("l", f"{9 - at / 20 + at % 2 / 9:.4f}"), ("VRAM", f"{at}.5 GB")] for at in range(1, 41)]
    lines = [f"| {key:<14} | {value:>10} |" for row in rows for key, value in row]
    opened = opened_bytes("train.log", "".join(f"{line}\n" for line in lines).encode())
    sink = SourceSink(opened.source)
    text_log.read(opened, sink, piece_bytes=1 << 20)
    told = sink.frames()["metrics"]
    assert told.filter(raw_name="VRAM")["step"].to_list() == [*range(1, 41)]


def of_splits(train: str, held_out: str) -> list[str]:
    lines: list[str] = []
    for step in STEPS:
        lines += [f"Epoch {step}", train, f"  loss: {9 - step / 99:.3f}", f"  acc: 0.{step:03d}"]
        lines += [held_out, f"  loss: 3.{step:03d}", f"  lr: 0.0{step}", "----"]
    return lines


@pytest.mark.parametrize("title", ["Val:", "=== Validation ===", "[12:00:01] Evaluating...", "INFO Test set results"])
@pytest.mark.parametrize("piece_bytes", [1 << 23, 300])
def test_metrics_below_the_title_of_an_evaluation_are_held_out(title: str, piece_bytes: int) -> None:
    text = "".join(f"{line}\n" for line in of_splits("Train:", title))
    opened = opened_bytes("train.log", text.encode())
    sink = SourceSink(opened.source)
    text_log.read(opened, sink, piece_bytes=piece_bytes)
    told = sink.frames()["metrics"].sort("seq")
    assert told.filter(name="loss")["value"].to_list() == [round(9 - step / 99, 3) for step in STEPS]
    assert told.filter(name="eval_loss").select("step", "value").rows() == [(s, float(f"3.{s:03d}")) for s in STEPS]
    assert told.filter(name="acc").height == told.filter(name="lr").height == len(STEPS)


@pytest.mark.parametrize("title", ["the loss of the validation", "value", "Epoch 3 of the test", "saved the best val"])
def test_other_words_above_metrics_leave_them_as_they_are(title: str) -> None:
    assert series(of_splits("Train:", title), "eval_loss") == []


def test_a_section_of_an_evaluation_ends_at_the_next_counter() -> None:
    lines = [line for line in of_splits("Train:", "Val:") if line != "Train:"]
    assert series(lines, "loss") == [(step, round(9 - step / 99, 3)) for step in STEPS]


def test_cells_of_one_line_name_their_numbers_and_what_parts_a_head_from_its_message_none() -> None:
    assert [slot.key for slot in slots("| loss | 2.3 |   | depth | 0.4 |")] == ["loss", "depth"]
    assert [slot.key for slot in slots("12 | gpu | 2.31")] == ["", ""]


def test_a_section_of_an_evaluation_ends_where_training_begins_again() -> None:
    lines = [line for line in of_splits("Training", "Validation") if not line.startswith("Epoch")]
    assert len(series(lines, "loss")) == len(series(lines, "eval_loss")) == len(STEPS)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("Loss after {s} updates: {v}", "loss"),
        ("12:00:0{d} train loss (after {s} steps): {v} elapsed 9s", "loss"),
        ("accuracy at {s} iterations = {v}", "accuracy"),
        ("Loss on {s} batches was {v}", "loss"),
    ],
)
def test_a_value_behind_its_counter_and_the_counters_name_is_that_of_the_quantity(form: str, name: str) -> None:
    lines = [form.format(s=step, v=f"{9 - step / 99:.3f}", d=step % 10) for step in STEPS]
    assert series(lines, name) == [(step, round(9 - step / 99, 3)) for step in STEPS]


def test_a_counter_behind_another_number_takes_no_value() -> None:
    assert [slot.key for slot in slots("loss 0.3 in 20 steps: 0.4")] == ["loss", "in", "steps"]


@pytest.mark.parametrize(("unit", "name"), [(" samples/s", "samples/s"), ("img/sec", "img/sec"), ("", "pace")])
def test_a_name_that_says_nothing_is_that_of_its_rate(unit: str, name: str) -> None:
    lines = [f"step {step} loss {9 - step / 99:.3f}, pace: {step}.5{unit}" for step in STEPS]
    assert series(lines, name) == [(step, step + 0.5) for step in STEPS]


def test_a_unit_is_none_that_is_the_key_of_the_next_number() -> None:
    assert [slot.key for slot in slots("gnorm 0.8 tok/s 51200 mem 4")] == ["gnorm", "tok/s", "mem"]
    assert [slot.key for slot in slots("loss: 1.91 sec/step: 2.65 cost:2.86 tok/s:248935")] == [
        "loss",
        "sec/step",
        "cost",
        "tok/s",
    ]


def test_a_level_and_a_day_of_a_month_are_no_names_and_no_numbers() -> None:
    assert [slot.key for slot in slots("03-21 03:37 [INFO]: [1, 5], nll: 3.2")] == ["", "", "nll"]
    lines = [f"03-21 03:37 [INFO]: [{n // 10 + 1}, {n % 10 + 1}], nll: {3 - n / 20:.2f}" for n in range(40)]
    assert series(lines, "nll") == [(n + 1, round(3 - n / 20, 2)) for n in range(40)]


@pytest.mark.parametrize("head", ["", "18:48:07 ", "2025-07-02 13:34:05,000 INFO ", "[gpu] "])
def test_a_cell_may_stand_behind_what_a_logger_prints(head: str) -> None:
    lines: list[str] = []
    for step in STEPS:
        lines += [f"{head}step {step}", f"{head}| loss | {9 - step / 99:.3f} |", f"{head}| depth | 0.0{step} |"]
    assert series(lines, "depth") == [(step, float(f"0.0{step}")) for step in STEPS]


def test_lines_of_each_section_are_records_whatever_their_names() -> None:
    lines: list[str] = []
    for step in STEPS:
        lines += [f"Epoch {step}", "Train:", f"depth 3.{step:03d}", "Val:", f"depth 4.{step:03d}", "----"]
    told = [value for _, value in series(lines, "depth")]
    assert told == [float(f"{n}.{step:03d}") for step in STEPS for n in (3, 4)]


def times_of(form: str) -> list[tuple[str, float]]:
    """Canonical names of all times of a made log, with the factor to seconds; {t} is a time that is measured anew."""
    lines = [
        line
        for n in range(1, 31)
        for line in form.format(n=n, v=2 / n, t=12 + n * 7 % 5, w=1 + n * 3 % 4, c=n % 10 * 12 + 1, left=31 - n).split(
            "\n"
        )
    ]
    dialect = learn(lines)
    named = [name for line in dialect.lines for name in line.names.values()] if dialect else []
    return [(n.canonical, n.scale) for n in named if n is not None and n.canonical.endswith(("_s", "seconds"))]


@pytest.mark.parametrize(
    ("form", "scale"),
    [
        ("Epoch {n}: loss {v}\nThis epoch cost {t}.0 seconds", 1.0),
        ("Epoch {n}: loss {v}\nSeconds since epoch = {t}.0", 1.0),
        ("epoch: {n}   train: {v}   valid: {v}   {t}.4 secs", 1.0),
        ("epoch {n} done, mean loss {v}, it needed {t} s", 1.0),
        ("[에폭 {n}/40] 학습손실={v} 소요시간={t}초", 1.0),
        ("эпоха {n} потери {v} затрачено {t} сек", 1.0),
        ("step {n} loss {v} latency {t}ms", 0.001),
        ("ep {n} loss={v} ({t}.25 sec/epoch)", 1.0),
        ("ep {n} loss={v} ({t}.25 ms/epoch)", 0.001),
        ("epoch {n} | loss {v} | 0.{t} min", 60.0),
    ],
)
def test_the_only_time_of_a_record_is_that_of_its_step_whatever_it_is_called(form: str, scale: float) -> None:
    assert times_of(form) == [("step_time_s", scale)]


@pytest.mark.parametrize(
    "form",
    [
        "step {n} loss {v} remaining {left}s",
        "step {n} loss {v} countdown {left}s",
        "step {n} loss {v} eval {t}s",
        "step {n} loss {v} waiting {t}s",
        "step {n} loss {v} saved in {t}s",
        "step {n} loss {v} tokens {t}m",
        "epoch 3 batch {n} loss {v} clock {c}s",
        "step {n} loss {v} fwd {t}ms bwd {w}ms",
        "step {n} loss {v}\nimages/ms = {t}.5",
    ],
)
def test_a_time_that_is_none_of_a_step_and_one_of_several_parts_are_not_taken_for_it(form: str) -> None:
    assert "step_time_s" not in {name for name, _ in times_of(form)}


def test_parts_of_a_step_are_in_seconds_and_their_total_is_its_time() -> None:
    told = times_of("step {n} loss {v}\n   data {w} ms | compute {t} ms | allreduce {w} ms | total {t} ms")
    ms = 0.001
    assert told == [("data_time_s", ms), ("compute_seconds", ms), ("allreduce_seconds", ms), ("step_time_s", ms)]


def test_a_number_without_a_name_is_a_time_behind_a_comma_and_no_wait_is_that_of_the_step() -> None:
    told = times_of("iteration {n} of 30\n  ce {v}\n  waited {w} ms for the batch, {t} ms on the model")
    assert told == [("data_time_s", 0.001), ("step_time_s", 0.001)]


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("шаг {n} потери {v} скорость {t}.2 ит/сек", "it/s"),
        ("第{n}轮 损失 {v} 速度 {t}.5张/秒", "img/s"),
        ("step {n} loss {v} speed {t}.5 rays/s", "rays/s"),
        ("epoch {n} loss {v} {t} ex/s", "ex/s"),
    ],
)
def test_a_rate_in_another_language_is_known_by_its_unit(form: str, name: str) -> None:
    lines = [form.format(n=n, v=2 / n, t=12 + n * 7 % 5) for n in range(1, 31)]
    assert name in read(lines)["name"].unique().to_list()


def test_a_save_that_names_a_number_gives_no_step_to_the_records_of_later_epochs() -> None:
    lines = [f"epoch: {n} loss: {2 / n}" + "\nsaving model_20.pt" * (n == 20) for n in range(1, 41)]
    assert read([one for line in lines for one in line.split("\n")])["step"].to_list() == [*range(1, 41)]


def test_the_unit_of_a_rate_counts_nothing() -> None:
    lines = [f"epoch {n} loss {3 - n / 20} {500 + n * 7 % 5} ex/s" for n in range(1, 41)]
    assert read(lines).filter(pl.col("name") == "loss")["step"].to_list() == [*range(1, 41)]
    lines = [f"iter {10 * n} loss {3 - n / 20} {12 + n * 7 % 5}.5 sec/epoch" for n in range(1, 41)]
    assert read(lines)["epoch"].drop_nulls().to_list() == []


def test_the_time_for_an_epoch_is_no_epoch() -> None:
    lines = [f"epoch {n}\ntrain_loss tensor({2 / n})\ntime for epoch: {12 + n * 7 % 5}.1" for n in range(1, 31)]
    told = read([one for line in lines for one in line.split("\n")])
    assert told.filter(pl.col("name") == "time")["step"].to_list() == [*range(1, 31)]


def test_a_number_before_a_loss_of_one_letter_counts_though_the_loss_never_rises() -> None:
    assert read([f"{n:4d} L={2 / n} t_fwd={n * 7 % 5}.5" for n in range(1, 31)])["step"].unique().sort().to_list() == [
        *range(1, 31)
    ]


def test_a_counter_that_begins_a_line_counts_it_though_that_of_the_best_stands_behind() -> None:
    form = "pass {n}: loss {v}, there {w} (best {w} at pass {b}, {bad} of 8 without gain)"
    lines = [form.format(n=n, v=2 / n, w=3 / n, b=n - n % 4, bad=n % 4) for n in range(1, 31)]
    assert read(lines).filter(pl.col("name") == "loss")["step"].to_list() == [*range(1, 31)]
    twice = [f"loss {2 / n} width {n} width {n + 1}" for n in range(1, 31)]
    assert learn(twice) is None


@pytest.mark.parametrize(("epochs", "last"), [(3, 900), (1, 900)])
def test_of_two_counters_without_a_name_the_one_that_goes_on_in_each_line_is_the_step(epochs: int, last: int) -> None:
    lines = [
        f"| [{1 + i * epochs // 900:4d}/{epochs:4d}][{i:6d}/  900] | ms/batch 4.51 | loss {2 - i / 900:.4f} | lr 5e-05"
        for i in range(100, last, 100)
    ]
    learned = learn(lines)
    assert learned is not None
    hit = re.search(learned.lines[0].pattern, lines[-1])
    assert hit is not None
    assert (hit["step"], hit["max_steps"]) == ("800", "900")


def test_a_counter_that_fills_its_width_in_the_end_is_not_the_day_before_it() -> None:
    lines = [
        f"I0412 09:10:{i:02d}.449019 1288 fit.py:98] [{i * 5000:6d}] | gnorm {0.3 + i / 90:5.2f} | loss {5 - i / 9:.2f}"
        for i in range(1, 31)
    ]
    learned = learn(lines)
    assert learned is not None
    told = [hit["step"] for line in lines if (hit := re.search(learned.lines[0].pattern, line)) is not None]
    assert (told[0], told[-1]) == ("5000", "150000")
