"""In which installed package an exception was raised, far from the program's own code."""

from __future__ import annotations

from forensics.case.errors._failure import Failure
from forensics.knowledge.libraries import is_library_frame, package_of

#: Frames of a layer that the program calls itself: `_wrapped_call_impl`, `_call_impl` and `forward` (PyTorch 2.1,
#: torch/nn/modules/module.py). What is raised there is of what the program gave it.
_OF_A_CALL = 3


def raised_in(failure: Failure) -> str:
    """Name the package that raised it, where the program's own code was not at hand; empty where it was.

    Without frames the class of the exception says whose it is: `jaxlib.xla_extension.XlaRuntimeError`.
    """
    inside = next((i for i, frame in enumerate(failure.stack) if not is_library_frame(frame)), len(failure.stack))
    packages = [name for frame in failure.stack[:inside] if (name := package_of(frame))]
    whose, _, named = failure.exception.partition(".")
    if packages and inside > _OF_A_CALL:
        return packages[0]
    return whose if named and not inside else ""
