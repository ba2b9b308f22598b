"""Settings that make a score mean something else: decoding, precision, and the data that were trained on."""

from __future__ import annotations

import re
from collections.abc import Mapping

import polars as pl

from forensics.analyses.evals.results import Row, settings_of
from forensics.case.settings import keyed
from forensics.knowledge.vocabulary import keys_of, stands_for, words_for
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


def _judged(sampling: Row, heat: Row) -> Finding | None:
    try:
        temperature = float(heat["value"])
    except ValueError:
        return None
    zero = sampling["value"] == "true" and temperature == 0
    if not zero and (sampling["value"] != "false" or temperature in (0.0, 1.0)):
        return None
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


@rule("EVL024 evaluated-in-other-precision", "evals facts", confidence="medium", causal="context")
def precision_differs(run: Run) -> Findings:
    """Report the first file of results that was made in a coarser precision."""
    trained = _trained(run)
    if trained is None:
        return
    for row in run.collect("evals").unique("source", keep="first", maintain_order=True).iter_rows(named=True):
        if (found := _loaded(row)) is None:
            continue
        loaded, kind = found
        yield precision_differs.finding(
            f"the model was evaluated with {loaded}, and trained with {trained['key']} = {trained['value']}",
            "the results state how the model was loaded, the settings how it was trained",
            proof(result_evidence(row), fact_evidence(trained)),
            severity="warning" if kind == "quantised" else "info",
            cause=kind,
        )
        return


def _trained(run: Run) -> Row | None:
    """A setting that says that training was not in float16 or in few bits; None where another says that it was."""
    is_config, off = pl.col("family") == "config", pl.col("value").is_in(["null", "false", "0"])
    if keyed(run, words_for("few_bits_setting")).filter(is_config & ~off).collect().height:
        return None
    own = keyed(run, words_for("number_format_setting")).filter(is_config).collect()
    rows = [row for row in own.iter_rows(named=True) if row["value"] not in ("false", "null")]
    said = ((row, str(row["value"]).strip('"')) for row in rows)
    wide = [row for row, value in said if value == "true" or stands_for("wide_number_format", value)]
    return wide[0] if wide and len(wide) == len(rows) else None


def _loaded(row: Row) -> tuple[str, str] | None:
    """How the model was loaded, where that is coarse, and whether it was `quantised` or `float16`."""
    settings = settings_of(row)
    for key in keys_of("few_bits_of_evaluation"):
        if str(settings.get(key, "")).lower() not in ("", "false", "none", "16", "32"):
            return f"{key.removeprefix('model_args.')}={settings[key]}", "quantised"
    told = next((str(settings[key]) for key in keys_of("number_format_of_evaluation") if key in settings), "")
    is_half = re.fullmatch(r"(?i)(?:torch\.)?(?:float16|fp16|half)", told) is not None
    return (f"dtype={told}", "float16") if is_half else None


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
    if not found:
        return
    row, result = min(found, key=lambda pair: not _is_held_back(pair[0], split))
    held_back = _is_held_back(row, split)
    what = "a split that is held back" if held_back else "no split, or the one for training"
    yield trained_on_evaluated.finding(
        f"task {result['task']} is evaluated on {_plain(row['value'])}, which is also in the training data",
        f"the settings of training name the data set of the task, with {what}",
        proof(fact_evidence(row), result_evidence(result)),
        Onset(step=result["step"]),
        severity="warning" if held_back else "info",
        confidence="medium" if held_back else "low",
    )


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


def _is_held_back(row: Row, split: Mapping[str, str]) -> bool:
    parent = re.split(r"[./][^./]*$", str(row["key"]))[0]
    own = next((value for key, value in split.items() if re.split(r"[./][^./]*$", key)[0] == parent), "")
    return stands_for("held_back_split", own)
