"""What complaints about a process mean where the run names no peer."""

from __future__ import annotations

from forensics.pipeline import ingest_bytes, report_of

_STEPS = "".join(f"step {n} | loss {2 + 3 / n:.4f} | lr 3.0e-04\n" for n in range(1, 30))
_RESET = """Traceback (most recent call last):
  File "train.py", line 21, in <module>
    batch = client.get(key)
ConnectionResetError: [Errno 104] Connection reset by peer
"""


def _cause(text: str, name: str = "train.log") -> str:
    return report_of(ingest_bytes(name, text.encode())).verdict.cause


def test_a_broken_connection_of_the_only_process_is_its_own_error() -> None:
    assert _cause(_STEPS + _RESET) == "connection_lost"


def test_a_broken_connection_of_one_of_several_ranks_speaks_of_a_peer() -> None:
    ranks = "".join(f"[rank{n % 2}]: {line}\n" for n, line in enumerate(_STEPS.splitlines()))
    assert _cause(ranks + "".join(f"[rank1]: {line}\n" for line in _RESET.splitlines())) != "connection_lost"


def test_a_collective_that_lost_its_peer_speaks_of_it_although_no_rank_is_named() -> None:
    closed = (
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.4]:31021"
    )
    assert _cause(_STEPS + _RESET.rsplit("\n", 2)[0] + f"\n{closed}\n") == "peer_gone"


def test_the_status_of_an_abort_is_told_as_one() -> None:
    assert _cause(_STEPS + "exit status 134\n") == "aborted"


def test_the_report_of_a_scheduler_on_the_only_process_is_no_complaint_of_a_peer() -> None:
    told = "Sender: LSF System <lsf@mill>\n\nExited with exit code 1.\n\nResource usage summary:\n"
    assert _cause(_STEPS + told) == "exit_nonzero"
    ranks = "".join(f"[rank{n % 2}]: {line}\n" for n, line in enumerate(_STEPS.splitlines()))
    assert _cause(ranks + told) == "peer_gone"
