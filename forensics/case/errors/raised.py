"""Where a failure came up: an installed package far from the program's own code, a call that native code died in."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

import polars as pl

from forensics.case.errors._failure import Failure
from forensics.case.errors.kinds import attributes
from forensics.knowledge.libraries import is_library_frame, package_of
from forensics.patterns import lazily
from forensics.store.run import Run

#: Frames of a layer that the program calls itself: `_wrapped_call_impl`, `_call_impl` and `forward` (PyTorch 2.1,
#: torch/nn/modules/module.py). What is raised there is of what the program gave it.
_OF_A_CALL = 3
#: Classes that a package offers at its top, or in its module of errors: `soundfile.LibsndfileError`, `ray.exceptions`.
#: Of four public failures that ended in one none was of the package's version; of two of `jaxlib.xla_extension` both.
#: So is one that is called like its package: `xgboost.core.XGBoostError`.
_ON_PURPOSE = lazily(r"^\w+(?:\.\w+)?$|\.(?:errors?(?:_impl)?|exc|exceptions?)\.\w+$|^(\w+)\.(?:\w+\.)*(?i:\1)\w*$")


#: Classes of a package's own module of errors, which it raises on purpose however deep.
_OWN_ERRORS = lazily(r"\.(?:errors?(?:_impl)?|exceptions?)\.\w+$")


def raised_in(failure: Failure) -> str:
    """Name the package that raised it, where the program's own code was not at hand; empty where it was.

    Without frames the class of the exception says whose it is, `jaxlib.xla_extension.XlaRuntimeError`, unless its
    package raises it on purpose, to say what the caller did.
    """
    inside = next((i for i, frame in enumerate(failure.stack) if not is_library_frame(frame)), len(failure.stack))
    packages = [name for frame in failure.stack[:inside] if (name := package_of(frame))]
    whose = failure.exception.partition(".")[0]
    # a package is written in small letters: `Boost.Python.ArgumentError` is a class of any module that C++ offers
    told = not (inside or _ON_PURPOSE.search(failure.exception) or whose.lstrip("_") in sys.stdlib_module_names)
    told = told and whose.islower()
    if packages and inside > _OF_A_CALL and not _OWN_ERRORS.search(failure.exception):
        return packages[0]
    return whose if told else ""


def died_in(run: Run, failure: Failure | None, ranks: Iterable[int]) -> tuple[str, ...]:
    """Give the calls of the thread that died, the innermost first, where faulthandler printed them.

    They are those nearest to the failure in its file; those of `ranks` where a launcher tells of the death elsewhere.
    """
    named = pl.col("code") == "native_stack"
    shown = run.scan("events").filter(named).select("source", "rank", "line", "attrs").collect()
    if failure is not None and failure.source in shown["source"]:
        shown = shown.filter(pl.col("source") == failure.source).sort((pl.col("line") - failure.at).abs())
    else:
        shown = shown.filter(pl.col("rank").is_in(list(ranks))).sort("source", "line")
    near = shown.head(1)["attrs"].to_list()
    return tuple(json.loads(attributes(near[0]).get("stack", "[]"))) if near else ()
