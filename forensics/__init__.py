"""What went wrong in a training run, from the files it left: offline, exact, with evidence.

In a notebook:

    import forensics
    forensics.triage("runs/a")          # the verdict, with its evidence and charts
    run = forensics.open_run("runs/a")  # the tables: run.metrics is a polars LazyFrame
    run.to_pandas("metrics")
"""

TYPE_CHECKING = False  # `python -m forensics` runs this before the working folder is out of sys.path: import nothing
if TYPE_CHECKING:
    from forensics.api import OpenRun, Report, open_run, triage

__all__ = ["OpenRun", "Report", "open_run", "triage"]


def __getattr__(name: str) -> object:
    """Load the interface at its first use: `import forensics` alone loads no table library."""
    if name in __all__:
        from forensics import api  # noqa: PLC0415 - see above

        return getattr(api, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    """Name what may be used."""
    return [*globals(), *__all__]
