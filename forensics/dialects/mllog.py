"""MLPerf `:::MLLOG {json}` lines and NVIDIA DLLogger `DLL … - Iteration N key : value` lines.

Inside MLLOG step times are seconds; in DLLogger they are printed in ms, and `train_acc : 0.6465 %` is a fraction. The
step is what the writer counts (`step` or `samples_count`, often samples); where a training loss is counted in steps,
the other lines stand at the step before them. `eval_accuracy` is the validation LOSS in the language-model and
diffusion benchmarks, so it keeps its own name. NaN is a bare JSON `NaN`. After `run_stop` with status success the run
has done its work: signals, watchdogs and time limits behind it are tear-down.

Example:
    ```log
    :::MLLOG {"namespace": "", "time_ms": 1770000000000, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": {"train_step_time": 0.375, "reduced_train_loss": 6.25}, "metadata": {"file": "x.py", "lineno": 84, "samples_count": 512}}
    :::MLLOG {"namespace": "", "time_ms": 1770000000001, "event_type": "POINT_IN_TIME", "key": "eval_accuracy", "value": 5.75, "metadata": {"file": "x.py", "lineno": 85, "samples_count": 512}}
    ```
    => step=512 step_time_s=0.375 loss=6.25
    => step=512 eval_accuracy=5.75

Example:
    ```log
    DLL 2026-01-02 03:04:05.678901 - Iteration 99 | train_acc : 0.6250 % | iteration_time : 72.5 ms | train_loss : 1.125  | last_iter_used_cuda_graph : True
    :::MLLOG {"namespace": "", "time_ms": 1770000000002, "event_type": "INTERVAL_END", "key": "run_stop", "value": null, "metadata": {"file": "x.py", "lineno": 9, "status": "success"}}
    ```
    => step=99 train_acc=0.625 step_time_s=0.0725 loss=1.125
    => event mllog.ended

Not this:
    ```log
    :::MLLOG {"namespace": "", "time_ms": 1770000000003, "event_type": "POINT_IN_TIME", "key": "seed", "value": 7, "metadata": {"file": "x.py", "lineno": 10}}
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

import polars as pl

from forensics.dialects.spec import Dialect, Line, N, Name

_COUNT = r'"(?:samples_count|step_num|step)": (?P<{}>\d+)'
_OWN, _OTHER = _COUNT.format("step"), _COUNT.format("iter")
_TIMES = {"train_step_time": Name("step_time_s"), "throughput": Name("samples_per_sec")}
_TIME = r'(?:"time_ms": (?P<t>\d{13}).*?)?'
_EPOCH = rf'(?:.*?"epoch_num": (?P<epoch>{N}))?'


def _steps(frame: pl.DataFrame) -> pl.DataFrame:
    """Training losses count the run; other lines count samples or evaluation batches and stand at the step before."""
    counted = "step" if frame["step"].is_not_null().any() else "iter"
    return frame.with_columns(step=pl.col(counted).forward_fill())


DIALECT = Dialect(
    name="mllog",
    title="MLPerf MLLOG and NVIDIA DLLogger",
    lines=(
        Line(
            "metrics",
            '"key": "tracked_stats"',
            _TIME + r'"key": "tracked_stats", "value": \{(?P<tail>[^}]*(?:train_loss|"loss)"[^}]*)\}.*?' + _OWN,
            tail="json",
            names=_TIMES,
        ),
        Line(
            "metrics",
            '"key": "tracked_stats"',
            _TIME + rf'"key": "tracked_stats", "value": \{{(?P<tail>[^}}]*)\}}(?:.*?{_OTHER})?',
            tail="json",
            names=_TIMES,
        ),
        Line("metrics", '"key": "train_loss"', _TIME + rf'"key": "train_loss", "value": (?P<train_loss>{N}).*?{_OWN}'),
        Line(
            "metrics",
            '"key": "eval_accuracy"',
            _TIME + rf'"key": "eval_accuracy", "value": (?P<eval_accuracy>{N}){_EPOCH}(?:.*?{_OTHER})?',
            names={"eval_accuracy": Name("eval_accuracy")},
        ),
        Line(
            "metrics",
            '"key": "eval_error"',
            _TIME + rf'"key": "eval_error", "value": (?P<eval_error>{N}){_EPOCH}(?:.*?{_OTHER})?',
        ),
        Line(
            "metrics",
            "DLL ",
            r"DLL (?P<t>[\d-]+ [\d:.]+) - (?:Epoch: (?P<epoch>\d+) )?Iteration:? ?(?P<step>\d+) (?P<tail>.+)$",
            tail="colon",
        ),
        Line("started", '"key": "run_start"', _TIME + r'"key": "run_start"'),
        Line("ended", '"key": "run_stop"', _TIME + r'"key": "run_stop".*?"status": "success"'),
    ),
    sniff=(r":::MLLOG \{", r"DLL [\d-]+ [\d:.]+ - "),
    finish=_steps,
    metric_rank="any",
    doc=__doc__ or "",
)
