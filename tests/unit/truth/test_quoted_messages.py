"""Exceptions whose message says below what is wrong: Keras and TensorFlow show the frames of a node before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model import Outcome, Shape
from tests.unit.truth._runs import TRACEBACK, said, shape

CRASH = (Outcome.FAILED, Shape.CRASH)
NODE = ['    File "/opt/windmill/blade.py", line 4, in turn', "      return mill(x)"]
LABEL = "Received a label value of 7 which is outside the valid range of [0, 7).  Label values: 7 1"
STATUS = "tensorflow.python.framework.errors_impl.InvalidArgumentError"


@pytest.mark.parametrize("frames", [0, 50])
@pytest.mark.parametrize("head", [TRACEBACK, []])
def test_what_a_message_announces_is_looked_for_below_the_frames_of_its_node(
    tmp_path: Path, head: list[str], frames: int
) -> None:
    raised = f"{STATUS}: Graph execution error:"
    verdict = said(tmp_path, [*head, raised, "", "Detected at node loss defined at:", *NODE * frames, LABEL])
    assert (*shape(verdict), verdict.cause) == (*CRASH, "label_out_of_range")


@pytest.mark.parametrize(("frames", "cause"), [(58, "label_out_of_range"), (60, "uncaught_exception")])
def test_what_a_message_announces_stands_in_its_next_120_lines(tmp_path: Path, frames: int, cause: str) -> None:
    raised = f"{STATUS}: Graph execution error:"
    verdict = said(tmp_path, [*TRACEBACK, raised, "", "Detected at node loss defined at:", *NODE * frames, LABEL])
    assert verdict.cause == cause


def test_far_below_a_message_that_announces_nothing_another_error_is_its_own(tmp_path: Path) -> None:
    raised = "toy.MillError: the mill stood still"
    verdict = said(tmp_path, [*TRACEBACK, raised, *NODE * 10, LABEL])
    assert (*shape(verdict), verdict.cause) == (*CRASH, "uncaught_exception")


def test_an_exception_of_user_code_says_what_its_quoted_one_does(tmp_path: Path) -> None:
    inner = ["    ValueError: Shapes (None, 1) and (None, 7) are incompatible"]
    verdict = said(tmp_path, ["ValueError: in user code:", "", *NODE, *inner])
    assert (*shape(verdict), verdict.cause) == (*CRASH, "shape_mismatch")


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("  (0) Invalid argument: logits and labels must be broadcastable: logits_size=[8,5] labels_size=[8,7]",
         "shape_mismatch"),
        ("\t [[Node: save/Assign = Assign[T=DT_FLOAT]]] Assign requires shapes of both tensors to match.",
         "state_mismatch"),
        ("WARNING:tensorflow:Your input ran out of data; interrupting training.", "data_ran_out"),
        ("psycopg2.OperationalError: could not connect to server: Connection timed out", "connection_lost"),
        ("ssh: connect to host gpu9 port 22: No route to host", "node_took_no_task"),
        ("mpirun: lost connection to daemon on node gpu9", "node_failed"),
        ("gpu9 kernel: EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0", "device_error"),
        ("gpu9 kernel: mlx5_core 0000:a1:00.0: device's health compromised - reached miss count", "fabric_fault"),
        ("gpu9 kernel: EXT4-fs (nvme0n1p1): Remounting filesystem read-only", "disk_error"),
        ("gpu9 kernel: amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!", "gpu_driver_error"),
        ("[ERROR] [launch.py:325:sigkill_handler] ['python', '-u', 'mill.py'] exits with return code = -11",
         "silent_death_segv"),
        ("RuntimeError: unable to open shared memory object </torch_9_4> in read-write mode: Too many open files (24)",
         "too_many_open_files"),
        ("OMP: Error #15: Initializing libomp.so, but found libiomp5.so already initialized.", "native_check"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_exception_may_be_the_one_that_decides(tmp_path: Path, line: str, cause: str) -> None:
    verdict = said(tmp_path, ["building the mill", line])
    assert (*shape(verdict), verdict.cause) == (*CRASH, cause)


@pytest.mark.parametrize(
    ("raised", "first"),
    [
        ("IndexError: index 7 is out of bounds for axis 0 with size 7", "Compare the class numbers in the labels"),
        ("IndexError: index 9 is out of bounds for axis 0 with size 7", "Compare index 9 with the size 7"),
    ],
)
def test_an_index_one_past_the_end_is_mostly_a_class_number(tmp_path: Path, raised: str, first: str) -> None:
    assert said(tmp_path, [*TRACEBACK, raised]).actions[0].text.startswith(first)


@pytest.mark.parametrize(
    ("between", "cause"),
    [
        ("During handling of the above exception, another exception occurred:", "extension_build_failed"),
        ("The above exception was the direct cause of the following exception:", "versions_apart"),
    ],
)
def test_a_build_that_failed_as_a_fallback_is_what_failed_whatever_wrapped_it(
    tmp_path: Path, between: str, cause: str
) -> None:
    wrapped = "The above exception was the direct cause of the following exception:"
    first = "ImportError: cannot import name 'spin' from 'mill' (/opt/mill/__init__.py)"
    called = "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1."
    built = "RuntimeError: Error building extension 'mill_cuda'"
    chain = [*TRACEBACK, first, "", between, "", *TRACEBACK, called, "", wrapped, "", *TRACEBACK, built]
    assert said(tmp_path, chain).cause == cause


@pytest.mark.parametrize("got", [3, 5])
def test_values_that_cannot_be_unpacked_are_counted(tmp_path: Path, got: int) -> None:
    raised = f"ValueError: not enough values to unpack (expected {got + 1}, got {got})"
    assert said(tmp_path, [*TRACEBACK, raised]).actions[0].text.startswith("Count what the call gives back")
