"""Calls of a device's runtime that ask or set something and give the device no work, by name.

None of them launches a kernel, a copy or a set, waits for the device or moves memory of the driver: of the host calls
of a trace these are the ones that no analysis of the device's time reads. What is not named here may do any of that.
"""

from __future__ import annotations

_ASKS = (
    "DeviceCanAccessPeer",
    "DeviceGetAttribute",
    "DeviceGetStreamPriorityRange",
    "DriverGetVersion",
    "EventCreate",
    "EventCreateWithFlags",
    "EventElapsedTime",
    "EventQuery",
    "FuncGetAttributes",
    "FuncSetAttribute",
    "GetDevice",
    "GetDeviceCount",
    "GetDeviceProperties",
    "GetLastError",
    "MemGetInfo",
    "OccupancyMaxActiveBlocksPerMultiprocessor",
    "OccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    "OccupancyMaxActiveClusters",
    "PeekAtLastError",
    "PointerGetAttribute",
    "PointerGetAttributes",
    "RuntimeGetVersion",
    "SetDevice",
    "StreamGetCaptureInfo",
    "StreamGetCaptureInfo_v2",
    "StreamGetCaptureInfo_v3",
    "StreamGetPriority",
    "StreamIsCapturing",
    "StreamQuery",
    "ThreadExchangeStreamCaptureMode",
)
#: The device's queues are told to keep an order; other makers' profilers may record that as work.
_CUDA_ORDERS = ("cudaEventRecord", "cudaEventRecordWithFlags", "cudaStreamWaitEvent")
#: Names of such calls of CUDA's and HIP's runtime.
QUIET_CALLS = frozenset((*_CUDA_ORDERS, *(prefix + name for prefix in ("cuda", "hip") for name in _ASKS)))
