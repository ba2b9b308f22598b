"""The first advice on an exception: what its words, its class and its frames prove, and nothing beyond."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model import Confidence, Outcome, Shape
from tests.unit.truth._runs import TRACEBACK, falling, judged, said, shape

CRASH = (Outcome.FAILED, Shape.CRASH)
INSTALLED = "/opt/env/lib/python3.11/site-packages"
NONE = "AttributeError: 'NoneType' object has no attribute"
STATE = '{"global_step": 40, "log_history": [{"loss": 2.0, "step": 40}]}'


def frame(function: str, file: str = "options.py") -> list[str]:
    return [f'  File "{file}", line 4, in {function}', "    step()"]


@pytest.mark.parametrize(
    ("function", "raised", "cause"),
    [
        ("validate_config", "ValueError: no quantization of an adapter", "settings_refused"),
        ("__post_init__", "AssertionError: two plans of one name", "settings_refused"),
        ("forward", "ValueError: no quantization of an adapter", "uncaught_exception"),
        ("validate_config", "KeyError: 'width'", "uncaught_exception"),
        ("forward", "ValueError: hidden size must be divisible by the heads", "settings_refused"),
        ("forward", "ValueError: too many values to unpack (expected 2)", "uncaught_exception"),
        ("normalize_config", "TypeError: unsupported operand type(s) for //: 'NoneType' and 'int'", "settings_refused"),
        ("forward", "TypeError: unsupported operand type(s) for //: 'NoneType' and 'int'", "uncaught_exception"),
        ("fit", "lightning.fabric.MisconfigurationException: nobody logs what is watched", "settings_refused"),
    ],
)
def test_settings_that_a_check_refuses_are_told_by_its_frame_or_its_words(
    tmp_path: Path, function: str, raised: str, cause: str
) -> None:
    verdict = said(tmp_path, [*TRACEBACK, *frame(function), raised])
    assert (*shape(verdict), verdict.cause) == (*CRASH, cause)
    assert verdict.actions[0].text.startswith(("Change the setting", "Do what the message asks")) == (
        cause == "settings_refused"
    )


@pytest.mark.parametrize(
    ("file", "cause"), [("torch/optim/adamw.py", "state_mismatch"), ("model.py", "shape_mismatch")]
)
def test_sizes_that_differ_inside_an_optimizer_are_those_of_its_state(tmp_path: Path, file: str, cause: str) -> None:
    raised = "RuntimeError: The size of tensor a (64) must match the size of tensor b (16) at non-singleton dimension 0"
    verdict = said(tmp_path, [*TRACEBACK, *frame("step", f"{INSTALLED}/{file}"), raised])
    assert (*shape(verdict), verdict.cause) == (*CRASH, cause)
    assert verdict.actions[0].text.startswith("Load the weights alone") == (cause == "state_mismatch")


@pytest.mark.parametrize(
    ("file", "raised", "cause", "first"),
    [
        (
            "mill.py",
            "ValueError: not enough values to unpack (expected 3, got 0)",
            "no_samples",
            "Look at what is empty",
        ),
        ("mill.py", "ValueError: not enough values to unpack (expected 3, got 2)", "uncaught_exception", ""),
        (
            f"{INSTALLED}/trainers/migration/mill.py",
            "KeyError: 'global_step'",
            "state_mismatch",
            "Load it with the rel",
        ),
        ("mill.py", "KeyError: 'global_step'", "uncaught_exception", ""),
        ("mill.py", "KeyError: 'pytorch-lightning_version'", "state_mismatch", "Load the weights alone"),
        ("mill.py", "TypeError: __init__() got multiple values for argument 'mill'", "bad_arguments", "Hand the argum"),
        ("mill.py", "AssertionError: APEX and CUDA required for fused mills", "module_missing", "Install APEX with"),
        (f"{INSTALLED}/accelerate/commands/a.py", f"{NONE} 'lower'", "bad_config", "Write the launcher's settings"),
        (f"{INSTALLED}/accelerate/a.py", f"{NONE} 'lower'", "uncaught_exception", "Find what is None"),
    ],
)
def test_what_is_empty_or_absent_is_told(tmp_path: Path, file: str, raised: str, cause: str, first: str) -> None:
    verdict = said(tmp_path, [*TRACEBACK, *frame("call", file), raised])
    assert (*shape(verdict), verdict.cause) == (*CRASH, cause)
    assert verdict.actions[0].text.startswith(first)


@pytest.mark.parametrize(
    ("file", "second"),
    [("model.py", "Open the last frame of your own code"), (f"{INSTALLED}/windmill/a.py", "Repeat it on one process")],
)
def test_a_frame_of_ones_own_code_is_asked_for_only_where_one_is_shown(tmp_path: Path, file: str, second: str) -> None:
    verdict = said(tmp_path, [TRACEBACK[0], *frame("call", file), "KeyError: None"])
    assert verdict.actions[1].text.startswith(second)


@pytest.mark.parametrize(
    ("raised", "first"),
    [
        (
            "KeyError: 'grain'",
            "Print the keys that are there at model.py:4 in call, in `step()`: 'grain' is not among them",
        ),
        ("TypeError: 'NoneType' object is not iterable", "Find what is None at model.py:4 in call, in `step()`"),
        ("AttributeError: 'dict' object has no attribute 'sails'", "Print the type of the value at model.py:4 in call"),
        ("AttributeError: 'Mill' object has no attribute 'sails'", "Look at who defines Mill"),
        ("IndexError: list index out of range", "Print the length of what is indexed at model.py:4"),
        ("ZeroDivisionError: division by zero", "Find the count that is 0 at model.py:4"),
        (
            "UnboundLocalError: local variable 'sails' referenced before assignment",
            "Look where sails is set before mod",
        ),
        ("AssertionError", "Print what the failed check compares at model.py:4 in call, `step()`"),
        ("ValueError: shard 17 is empty", "Look up what the message speaks of at model.py:4 in call, in `step()`"),
        ("MillError: shard 17 is empty", "Look up what the message speaks of at model.py:4 in call, in `step()`"),
        ("MillError", "Open the last frame of your own code"),
    ],
)
def test_of_an_error_of_which_no_row_tells_more_its_class_and_its_statement_are_told(
    tmp_path: Path, raised: str, first: str
) -> None:
    verdict = said(tmp_path, [*TRACEBACK, *frame("call", "model.py"), raised])
    assert (*shape(verdict), verdict.cause) == (*CRASH, "uncaught_exception")
    assert verdict.actions[0].text.startswith(first)


@pytest.mark.parametrize(
    ("raised", "asked"),
    [
        (
            "ValueError: The mill is locked. Please turn `unlock=True` first. See the page.",
            "Please turn `unlock=True` first.",
        ),
        ("RuntimeError: Sails are mixed; try setting `sails=2`", "try setting `sails=2`."),
        ("ValueError: You need to call start() before turn()", "You need to call start() before turn()."),
    ],
)
def test_a_message_that_names_the_remedy_is_quoted_with_that_sentence_alone(
    tmp_path: Path, raised: str, asked: str
) -> None:
    verdict = said(tmp_path, [*TRACEBACK, *frame("call", "model.py"), raised])
    assert verdict.actions[0].text == f"Do what the message asks: {asked}"


@pytest.mark.parametrize(
    "raised", ["RuntimeError: The mill broke. Please report this to its builder", "ValueError: x y"]
)
def test_a_message_that_asks_for_a_report_names_no_remedy(tmp_path: Path, raised: str) -> None:
    verdict = said(tmp_path, [*TRACEBACK, *frame("call", "model.py"), raised])
    assert not verdict.actions[0].text.startswith("Do what the message asks")


@pytest.mark.parametrize(
    ("raised", "file", "first"),
    [
        (
            "NameError: name 'grain' is not defined",
            f"{INSTALLED}/windmill/a.py",
            "Compare the version of windmill with the one that the program asks for (pip show w",
        ),
        ("NameError: name 'grain' is not defined", "model.py", "Look where grain is set before model.py:4"),
        (
            "IndexError: list index out of range",
            f"{INSTALLED}/windmill/a.py",
            "Print the length of what is indexed at windmill/a.py:4",
        ),
        ("IndexError: list index out of range", "model.py", "Print the length of what is indexed at model.py:4"),
        ("AssertionError", f"{INSTALLED}/windmill/a.py", "Read the check that failed at windmill/a.py:4"),
        ("AssertionError: the mill turns", f"{INSTALLED}/windmill/a.py", "Print what the failed check compares"),
        ("AssertionError", "model.py", "Print what the failed check compares at model.py:4"),
    ],
)
def test_an_error_of_a_packages_own_code_asks_for_its_version_unless_the_data_do_it_too(
    tmp_path: Path, raised: str, file: str, first: str
) -> None:
    verdict = said(tmp_path, [*TRACEBACK, *frame("turn", "model.py"), *frame("call", file), raised])
    assert verdict.actions[0].text.startswith(first)


@pytest.mark.parametrize(
    ("raised", "first"),
    [
        ("AttributeError: module 'numpy' has no attribute 'float'", "Install numpy below 1.24, or use the plain type"),
        ("AttributeError: module 'numpy' has no attribute 'windmill'", "Compare the version of numpy with"),
        ("ModuleNotFoundError: No module named 'cv2'", "Install cv2 (pip install opencv-python-headless)"),
        ("ModuleNotFoundError: No module named 'tidewheel'", "Install the module that is missing, tidewheel, in"),
        ("ModuleNotFoundError: No module named 'utils.grain'", "Start it from the folder that holds utils.grain"),
    ],
)
def test_of_a_name_that_is_missing_the_version_or_the_package_that_has_it_is_told(
    tmp_path: Path, raised: str, first: str
) -> None:
    verdict = said(tmp_path, [*TRACEBACK, *frame("call", "model.py"), raised])
    assert verdict.actions[0].text.startswith(first)


def test_the_frame_that_looks_an_attribute_up_is_passed_over_for_the_one_that_asked(tmp_path: Path) -> None:
    asks = [*TRACEBACK, *frame("turn", "model.py"), *frame("__getattr__", f"{INSTALLED}/torch/nn/modules/module.py")]
    text = said(tmp_path, [*asks, "AttributeError: 'Mill' object has no attribute 'module'"]).actions[0].text
    assert text.startswith("Ask Mill for the attribute itself, without .module: the code")


@pytest.mark.parametrize(
    ("statement", "answer", "first"),
    [
        ("assert os.path.exists(path)", (Shape.CRASH, "uncaught_exception"), "Check the path that is looked for at mo"),
        ("assert torch.isfinite(loss)", (Shape.NAN, "unknown"), "Run again with a tenth of the learning"),
        (
            "assert torch.cuda.is_available()",
            (Shape.CRASH, "no_gpu_visible"),
            "Compare the GPUs that the process may see",
        ),
        ("assert exists", (Shape.CRASH, "uncaught_exception"), "Print what the failed check compares at model.py"),
    ],
)
def test_what_a_check_without_words_asked_for_is_told_by_its_statement(
    tmp_path: Path, statement: str, answer: tuple[Shape, str], first: str
) -> None:
    verdict = said(tmp_path, [*TRACEBACK, '  File "model.py", line 4, in call', f"    {statement}", "AssertionError"])
    assert (verdict.shape, verdict.cause) == answer
    assert verdict.actions[0].text.startswith(first)


def test_a_call_that_a_layer_hands_on_is_told_where_the_program_makes_it(tmp_path: Path) -> None:
    call = frame("_call_impl", f"{INSTALLED}/torch/nn/modules/module.py")
    raised = "TypeError: forward() takes 2 positional arguments but 6 were given"
    text = said(tmp_path, [*TRACEBACK, *frame("turn", "model.py"), *call, raised]).actions[0].text
    assert text.startswith("Compare the call at model.py:4 in turn with how forward is defined")


def test_a_statement_that_only_raises_is_not_quoted(tmp_path: Path) -> None:
    raising = ['  File "model.py", line 4, in call', "    raise ValueError(f'shard {n} is empty')"]
    text = said(tmp_path, [*TRACEBACK, *raising, "ValueError: shard 17 is empty"]).actions[0].text
    assert text.startswith("Look up what the message speaks of at model.py:4 in call: ")


def test_a_line_without_a_traceback_is_advised_on_and_stays_as_weak_as_it_was(tmp_path: Path) -> None:
    verdict = said(tmp_path, ["step 1 loss 2.0", "KeyError: 'grain'"])
    assert (*shape(verdict), verdict.cause) == (*CRASH, "uncaught_exception")
    assert verdict.actions[0].text.startswith("Print the keys that are there: 'grain' is not among them")
    assert verdict.confidence is not Confidence.HIGH


def test_a_class_that_says_little_leaves_the_word_to_the_line_below_it(tmp_path: Path) -> None:
    lines = [*TRACEBACK, *frame("call", "model.py"), "RuntimeError: the batch failed", "CUDA error: out of memory"]
    assert said(tmp_path, lines).cause == "gpu_out_of_memory"


@pytest.mark.parametrize(("name", "cause"), [("ReplayTrainer", "versions_apart"), ("TideModel", "uncaught_exception")])
def test_a_name_that_a_trainer_or_tokenizer_lacks_asks_for_the_versions(tmp_path: Path, name: str, cause: str) -> None:
    assert said(tmp_path, [*TRACEBACK, f"AttributeError: '{name}' object has no attribute 'llm'"]).cause == cause


def test_a_process_of_a_pool_that_vanished_asks_for_fewer_of_them(tmp_path: Path) -> None:
    raised = (
        "joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process was unexpectedly terminated."
    )
    verdict = said(tmp_path, [*TRACEBACK, raised])
    assert (*shape(verdict), verdict.cause) == (*CRASH, "pool_worker_died")
    assert verdict.actions[0].text.startswith("Run with fewer processes")


@pytest.mark.parametrize(
    ("place", "cause"),
    [
        ("ScatterGather.cu:188: block: [6,0,0], thread: [4,0,0] Assertion `indexValue >= 0`", "label_out_of_range"),
        ("Loss.cu:94: operator(): block: [3,0,0], thread: [5,0,0] Assertion `weight > zero`", "device_assert"),
        ("Loss.cu:94: Assertion of a weight", ""),
    ],
)
def test_an_assertion_of_a_kernel_is_a_failure_by_itself(tmp_path: Path, place: str, cause: str) -> None:
    assert (
        said(tmp_path, ["  0%|          | 0/202 [00:00<?, ?it/s]", f"/b/aten/{place} failed."]).cause or ""
    ) == cause


def test_an_error_of_the_settings_whose_words_stand_below_its_class_is_one(tmp_path: Path) -> None:
    lines = ("omegaconf.errors.InterpolationKeyError:", "Interpolation key 'run_name' not found", "    full_key: dir")
    assert said(tmp_path, lines).cause == "bad_arguments"


BEGINS_INSIDE = (
    '  File "/opt/run/train.py", line 9, in main',
    "    trainer.evaluate()",
    f'  File "{INSTALLED}/windmill/loop.py", line 40, in evaluation_loop',
    "    kept = join(kept, logits)",
)


@pytest.mark.parametrize(
    ("raised", "what", "first"),
    [
        ("AssertionError", Shape.CRASH, "Read the check that failed at windmill/loop.py:40"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 4.76 GiB", Shape.OOM, "Wrap the evaluation"),
    ],
)
def test_a_log_that_begins_inside_of_a_traceback_is_read_from_there(
    tmp_path: Path, raised: str, what: Shape, first: str
) -> None:
    report = judged(tmp_path, {"train.log": [*BEGINS_INSIDE, raised, "launcher: a worker ended", "bye"]})
    assert shape(report.verdict) == (Outcome.FAILED, what)
    assert report.verdict.actions[0].text.startswith(first)
    assert [e.locator.line for e in report.findings[report.verdict.lead or 0].evidence] == [5, 1]
    assert report.verdict.headline.count("launcher") == 0


def test_frames_at_the_begin_of_a_log_that_no_exception_ends_are_no_error(tmp_path: Path) -> None:
    assert said(tmp_path, [*BEGINS_INSIDE, "step 1 loss 2.5"]).outcome is Outcome.CANNOT_SAY


@pytest.mark.parametrize(
    ("function", "raised", "cause"),
    [
        ("__getitem__", "AttributeError: 'NoneType' object has no attribute 'shape'", "data_unreadable"),
        ("forward", "AttributeError: 'NoneType' object has no attribute 'shape'", "uncaught_exception"),
        ("call", "IndexError: Invalid key: 7 is out of bounds for size 0", "no_samples"),
        ("call", "IndexError: Invalid key: 7 is out of bounds for size 5", "uncaught_exception"),
        ("call", "windmill.NotFoundError: There were no checkpoints found in out/run3.", "no_checkpoint_found"),
        ("call", "ValueError: 495 tokens of labels: their length exceeds the maximum of 448", "sample_too_long"),
        ("call", "AttributeError: /opt/windmill/libmill_cpu.so: undefined symbol: turn_fp16", "binary_mismatch"),
        ("call", "NameError: name 'bnb' is not defined", "module_missing"),
        ("call", "NameError: name 'batch' is not defined", "uncaught_exception"),
        ("call", "AttributeError: 'Linear4bit' object has no attribute 'compute_dtype'", "versions_apart"),
        ("call", "soundfile.LibsndfileError: Error opening 'data/a.wav': System error.", "file_missing"),
        ("call", "ValueError: Label values must be <= vocab_size: 29", "label_out_of_range"),
        ("call", "RuntimeError: turn() expected at most 8 argument(s) but received 9 argument(s).", "versions_apart"),
        ("call", "RuntimeError: Deadline exceeded: Failed to connect to remote server", "rendezvous_failed"),
    ],
)  # fmt: skip
def test_words_that_name_what_was_missing_are_the_cause(tmp_path: Path, function: str, raised: str, cause: str) -> None:
    assert said(tmp_path, [*TRACEBACK, *frame(function, "run.py"), raised]).cause == cause


@pytest.mark.parametrize(
    ("file", "first"), [("popen_spawn_posix", "Start the ranks"), ("save", "Define it at the top")]
)
def test_what_cannot_be_pickled_at_a_spawn_asks_for_another_launcher(tmp_path: Path, file: str, first: str) -> None:
    lines = [*TRACEBACK, *frame("dump", f"/opt/{file}.py"), "TypeError: cannot pickle 'weakref' object"]
    assert said(tmp_path, lines).actions[0].text.startswith(first)


def test_a_native_warning_of_an_illegal_access_is_one(tmp_path: Path) -> None:
    line = "Warning: CUDA warning: an illegal memory access was encountered (function destroyEvent)"
    assert said(tmp_path, [line]).cause == "illegal_memory_access"


BAR = "{label}   {done}%|          | {done}/100 [00:0{s}<?, ?it/s{after}]"


@pytest.mark.parametrize("label", ["", "Epoch 1:", "Epoch 1/3:"])
@pytest.mark.parametrize("after", ["", ", loss=2.10", ", v_num=3"])
@pytest.mark.parametrize("done", [0, 7])
def test_a_bar_that_is_drawn_again_where_it_stood_clears_no_error(
    tmp_path: Path, label: str, after: str, done: int
) -> None:
    raised = [*TRACEBACK, "KeyError: 'width'"]
    bars = [BAR.format(label=label, done=done, s=s, after=after) for s in (1, 4)]
    verdict = said(tmp_path, [bars[0], *raised, bars[1]])
    assert (*shape(verdict), verdict.headline[:29]) == (*CRASH, "The run raised KeyError: 'wid")


def test_steps_that_go_on_behind_an_error_do_clear_it(tmp_path: Path) -> None:
    bars = [BAR.format(label="", done=done, s=3, after=", loss=2.10") for done in range(7, 15)]
    verdict = said(tmp_path, [bars[0], *TRACEBACK, "KeyError: 'width'", *bars[1:]])
    assert verdict.outcome is not Outcome.FAILED


def test_a_spread_that_is_no_number_is_a_nan_of_the_weights(tmp_path: Path) -> None:
    verdict = said(tmp_path, [*TRACEBACK, "RuntimeError: normal expects all elements of std >= 0.0"])
    assert (*shape(verdict), verdict.cause) == (Outcome.FAILED, Shape.NAN, "spread_invalid")
    assert "bound the parameter of the deviation" in verdict.actions[0].text


@pytest.mark.parametrize(("who", "is_read"), [("(pid=22950) ", True), ("(plan=22950) ", False)])
def test_a_process_of_ray_without_a_name_begins_a_line(tmp_path: Path, who: str, is_read: bool) -> None:
    verdict = said(tmp_path, [f"{who}ValueError: NaN loss"])
    assert (shape(verdict) == (Outcome.FAILED, Shape.NAN)) is is_read


@pytest.mark.parametrize(
    ("saved", "first"),
    [
        ({}, "Download that file again"),
        ({"checkpoint-40/trainer_state.json": STATE}, "Load the checkpoint before the damaged one"),
    ],
)
def test_a_damaged_file_of_a_run_that_saved_nothing_is_downloaded_again(
    tmp_path: Path, saved: dict[str, str], first: str
) -> None:
    raised = "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge"
    lines = [*TRACEBACK, *frame("load", f"{INSTALLED}/transformers/models.py"), raised]
    verdict = judged(tmp_path, {"train.log": lines, **saved}).verdict
    assert (*shape(verdict), verdict.cause) == (*CRASH, "checkpoint_damaged")
    assert verdict.actions[0].text.startswith(first)


def test_a_name_in_the_message_goes_before_the_package_of_the_frame(tmp_path: Path) -> None:
    raised = "ModuleNotFoundError: No module named 'windmill.sails'"
    verdict = said(tmp_path, [*TRACEBACK, *frame("turn", f"{INSTALLED}/granary/store.py"), raised])
    assert verdict.cause == "versions_apart"
    assert verdict.actions[0].text.startswith("Install the version of windmill that has sails")


@pytest.mark.parametrize(
    ("raised", "cause"),
    [
        ("Exception: host=mill2 was not reachable via ssh", "launcher_mismatch"),
        ("Exceptions: host=mill2 was not reachable via ssh", ""),
        ("ImportError: libGL.so.1: cannot open shared object file: No such file or directory", "binary_mismatch"),
        ("google.protobuf.message.DecodeError: Error parsing message", "versions_apart"),
        ("huggingface_hub.errors.HFValidationError: Repo id must be in the form 'a/b'", "model_not_available"),
        ("huggingface_hub.errors.HfHubHTTPError: 503 Server Error", "web_request_failed"),
        ("RuntimeError: Timed out initializing process group in store based barrier on rank: 0", "init_hang"),
        ("RuntimeError: gloo barrier timed out after 300 s", "collective_timeout"),
    ],
)
def test_a_line_at_the_end_of_its_log_is_told_apart_from_its_neighbours(
    tmp_path: Path, raised: str, cause: str
) -> None:
    assert said(tmp_path, ["the run begins", raised]).cause == cause


@pytest.mark.parametrize(
    ("raised", "first"),
    [
        ("RuntimeError: cuda runtime error (2) : out of memory at /mill/THCStorage.cu:58", "Wrap the evaluation in"),
        ("RuntimeError: CUDA error: out of memory", "Wrap the evaluation in"),
    ],
)
def test_memory_that_runs_out_in_an_evaluation_is_saved_there_first(tmp_path: Path, raised: str, first: str) -> None:
    verdict = said(tmp_path, [*TRACEBACK, *frame("evaluate"), raised])
    assert (*shape(verdict), verdict.actions[0].text[: len(first)]) == (Outcome.FAILED, Shape.OOM, first)


def test_a_rank_that_complains_of_a_peer_is_not_the_one_to_look_at(tmp_path: Path) -> None:
    raised = "[rank1]: RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d "
    verdict = said(tmp_path, [raised + "key-value store by key '0', but store->get('0') got error: Broken pipe"])
    assert not any("rank 1" in action.text for action in verdict.actions)


@pytest.mark.parametrize(
    ("callers", "asked"),
    [
        (frame("fetch", f"{INSTALLED}/torch/utils/data/_utils/fetch.py"), "it was reading its data. Take that sample"),
        (frame("evaluate", "turn.py"), "it was evaluating. Look at what differs there"),
        (frame("grind", "turn.py"), "the settings, the data or the model hand over"),
    ],
)
def test_of_an_exception_that_nobody_described_the_part_of_the_program_is_told(
    tmp_path: Path, callers: list[str], asked: str
) -> None:
    lines = [TRACEBACK[0], *callers, *frame("turn"), "ValueError: shard 17 is empty"]
    assert asked in said(tmp_path, lines).actions[0].text


def test_of_a_traceback_without_its_last_line_the_place_is_told(tmp_path: Path) -> None:
    lines = [TRACEBACK[0], *frame("save_checkpoint", "keep.py"), "lost sys.stderr"]
    first = said(tmp_path, lines).actions[0].text
    assert first.startswith("Its last line is lost")
    assert "at keep.py:4 in save_checkpoint, in `step()`; it was saving" in first


@pytest.mark.parametrize(
    ("function", "file", "first"),
    [
        ("_recv", "/usr/lib/python3.11/multiprocessing/connection.py", "If it was ended because nothing moved"),
        ("grind", "mill.py", "Resume if it was not meant"),
    ],
)
def test_an_interrupt_of_a_wait_may_be_that_of_a_run_that_stood_still(
    tmp_path: Path, function: str, file: str, first: str
) -> None:
    lines = [TRACEBACK[0], *frame("turn", "mill.py"), *frame(function, file), "KeyboardInterrupt"]
    verdict = said(tmp_path, lines)
    assert verdict.cause == "interrupted_by_user"
    assert verdict.actions[0].text.startswith(first)


@pytest.mark.parametrize(
    ("line", "first"),
    [
        (
            "pyarrow.lib.ArrowInvalid: Column 3 named grain expected length 10 but got length 7",
            "Let the function of map()",
        ),
        ("pyarrow.lib.ArrowInvalid: JSON parse error: Missing a quotation mark in row 3", "Open the file"),
    ],
)
def test_an_exceptions_line_that_a_row_for_lines_takes_is_advised_on_by_its_own_row(
    tmp_path: Path, line: str, first: str
) -> None:
    verdict = said(tmp_path, ["step 3 loss 2.5", line])
    assert (verdict.cause, verdict.actions[0].text[: len(first)]) == ("data_unreadable", first)


@pytest.mark.parametrize(
    ("calls", "first"),
    [
        (
            [f'  File "{INSTALLED}/windmill/a.py", line 9 in turn', '  File "/opt/run/mill.py", line 3 in grind'],
            "Look at windmill/a.py:9 in turn, reached from /opt/run/mill.py:3 in grind: native code died below it",
        ),
        (["  <no Python frame>"], "Run again with PYTHONFAULTHANDLER=1"),
    ],
)
def test_the_call_in_which_native_code_died_is_told_where_its_stack_is_there(
    tmp_path: Path, calls: list[str], first: str
) -> None:
    others = ["Thread 0x01 (most recent call first):", '  File "/opt/run/idle.py", line 1 in wait', ""]
    dump = ["Fatal Python error: Segmentation fault", "", *others, "Current thread 0x02 (most recent call first):"]
    verdict = said(tmp_path, [*dump, *calls])
    assert (verdict.cause, verdict.actions[0].text[: len(first)]) == ("silent_death_segv", first)


def test_the_call_in_which_native_code_died_is_that_of_the_rank_that_the_launcher_names(tmp_path: Path) -> None:
    launcher = "torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -11) local_rank: 2 (pid: 71)"
    files = {"torchrun.log": [launcher]}
    for rank, kind, call in ((1, "Aborted", "/opt/run/idle.py"), (2, "Segmentation fault", "/opt/run/mill.py")):
        dump = [f"Fatal Python error: {kind}", "", "Current thread 0x02 (most recent call first):"]
        files[f"rank{rank}.err"] = [*dump, f'  File "{call}", line 3 in grind']
    verdict = judged(tmp_path, files).verdict
    assert verdict.culprits == (2,)
    assert verdict.actions[0].text.startswith("Look at /opt/run/mill.py:3 in grind")


@pytest.mark.parametrize(("loss", "first"), [("10001", "Find out why the loss was 10001"), ("10000", "Lower the")])
def test_a_vast_first_loss_is_asked_for_before_the_learning_rate(tmp_path: Path, loss: str, first: str) -> None:
    lines = [f"step 1 | loss: {loss} | lr: 0.01", *(f"step {at} | loss: nan | lr: 0.01" for at in range(2, 9))]
    verdict = said(tmp_path, lines)
    assert verdict.cause == "from_start"
    assert verdict.actions[0].text.startswith(first)


MISSED = "heartbeat timeout. This indicates that the remote task has failed, got preempted, or crashed unexpectedly."
AGENT = "2031-11-15 16:03:15.140058: {of} external/xla/xla/pjrt/distributed/client.h:75] {words}"


@pytest.mark.parametrize(
    ("before", "words", "cause"),
    [
        (MISSED, "Terminating process because the coordinator detected missing heartbeats.", "peer_gone"),
        (MISSED, "The process group is not what it was.", "peer_gone"),
        ("connected", "The process group is not what it was.", "native_check"),
    ],
)
def test_a_process_that_ends_because_a_peer_is_silent_is_no_fault_of_its_library(
    tmp_path: Path, before: str, words: str, cause: str
) -> None:
    lines = [
        AGENT.format(of="E" if before == MISSED else "I", words=f"/job:jax_worker/replica:0/task:37 {before}"),
        AGENT.format(of="F", words=words),
    ]
    verdict = said(tmp_path, lines)
    assert verdict.cause == cause
    assert (verdict.onset.rank == 37) is (cause == "peer_gone")


@pytest.mark.parametrize(("last", "waits"), [("", True), ("[LightGBM] [Info] Connected to rank 5", False)])
def test_a_peer_that_does_not_answer_at_the_end_of_a_log_is_waited_for(
    tmp_path: Path, last: str, *, waits: bool
) -> None:
    tries = [f"[LightGBM] [Warning] Connecting to rank 5 failed, waiting for {ms} milliseconds" for ms in (200, 260)]
    verdict = said(tmp_path, [*tries, *filter(None, [last]), *(falling(1, 30, "[{at}] l2: {loss}") if last else ())])
    assert (verdict.cause == "rendezvous_failed") is waits


@pytest.mark.parametrize(
    ("below", "cause"), [("perform_actual_validation", "pool_worker_died"), ("results_loop", "loader_worker_died")]
)
def test_a_lost_process_that_writes_predictions_is_no_data_loader(tmp_path: Path, below: str, cause: str) -> None:
    lost = "RuntimeError: Some background workers are no longer alive"
    verdict = said(tmp_path, [*falling(1, 20), *TRACEBACK, *frame(below), lost])
    assert verdict.cause == cause
    assert ("num_workers=0" in "".join(action.text for action in verdict.actions)) is (cause == "loader_worker_died")


@pytest.mark.parametrize(
    ("runs", "asked"), [("_bootstrap", "in the process that started this one"), ("main", "a column")]
)
def test_a_key_that_a_started_process_lacks_is_looked_for_in_the_one_that_started_it(
    tmp_path: Path, runs: str, asked: str
) -> None:
    place = "/usr/lib/python3.11/multiprocessing/process.py" if runs == "_bootstrap" else "run.py"
    verdict = said(tmp_path, [TRACEBACK[0], *frame(runs, place), *frame("turn", "mill.py"), "KeyError: 'grain'"])
    assert asked in verdict.actions[0].text


def test_what_a_library_refuses_names_the_call_of_the_program(tmp_path: Path) -> None:
    words = "RuntimeError: stft requires the return_complex parameter be given"
    inner = frame("stft", f"{INSTALLED}/torch/functional.py")
    assert (
        "called at mel.py:4 in spectrogram"
        in said(tmp_path, [TRACEBACK[0], *frame("spectrogram", "mel.py"), *inner, words]).actions[0].text
    )


CHILD = "/usr/lib/python3.11/multiprocessing"


@pytest.mark.parametrize(
    ("place", "function", "raised", "advice"),
    [
        (
            f"{CHILD}/connection.py",
            "_recv",
            "ConnectionResetError: [Errno 104] Connection reset by peer",
            "Look for the ch",
        ),
        ("client.py", "_recv", "ConnectionResetError: [Errno 104] Connection reset by peer", "Start it again"),
        (
            f"{CHILD}/spawn.py",
            "_main",
            "EOFError: Ran out of input",
            "Look above for the error of the process that star",
        ),
        ("weights.py", "_main", "EOFError: Ran out of input", "Download that file again"),
        ("client.py", "_recv", "TimeoutError: [Errno 110] Connection timed out", "Start it again"),
        ("save.py", "save", "OSError: [Errno 22] Invalid argument", "Look at the path and the size"),
        ("save.py", "save", "ValueError: Invalid argument: mill", "Compare the name in the message"),
        (
            "load.py",
            "load",
            "RuntimeError: unexpected EOF, expected 1234 more bytes. The file",
            "Download that file again",
        ),
        ("run.py", "step", "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", "Look whether the device is full"),
        ("run.py", "step", "InternalError: Could not create cudnn handle", "Leave the device room for cuDNN"),
        ("run.py", "step", "ValueError: setting an array element with a sequence.", "Print the lengths"),
        (
            "run.py",
            "step",
            "RuntimeError: Trying to create tensor with negative dimension -4",
            "Find what came out empty",
        ),
        ("tar.py", "read", "tarfile.ReadError: ('unexpected end of data @ <Pipe ((')", "Fetch that shard by hand"),
        ("tar.py", "read", "OSError: [Errno 5] Input/output error", "Check the storage of that host"),
        ("run.py", "step", "errors_impl.CancelledError: RecvAsync is cancelled.", "Look for the error before"),
    ],
)
def test_words_with_several_causes_are_told_apart_by_frame_or_kind(
    tmp_path: Path, place: str, function: str, raised: str, advice: str
) -> None:
    verdict = said(tmp_path, [*falling(1, 20), TRACEBACK[0], *frame(function, place), raised])
    assert verdict.actions[0].text.startswith(advice)


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("Non-OK-status: GpuLaunchKernel(Fill<D>, n) status: Internal: out of memory", "Read with how many MB TensorF"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "Halve the micro-batch"),
    ],
)
def test_a_kernel_of_tensorflow_that_found_no_memory_is_asked_how_much_it_was_given(
    tmp_path: Path, words: str, first: str
) -> None:
    assert said(tmp_path, [*falling(1, 9), words]).actions[0].text.startswith(first)
