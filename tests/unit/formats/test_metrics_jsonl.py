"""JSON lines of metrics: each writer's name for the step, NaN literals, damaged lines stated."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from forensics.errors import NotMine
from forensics.formats.configs import documents
from forensics.formats.metrics.json_lines import read

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("case", "steps"),
    [
        ("ok-llama-factory", list(range(10, 61, 10))),
        ("ok-detectron2", [19, 39, 59, 79, 99]),
        ("ok-mmengine", list(range(50, 301, 50))),
    ],
)
def test_each_writer_names_its_step(case: str, steps: list[int], run_fixture: Run) -> None:
    wrote = run_fixture(read, f"metrics_jsonl/{case}")
    assert [step for step, _ in wrote.points("loss")] == steps
    assert wrote.issues == []
    assert wrote.coverage.skipped_bytes == 0


@pytest.mark.parametrize(("key", "steps"), [("kimg", [0, 50, 100]), ("kimages", [])])
def test_thousands_of_images_are_a_step(key: str, steps: list[int], run: Run) -> None:
    lines = b"".join(b'{"%s": %d, "fid50k_full": %d.5}\n' % (key.encode(), n, 90 - n) for n in (0, 50, 100))
    if steps:
        assert [step for step, _ in run(read, "stats.jsonl", lines).points("fid50k_full")] == steps
    else:
        with pytest.raises(NotMine):
            run(read, "stats.jsonl", lines)


@pytest.mark.parametrize(
    ("last", "codes"),
    [
        (b'{"status": "completed", "steps": 2}', ("finished-last-status", "last_line")),
        (b'{"status": "running", "steps": 2}', ("last_line",)),
        (b'{"kind": "end", "status": "ok", "updates": 2}', ("finished-last-status", "last_line")),
        (b'{"type": "run_end", "steps": 2}', ("finished-last-status", "last_line")),
        (b'{"kind": "end", "status": "failed"}', ("last_line",)),
        (b'{"kind": "end", "rc": 3}', ("last_line",)),
        (b'{"step": 3, "loss": 0.2, "status": "completed"}', ()),  # a record of metrics as the others
        (b'{"total": 2}', ()),
    ],
)
def test_a_last_record_without_metrics_says_how_a_run_ended(last: bytes, codes: tuple[str, ...], run: Run) -> None:
    wrote = run(read, "log.jsonl", b'{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.4}\n' + last + b"\n")
    events = wrote.table("events")
    assert tuple(sorted(events["code"])) == codes
    assert {*events["line"]} <= {3}


def test_the_planned_steps_are_a_fact_and_no_metric(run_fixture: Run) -> None:
    wrote = run_fixture(read, "metrics_jsonl/ok-llama-factory")
    assert wrote.table("facts").select("key", "value").rows() == [("max_steps", "60")]
    assert set(wrote.table("metrics")["name"]) == {"loss", "lr"}


@pytest.mark.parametrize(
    ("cell", "steps", "plan"), [("40/900", [40, 41], [("max_steps", "900")]), ("40 of 900", [0, 0], [])]
)
def test_a_step_and_its_plan_in_one_text_are_both_read(
    cell: str, steps: list[int], plan: list[tuple[str, str]], run: Run
) -> None:
    lines = (
        f'{{"loss": 0.5, "epoch": 0.31, "global_step/max_steps": "{told}", "elapsed": "3m"}}\n'
        for told in (cell, cell.replace("40", "41"))
    )
    wrote = run(read, "logging.jsonl", "".join(lines).encode())
    assert [step for step, _ in wrote.points("loss")] == steps
    assert wrote.table("facts").select("key", "value").rows() == plan
    assert set(wrote.table("metrics")["name"]) == {"loss"}


def test_what_a_record_says_of_a_step_itself_goes_before_one_text_of_two(run: Run) -> None:
    lines = (f'{{"step": {n}, "loss": 0.5, "step/max_steps": "9/10"}}\n' for n in (3, 4))
    assert [step for step, _ in run(read, "logging.jsonl", "".join(lines).encode()).points("loss")] == [3, 4]


def test_a_bare_nan_is_a_nan_with_its_line_and_time(run_fixture: Run) -> None:
    metrics = run_fixture(read, "metrics_jsonl/crash-nan").table("metrics")
    bad = metrics.row(7, named=True)
    assert math.isnan(bad["value"])
    assert (bad["step"], bad["line"], bad["t_ns"]) == (8, 8, 1_750_000_008_000_000_000)


def test_damaged_lines_are_stated_and_the_others_read(run_fixture: Run) -> None:
    wrote = run_fixture(read, "metrics_jsonl/broken-lines")
    assert [issue.code for issue in wrote.issues] == ["line-not-json", "row-cut"]
    assert wrote.points("loss")[-1] == (99, 1.5)
    assert wrote.coverage.skipped_bytes > 0


def test_a_list_of_records_is_read_as_lines_are(run_fixture: Run) -> None:
    wrote = run_fixture(read, "metrics_jsonl/ok-list")
    assert wrote.points("loss") == [(step, 2 - step / 100) for step in range(10, 51, 10)]
    assert wrote.points("eval_loss") == [(30, 1.75)]
    assert wrote.table("metrics").filter(pl.col("name") == "eval_loss")["line"].to_list() == [5]
    assert wrote.issues == []
    assert wrote.coverage.skipped_bytes == 0


def test_a_list_that_was_cut_is_read_as_far_as_it_goes(run_fixture: Run) -> None:
    wrote = run_fixture(read, "metrics_jsonl/broken-list")
    assert [step for step, _ in wrote.points("loss")] == [10, 30, 40]
    assert [issue.message for issue in wrote.issues] == [
        "a record is no JSON object",
        "the list is cut; 4 records before it were read",
    ]
    assert wrote.coverage.skipped_bytes > 0


@pytest.mark.parametrize("data", [b"[]", b'[{"name": "a", "size": 3}]', b'[{"_step": 1, "loss": 2.0}]', b"[1, 2]"])
def test_a_list_without_steps_and_one_of_a_tracker_are_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "log.json", data)


def long_records(parts: int) -> bytes:
    rows = [
        {"epoch": e, "train_loss": 9.0 - e / 5} | {f"train_loss_of_layer_{i}": 0.1 for i in range(parts)}
        for e in range(9)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.parametrize(("parts", "tail"), [(5, b""), (90, b"Traceback (most recent call last):\n")])
def test_a_log_of_short_records_or_with_other_lines_is_left_to_others(parts: int, tail: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "log.txt", long_records(parts) + tail)


def test_a_log_of_records_that_are_too_long_for_text_is_read(run: Run) -> None:
    rows = run(read, "log.txt", long_records(90)).table("metrics")
    assert rows.filter(rows["raw_name"] == "train_loss")["value"].to_list()[-1] == pytest.approx(7.4)


def test_nested_strings_and_ranks_are_understood(run: Run) -> None:
    data = b'{"step": 1, "rank": 3, "train": {"loss": "2.5", "tag": "x"}, "ok": true, "bad": "NaN", "none": null}\n'
    metrics = run(read, "m.jsonl", data).table("metrics")
    assert metrics.select("raw_name", "value_class", "rank").rows() == [
        ("train/loss", "finite", 3),
        ("bad", "nan", 3),
        ("none", "null", 3),
    ]


@pytest.mark.parametrize(
    ("key", "cell", "t_ns"),
    [
        ("ts", "1764253245.5", 1_764_253_245_500_000_000),
        ("t", '"2025-11-27T14:20:45Z"', 1_764_253_245_000_000_000),
        ("asctime", '"2025-11-27 14:20:45,500"', 1_764_253_245_500_000_000),
        ("time", '"2025-11-27T14:20:45+02:00"', 1_764_253_245_000_000_000),
        ("time", "12.5", None),
        ("date", '"2025-11-27"', None),
        ("date", '"yesterday, at a quarter past"', None),
    ],
)
def test_a_key_that_may_be_a_duration_is_the_time_where_it_holds_a_date(
    key: str, cell: str, t_ns: int | None, run: Run
) -> None:
    metrics = run(read, "m.jsonl", f'{{"{key}": {cell}, "step": 1, "loss": 2.5}}\n'.encode()).table("metrics")
    assert metrics.filter(pl.col("name") == "loss")["t_ns"].to_list() == [t_ns]
    assert (key in metrics["raw_name"]) == (cell == "12.5")


def test_iterations_that_begin_anew_in_each_epoch_are_no_restart(run: Run) -> None:
    rows = [f'{{"epoch": {e}, "iter": {i}, "loss": 1.0}}\n' for e in (1, 2) for i in (50, 100)]
    assert run(read, "a.log.json", "".join(rows).encode()).table("metrics")["attempt"].unique().to_list() == [0]


@pytest.mark.parametrize(
    "data", [b"", b'{"text": "a"}\n', b'{\n "step": 1\n}\n', b"plain\n", b"[1]\n", b'{"step": 1}\n']
)
def test_other_lines_are_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "m.jsonl", data)


def test_iterations_that_begin_anew_in_each_epoch_add_up_and_are_no_restart(run_fixture: Run) -> None:
    wrote = run_fixture(read, "metrics_jsonl/ok-openmmlab-old")
    loss = wrote.table("metrics").filter(pl.col("raw_name") == "loss")
    assert loss["step"].to_list() == [10, 20, 30, 40] * 3
    assert loss["gstep"].to_list() == list(range(10, 121, 10))
    assert wrote.table("metrics")["attempt"].unique().to_list() == [0]


def test_validation_records_are_their_own_series_at_the_step_of_training(run_fixture: Run) -> None:
    older = run_fixture(read, "metrics_jsonl/ok-openmmlab-old").table("metrics").filter(pl.col("name") == "eval_loss")
    assert older.select("raw_name", "step", "gstep").rows() == [("val/loss", 40, 40 * k) for k in (1, 2, 3)]
    newer = run_fixture(read, "metrics_jsonl/ok-openmmlab-val").table("metrics")
    scores = newer.filter(pl.col("raw_name") == "val/toy/mAP")
    assert scores.select("step", "epoch", "value").rows() == [(40 * k, float(k), k / 10) for k in (1, 2, 3)]
    assert newer["attempt"].unique().to_list() == [0]


def test_a_record_that_names_its_split_is_prefixed_with_it(run: Run) -> None:
    data = b'{"step": 1, "split": "train", "loss": 2.0}\n{"step": 1, "split": "Validation", "loss": 2.5}\n'
    metrics = run(read, "m.jsonl", data).table("metrics")
    assert metrics.select("raw_name", "name").rows() == [("loss", "loss"), ("val/loss", "eval_loss")]


def test_results_of_rllib_keep_deep_numbers_and_the_configuration_once(run_fixture: Run) -> None:
    wrote = run_fixture(read, "metrics_jsonl/ok-rllib")
    names = set(wrote.table("metrics")["raw_name"])
    assert "info/learner/default_policy/learner_stats/policy_loss" in names
    assert not any("config" in name or "hist" in name for name in names)
    assert wrote.table("facts").select("key", "value").rows() == [
        ("lr", "0.0007"),
        ("env", '"Ledge-v2"'),
        ("model.free_log_std", "false"),
    ]


def test_an_axis_that_was_not_chosen_is_kept_where_it_says_something_else(run: Run) -> None:
    data = b'{"step": 5, "global_step": 5, "total_timesteps": 640, "loss": 1.0}\n'
    metrics = run(read, "m.jsonl", data).table("metrics")
    assert metrics.select("raw_name", "value").rows() == [("total_timesteps", 640.0), ("loss", 1.0)]


def test_an_object_of_lists_is_a_record_for_each_place_in_them(run: Run) -> None:
    data = b'{"loss": [3.0, 2.5, NaN],\n "val_losses": [3.1, null, 2.6],\n "lr": [0.1], "model": "gpt", "best": 2.5}'
    wrote = run(read, "history.json", data)
    assert [step for step, _ in wrote.points("loss")] == [1, 2, 3]
    assert wrote.points("eval_loss")[-1] == (3, 2.6)
    assert set(wrote.table("metrics")["name"]) == {"loss", "eval_loss"}
    counted = run(read, "history.json", b'{"step": [10, 20], "loss": [3.0, 2.5]}')
    assert counted.points("loss") == [(10, 3.0), (20, 2.5)]


@pytest.mark.parametrize("name", ["run7.json", "history_lstm.json"])
def test_lists_below_the_key_that_holds_all_numbers_are_records(name: str, run: Run) -> None:
    wrote = run(
        read, name, b'{"params": {"epochs": 3}, "history": {"loss": [3.0, 2.5, 2.0], "val_loss": [3.1, 2.9, 2.8]}}'
    )
    assert wrote.points("loss") == [(1, 3.0), (2, 2.5), (3, 2.0)]
    assert wrote.points("eval_loss")[-1] == (3, 2.8)


def test_lists_below_the_names_of_their_data_are_records(run: Run) -> None:
    data = (
        b'{"epochs": 3, "train": {"loss": [3.0, 2.5, 2.0], "acc": [1, 2]},\n "dev": {"loss": [3.1, 2.9, 2.8]}, "lr": 1}'
    )
    wrote = run(read, "run7.json", data)
    assert wrote.points("loss") == [(1, 3.0), (2, 2.5), (3, 2.0)]
    assert wrote.table("metrics")["raw_name"].unique(maintain_order=True).to_list() == ["train/loss", "dev/loss"]


@pytest.mark.parametrize(
    "data",
    [
        b'{"train": {"lr": [3.0, 2.5, 2.0]}, "val": {"acc": [1, 2, 3]}}',
        b'{"a": 1, "data": {"x": [3.0, 2.5, 2.0], "y": [1, 2, 3]}}',
        b'{"a": 1, "other": {"loss": [3.0, 2.5, 2.0]}}',
        b'[{"history": {"loss": [3.0, 2.5]}}]',
    ],
)
def test_lists_below_another_key_or_without_a_loss_are_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "run7.json", data)


@pytest.mark.parametrize(
    "data", [b'{"loss": [3.0]}', b'{"names": ["a", "b"], "loss": 2.0}', b'{"loss": [3.0, 2.5], "cut": [1, 2']
)
def test_an_object_that_holds_no_two_numbers_of_a_metric_is_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "history.json", data)


LISTED = b'[{"iteration": 1, "loss": 2.5}, {"iteration": 2, "loss": 2.25}]'


@pytest.mark.parametrize(
    "data",
    [LISTED, b'{"step": [1, 2], "loss": [2.5, 2.25]}', b'{"loss": [2.5, 2.25], "mae": [1.5, 1.25], "seed": 3}'],
)
def test_records_in_a_list_are_metrics_under_any_name(data: bytes, run: Run) -> None:
    assert run(read, "out/stats.json", data).points("loss") == [(1, 2.5), (2, 2.25)]


@pytest.mark.parametrize("data", [b'{"step": 5, "lr": 0.1}', b'{"betas": [0.9, 0.95], "lr": 0.1}'])
def test_one_object_under_a_name_that_is_none_of_metrics_is_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "out/stats.json", data)


LOSSES = [round(3 - at / 10, 2) for at in range(1, 21)]


def lines_of(form: str) -> bytes:
    """A record for each of the losses, `@` being its place and `$` the loss."""
    return "".join(
        form.replace("@", str(at)).replace("$", str(loss)) + "\n" for at, loss in enumerate(LOSSES, 1)
    ).encode()


@pytest.mark.parametrize(
    "data",
    [
        lines_of(
            '{"event": "train", "ts": "2025-04-02T10:02:31Z", "data": {"iteration": @, "train_loss": $, "gnorm": 1.5}}'
        ),
        lines_of('{"epoch": @, "train": {"loss": $}, "val": {"loss": 9.5}}'),
        lines_of('{"step": @, "metrics": {"loss": $}}'),
        lines_of('{"step": @, "name": "loss", "value": $}'),
        lines_of('{"step": @, "tag": "train/loss", "v": $, "time": 1.5}'),
        lines_of('{"metricName": "loss", "metricValue": "$", "step": @, "epoch": null, "offset": null}'),
        b'{"config": {"lr": 0.1}, "epochs": [' + lines_of('{"n": @, "train_loss": $},')[:-2] + b"]}",
        b'{"config": {"lr": 0.1}, "log": [' + lines_of('{"epoch": @, "train": {"loss": $, "top1": 1}},')[:-2] + b"]}",
        b"[" + lines_of('{"epoch": @, "loss": $},')[:-2] + b"]",
    ],
    ids=[
        "data",
        "splits",
        "metrics",
        "long",
        "long with a time",
        "long with keys that are empty",
        "a list within",
        "nested in a list",
        "a list by epoch",
    ],
)
def test_records_of_any_layout_have_their_step_and_their_loss(data: bytes, run: Run) -> None:
    wrote = run(read, "history.json" if data[:2] != b'{"' or b'"config"' in data else "log.jsonl", data)
    assert wrote.points("loss") == [*enumerate(LOSSES, 1)]


def test_a_list_of_objects_without_a_loss_is_no_metrics(run: Run) -> None:
    with pytest.raises(NotMine):
        run(
            read,
            "results.json",
            b'{"config": {}, "layers": [{"n": 1, "size": 2.5}, {"n": 2, "size": 3.5}, {"n": 3, "size": 1}]}',
        )


def test_a_list_of_nested_objects_without_a_loss_is_no_metrics(run: Run) -> None:
    layer = '{"n": 1, "use": {"loss": "mse", "size": 2.5}}'
    with pytest.raises(NotMine):
        run(
            read,
            "results.json",
            b'{"layers": [{"n": {"size": 1}}, {"n": {"size": 2}}, {"n": {"size": 3}}], "a": "loss"}',
        )
    with pytest.raises(NotMine):
        run(read, "model.json", f'{{"heads": [{layer}, {layer}]}}'.encode())


def test_a_text_beside_several_numbers_names_none_of_them(run: Run) -> None:
    wrote = run(read, "log.jsonl", lines_of('{"step": @, "name": "run-7", "value": 0.5, "loss": $}'))
    assert {*wrote.table("metrics")["raw_name"]} == {"value", "loss"}


def test_a_record_names_its_split_below_any_of_the_keys_that_writers_use(run: Run) -> None:
    rows = [f'{{"step": {at}, "runContext": "{data}", "loss": 0.5}}' for at in (1, 2) for data in ("train", "validate")]
    metrics = run(read, "log.jsonl", "\n".join(rows).encode()).table("metrics")
    assert metrics["raw_name"].to_list() == ["loss", "val/loss"] * 2


def history(*records: str) -> bytes:
    return ('{"model": "vae8", "history": [' + ", ".join(records) + '], "finished": true}').encode()


def test_a_history_of_records_that_count_on_needs_no_loss(run: Run) -> None:
    data = history(*(f'{{"epoch": {at}, "train": {{"recon": {9 - at}.5, "kl": 0.1}}}}' for at in range(3)))
    assert run(read, "result.json", data).points("train/recon") == [(0, 9.5), (1, 8.5), (2, 7.5)]


@pytest.mark.parametrize(
    "records",
    [
        ('{"epoch": 0, "kl": 1}', '{"epoch": 1, "kl": 2}', '{"epoch": 1, "kl": 3}'),
        ('{"epoch": 0, "kl": 1}', '{"epoch": 1, "kl": 2}', '{"kl": 3}'),
        ('{"epoch": 0, "kl": 1}', '{"epoch": 1, "kl": 2}'),
        ('{"kl": 1}', '{"kl": 2}', '{"kl": 3}'),
    ],
    ids=["counts no further", "counts not always", "too few", "counts nothing"],
)
def test_a_history_that_does_not_count_on_is_left_to_others(records: tuple[str, ...], run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "result.json", history(*records))


@pytest.mark.parametrize(
    ("end", "codes"),
    [
        (b'"status": "completed"', ("finished-last-status", "last_line")),
        (b'"status": "running", "note": "\\ud800"', ("last_line",)),
        (b'"status": 1', ()),
    ],
)
@pytest.mark.parametrize("kept", [b'"log": [' + lines_of('{"epoch": @, "loss": $},')[:-2] + b"]", b'"loss": [3, 2, 1]'])
def test_what_a_document_says_beside_its_lists_is_its_last_line(
    kept: bytes, end: bytes, codes: tuple[str, ...], run: Run
) -> None:
    events = run(read, "history.json", b"{" + kept + b",\n" + end + b"}\n").table("events")
    assert tuple(sorted(events["code"])) == codes if codes else events.is_empty()
    assert {*events["line"]} <= {kept.count(b"\n") + 2}


@pytest.mark.parametrize(
    "data", [b'{"status": "completed", "steps": 20}', b'{\n  "steps": 20,\n  "state": "Done"\n}\n']
)
def test_the_word_of_an_end_in_a_file_of_its_own_is_read_as_a_last_line(data: bytes, run: Run) -> None:
    assert "finished-last-status" in run(read, "summary_7.json", data).table("events")["code"].to_list()
    with pytest.raises(NotMine):
        run(documents.read, "summary_7.json", data)


@pytest.mark.parametrize(
    "data",
    [
        b'{"status": "running", "steps": 20}',
        b'{"task": {"status": "completed"}}',
        b'{"status": "completed"}\n{"status": "completed"}',
        b'{"status": "completed"}' + b" " * (64 << 10),
    ],
)
def test_an_object_that_tells_no_end_is_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "result.json", data)


PLOT = (
    b'{"train": {"loss": {"name": "loss", "x": %s, "y": [2.5, NaN, 1.5]}},'
    b' "note": {"note": {"x": [1, 2], "y": [0, 1]}}}'
)


def test_plots_of_steps_and_values_are_read_by_their_title_and_series(run: Run) -> None:
    wrote = run(read, "task_scalars.json", PLOT % b"[0, 10, 20]")
    metrics = wrote.table("metrics")
    assert {*metrics["raw_name"]} == {"train/loss", "note"}
    assert metrics.filter(pl.col("name") == "loss")["step"].to_list() == [0, 10, 20]
    assert math.isnan(wrote.points("loss")[1][1])


@pytest.mark.parametrize(
    "steps", [b"[0, 20, 10]", b"[0.0, 0.5, 1.0]", b"[0, 10]", b"[1700000000, 1700000010, 1700000020]"]
)
def test_a_plot_whose_axis_counts_no_steps_is_none(steps: bytes, run: Run) -> None:
    wrote = run(read, "task_scalars.json", PLOT % steps)
    assert {*wrote.table("metrics")["raw_name"]} == {"note"}


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        (b'{"num": 64, "mean": 0.5, "std": 0.1}', {"Loss/G/loss"}),
        (b'{"mean": 0.5}', {"Loss/G/loss/mean"}),
        (b'{"mean": 0.5, "loss": 0.5}', {"Loss/G/loss/mean", "Loss/G/loss/loss"}),
    ],
)
def test_a_number_gathered_over_samples_is_its_mean(cell: bytes, names: set[str], run: Run) -> None:
    line = b'{"Progress/kimg": {"num": 1, "mean": %d.03, "std": 0}, "Loss/G/loss": ' + cell + b"}\n"
    metrics = run(read, "stats.jsonl", b"".join(line % kimg for kimg in (0, 4, 8))).table("metrics")
    assert {*metrics["raw_name"]} == names
    assert metrics["step"].unique().sort().to_list() == [0, 4, 8]


@pytest.mark.parametrize(("cost", "is_read"), [("binary_logloss", True), ("rmse", True), ("auc", False)])
def test_lists_below_a_split_are_those_of_what_trees_are_boosted_for(cost: str, *, is_read: bool, run: Run) -> None:
    data = b'{"valid_0": {"%s": [0.7, 0.6, 0.5]}}' % cost.encode()
    if is_read:
        assert {*run(read, "evals.json", data).table("metrics")["raw_name"]} == {f"valid_0/{cost}"}
    else:
        with pytest.raises(NotMine):
            run(read, "evals.json", data)


def test_a_tracker_may_name_each_number_in_its_record_and_print_it_as_text(run: Run) -> None:
    records = (f'{{"metricName": "train_loss", "metricValue": "{4 - at}.5", "step": {at}}}' for at in range(4))
    assert run(read, "comet.json", f"[{', '.join(records)}]".encode()).points("loss") == [
        (at, 4.5 - at) for at in range(4)
    ]


@pytest.mark.parametrize(("first", "last", "is_end"), [(False, True, True), (False, False, False), (True, True, False)])
def test_a_trial_is_over_where_its_last_result_alone_is_done(
    first: bool,
    last: bool,
    is_end: bool,
    run: Run,
) -> None:
    line = '{"training_iteration": %d, "loss": 0.5, "done": %s}\n'
    data = "".join(line % (at, str(last if at == 3 else first).lower()) for at in (1, 2, 3))
    events = run(read, "result.json", data.encode()).table("events")
    assert ("finished-last-done" in events["code"].to_list()) == is_end if is_end else events.is_empty()


def boosted(rows: str, metric: str = '"name": "Logloss"') -> bytes:
    sets = '"learn_sets": ["learn"], "test_sets": ["test0", "test1"]'
    return (
        f'{{"meta": {{{sets}, "learn_metrics": [{{{metric}}}], "test_metrics": [{{{metric}}}, {{"name": "AUC"}}]}},\n'
        f'"iterations": [{rows}]}}'
    ).encode()


def test_iterations_of_catboost_have_the_names_of_their_sets_and_metrics(run: Run) -> None:
    rows = '{"learn": [0.5], "test0": [0.6, 0.7], "test1": [0.8], "iteration": 0, "passed_time": 1}'
    wrote = run(read, "catboost_info/catboost_training.json", boosted(f'{rows}, {{"iteration": 1, "learn": [0.25]}}'))
    assert wrote.table("metrics").select("step", "raw_name", "value", "line").rows() == [
        *((0, name, value, 2) for name, value in (("Logloss", 0.5), ("test0/Logloss", 0.6), ("test0/AUC", 0.7))),
        (0, "test1/Logloss", 0.8, 2),
        (1, "Logloss", 0.25, 2),
    ]


@pytest.mark.parametrize("rows", ["", '{"learn": [0.5]}', "7"])
def test_a_document_of_iterations_that_are_not_counted_is_left_to_others(rows: str, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "catboost_info/catboost_training.json", boosted(rows))
