"""The tables of evaluation results, part of `store.schema`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import polars as pl

_STR, _I64, _F64 = pl.String(), pl.Int64(), pl.Float64()

EVAL_TABLES: Mapping[str, Mapping[str, pl.DataType]] = MappingProxyType(
    {
        # one row per metric of a task in a file of evaluation results; n: documents scored; settings: a JSON object of
        # everything that the comparability of two results depends on (`ingest/_eval_settings.py`); filter: how the
        # answer was taken out of the text; step: of the evaluated checkpoint, from its name; higher_is_better: null
        # when the file does not say
        "evals": {
            "source": _STR,
            "seq": _I64,
            "line": _I64,
            "byte": _I64,
            "task": _STR,
            "task_version": _STR,
            "metric": _STR,
            "filter": _STR,
            "value": _F64,
            "stderr": _F64,
            "n": _I64,
            "fewshot": _I64,
            "higher_is_better": pl.Boolean(),
            "model": _STR,
            "step": _I64,
            "t_ns": _I64,
            "settings": _STR,
        },
        # one row per document and numeric metric of an evaluation; the document itself is not kept
        "eval_samples": {
            "source": _STR,
            "seq": _I64,
            "line": _I64,
            "byte": _I64,
            "task": _STR,
            "filter": _STR,
            "doc": _STR,
            "doc_hash": _STR,
            "prompt_hash": _STR,
            "metric": _STR,
            "value": _F64,
            "t_ns": _I64,
        },
        # one row per evaluation metric that a run shares with a baseline run, where one was given; p is adjusted for
        # many tasks; blocks: why the two are not comparable, else null; cause: the most plausible
        # difference of settings, of `family`, and where this run states it
        "comparisons": {
            "source": _STR,
            "line": _I64,
            "task": _STR,
            "metric": _STR,
            "filter": _STR,
            "value": _F64,
            "stderr": _F64,
            "step": _I64,
            "base_source": _STR,
            "base_line": _I64,
            "base_value": _F64,
            "base_stderr": _F64,
            "n": _I64,
            "base_n": _I64,
            "p": _F64,
            "worse": pl.Boolean(),
            "blocks": _STR,
            "family": _STR,
            "cause": _STR,
            "cause_source": _STR,
            "cause_line": _I64,
        },
    }
)
