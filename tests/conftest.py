"""What holds for every test."""

import gc
import os
from collections.abc import Iterator
from typing import Any

# A test's tables have few rows: handing them to other threads costs a third of a test's CPU and gains nothing, and the
# cores have a process of pytest each. Libraries read this when they are imported.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# They are few, too, of which a judgement asks polars' engine that takes a table whole (`pipeline.py`).
os.environ.setdefault("POLARS_ENGINE_AFFINITY", "in-memory")

import numpy as np
import pytest
from hypothesis import settings

# The first example of a test pays for imports, and a busy machine for everything: time is what bench/ measures.
# `make check` draws the same examples every time, so that it says something of the change alone; `make oracles` draws
# more, and new ones.
_ASKED = os.environ.get("FORENSICS_EXAMPLES", "")
settings.register_profile("forensics", deadline=None, max_examples=int(_ASKED or "25"), derandomize=not _ASKED)
settings.load_profile("forensics")


def pytest_collection_finish() -> None:
    """The collector leaves what is there before the first test alone: tens of thousands of tests, kept answers."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def true_size() -> None:
    """A test that asks for this makes hundreds of megabytes; `make oracles` runs it, `make check` does not."""
    if not os.environ.get("FORENSICS_TRUE_SIZE"):
        pytest.skip("make oracles runs it")


@pytest.fixture(scope="module")
def only_owned_columns() -> Iterator[None]:
    """While a test has this, a column made of memory that somebody may still write to is an error (`io/columns.py`)."""
    patch = pytest.MonkeyPatch()
    for name in ("numpy_to_pyseries", "numpy_to_pydf"):
        makers = [m for m in _polars_modules() if hasattr(m, name)]
        assert makers, f"polars has no {name} any more: look for where it takes numpy arrays now"
        for module in makers:
            patch.setattr(module, name, _checked(getattr(module, name)))
    yield
    patch.undo()


def _polars_modules() -> list[Any]:
    from polars import dataframe, series  # noqa: PLC0415 - private places of polars, looked at by this fixture only
    from polars._utils import construction  # noqa: PLC0415

    return [
        construction, construction.series, construction.dataframe, series.series, dataframe.frame,
    ]  # fmt: skip


def _checked(make: Any) -> Any:
    def made(*args: Any, **named: Any) -> Any:
        for given in (*args, *named.values()):
            if isinstance(given, np.ndarray):
                assert not given.flags.writeable, f"{given.dtype} memory open for writing became a column: use owned()"
        return make(*args, **named)

    return made
