"""Tracebacks become one event each."""

from __future__ import annotations

import json

import pytest

from forensics.dialects.reader import Bounds, Reader

PLAIN = """Traceback (most recent call last):
  File "/opt/toy/train.py", line 40, in main
    loop(model)
  File "/opt/toy/loop.py", line 12, in loop
    raise ValueError("shard 7 is empty")
ValueError: shard 7 is empty
"""


def tracebacks(text: str, *, piece: int | None = None) -> list[dict[str, object]]:
    data = text.encode("utf-8", "surrogateescape")
    reader = Reader((), Bounds())
    tables = []
    at = line = 0
    while at < len(data):
        end = len(data) if piece is None else data.find(b"\n", min(at + piece, len(data) - 1)) + 1 or len(data)
        tables += reader.feed(data[at:end], offset=at, first_line=line + 1)
        line += data.count(b"\n", at, end)
        at = end
    tables += reader.close()[0]
    events = [row for table in tables if "events" in table for row in table["events"].iter_rows(named=True)]
    return [row | json.loads(row["attrs"]) for row in events if row["code"] == "traceback"]


def test_class_message_and_innermost_frame_are_kept() -> None:
    (found,) = tracebacks("start\n" + PLAIN + "end\n")
    assert (found["exc"], found["message"]) == ("ValueError", "shard 7 is empty")
    assert found["frame"] == "/opt/toy/loop.py:12 in loop"
    assert found["frames"] == "2"
    assert (found["line"], found["head_line"]) == (7, "2")
    assert found["text"] == "ValueError: shard 7 is empty"


def test_the_statement_of_the_innermost_frame_is_kept() -> None:
    (found,) = tracebacks(PLAIN.replace('empty")', 'empty")\n    ~~~^^^'))
    assert found["statement"] == 'raise ValueError("shard 7 is empty")'
    (bare,) = tracebacks(PLAIN.replace('    raise ValueError("shard 7 is empty")\n', ""))
    assert "statement" not in bare


NOTEBOOKS = {
    "of today": """KeyError                                  Traceback (most recent call last)
Cell In[12], line 3
      1 width = 1
----> 3 trainer.train()

File ~/env/site-packages/mill/turn.py:9, in Mill.turn(self, sails)
      8     # the sails
----> 9     return self.sails[sails]

KeyError: 'grain'
""",
    "of Colab": """KeyError                                  Traceback (most recent call last)
[/tmp/ipython-input-39.py](https://localhost:8080/#) in <cell line: 0>()
      1 width = 1
----> 3 trainer.train()

6 frames
[/env/site-packages/mill/turn.py](https://localhost:8080/#) in turn(self, sails)
      8     # the sails
----> 9     return self.sails[sails]
     10     }

KeyError: 'grain'
""",
    "of old": """KeyError                                  Traceback (most recent call last)
<ipython-input-3-1fbe097b> in <module>
----> 3 trainer.train()

~/env/site-packages/mill/turn.py in turn(self, sails)
      8     # the sails
----> 9     return self.sails[sails]

KeyError: 'grain'
""",
}


@pytest.mark.parametrize("text", NOTEBOOKS.values(), ids=NOTEBOOKS)
def test_a_notebooks_frames_are_read_as_those_of_a_script(text: str) -> None:
    (found,) = tracebacks(text)
    inner, outer = json.loads(str(found["stack"]))
    assert inner.endswith("env/site-packages/mill/turn.py:9 in " + ("Mill.turn" if "Mill" in text else "turn"))
    assert ":3 in <" in outer
    assert (found["exc"], found["statement"]) == ("KeyError", "return self.sails[sails]")
    assert "caught" not in found


def test_a_prefix_names_the_rank_and_lines_of_others_are_passed_over() -> None:
    mine = ["[rank3]: " + line for line in PLAIN.splitlines()]
    others = [f"[rank{10 + r}]: KeyError: 'other'" for r in range(len(mine))]
    text = "\n".join(line for pair in zip(mine, others, strict=True) for line in pair) + "\n"
    (found,) = [t for t in tracebacks(text) if t["rank"] == 3]
    assert found["exc"] == "ValueError"


def test_a_loggers_prefix_on_each_line_is_seen_through() -> None:
    text = "".join(f"2031-05-06 07:08:09 ERROR {line}\n" for line in PLAIN.splitlines())
    (found,) = tracebacks(text)
    assert (found["exc"], found["frames"]) == ("ValueError", "2")


def test_a_chain_is_one_event_with_its_root() -> None:
    text = (
        PLAIN
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + PLAIN.replace("ValueError: shard 7 is empty", "toy.errors.LoaderError: giving up")
    )
    (found,) = tracebacks(text)
    assert (found["exc"], found["root_exc"]) == ("toy.errors.LoaderError", "ValueError")
    assert found["root_message"] == "shard 7 is empty"


def test_frames_of_a_repeated_exception_are_those_that_met_it_first() -> None:
    again = PLAIN.replace("loop.py", "pool.py").replace('raise ValueError("shard 7 is empty")', "raise self.value")
    direct = "\nThe above exception was the direct cause of the following exception:\n\n"
    (found,) = tracebacks(PLAIN + direct + again)
    assert (found["frame"], found["statement"]) == (
        "/opt/toy/loop.py:12 in loop",
        'raise ValueError("shard 7 is empty")',
    )
    assert "loop.py" in str(found["stack"])
    (other,) = tracebacks(PLAIN + direct + again.replace("shard 7", "shard 8"))
    assert (other["frame"], other["root_frame"]) == ("/opt/toy/pool.py:12 in loop", "/opt/toy/loop.py:12 in loop")
    assert "loop.py" in str(other["root_stack"])


@pytest.mark.parametrize(
    ("below", "more"),
    [
        ("  the shard has 0 records\nwrite it again\n", "the shard has 0 records\nwrite it again"),
        ("  the shard has 0 records\n\nbye\n", "the shard has 0 records"),
        ("srun: error: n1: task 0: Exited\nwrite it again\n", None),
        ("2031-05-06 07:08:09 INFO closing\n", None),
        ("\nbye\n", None),
    ],
)
def test_a_message_goes_on_until_a_blank_line_or_another_voice(below: str, more: str | None) -> None:
    (found,) = tracebacks(PLAIN + below)
    assert (found["message"], found.get("more")) == ("shard 7 is empty", more)


def test_two_tracebacks_that_are_no_chain_are_two_events() -> None:
    assert [t["line"] for t in tracebacks(PLAIN + "between\n" + PLAIN)] == [6, 13]


def test_a_traceback_over_the_end_of_a_block_is_whole() -> None:
    whole = tracebacks("a\n" * 50 + PLAIN + "b\n" * 50)
    for piece in range(1, 140, 13):
        assert tracebacks("a\n" * 50 + PLAIN + "b\n" * 50, piece=piece) == whole


def test_a_traceback_that_the_file_cuts_short_still_counts() -> None:
    (found,) = tracebacks("\n".join(PLAIN.splitlines()[:3]))
    assert "exc" not in found
    assert found["frame"] == "/opt/toy/train.py:40 in main"


def test_what_python_ignores_is_marked_harmless() -> None:
    (found,) = tracebacks("Exception ignored in: <function Loader.__del__>\n" + PLAIN)
    assert found["role"] == "benign"


def test_a_head_in_program_text_is_none() -> None:
    assert tracebacks('if "Traceback (most recent call last)" in text:\n    pass\n') == []


def test_an_exception_without_a_message_takes_the_next_line() -> None:
    (found,) = tracebacks(PLAIN.replace("ValueError: shard 7 is empty", "toy.errors.ChildError:\n  worker 3 failed"))
    assert (found["exc"], found["message"]) == ("toy.errors.ChildError", "worker 3 failed")


@pytest.mark.parametrize(
    ("said", "more"),
    [
        ("KeyError: 'width'", None),
        ('KeyError: "a mill\'s width"', None),
        ("KeyError: 'width' of 'mill'", "* Uploading, please wait"),  # two literals
        ("ValueError: no width", "* Uploading, please wait"),
    ],
)
def test_a_message_that_is_one_literal_is_whole(said: str, more: str | None) -> None:
    (found,) = tracebacks(PLAIN.replace("ValueError: shard 7 is empty", said) + "* Uploading, please wait\n")
    assert (found["text"], found.get("more")) == (said, more)


def test_more_than_five_hundred_tracebacks_are_counted_not_kept() -> None:
    reader = Reader((), Bounds())
    data = (PLAIN * 700).encode()
    tables = reader.feed(data, offset=0, first_line=1)
    last, flooded = reader.close()
    kept = sum((t["events"]["code"] == "traceback").sum() for t in [*tables, *last])
    assert kept == 500
    assert dict(flooded)["traceback"] == 200


FRAMES = 'Traceback (most recent call last):\n  File "/opt/toy/train.py", line 40, in main\n    loop(model)\n'


def test_after_the_frames_any_name_is_the_exception() -> None:
    for name in ("Exception", "schedule_drift", "toy.config.Stale", "zlib.error"):
        (found,) = tracebacks(f"{FRAMES}{name}: schedule and data disagree\n")
        assert (found["exc"], found["message"]) == (name, "schedule and data disagree")


def test_a_launchers_line_behind_frames_that_were_cut_is_no_exception() -> None:
    for line in ("srun: error: node07: task 1: Exited with exit code 1", "wandb: syncing", "INFO: done", "Killed"):
        (found,) = tracebacks(f"{FRAMES}{line}\n")
        assert "exc" not in found


def test_without_frames_only_names_of_exceptions_are_taken() -> None:
    (found,) = tracebacks("Traceback (most recent call last):\nloss: 2.5\n")
    assert "exc" not in found


def test_a_line_of_another_thread_between_frames_is_not_the_exception() -> None:
    (found,) = tracebacks(FRAMES + "loss: 2.5\n" + FRAMES.split("\n", 1)[1] + "ValueError: shard 7 is empty\n")
    assert (found["exc"], found["message"]) == ("ValueError", "shard 7 is empty")


def test_an_exception_that_a_wrappers_message_quotes_is_the_inner_one() -> None:
    text = FRAMES + "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nOutOfMemoryError: no room\n"
    (found,) = tracebacks(text)
    assert (found["exc"], found["root_exc"]) == ("torch._dynamo.exc.BackendCompilerFailed", "OutOfMemoryError")
    assert found["root_message"] == "no room"


def test_an_error_line_that_no_message_announces_is_none_of_it() -> None:
    (found,) = tracebacks(FRAMES + "ValueError: shard 7 is empty\nOutOfMemoryError: no room\n")
    assert "root_exc" not in found


def test_the_traceback_that_a_message_ends_with_is_its_inner_one() -> None:
    inner = PLAIN.replace("shard 7 is empty", "no such shard")
    text = FRAMES + "toy.spawn.ProcessRaised: \n\n-- Process 1 terminated with the following error:\n" + inner
    (found,) = tracebacks(text)
    assert (found["exc"], found["message"]) == ("ValueError", "no such shard")


def test_an_exception_quoted_with_its_frames_is_the_inner_one_as_deep_as_these() -> None:
    quoted = '    File "/opt/toy/loss.py", line 4, in step  *\n        return loss(x, y)\n'
    (found,) = tracebacks(FRAMES + f"ValueError: in user code:\n\n{quoted}\n    TypeError: x is no tensor\n")
    assert (found["exc"], found["message"]) == ("TypeError", "x is no tensor")
    assert found["frame"] == "/opt/toy/loss.py:4 in step"
    (deeper,) = tracebacks(FRAMES + f"ValueError: in user code:\n\n{quoted}          TypeError: x is no tensor\n")
    assert (deeper["exc"], deeper["message"]) == ("ValueError", "in user code:")


def test_a_remote_task_names_the_class_that_it_wraps() -> None:
    (found,) = tracebacks(FRAMES + "ray.exceptions.RayTaskError(ValueError): ray::worker() (pid=7)\n")
    assert found["exc"] == "ray.exceptions.RayTaskError(ValueError)"


def test_a_traceback_behind_a_bar_on_the_same_line_is_the_ranks_that_its_tag_names() -> None:
    mine = ["[rank3]: " + line for line in PLAIN.splitlines()]
    (found,) = tracebacks("\n".join([" 57%|#####     | 72/126 [00:17<00:13, loss=1.9]" + mine[0], *mine[1:]]) + "\n")
    assert (found["rank"], found["exc"], found["frames"]) == (3, "ValueError", "2")


def test_a_traceback_that_begins_inside_of_the_program_was_caught_there() -> None:
    (found,) = tracebacks(PLAIN.replace("in main", "in load_cache"))
    assert found["caught"] == "yes"


def test_a_traceback_from_an_entry_or_a_library_was_not_caught_by_the_program() -> None:
    library = PLAIN.replace("/opt/toy/train.py", "/usr/lib/python3.11/site-packages/x/run.py").replace("main", "call")
    for text in (PLAIN, PLAIN.replace("in main", "in <module>"), library):
        (found,) = tracebacks(text)
        assert "caught" not in found


LONE = "NotImplementedError: no mill turns with inputs:"


@pytest.mark.parametrize(
    ("below", "ends_with"),
    [
        ("  wind: 3\n  grain: rye\n", "wind: 3\ngrain: rye"),
        ("  wind: 3\n" * 70 + "HINT: use more wind\n", ""),
        ("  wind: 3\n" * 30 + "  " + "x" * 900 + "\n\nHINT: use more wind\n", "HINT: use more wind"),
        ("  wind: 3\nsrun: error: node7: task 0: Exited with exit code 1\n", ""),
        ('  wind: 3\n  File "/opt/mill.py", line 3, in turn\n', ""),
    ],
    ids=["two lines", "no line of it near the end", "long ones, cut in their middle", "a launcher's word", "a frame"],
)
def test_a_message_of_several_lines_that_ends_its_log_is_an_exceptions_without_frames(
    below: str, ends_with: str
) -> None:
    found = tracebacks(f"start\n{LONE}\n{below}\n")
    assert [(one["exc"], one["line"], one["alone"]) for one in found] == [("NotImplementedError", 2, "yes")] * bool(
        ends_with
    )
    assert all(str(one["more"]).endswith(ends_with) and len(str(one["more"])) < 900 for one in found)


def test_an_exception_of_a_traceback_is_told_once_however_its_message_goes_on() -> None:
    (found,) = tracebacks(f"{PLAIN.rstrip()}\n  of the third part\n")
    assert "alone" not in found


def test_a_log_that_begins_with_frames_as_deep_as_its_exception_has_one() -> None:
    (found,) = tracebacks('    File "/opt/toy/loop.py", line 12, in loop\n        turn(\n\n    ValueError: no wind\n')
    assert (found["exc"], found["message"], found["frame"]) == ("ValueError", "no wind", "/opt/toy/loop.py:12 in loop")


QUOTED = r"""Traceback (most recent call last):
  File "/opt/toy/train.py", line 40, in <module>
    for batch in loader:
  File "/opt/env/site-packages/torch/utils/data/dataloader.py", line 3, in _process_next_batch
    raise batch.exc_type(batch.exc_msg)
KeyError: 'Traceback (most recent call last):\n  File "/opt/toy/data.py", line 12, in __getitem__\n    row = self.db[key]\nKeyError: \'no grain\'\n'
"""  # noqa: E501 - repr() writes one line


def test_a_message_that_is_the_repr_of_a_traceback_is_what_was_raised_there() -> None:
    (found,) = tracebacks(QUOTED + "end\n")
    assert (found["exc"], found["message"], found["line"]) == ("KeyError", "'no grain'", 6)
    assert (found["frame"], found["statement"]) == ("/opt/toy/data.py:12 in __getitem__", "row = self.db[key]")


def test_a_quoted_head_without_a_traceback_is_a_message() -> None:
    (found,) = tracebacks(QUOTED.replace(r"\nKeyError: \'no grain\'\n", ""))
    assert str(found["message"]).startswith("'Traceback (most recent call last):")


SAID = "2031-05-06 07:08:09 | ERROR | mill:turn:7 - no shard is left for this epoch\n"


@pytest.mark.parametrize(
    ("above", "far"),
    [
        (SAID, "1"),
        ("Error: no shard is left for this epoch\n" + "step 7 loss 2.5\n" * 7, "8"),
        ("ERROR:mill:no shard is left for this epoch\nINFO done\n", "2"),
    ],
)
def test_what_the_program_logged_as_an_error_just_above_is_kept(above: str, far: str) -> None:
    (found,) = tracebacks(above + PLAIN)
    assert (found["said"], found["said_above"]) == ("no shard is left for this epoch", far)


@pytest.mark.parametrize(
    "above",
    [
        SAID + "step 7 loss 2.5\n" * 8,  # too far above
        SAID + PLAIN.replace("shard 7", "shard 6") + "trying again\n",  # of another traceback
        "ERROR: An exception has occurred in the loop\n",
        "Error executing job with overrides: ['lr=1']\n",
        "ERROR: training failed: shard 7 is empty\n",  # the exception's own words
        "ERROR: no shards\n",
        "error_rate: 0.1 of all the words\n",
    ],
)
def test_a_line_above_that_says_no_more_is_not_kept(above: str) -> None:
    assert "said" not in tracebacks(above + PLAIN)[-1]


def test_a_path_that_is_no_text_is_kept_as_far_as_it_is() -> None:
    (found,) = tracebacks(PLAIN.replace("/opt/toy", "/opt/\udcd3\udcc3"))
    assert (found["exc"], found["stack"]) == (
        "ValueError",
        '["/opt/??/loop.py:12 in loop","/opt/??/train.py:40 in main"]',
    )
