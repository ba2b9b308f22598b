"""Names and records as people print them: means over a window, other keys' values, objects over several lines."""

from __future__ import annotations

from math import exp
from pprint import pformat

import polars as pl
import pytest

from forensics.dialects import _lines
from forensics.dialects.engine import parse_text
from forensics.dialects.learned.generic import learn
from forensics.dialects.learned.masking import slots
from forensics.dialects.sniff import sample_of

LOSSES = [round(0.4 + 2 * exp(-at / 9), 4) for at in range(40)]


def metrics(text: str) -> pl.DataFrame:
    dialect = learn(sample_of([text.encode()]).to_list())
    return parse_text(dialect, text)["metrics"] if dialect is not None else pl.DataFrame()


def course(text: str, name: str) -> list[tuple[int, float]]:
    """Each step with its value, of one name."""
    rows = metrics(text)
    return list(rows.filter(pl.col("name") == name).select("step", "value").iter_rows()) if rows.height else []


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("update 20 avg loss over last 200 = 1.83, lr 0.1", ["update", "", "avg loss", "lr"]),
        ("it 20: loss (last 100 updates): 1.83", ["it", "", "loss"]),
        ("it 20: mean return of the past 10 episodes is 1.83", ["it", "", "mean return"]),
        ("seconds over last 200 = 1.83, loss 2", ["seconds over last", "", "loss"]),  # no metric
        ("loss over last 200, lr 0.1", ["loss over last", "lr"]),  # nothing is its value
        ("ckpt=ema_1.pt fid=8.83 it=2", ["fid", "it"]),
        ("phase=val loss=0.3 it=2", ["val loss", "it"]),
        ("train loss=0.3 it=2", ["train loss", "it"]),
        ("update 20, WER(dev-clean)=0.3", ["update", "WER (dev-clean)"]),
        ("{'valid': {'acc': 0.6, 'bce': 0.7}, 'epoch': 3}", ["valid acc", "valid bce", "epoch"]),
        ("{'train': {'acc': 0.6, 'bce': 0.7}, 'epoch': 3}", ["acc", "bce", "epoch"]),
    ],
)
def test_the_name_of_a_number(line: str, keys: list[str]) -> None:
    assert [slot.key for slot in slots(line)] == keys


def test_a_window_of_a_mean_is_not_its_value() -> None:
    lines = [f"update {20 * at} avg ctc loss over last 20 = {loss}" for at, loss in enumerate(LOSSES)]
    assert course("\n".join(lines), "avg ctc loss")[-1] == (780, LOSSES[-1])


def records(width: int, *, counter: str = "epoch") -> str:
    rows = ({"acc": 0.5, "bce": loss, counter: at, "zlr": 0.1} for at, loss in enumerate(LOSSES))
    return "".join(pformat(row, width=width) + "\n" for row in rows)


@pytest.mark.parametrize("width", [20, 200])
def test_a_record_over_several_lines_has_the_step_that_stands_within_it(width: int) -> None:
    assert course(records(width), "bce") == [*enumerate(LOSSES)]


def test_lines_are_counted_as_they_are_printed() -> None:
    assert metrics(records(20)).filter(pl.col("name") == "bce")["line"].to_list()[:3] == [1, 5, 9]


@pytest.mark.parametrize(
    "text",
    [
        records(20, counter="seed"),  # counts nothing
        records(20).replace("\n ", "\n"),  # not indented
        records(20).replace("'bce'", "'note': '" + "x" * 2000 + "',\n 'bce'"),  # too long for a record
    ],
)
def test_what_is_no_record_of_one_step_stays_in_its_lines(text: str) -> None:
    assert sample_of([text.encode()]).to_list() == text.splitlines()


def blocks(*lines: str, first: str = "", last: str = "") -> str:
    rows = ("\n".join(lines).format(at=at, loss=loss, val=loss + 0.1) for at, loss in enumerate(LOSSES))
    return "\n".join([*filter(None, [first]), *rows, *filter(None, [last])]) + "\n"


CLOSED = ("Train loss: {loss:.4f}", "Test loss: {val:.4f}")


def test_a_line_that_counts_may_close_its_record() -> None:
    text = blocks(*CLOSED, "epoch {at} took 12.1 s")
    assert course(text, "loss") == [*enumerate(LOSSES)]
    assert course(text, "eval_loss")[3] == (3, round(LOSSES[3] + 0.1, 4))


def test_a_record_that_no_line_closes_has_no_step() -> None:
    text = blocks(*CLOSED, "epoch {at} took 12.1 s", last="Train loss: 0.5")
    assert course(text, "loss")[-2:] == [(39, LOSSES[39]), (None, 0.5)]


@pytest.mark.parametrize(
    "text",
    [
        blocks("epoch {at}/40", *CLOSED),
        blocks("epoch {at}/40", *CLOSED, "epoch {at} took 12.1 s"),
        blocks("epoch {at} took 12.1 s", *CLOSED),
        blocks(
            "epoch {at} loss {loss:.4f}", "Test loss: {val:.4f}", first="Test loss: 4.1"
        ),  # measured before it trains
    ],
)
def test_a_line_that_counts_above_a_record_opens_it(text: str) -> None:
    assert course(text, "loss") == [*enumerate(LOSSES)]
    assert course(text, "eval_loss")[-1] == (39, round(LOSSES[39] + 0.1, 4))


def test_a_counter_may_be_glued_to_any_letter() -> None:
    text = "".join(f"c0 e{at // 3:02d} n{50 * at + 50} detloss {loss}\n" for at, loss in enumerate(LOSSES))
    assert course(text, "detloss") == [(50 * at + 50, loss) for at, loss in enumerate(LOSSES)]
    assert metrics(text)["epoch"].to_list()[-1] == 13


@pytest.mark.parametrize("numbers", [[at * at for at in range(40)], [*range(40, 0, -1)], [7] * 40])
def test_what_does_not_count_on_is_part_of_a_name(numbers: list[int]) -> None:
    text = "".join(f"run n{number} detloss {loss}\n" for number, loss in zip(numbers, LOSSES, strict=True))
    rows = metrics(text)
    assert not rows.height or rows["step"].null_count() == rows.height


def rows_between_bars(note: str, *, count: int = 40) -> str:
    head = "| fold | epoch | train_loss | best | note | time |\n|------|-------|-----------|------|------|------|\n"
    rows = (
        f"|  {at // 10}   |  {at % 10:2d}   |  {loss:.4f}  |  {'*' if at % 3 else ' '}  | {note}|7m{at * 7 % 50:02d}s |"
        for at, loss in enumerate(LOSSES[:count])
    )
    return head + "\n".join(rows) + "\n"


def test_cells_between_bars_may_hold_words_and_times() -> None:
    rows = metrics(rows_between_bars("warm up"))
    assert rows.filter(pl.col("name").str.contains("loss"))["value"].to_list() == LOSSES
    assert rows.filter(pl.col("name") == "step_time_s")["value"].to_list()[:2] == [420, 427]


def test_a_table_of_words_is_none_of_records() -> None:
    head = "| epoch | loss | who | what | where |\n"
    assert not metrics(head + "".join(f"| {at} | {loss} | a | b | c |\n" for at, loss in enumerate(LOSSES))).height


def test_a_minimiser_prints_its_objective_and_the_norm_of_its_gradient_in_columns() -> None:
    rows = [f"  {at:5d}  {loss:13.6E}  {loss / 3:11.4E}  {0.2 * at:9.2f}" for at, loss in enumerate(LOSSES)]
    found = metrics("\n".join(["     it           f(x)        ||g||     cpu(s)", *rows]))
    assert {*found["name"]} >= {"f(x)", "grad_norm"}
    assert found["step"].max() == 39


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("12:00:01 | INFO | fit:71 - snapshot to snap/20.pt", "snap/20.pt"),
        ("weights to out/a.npz", "out/a.npz"),
        ("copying the model to a.pt", None),  # from elsewhere, perhaps
        ("snapshot to snap/20.txt", None),
    ],
)
def test_a_thing_that_goes_to_a_file_of_weights_is_saved(line: str, path: str | None) -> None:
    lines = [f"update {at}: loss {loss}" for at, loss in enumerate(LOSSES)]
    text = "\n".join([*lines[:21], line, *lines[21:]]) + "\n"
    dialect = learn(text.splitlines())
    assert dialect is not None
    saved = parse_text(dialect, text)["checkpoints"].select("step", "path").rows()
    assert saved == ([] if path is None else [(20, path)])


def test_no_byte_of_nested_objects_is_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at, read_object = list[int](), _lines._object

    def counted(data: bytes) -> tuple[int, bool]:
        size, is_record = read_object(data)
        looked_at.append(size)
        return size, is_record

    monkeypatch.setattr(_lines, "_object", counted)
    data = b'{"a": {\n  ' * 5000
    _lines.Cut(data)
    assert 0 < sum(looked_at) <= len(data)


@pytest.mark.parametrize("level", ["INFO", "DEBUG", "WARNING"])
def test_the_level_of_a_line_is_no_part_of_a_name(level: str) -> None:
    text = "".join(f"2031-05-06 11:{n:02d}:00,123 {level} Batch loss: {loss}\n" for n, loss in enumerate(LOSSES))
    assert metrics(text)["raw_name"].unique().to_list() == ["Batch_loss"]


def test_the_number_of_a_process_is_no_metric() -> None:
    text = "".join(
        f"2031-05-06 11:{n:02d}:00 gpu-host trainer[26709] INFO Batch loss: {loss}\n" for n, loss in enumerate(LOSSES)
    )
    assert metrics(text)["raw_name"].unique().to_list() == ["Batch_loss"]


def test_the_number_in_brackets_behind_another_word_counts() -> None:
    text = "".join(f"Epoch[{n}] loss: {loss}\n" for n, loss in enumerate(LOSSES))
    assert course(text, "loss")[:2] == [(0, LOSSES[0]), (1, LOSSES[1])]


def _with_evaluations(score: str) -> str:
    """Three epochs of a bar, each with two lines of its evaluation, as H2O LLM Studio prints them."""
    return "".join(
        f"2031-05-06 1{epoch}:{at:02d}:00,570 - INFO: train loss: {loss}:"
        f" {at:3d}%|####| {at + 1}/40 [00:12<01:18,  2.6it/s]\n"
        + ("" if at < 39 else f"2031-05-06 1{epoch}:59:00,570 - INFO: Mean validation loss: {2 - epoch / 9:.4f}\n")
        + ("" if at < 39 else f"2031-05-06 1{epoch}:59:00,571 - INFO: Validation BLEU: {score}\n")
        for epoch in range(3)
        for at, loss in enumerate(LOSSES)
    )


def test_three_evaluations_behind_a_bar_are_read_though_no_line_counts() -> None:
    rows = metrics(_with_evaluations("0.00000"))
    told = rows.group_by("raw_name").len().sort("raw_name").rows()
    assert told == [("Mean_validation_loss", 3), ("Validation_BLEU", 3), ("train_loss", 120)]


def test_a_number_of_no_evaluation_that_never_moves_is_not_read() -> None:
    text = _with_evaluations("0.00000").replace("Validation BLEU", "Workers in use")
    assert "Workers_in_use" not in metrics(text)["raw_name"].unique().to_list()


def test_a_name_may_have_a_bar_before_its_value() -> None:
    text = "".join(
        f"Step {100 * n:6d}: train CrossEntropyLoss |  {loss}\n"
        f"Step {100 * n:6d}: eval          Accuracy |  0.00000000\n"
        for n, loss in enumerate(LOSSES)
    )
    assert course(text, "loss")[:2] == [(0, LOSSES[0]), (100, LOSSES[1])]
    assert set(metrics(text)["raw_name"].unique()) == {"train_CrossEntropyLoss", "Accuracy"}


def test_a_bar_before_a_count_names_nothing() -> None:
    text = "".join(f"job {n}: loss {loss}\njob {n}: shard | {n % 7}\n" for n, loss in enumerate(LOSSES))
    assert "shard" not in (metrics(text)["raw_name"].unique().to_list() if metrics(text).height else [])


def _rare_memory(printed: str) -> str:
    return "".join(
        f"2031-05-06 11:{n:02d}:00 INFO iter {n} loss {loss}\n"
        + ("" if n % 5 else f"2031-05-06 11:{n:02d}:01 INFO {printed.format(9 + n / 7)}\n")
        for n, loss in enumerate(LOSSES)
    )


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("RAM usage: {:.1f} GB / 64.0 GB", "host_mem_used_gib"),
        ("GPU memory used: {:.2f} GB", "gpu_mem_used_gib"),
        ("process memory = {:.3f}GB", "process_rss_gib"),
        ("torch.cuda.memory_allocated: {:.3f}GB", "mem_allocated_gib"),
    ],
)
def test_a_memory_in_bytes_is_read_from_a_line_of_its_own(printed: str, name: str) -> None:
    assert name in metrics(_rare_memory(printed))["name"].unique().to_list()


def test_a_size_of_something_else_in_a_line_of_its_own_is_not_read() -> None:
    assert metrics(_rare_memory("wrote shard: {:.1f} GB"))["name"].unique().to_list() == ["loss"]


def test_a_speed_counts_by_the_epochs_that_its_line_counts() -> None:
    text = "".join(
        f"fps step: {61000 + n % 9} fps total: {41000 + n % 7} epoch: {n + 1}/500 frames: {65536 * n}\n"
        for n in range(40)
    )
    assert set(metrics(text)["raw_name"].unique()) >= {"fps_step", "fps_total"}


def test_a_count_beside_an_epoch_without_a_plan_is_no_metric() -> None:
    text = "".join(f"epoch {n}: moved {17 * n % 23} files\n" for n, _ in enumerate(LOSSES))
    assert metrics(text).is_empty()


def test_three_numbers_of_no_evaluation_in_a_long_log_are_not_read() -> None:
    text = "".join(
        f"iter {n} loss {loss}\n" + ("" if n % 13 else f"entropy: {loss}\n") for n, loss in enumerate(LOSSES[1:], 1)
    )
    assert metrics(text + "".join(f"iter {n} loss 0.5\n" for n in range(40, 80)))["name"].unique().to_list() == ["loss"]


@pytest.mark.parametrize(
    ("sentence", "name"), [("Epoch[{}] Complete. loss: {}", "loss"), ("[{}] Valid. loss: {}", "Valid. loss")]
)
def test_a_long_word_with_a_point_ends_a_sentence_and_a_short_one_is_an_abbreviation(sentence: str, name: str) -> None:
    assert name in [slot.key for slot in slots(sentence.format(3, 0.4))]
