"""Every table, column, dtype and unit of the store, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import polars as pl

from forensics.store._schema_evals import EVAL_TABLES

VERSION = 1

_STR, _I64, _I32, _F64 = pl.String(), pl.Int64(), pl.Int32(), pl.Float64()
_U64, _CAT = pl.UInt64(), pl.Categorical()

TABLES: Mapping[str, Mapping[str, pl.DataType]] = MappingProxyType(
    {
        "sources": {
            "source": _STR,
            "path": _STR,
            "format": _STR,
            "ingester": _STR,
            "version": _I32,
            "size": _I64,
            "read": _I64,
            "records": _I64,
            "status": _STR,
            "reason": _STR,
            "sha256": _STR,
            "mtime_ns": _I64,
            "rank": _I32,
            "attempt": _I32,
        },
        "issues": {"source": _STR, "byte": _I64, "line": _I64, "code": _STR, "message": _STR, "count": _I64},
        # text: the line as printed (ANSI removed, cut to limits.quote_chars); attrs: a JSON object of strings
        "events": {
            "source": _STR,
            "seq": _I64,
            "line": _I64,
            "byte": _I64,
            "t_ns": _I64,
            "rank": _I32,
            "step": _I64,
            "level": _STR,
            "code": _STR,
            "text": _STR,
            "attrs": _STR,
        },
        # seq: order of the record in its source (equal for all metrics of one record); value keeps NaN and ±inf
        "metrics": {
            "source": _STR,
            "attempt": _I32,
            "rank": _I32,
            "seq": _I64,
            "line": _I64,
            "byte": _I64,
            "step": _I64,
            "gstep": _I64,
            "epoch": _F64,
            "t_ns": _I64,
            "name": _STR,
            "raw_name": _STR,
            "value": _F64,
            "value_class": _STR,
        },
        # device: index of the GPU, null for host events; thread: `pid/tid` of host events; attrs: a JSON object
        "spans": {
            "source": _STR,
            "rank": _I32,
            "step": _I64,
            "stream": _STR,
            "category": _STR,
            "name": _STR,
            "start_ns": _I64,
            "dur_ns": _I64,
            "correlation": _I64,
            "attrs": _STR,
            "seq": _I64,
            "device": _I32,
            "thread": _STR,
            "bytes": _I64,
        },
        # one row per collective that a rank entered or complained of; rank is global; group: name of the process group;
        # ranks, in_sizes, out_sizes, stack: JSON lists; seq counts in its group; state: scheduled, started, completed,
        # timed_out or mismatch; site: innermost frame of the user's own code, `file:line function`
        "collectives": {
            "source": _STR,
            "rank": _I32,
            "group": _STR,
            "group_size": _I32,
            "ranks": _STR,
            "seq": _I64,
            "op_id": _I64,
            "p2p_seq": _I64,
            "op": _STR,
            "in_sizes": _STR,
            "out_sizes": _STR,
            "dtype": _STR,
            "state": _STR,
            "created_ns": _I64,
            "started_ns": _I64,
            "completed_ns": _I64,
            "timeout_ms": _I64,
            "retired": pl.Boolean(),
            "site": _STR,
            "stack": _STR,
            "line": _I64,
            "byte": _I64,
            "attrs": _STR,
        },
        # one row per frame of a dumped thread; depth 0 is innermost; seq: order of the thread in its source;
        # kind: python or native; state: active, idle, gil or a process state where printed
        "stack_frames": {
            "source": _STR,
            "rank": _I32,
            "pid": _I64,
            "thread": _STR,
            "thread_name": _STR,
            "seq": _I64,
            "depth": _I32,
            "function": _STR,
            "file": _STR,
            "line": _I64,
            "kind": _STR,
            "state": _STR,
        },
        # one row per event of a memory snapshot's recording, in order within a device; seq counts over the file.
        # size: bytes as requested (alloc, free_*), of the segment (segment_*), of the request rounded up (oom);
        # device_free: bytes (oom only); pool_owner, pool: the two numbers of the pool id, (0, 0) is the default pool;
        # stack: null where no stack was recorded
        "allocs": {
            "source": _STR,
            "seq": _I64,
            "device": _I32,
            "t_ns": _I64,
            "action": _CAT,
            "addr": _U64,
            "size": _I64,
            "stream": _U64,
            "stack": _I32,
            "device_free": _I64,
            "pool_owner": _I64,
            "pool": _I64,
            "compile_context": _CAT,
            "user_metadata": _CAT,
        },
        # segments and blocks: the state at the end of the recording, sizes in bytes; a block's segment is its seq there
        "segments": {
            "source": _STR,
            "seq": _I64,
            "device": _I32,
            "addr": _U64,
            "total_size": _I64,
            "allocated_size": _I64,
            "active_size": _I64,
            "requested_size": _I64,
            "stream": _U64,
            "segment_type": _STR,
            "pool_owner": _I64,
            "pool": _I64,
            "is_expandable": pl.Boolean(),
            "stack": _I32,
        },
        # state: active_allocated, active_pending_free (active_awaiting_free), inactive; requested_size null if unknown
        "blocks": {
            "source": _STR,
            "seq": _I64,
            "device": _I32,
            "segment": _I64,
            "addr": _U64,
            "size": _I64,
            "requested_size": _I64,
            "state": _STR,
            "stack": _I32,
        },
        # stacks: one row per frame of a stack, depth 0 innermost; ids count within their source
        "frames": {
            "source": _STR,
            "frame": _I32,
            "file": _STR,
            "line": _I64,
            "function": _STR,
            "fx_node_op": _STR,
            "fx_node_name": _STR,
            "fx_original_trace": _STR,
        },
        "stacks": {"source": _STR, "stack": _I32, "depth": _I32, "frame": _I32},
        # what the program said of itself during a memory recording; stage: START or END
        "annotations": {"source": _STR, "seq": _I64, "device": _I32, "t_ns": _I64, "name": _STR, "stage": _STR},
        # key: dotted path; value: JSON text; family: config, generation, tokenizer, env, host, exit, ...
        "facts": {"source": _STR, "line": _I64, "key": _STR, "value": _STR, "family": _STR},
        **EVAL_TABLES,
        # how far something came: counters with a plan; label: words before a bar; unit: step, batch (of an epoch) or
        # epoch; done: null for a plan alone; mean_s: mean seconds of one that a bar shows; per: unit of a bar's rate as
        # printed (it/s, examples/s); dialect: whose line it is
        "progress": {
            "source": _STR,
            "attempt": _I32,
            "rank": _I32,
            "seq": _I64,
            "line": _I64,
            "byte": _I64,
            "t_ns": _I64,
            "label": _STR,
            "unit": _STR,
            "done": _I64,
            "plan": _I64,
            "elapsed_s": _F64,
            "mean_s": _F64,
            "per": _STR,
            "dialect": _STR,
        },
        # kind: saved, committed, resumed, removed (log) or directory (disk); complete: null when it cannot be known
        "checkpoints": {
            "source": _STR,
            "seq": _I64,
            "line": _I64,
            "step": _I64,
            "path": _STR,
            "t_ns": _I64,
            "kind": _STR,
            "complete": pl.Boolean(),
            "attempt": _I32,
        },
    }
)


def value_class(value: pl.Expr) -> pl.Expr:
    """Class of a float column: `finite`, `nan`, `+inf`, `-inf` or `null`.

    An ingester that knows more says `null-suspected-nan` or `filtered-by-writer`.
    """
    return (
        pl.when(value.is_null())
        .then(pl.lit("null"))
        .when(value.is_nan())
        .then(pl.lit("nan"))
        .when(value.is_infinite() & (value > 0))
        .then(pl.lit("+inf"))
        .when(value.is_infinite())
        .then(pl.lit("-inf"))
        .otherwise(pl.lit("finite"))
    )


def conform(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Give `frame` exactly the columns of `table`, in order: missing ones null, `value_class` derived from `value`.

    A rank or an attempt that no 32 bits hold was misread, and is null.

    Raises:
        KeyError: for an unknown table or a column that the table does not have.
    """
    columns = TABLES[table]
    unknown = set(frame.columns) - set(columns)
    if unknown:
        msg = f"{table} has no column {sorted(unknown)}"
        raise KeyError(msg)
    if table == "metrics" and "value_class" not in frame.columns:
        frame = frame.with_columns(value_class=value_class(pl.col("value").cast(pl.Float64)))
    known = set(frame.columns)
    return frame.select(
        (pl.col(name).cast(dtype, strict=dtype != _I32) if name in known else pl.lit(None, dtype=dtype)).alias(name)
        for name, dtype in columns.items()
    )
