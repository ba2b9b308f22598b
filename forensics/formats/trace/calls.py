"""Calls of a device's runtime that ask or set something and give the device no work, by name.

None of them launches a kernel, a copy or a set, waits for the device or moves memory of the driver: of the host calls
of a trace these are the ones that no analysis of the device's time reads. What is not named here may do any of that.
"""

from __future__ import annotations

from forensics.io.tables import named_rows

#: Names of such calls of CUDA's and HIP's runtime.
QUIET_CALLS = frozenset(
    prefix + row["call"]
    for row in named_rows("forensics.formats.trace", "quiet_calls.tsv")
    for prefix in row["prefixes"].split()
)
