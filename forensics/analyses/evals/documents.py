"""Whether two evaluations asked the same of the same documents, by the hashes of their samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from forensics.analyses.evals.results import Row
from forensics.analyses.evals.settings import Unlike
from forensics.formats.evals.checkpoint_names import stamp_ns
from forensics.store.run import Run

#: Shares of the documents in common that must be alike, and that must differ.
_ALIKE, _DIFFER = 0.9, 0.5


def documents_unlike(run: Run, before: Row, after: Row) -> Iterator[Unlike]:
    """Tell labels that changed under the same prompts, and prompts that changed of the same documents."""
    first, second = _hashes(run, before), _hashes(run, after)
    shared = [doc for doc in first if doc in second]
    if not shared:
        return
    same_words = sum(first[doc][1] == second[doc][1] for doc in shared) / len(shared)
    same_docs = sum(first[doc][0] == second[doc][0] for doc in shared) / len(shared)
    places = str(before["source"]), str(after["source"])
    count = f"other in {round((1 - min(same_docs, same_words)) * len(shared))} of {len(shared)} documents"
    if same_words >= _ALIKE and same_docs <= _DIFFER:
        yield Unlike("labels of the documents", "as asked before", count, *places, family="labels")
    elif same_docs >= _ALIKE and same_words <= _DIFFER:
        yield Unlike("prompts of the documents", "as asked before", count, *places, family="prompt")


def _hashes(run: Run, row: Row) -> Mapping[str, tuple[str | None, str | None]]:
    """Hashes of document and prompt, by document, of the samples beside a result."""
    folder, stamp = str(row["source"]).rpartition("/")[0], stamp_ns(str(row["source"]))
    samples = run.scan("eval_samples").filter(
        (pl.col("task") == row["task"])
        & pl.col("source").str.starts_with(f"{folder}/" if folder else "")
        & pl.col("doc_hash").is_not_null()
        & pl.col("prompt_hash").is_not_null()
    )
    frame = samples.select("source", "doc", "doc_hash", "prompt_hash").collect()
    by_source = {str(source): part for (source,), part in frame.group_by("source", maintain_order=True)}
    near = [source for source in by_source if stamp_ns(source) == stamp] or list(by_source)
    if not near:
        return {}
    rows = by_source[near[-1]].iter_rows(named=True)
    return {str(one["doc"]): (one["doc_hash"], one["prompt_hash"]) for one in rows}
