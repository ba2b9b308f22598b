"""Controls: nothing is wrong, whatever it looks like."""

from __future__ import annotations

from faults.evals import no_fall
from faults.row import HEALTHY, NONE, Fault, needs

_SHOW_TOKENS = ("logging", "kempnerforge", "torchtitan")


def _control(name: str, **more: object) -> Fault:
    return Fault(name, HEALTHY, NONE, **{"onset": False, "ends": "done"} | more)  # pyright: ignore[reportArgumentType]


ROWS = (
    _control("fine", needs=needs(), ranks=(1, 1, 2, 4)),
    Fault("fine-spikes", "healthy|suspect", f"{NONE}|learning", needs=needs("loss"), onset=False, ends="done", numbers={"factor": (3, 6)}),
    # an fp16 scale that is tried higher now and then, and halves
    _control("fine-skipped", needs=needs("scale"), ranks=(1, 1, 2)),
    _control("fine-warnings", ranks=(1, 1, 2)),
    _control("fine-words", ranks=(1, 1, 2)),
    _control("fine-caught", ranks=(1, 2)),
    # one batch did not fit, and was done in halves
    Fault("fine-retried", "healthy|suspect", f"{NONE}|oom", onset=False, ends="done"),
    _control("fine-pauses", needs=needs("evaluating"), eval_every=(25, 50), numbers={"seconds": (0.2, 0.4)}),
    _control("fine-saves", needs=needs("saving"), ranks=(1, 1, 2), numbers={"seconds": (0.1, 0.2)}),
    _control("fine-resumed", needs=needs("restore"), ranks=(1, 1, 2), starts=2),
    _control("fine-requeued", needs=needs("restore"), starts=2),
    _control("fine-interval", needs=needs("interval")),
    # twice the tokens in twice the time
    _control("fine-longer", needs=needs("batch", "before"), trainers=_SHOW_TOKENS),
    _control("fine-cosine", needs=needs("lr")),
    _control("fine-decay", needs=needs("lr"), ranks=(1, 1, 2)),
    _control("fine-early", needs=needs("stops", "evaluated"), eval_every=(10, 20)),
    _control("fine-loader", ranks=(1, 1, 2), numbers={"seconds": (0.3, 0.8)}),
    # its evaluations would ask for another task than the one that is trained
    _control("fine-zero", needs=needs("batch"), steps=(160, 240), eval_every=(0,)),
    _control("fine-jitter", ranks=(1, 2, 4)),
    _control("fine-eval-noise", leaves=("evals",), numbers={"docs": (20, 40)}, shown=no_fall),
    _control("fine-eval-batch", leaves=("evals",), shown=no_fall),
)  # fmt: skip
