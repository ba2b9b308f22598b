"""Settings that make a score mean something else: decoding, precision, and the data that were trained on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from forensics.analyses.evals.results import Row, settings_of
from forensics.case.settings import keyed
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.rules.bad_eval._results import result_evidence
from forensics.rules.kit import Finding, Findings, Onset, Run, fact_evidence, proof, rule


@rule("EVL004 decoding-contradicts-itself", "facts", causal="context")
def decoding_contradicts_itself(run: Run) -> Findings:
    """Look at `do_sample` and `temperature` of each file of generation settings; say it once."""
    facts = run.scan("facts").filter((pl.col("family") == "generation") & pl.col("value").is_not_null()).collect()
    for _, rows in facts.sort("source", maintain_order=True).group_by("source", maintain_order=True):
        known = {str(row["key"]): row for row in rows.iter_rows(named=True)}
        if "do_sample" in known and "temperature" in known:
            found = _judged(known["do_sample"], known["temperature"])
            if found is not None:
                yield found
                return


def _judged(sampling: Mapping[str, Any], heat: Mapping[str, Any]) -> Finding | None:
    try:
        temperature = float(heat["value"])
    except ValueError:
        return None
    if sampling["value"] == "true" and temperature == 0:
        return _decoding_contradicts_itself_finding(sampling, heat, zero=True)
    if sampling["value"] == "false" and temperature not in (0.0, 1.0):
        return _decoding_contradicts_itself_finding(sampling, heat, zero=False)
    return None


def _decoding_contradicts_itself_finding(
    sampling: Mapping[str, Any], heat: Mapping[str, Any], *, zero: bool
) -> Finding:
    state = "on" if zero else "off"
    return decoding_contradicts_itself.finding(
        f"sampling is {state} and the temperature is {heat['value']}",
        "programs that generate obey either one or the other",
        proof(fact_evidence(heat), fact_evidence(sampling)),
        severity="warning" if zero else "info",
        confidence="medium" if zero else "low",
        cause="zero_temperature" if zero else "ignored_temperature",
        numbers={"temperature": str(heat["value"])},
    )


_FEW_BITS = ("model_args.load_in_4bit", "model_args.load_in_8bit", "model_args.quantization", "model_args.bits")
_DTYPES = ("model_args.dtype", "model_dtype", "model_args.torch_dtype")


@rule("EVL024 evaluated-in-other-precision", "evals facts", confidence="medium", causal="context")
def precision_differs(run: Run) -> Findings:
    """Report the first file of results that was made in a coarser precision."""
    trained = _trained(run)
    if trained is None:
        return
    for row in run.collect("evals").unique("source", keep="first", maintain_order=True).iter_rows(named=True):
        found = _loaded(row)
        if found is not None:
            yield _precision_differs_finding(row, trained, *found)
            return


def _trained(run: Run) -> Mapping[str, Any] | None:
    """A setting that says that training was not in float16 or in few bits; None where another says that it was."""
    is_config = pl.col("family") == "config"
    coarse = keyed(run, words_for("few_bits_setting")).filter(
        is_config & ~pl.col("value").is_in(["null", "false", "0"])
    )
    if coarse.collect().height:
        return None
    own = keyed(run, words_for("number_format_setting")).filter(is_config).collect()
    rows = [row for row in own.iter_rows(named=True) if row["value"] not in ("false", "null")]
    wide = [
        row for row in rows if row["value"] == "true" or stands_for("wide_number_format", str(row["value"]).strip('"'))
    ]
    return wide[0] if wide and len(wide) == len(rows) else None


def _loaded(row: Row) -> tuple[str, str] | None:
    """How the model was loaded, where that is coarse, and whether it was `quantised` or `float16`."""
    settings = settings_of(row)
    for key in _FEW_BITS:
        if str(settings.get(key, "")).lower() not in ("", "false", "none", "16", "32"):
            return f"{key.removeprefix('model_args.')}={settings[key]}", "quantised"
    told = next((str(settings[key]) for key in _DTYPES if key in settings), "")
    is_half = re.fullmatch(r"(?i)(?:torch\.)?(?:float16|fp16|half)", told) is not None
    return (f"dtype={told}", "float16") if is_half else None


def _precision_differs_finding(row: Row, trained: Mapping[str, Any], loaded: str, kind: str) -> Finding:
    is_coarse = kind == "quantised"
    return precision_differs.finding(
        f"the model was evaluated with {loaded}, and trained with {trained['key']} = {trained['value']}",
        "the results state how the model was loaded, the settings how it was trained",
        proof(result_evidence(row), fact_evidence(trained)),
        severity="warning" if is_coarse else "info",
        cause=kind,
    )


_EVALUATED = ("task.dataset_path", "task.hf_repo")


@rule("EVL026 trained-on-evaluated", "evals facts", cause="leakage", causal="context")
def trained_on_evaluated(run: Run) -> Findings:
    """Report the first data set that was trained on and is scored, a held-back split first."""
    tasks = _evaluated(run)
    if not tasks:
        return
    own = (pl.col("family") == "config") & ~pl.col("key").str.contains("(?i)eval|test")
    facts = run.scan("facts").filter(own).collect()
    named = facts.filter(pl.col("key").str.contains(words_for("data_set_setting"))).iter_rows(named=True)
    found = [(row, tasks[name]) for row in named if (name := _plain(row["value"])) in tasks]
    split = {str(r["key"]): str(r["value"]) for r in facts.iter_rows(named=True) if str(r["key"]).endswith("split")}
    ranked = sorted(found, key=lambda pair: not _is_held_back(pair[0], split))
    if ranked:
        row, result = ranked[0]
        yield _trained_on_evaluated_finding(row, result, held_back=_is_held_back(row, split))


def _evaluated(run: Run) -> dict[str, Row]:
    """The data sets of evaluated tasks, by name, each with its first result."""
    found: dict[str, Row] = {}
    for row in run.collect("evals").unique("task", keep="first", maintain_order=True).iter_rows(named=True):
        settings = settings_of(row)
        name = next((str(settings[key]) for key in _EVALUATED if settings.get(key)), "")
        if "/" in name:
            found.setdefault(_plain(name), row)
    return found


def _plain(value: str | None) -> str:
    return (value or "").strip('"').lower().rstrip("/")


def _is_held_back(row: Mapping[str, Any], split: Mapping[str, str]) -> bool:
    parent = re.split(r"[./][^./]*$", str(row["key"]))[0]
    own = next((value for key, value in split.items() if re.split(r"[./][^./]*$", key)[0] == parent), "")
    return stands_for("held_back_split", own)


def _trained_on_evaluated_finding(row: Mapping[str, Any], result: Row, *, held_back: bool) -> Finding:
    what = "a split that is held back" if held_back else "no split, or the one for training"
    return trained_on_evaluated.finding(
        f"task {result['task']} is evaluated on {_plain(row['value'])}, which is also in the training data",
        f"the settings of training name the data set of the task, with {what}",
        proof(fact_evidence(row), result_evidence(result)),
        Onset(step=result["step"]),
        severity="warning" if held_back else "info",
        confidence="medium" if held_back else "low",
    )
