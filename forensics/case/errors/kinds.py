"""What an error is by its words: its own failure, a complaint about a peer, a wrapper's echo, or somebody's stop.

The patterns name classes and stock phrases of PyTorch, NCCL, gloo, Python and the launchers, never one run's text.
"""

from __future__ import annotations

import re
from enum import IntEnum

from forensics.dialects.events.signatures import by_id, table


class Weight(IntEnum):
    """How much an error explains by itself; the higher one is nearer to the cause."""

    WRAPPER = 0
    CLOSED = 1
    TIMEOUT = 2
    STOP = 3
    ECHO = 4
    OWN = 5


#: The cause of a process that SIGKILL ended, sender unknown.
KILLED = "silent_death_sigkill"
#: What the catalogue says of a line that speaks of another failure than its own.
_KINDS = {"wrapper": Weight.WRAPPER, "closed": Weight.CLOSED, "echo": Weight.ECHO}

_NETWORK = r"(?:gloo|nccl|hccl|c10d|collective|barrier|rendezvous|store|socket|prefetch|dataloader)"
_LATE = r"(?:timed? ?out|timeout|times out)"

#: Pattern over `Class: message`, weight, shape and cause; the first that matches is the answer.
_EXCEPTIONS: tuple[tuple[str, Weight, str, str], ...] = (
    (r"^KeyboardInterrupt\b", Weight.STOP, "stopped", "interrupted_by_user"),
    (
        r"SignalException|SIGTERMException|got signal: (?:1|2|15)\b|^SystemExit: (?:130|143)\b|\bSIGTERM\b",
        Weight.STOP,
        "stopped",
        "external_termination",
    ),
    (
        (
            r"ChildFailedError|CalledProcessError|ProcessExitedException|ActorDiedError|RayActorError|EngineDeadError"
            r"|WorkerCrashedError|NodeDiedError|RayletDiedError|OwnerDiedError|ActorUnavailableError"
        ),
        Weight.WRAPPER,
        "crash",
        "child_failed",
    ),
    (
        (
            r"OutOfMemoryError|ResourceExhaustedError|RESOURCE_EXHAUSTED: (?!Received|Sent|.*[Qq]uota)"
            r"|(?:CUDA|HIP|XPU|NPU|backend) out of memory|CU\w+_STATUS_ALLOC_FAILED|: Out of memory\b"
        ),
        Weight.OWN,
        "oom",
        "gpu_out_of_memory",
    ),
    (
        r"^MemoryError\b|DefaultCPUAllocator|Cannot allocate memory|std::bad_alloc",
        Weight.OWN,
        "oom",
        "host_out_of_memory",
    ),
    (
        (
            r"(?i)^(?:requests|urllib3|http|aiohttp|httpx|httpcore|botocore|boto3|gcsfs|s3fs|fsspec|google|azure|wandb"
            r"|huggingface_hub|datasets|ssl|ftplib|smtplib)\.|^socket\.timeout|HTTPS?ConnectionPool"
            r"|\bread operation timed out"
        ),
        Weight.OWN,
        "crash",
        "web_request_failed",
    ),
    (r"shutdown$|after interpreter shutdown|at interpreter shutdown", Weight.CLOSED, "crash", "shutting_down"),
    (r"(?i)\bEADDRINUSE\b|address already in use", Weight.OWN, "crash", "port_in_use"),
    (r"probability tensor contains either", Weight.ECHO, "nan", "nan"),
    (
        (
            r"(?i)returned nan values in|^FloatingPointError|loss (?:is|became) (?:nan|inf|not finite)"
            r"|non-?finite (?:loss|grad)|nan/inf|(?:loss|gradients?) (?:contains?|has) (?:a )?nan|NanLoss"
            r"|^(?!KeyError|\w*File|NameError|AttributeError|Import|Module|IntCasting).*(?:\bnans?\b.*(?:\bloss|grad"
            r"|logit|activation|hidden|weight|param|output|reward|advantage|tensor|layer|norm\b|rank|detected|encountered)"
            r"|(?:loss|grad|logit|activation|hidden|weight|param|output|reward|advantage|tensor|layer|norm\b|detected"
            r"|encountered|found).*\bnans?\b)"
            r"|satisfy the constraint \w+(?:\(.*\))?, but found invalid values|autodetected range of \[nan"
            r"|parameter \w+ has invalid values"
        ),
        Weight.OWN,
        "nan",
        "nan",
    ),
    (
        rf"(?i){_NETWORK}.*{_LATE}|{_LATE}.*(?:{_NETWORK}|recv|send|clients|worker)|DEADLINE_EXCEEDED|GetTimeoutError",
        Weight.TIMEOUT,
        "hang",
        "collective_timeout",
    ),
    (
        (
            r"(?i)connection (?:closed by peer|reset by peer|refused)|broken pipe|communicator was aborted"
            r"|ncclRemoteError|remote process exited|DistNetworkError|RendezvousConnectionError|RendezvousClosedError"
        ),
        Weight.CLOSED,
        "crash",
        "peer_gone",
    ),
)
_COMPILED = tuple((re.compile(pattern), weight, shape, cause) for pattern, weight, shape, cause in _EXCEPTIONS)


def of_exception(exception: str, message: str) -> tuple[Weight, str, str]:
    """Judge a traceback's last line: weight, shape and cause (`uncaught_exception` when nothing special is known)."""
    said = f"{exception}: {message}" if message else exception
    for pattern, weight, shape, cause in _COMPILED:
        if pattern.search(said):
            return weight, shape, cause
    for row in table():
        judged = of_signature(row.id, row.role, row.shape)
        if judged is not None and judged[0] >= Weight.CLOSED and row.compiled.search(said):
            return (*judged, row.cause)
    if exception.rsplit(".", 1)[-1] == "FileNotFoundError":
        return Weight.ECHO, "crash", "file_missing"
    return Weight.OWN, "crash", "uncaught_exception"


def of_signature(code: str, role: str, shape: str) -> tuple[Weight, str] | None:
    """Judge a signature's hit: weight and shape; None when it is context or harmless and judges nothing."""
    if role not in {"root", "symptom"} or not shape:
        return None
    root = role == "root"
    if shape == "stopped":
        return Weight.STOP if root else Weight.WRAPPER, "stopped"
    known = by_id().get(code)
    if known is not None and known.kind:
        return _KINDS[known.kind], "crash"
    if shape == "hang":
        return Weight.TIMEOUT, "hang"
    return Weight.OWN if root else Weight.ECHO, shape


def death_of(code: str) -> str:
    """Give the words for a process that ended without its doing, where its line of the catalogue has some."""
    known = by_id().get(code)
    return known.words if known is not None and known.shape == "crash" else ""


def sender_of(code: str, cause: str = "") -> str:
    """Give the words for who stopped a run: those of a line of the catalogue, else of its lines of a cause."""
    stops = [row for row in table() if row.shape == "stopped" and row.words]
    return next((row.words for row in stops if row.id == code), next((r.words for r in stops if r.cause == cause), ""))


def final_codes() -> tuple[str, ...]:
    """Give the ids of lines that are errors only where they end their log."""
    return tuple(row.id for row in table() if row.final)
