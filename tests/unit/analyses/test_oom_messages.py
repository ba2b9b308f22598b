"""Out-of-memory messages of every allocator as numbers: texts as their writers print them, with invented numbers."""

# ruff: noqa: E501, ISC004 - a message is one line, and put together from parts inside of a table

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.analyses.memory.oom_messages import Sizes, oom_messages, sizes_of
from forensics.knowledge.doing import phase_of
from forensics.store.run import run_of

K, M, G = 1 << 10, 1 << 20, 1 << 30
TEXTS = {
    "torch 1.3 and older": (
        "RuntimeError: CUDA out of memory. Tried to allocate 24.00 MiB (GPU 2; 7.50 GiB total capacity;"
        " 6.25 GiB already allocated; 512.00 KiB free; 128.00 MiB cached)",
        {"tried": 24 * M, "capacity": 7.5 * G, "allocated": 6.25 * G, "free": 512 * K, "unallocated": 128 * M},
    ),
    "torch 1.4 to 1.9": (
        "RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 1; 11.00 GiB total capacity;"
        " 8.25 GiB already allocated; 0 bytes free; 9.75 GiB reserved in total by PyTorch)",
        {"tried": 1.5 * G, "capacity": 11 * G, "allocated": 8.25 * G, "free": 0, "unallocated": 1.5 * G},
    ),
    "torch 2.1 with its misspelling and no process clause": (
        "CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacty of 6.00 GiB of which 0 bytes is free."
        " Of the allocated memory 4.75 GiB is allocated by PyTorch, and 96.00 MiB is reserved by PyTorch but"
        " unallocated.",
        {"tried": 64 * M, "capacity": 6 * G, "allocated": 4.75 * G, "free": 0, "unallocated": 96 * M},
    ),
    "torch 2.2 and later": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 40.00 MiB. GPU 3 has a total capacity of 31.50 GiB"
        " of which 15.25 MiB is free. Including non-PyTorch memory, this process has 31.25 GiB memory in use. Of the"
        " allocated memory 28.50 GiB is allocated by PyTorch, with 512.00 MiB allocated in private pools (e.g., CUDA"
        " Graphs), and 1.25 GiB is reserved by PyTorch but unallocated.",
        {
            "tried": 40 * M, "capacity": 31.5 * G, "allocated": 28.5 * G, "free": 15.25 * M, "unallocated": 1.25 * G,
            "private": 0.5 * G, "own": 31.25 * G, "outside": G,
        },
    ),
    "a limit that the program set": (
        "GPU 0 has a total capacity of 64.00 GiB of which 60.50 GiB is free. 2.25 GiB allowed; Of the allocated memory"
        " 2.00 GiB is allocated by PyTorch, and 8.00 MiB is reserved by PyTorch but unallocated.",
        {"capacity": 64 * G, "free": 60.5 * G, "allowed": 2.25 * G, "allocated": 2 * G, "unallocated": 8 * M},
    ),
    "cudaMallocAsync": (
        "Currently allocated     : 13.25 GiB\nRequested               : 768.00 KiB\nDevice limit            : 14.50 GiB\n"
        "Free (according to CUDA): 0 bytes",
        {"allocated": 13.25 * G, "tried": 768 * K, "capacity": 14.5 * G, "free": 0},
    ),
    "ROCm": (
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 5.50 GiB. GPU 1 has a total capacity of 15.75 GiB of"
        " which 5.25 GiB is free. Of the allocated memory 4.50 GiB is allocated by PyTorch, and 5.75 GiB is reserved by"
        " PyTorch but unallocated.",
        {"tried": 5.5 * G, "capacity": 15.75 * G, "free": 5.25 * G, "allocated": 4.5 * G, "unallocated": 5.75 * G},
    ),
    "XPU": (
        "XPU out of memory. Tried to allocate 3.25 GiB (GPU  0; 11.50 GiB total capacity; 0 bytes already allocated;"
        " 0 bytes reserved in total by PyTorch)",
        {"tried": 3.25 * G, "capacity": 11.5 * G, "allocated": 0, "unallocated": 0},
    ),
    "MPS, which divides by 1024 and prints GB": (
        "RuntimeError: MPS backend out of memory (MPS allocated: 7.50 GB, other allocations: 256.00 MB, max allowed:"
        " 9.25 GB). Tried to allocate 12.50 MB on private pool.",
        {"allocated": 7.5 * G, "outside": 256 * M, "capacity": 9.25 * G, "tried": 12.5 * M},
    ),
    "the CPU allocator": (
        "[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate"
        " 987654321 bytes. Error code 12 (Cannot allocate memory)",
        {"tried": 987654321},
    ),
    "the oldest CPU allocator": ("Torch: not enough memory: you tried to allocate 3GB. Buy new RAM!", {"tried": 3 * G}),
    "NCCL": ("Failed to CUDA calloc 4194304 bytes", {"tried": 4 * M}),
    "XLA": ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1234567890 bytes.", {"tried": 1234567890}),
    "TensorFlow's shape": (
        "OOM when allocating tensor with shape[8,32,16] and type float on /job:localhost/replica:0/task:0/device:GPU:0",
        {"tried": 8 * 32 * 16 * 4},
    ),
    "TensorFlow's driver": ("failed to allocate 16.00M (16777216 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY", {"tried": 16 * M}),
    "NumPy": ("Unable to allocate 2.50 GiB for an array with shape (5, 6) and data type float64", {"tried": 2.5 * G}),
    "the kernel": (
        "Killed process 991 (python3) total-vm:9000kB, anon-rss:6000kB, file-rss:12kB, shmem-rss:0kB",
        {"rss": 6000 * K},
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", TEXTS)
def test_every_number_of_a_message_is_read(which: str) -> None:
    text, wanted = TEXTS[which]
    found = sizes_of(text)
    assert {n: getattr(found, n) for n in Sizes.__slots__ if n != "device" and getattr(found, n) is not None} == {
        name: int(value) for name, value in wanted.items()
    }


def test_a_lone_process_that_holds_what_the_allocator_does_is_the_run_itself() -> None:
    said = "Process 7 has {} GiB memory in use. Of the allocated memory 20.00 GiB is allocated by PyTorch"
    assert sizes_of(said.format("20.50")).others is None
    assert sizes_of(said.format("9.50")).others == int(9.5 * G)


@pytest.mark.parametrize(("capacity", "others"), [(79.99, None), (80.00, 60.0), (80.01, 60.0)])
def test_a_process_for_which_the_device_has_no_room_beside_the_allocator_is_the_run_itself(
    capacity: float, others: float | None
) -> None:
    said = (
        f"GPU 0 has a total capacity of {capacity:.2f} GiB of which 1.00 GiB is free. Process 7 has 60.00 GiB memory in"
    )
    said += " use. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 0.00 GiB is reserved"
    assert sizes_of(said).others == (None if others is None else int(others * G))


@given(st.text(max_size=400))
def test_any_text_gives_sizes_and_never_an_error(text: str) -> None:
    found = sizes_of("Tried to allocate " + text)
    assert found.tried is None or found.tried >= 0


@pytest.mark.parametrize(
    ("units", "size"),
    [
        ("bytes byte B", 1),
        ("KiB K", 1 << 10),
        ("MiB M", 1 << 20),
        ("GiB G", 1 << 30),
        ("TiB T", 1 << 40),
        ("KB", 10**3),
        ("MB", 10**6),
        ("GB", 10**9),
        ("TB", 10**12),
    ],
)
def test_each_unit_of_a_printed_size_has_its_bytes(units: str, size: int) -> None:
    assert {sizes_of(f"Tried to allocate 3 {unit}.").tried for unit in units.split()} == {3 * size}


@given(st.decimals(0, 9999, places=2), st.sampled_from(["bytes", "KiB", "MiB", "GiB"]))
def test_a_printed_size_is_read_back(value: object, unit: str) -> None:
    scale = {"bytes": 1, "KiB": K, "MiB": M, "GiB": G}[unit]
    assert sizes_of(f"Tried to allocate {value} {unit}.").tried == int(float(str(value)) * scale)


def run_with(events: list[dict[str, object]], steps: list[tuple[int, int]] = []) -> object:  # noqa: B006 - read only
    filled = [
        {"source": "train.log", "seq": i, "attrs": '{"role":"root","shape":"oom"}', **e} for i, e in enumerate(events)
    ]
    tables = {"events": pl.DataFrame(filled)}
    if steps:
        rows = [{"source": "train.log", "seq": i, "line": line, "step": step, "name": "loss", "raw_name": "loss", "value": 1.0}
                for i, (line, step) in enumerate(steps)]  # fmt: skip
        tables["metrics"] = pl.DataFrame(rows)
    return run_of("made", tables)


CUDA = TEXTS["torch 2.2 and later"][0]


def test_a_message_that_is_printed_three_times_is_one() -> None:
    run = run_with([{"line": n, "code": "cuda-oom", "text": CUDA} for n in (10, 11, 200)])
    (one,) = oom_messages(run)  # type: ignore[arg-type] # a run
    assert (one.copies, one.at) == (3, 10)


def test_the_step_is_the_last_one_logged_before_and_progress_means_survived() -> None:
    steps = [(1, 10), (2, 20), (6, 30), (7, 40), (8, 50), (9, 60)]
    (one,) = oom_messages(run_with([{"line": 4, "code": "cuda-oom", "text": CUDA}], steps))  # type: ignore[arg-type] # a run
    assert (one.step, one.survived) == (20, "progress")


@pytest.mark.parametrize(
    ("unallocated", "free", "reading"),
    [("3.00", "10.00 MiB", "fragmentation"), ("0.50", "10.00 MiB", "full"), ("0.50", "9.00 GiB", "limit")],
)
def test_the_numbers_tell_fragmentation_from_a_full_device_and_from_a_limit(
    unallocated: str, free: str, reading: str
) -> None:
    text = (
        f"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 40.00 GiB of which {free} is free. Of"
        f" the allocated memory 20.00 GiB is allocated by PyTorch, and {unallocated} GiB is reserved by PyTorch but unallocated."
    )
    (one,) = oom_messages(run_with([{"line": 4, "code": "cuda-oom", "text": text}]))  # type: ignore[arg-type] # a run
    assert one.reading == reading


def test_the_phase_comes_from_the_frame_that_raised() -> None:
    frames = {
        "src/loop.py:90 evaluate": "evaluation", "torch/autograd/graph.py:8 _engine_run_backward": "backward",
        "torch/optim/adam.py:9 step": "optimizer", "src/model.py:7 forward": "forward", "x.py:1 main": "unknown",
        "transformers/modeling_utils.py:44 from_pretrained": "loading",
        "torch/_dynamo/eval_frame.py:655 _fn": "unknown", "run/eval_frames.py:3 main": "unknown",
        "run/eval_loop.py:3 main": "evaluation", "train.py:192 in train_and_evaluate": "unknown",
        "train.py:192 in train_and_eval": "unknown", "train.py:192 in load_and_evaluate": "evaluation",
    }  # fmt: skip
    assert {frame: phase_of(frame) for frame in frames} == frames


def test_the_lines_of_the_asynchronous_allocator_complete_its_message() -> None:
    detail = '{"role":"context","shape":"oom"}'
    lines = TEXTS["cudaMallocAsync"][0].split("\n")
    first = {
        "line": 1,
        "code": "cuda-oom-async",
        "text": "Allocation on device 0 would exceed allowed memory. (out of memory)",
    }
    rest = [{"line": n, "code": "oom-detail", "text": t, "attrs": detail} for n, t in enumerate(lines, start=2)]
    (one,) = oom_messages(run_with([first, *rest]))  # type: ignore[arg-type] # a run
    assert (one.sizes.allocated, one.sizes.tried, one.sizes.capacity, one.copies) == (
        int(13.25 * G),
        768 * K,
        int(14.5 * G),
        1,
    )


@pytest.mark.parametrize(
    ("printed", "tried"), [("1073741823 GiB", 1073741823 * G), ("1073741824 GiB", None), ("17179869184.00 GiB", None)]
)
def test_a_size_that_no_memory_has_is_no_number(printed: str, tried: int | None) -> None:
    assert sizes_of(f"CUDA out of memory. Tried to allocate {printed}.").tried == tried
