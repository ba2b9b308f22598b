"""Short literals that stand in most lines that may hold a signature; one of them serves many signatures.

All lines of a log are searched for these in one pass, so they are rare in ordinary output. A needle of a signature in
which none of them stands is searched for itself (`_signatures.literals`), so nothing need be added here.
"""

from __future__ import annotations

STEMS = (
    "rror", "ERROR", "xception", "ignal", "SIG", "of memory", "of-memory", "Of Memory", "oom-kill", "oom_kill",
    "OOM", "t allocate m", "on memory", "shared memory", "NCCL WARN ", "ncclI", "atchdog", "imed out",
    "imeout", "Time out", "bort", "illed", "CANCELLED", "DUE TO", "TERM_", "Got completion", "OFI Req", "Xid",
    "fallen off", "DataLoader worker", "left on device", "quota", "by peer", "refused", "cale already",
    "OVERFLOW!", "verflow", "NaN", "is nan", "norm: nan", "norm': nan", "norm': 'nan", "'loss': 0.0,",
    "'loss': '0'", "finite", "Invalid loss", "Segmentation", "endezvous", "nterrupt", "reempt", "ailed",
    "ode failure", "Fatal", "Traceback", "ddress already", "orrupt", "uccess", "mismatch", "desync", "it code",
    "h code", "return code", "onitoredBarrier", "Errno", "Too many", "not connected", "Stale",
    "entire process down", "GIL within", "Terminated", "reclaim", "stopping training", "Unexpected result",
    "diverg", "boundary", "Empty template", "not found in", "as multiple", "find the metadata",
    "NOT been destroyed", "not called", "OMP_NUM_THREADS", "is 5070", "asynchronously", "device handle",
    "UNKNOWN", "429 Too", "RESOURCE_", "DEADLINE_", "UR_RES", "Attempted loss scale: 1", "Minimum loss", "PBS: ",
    "raining c", "raining C", "raining f", "raining F", "raining d", "raining is", "raining has", "raining s",
    "RAINING C", "d training", "d Training", "e training", "h training", "un complete", "un finished",
    "train_runtime", "run_stop", "stopped: `", "ast enqueued", "async_prefetch", "are nan", "was nan",
    "me nan", "n nan", "ns nan", "ent nan", "ed nan", " a nan", "came inf", "is inf", "uncorrectable", "Received data",
    "op.preamble", "BLOCKING_WAIT", "exitcode", "Backward",
    "terminate called", "bad_alloc", "Assertion", "(): invalid", "malloc():", "stack smashing", "Illegal ins",
    "Trace/break", "Bad system c", "exit status", "with status", "State: ", "No such ", "Missing opt", "Missing arg",
    "Missing par", "Invalid value for", "unexpected extra", "t open file", "t find '__main", "No module named",
    "mand not f", "file not f", "rmission denied", "cannot exec", "execve()", "OCI runtime", "ng executable",
    "ImagePull", "version `", "MPI_ABORT", "low on resource", "victed", "NodeShutdown", "TerminationBy",
    "imminent node", "specified deadline", "stalled", "EI0002", "EI0006", "HCCL", "times out", "Tensor had ",
    "invalid value (", "code 135", "undefined symbol", "Cuda failure", "GC overhead", "Insufficient Mem", "mory limit",
    "hard limit", "KV cache mem", "less than desired", "libc++abi", "panicked at", ": F ", "BAD TERMI",
    "non-zero", "ermination (", "^C", "C detected", "wallclock", "ang detected",
    "ang was det", "eadlock", "o progress", "heartbeat", "be hung", "be stuck", "s hung", "s hanging", "s stuck",
    "oss during tr", "=exited", "(local_rank", "train metrics", "Training time", "training time: ", "epochs completed",
    "ainable params: 0 ", "total-vm:", "ALLOC_FAILED", "enough memory",
    "ntly allocated  ", "equested    ", "evice limit  ", "ding to CUDA)",
    "forcefully exi", "debug info", "ollective #", "- Init ", "blocked for more", "soft lockup", "nfs: server",
    " hit config.", "ecompiling fun", "segfault at", "mlx5_", "launched up to", " on node ",
    "GroupNCCL.cpp",
)  # fmt: skip
