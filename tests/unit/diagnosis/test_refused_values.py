"""What is said of exceptions whose statement tells whether a value, a name or a library is at fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics import triage

LIB = "/opt/env/lib/python3.10/site-packages/"
DEEP = "/home/user/projects/of/the/last/year/mill/recipes/"


def first_fix(tmp_path: Path, raised: str, *frames: tuple[str, str]) -> tuple[str | None, str]:
    """Give cause and first advice of a run that ended with a traceback of these files and statements."""
    lines = [f"step {i} | loss {3 - 0.01 * i:.3f}" for i in range(1, 6)]
    lines.append("Traceback (most recent call last):")
    for file, statement in (("train.py", "main()"), *frames):
        lines += [f'  File "{file}", line 7, in turn', f"    {statement}"]
    (tmp_path / "train.log").write_text("\n".join([*lines, raised]) + "\n")
    verdict = triage(tmp_path, figures=False).verdict
    return verdict.cause, verdict.actions[0].text


@pytest.mark.parametrize("file", [f"{LIB}mill/sets.py", f"{DEEP}data/sets.py"])
def test_a_key_that_is_looked_up_by_a_value_is_one_of_the_data(tmp_path: Path, file: str) -> None:
    _, text = first_fix(tmp_path, "KeyError: 'rye'", (file, "row = self.number_of[sample.label]"))
    assert text.startswith("'rye' is a value that is looked up at ")
    assert "`row = self.number_of[sample.label]`" in text


def test_a_key_that_the_code_names_is_none_of_the_data(tmp_path: Path) -> None:
    _, text = first_fix(tmp_path, "KeyError: 'rye'", (f"{DEEP}sets.py", "row = self.settings['rye']"))
    assert text.startswith("Print the keys that are there at recipes/sets.py:7 in turn")


def test_a_table_of_names_of_the_library_may_be_older_than_the_name(tmp_path: Path) -> None:
    _, text = first_fix(tmp_path, "KeyError: 'rye'", (f"{LIB}mill/auto.py", "kind = GRAIN_MAPPING[kind_of_model]"))
    assert text.startswith("Look for 'rye' in what is handed to mill/auto.py:7 in turn, in `kind = GRAIN_MAPPING[")
    assert "installed version does not know" in text


@pytest.mark.parametrize(("raised", "cause"), [("AssertionError", "uncaught_exception"),
                                               ("AssertionError: mill", "versions_apart")])  # fmt: skip
def test_what_is_printed_below_a_bare_exception_is_none_of_its_words(tmp_path: Path, raised: str, cause: str) -> None:
    assert first_fix(tmp_path, raised + "\n ! turn was removed in 2.0")[0] == cause


def test_what_a_library_refuses_by_a_check_is_not_its_version(tmp_path: Path) -> None:
    raised = "AttributeError: No such attribute: grains"
    _, text = first_fix(tmp_path, raised, (f"{LIB}mill/cut.py", 'raise AttributeError(f"No such attribute: {name}")'))
    assert text.startswith("Look at what is handed over: mill/cut.py:7 in turn checks it")


@pytest.mark.parametrize(
    ("raised", "statement"),
    [
        ("AttributeError: No such attribute: grains", "return self.fields[name]"),
        ("TypeError: turn() got an unexpected keyword argument 'rye'", "raise TypeError(words)"),
    ],
)
def test_what_a_library_does_not_know_of_itself_may_be_its_version(tmp_path: Path, raised: str, statement: str) -> None:
    _, text = first_fix(tmp_path, raised, (f"{LIB}mill/cut.py", statement))
    assert "ersion" in text
    assert not text.startswith("Look at what is handed over")


@pytest.mark.parametrize(
    ("raised", "cause"),
    [
        (
            "NotImplementedError: Could not run 'aten::index_select' with arguments from the 'SparseCsrCPU' backend.",
            "layout_unsupported",
        ),
        (
            "NotImplementedError: Could not run 'aten::index_select' with arguments from the 'CUDA' backend.",
            "operator_unavailable",
        ),
        ("AttributeError: 'NoneType' object has no attribute 'unscale_'", "precision_without_device"),
        ("AttributeError: 'NoneType' object has no attribute 'scales'", "uncaught_exception"),
        (
            "RuntimeError: Cannot load the checkpoint: it is using version 1, while the current version is 12",
            "state_mismatch",
        ),
        ("RuntimeError: Cannot load the mill: it is using grain 1, while the current one is 12", "uncaught_exception"),
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
            "cublas_not_started",
        ),
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            "gpu_out_of_memory",
        ),
    ],
)
def test_one_word_apart_is_another_cause(tmp_path: Path, raised: str, cause: str) -> None:
    assert first_fix(tmp_path, raised)[0] == cause


def test_a_number_that_is_no_key_is_a_label(tmp_path: Path) -> None:
    _, text = first_fix(tmp_path, "KeyError: 7", (f"{DEEP}sets.py", "row = self.number_of[label]"))
    assert text.startswith("Print the keys that are there")


def test_the_file_that_defines_an_operation_of_tensorflow_is_told(tmp_path: Path) -> None:
    raised = "tensorflow.python.framework.errors_impl.InvalidArgumentError: a list with shape [3,8] from one of [3,5]"
    node = "\n\t [[node map/Unstack (defined at layers.py:48) ]] [Op:__inference_test_function_51]"
    _, text = first_fix(tmp_path, raised + node, (f"{LIB}tensorflow/python/eager/execute.py", "inputs, attrs)"))
    assert text.startswith("Look at the operation that the message names, which layers.py:48 defines")


@pytest.mark.parametrize(
    ("raised", "file", "cause", "first"),
    [
        ("ValueError: Unexpected keyword arguments: `rye`", f"{LIB}mill/metric.py", "versions_apart", "Take rye out"),
        ("ValueError: Unexpected keyword arguments: `rye`", "metric.py", "uncaught_exception", ""),
        (
            "OSError: Unable to create file (unable to open file: errno = 17, error message = 'File exists')",
            "h5py/h5f.pyx",
            "uncaught_exception",
            "Open the file for reading",
        ),
        (
            "Boost.Python.ArgumentError: Python argument types in\n    mill.turn(NoneType)\ndid not match",
            "chem.py",
            "uncaught_exception",
            "Look at what is handed to mill.turn",
        ),
        ("Exception: Token `rye` out of vocabulary at line 7 column 1", "tune.py", "data_unreadable", "Put rye back"),
    ],
)
def test_words_of_a_library_say_which_side_to_look_at(
    tmp_path: Path, raised: str, file: str, cause: str, first: str
) -> None:
    told, text = first_fix(tmp_path, raised, (file, "turn(grain)"))
    assert (told, text[: len(first)]) == (cause, first)
    assert "pip show Boost" not in text


@pytest.mark.parametrize(
    ("status", "cause"), [("UNAVAILABLE", "connection_lost"), ("RESOURCE_EXHAUSTED", "uncaught_exception")]
)
def test_a_call_that_the_other_end_broke_off_is_asked_of_that_end(tmp_path: Path, status: str, cause: str) -> None:
    raised = f"grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC:\n\tstatus = StatusCode.{status}"
    told, text = first_fix(tmp_path, raised, (f"{LIB}grpc/_channel.py", "raise self"))
    assert told == cause
    assert text.startswith("Read the log of the server") == (cause == "connection_lost")


@pytest.mark.parametrize(("end", "shape"), [("aborting training", "nan"), ("the batch is skipped", None)])
def test_a_program_that_says_that_it_ended_for_a_nan_is_believed(tmp_path: Path, end: str, shape: str | None) -> None:
    lines = [f"episode {i} | reward {i / 10:.1f}" for i in range(1, 9)]
    said = json.dumps({"event": "error", "message": f"NaN detected in loss function, {end}."})
    (tmp_path / "out.log").write_text("\n".join([*lines, said]) + "\n")
    verdict = triage(tmp_path, figures=False).verdict
    assert (verdict.shape.value if verdict.shape is not None else None) == shape


@pytest.mark.parametrize(
    ("raised", "statement", "cause", "first"),
    [
        ("KeyError: '7'", "row = self.images[number]", "uncaught_exception", "Compare the type of 7"),
        ("KeyError: '7'", "row = self.images['7']", "uncaught_exception", "Print the keys"),
        ("AssertionError", "assert boxes.shape[0] != 0", "uncaught_exception", "Find out why nothing is there"),
        ("AssertionError", "assert len(self.files) > 0", "uncaught_exception", "Find out why nothing is there"),
        ("AssertionError", "assert boxes.shape[0] == rows", "uncaught_exception", "Print what the failed check"),
        ("ValueError: Observation spaces do not match: Box(3) != Box(4)", "raise ValueError(words)",
         "uncaught_exception", "Give the agent the environment"),
    ],
)  # fmt: skip
def test_a_statement_says_what_is_empty_or_of_another_kind(
    tmp_path: Path, raised: str, statement: str, cause: str, first: str
) -> None:
    told, text = first_fix(tmp_path, raised, ("sets.py", statement))
    assert (told, text[: len(first)]) == (cause, first)


@pytest.mark.parametrize("frames", [("train.py", f"{LIB}mill/demo.py"), (f"{LIB}mill/demo.py",), ()])
def test_who_has_a_traceback_is_not_sent_to_look_for_one(tmp_path: Path, frames: tuple[str, ...]) -> None:
    lines = ["Traceback (most recent call last):"] if frames else []
    for file in frames:
        lines += [f'  File "{file}", line 7, in turn', "    raise RuntimeError(words)"]
    (tmp_path / "train.log").write_text("\n".join([*lines, "RuntimeError: the two grains differ"]) + "\n")
    texts = [action.text for action in triage(tmp_path, figures=False).verdict.actions]
    assert any(text.startswith("Read the traceback above") for text in texts) == (not frames)
    assert any(text.startswith("Open the last frame") for text in texts) == ("train.py" in frames)
