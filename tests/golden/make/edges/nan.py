"""NaN on either side of what decides its onset and kind: shares, recoveries, rises, loss scales, words, checkpoints."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from make.base import NAN, Label, Made, Series, lines

STEPS = 120
_INF = math.inf
#: No text, which no weights are, and a whole archive: its directory is at its end.
_WEIGHTS = b"PK\x03\x04\x00weights" + b"PK\x05\x06" + bytes(18)
HEALTHY = Label(outcome="healthy|cannot_say")
STUMBLE = Label(outcome="healthy|suspect|cannot_say", shape="none|nan")
Cells = Mapping[str, Sequence[float | None]]


def lost(onset: int, *causes: str, checkpoint: int | None = None) -> Label:
    """The label of a run that is NaN from a step on."""
    return Label(outcome="failed", shape="nan", causes=causes, onset=onset, checkpoint=checkpoint)


def runs() -> Iterator[Made]:
    """Runs of JSON lines, tables and logs whose numbers stop being finite, or nearly."""
    for part in (_shares, _ends, _rises, _starts, _names, _hidden, _checkpoints):
        yield from part()
    yield from _stores()
    yield from _words()


def falling(count: int = STEPS, seed: int = 1, start: float = 4.0) -> Series:
    """A loss that falls, with noise of a percent."""
    rng = random.Random(seed)
    return [round((1.5 + (start - 1.5) * 0.5 ** (at / 40)) * (1 + rng.gauss(0, 0.01)), 4) for at in range(count)]


def norms(rise: Callable[[int], float] = lambda _: 1.0, count: int = STEPS, sd: float = 0.1, seed: int = 2) -> Series:
    """Gradient norms about one, times what a rise makes of them."""
    rng = random.Random(seed)
    return [round(math.exp(rng.gauss(0, sd)) * rise(at), 4) for at in range(count)]


def spoilt(values: Sequence[float], where: Callable[[int], bool], by: float = NAN) -> Series:
    """The values, with another in the place of some."""
    return [by if where(at) else value for at, value in enumerate(values)]


def records(cells: Cells, first: int = 1, every: int = 1, **more: object) -> str:
    """JSON lines of one record for each place; None leaves a cell out, and a record of nothing but None is skipped."""
    count = max(map(len, cells.values()))
    rows = ({name: v[at] for name, v in cells.items() if at < len(v) and v[at] is not None} for at in range(count))
    found = [{"step": first + at * every, **more, **row} for at, row in enumerate(rows) if row]
    return "".join(json.dumps(row) + "\n" for row in found)


def one(name: str, cells: Cells, label: Label, first: int = 1, every: int = 1) -> Made:
    """One run of JSON lines."""
    return Made(f"edge-nan-{name}", {"metrics.jsonl": records(cells, first, every)}, label)


def _shares() -> Iterator[Made]:
    """Single bad records among finite ones, up to the share that is a fault."""
    loss = falling()
    for count in (1, 6, 7, 23, 25):
        places = {int(20 + at * 90 / count) for at in range(count)}
        label = STUMBLE if count < 13 else Label(outcome="failed|suspect", shape="nan")
        yield one(
            f"loss-now-and-then-{count}", {"loss": spoilt(loss, places.__contains__), "grad_norm": norms()}, label
        )
        grads = spoilt(norms(), places.__contains__)
        yield one(f"gradient-now-and-then-{count}", {"loss": loss, "grad_norm": grads}, STUMBLE)
    for length in (5, 7, 30):
        yield one(f"loss-for-a-while-{length}", {"loss": spoilt(loss, lambda at, w=length: 50 <= at < 50 + w)}, STUMBLE if length < 20 else Label(outcome="failed|suspect", shape="nan"))  # fmt: skip
    for count in (1, 2):
        first = spoilt(falling(8), lambda at, c=count: at < c)
        yield one(f"loss-in-the-first-{count}-of-8", {"loss": first, "grad_norm": norms(count=8)}, STUMBLE)
    early = spoilt(loss, lambda at: at == 0)
    yield one("loss-in-the-first-record", {"loss": early, "grad_norm": norms()}, HEALTHY)
    for count in (10, 30):
        yield one(f"loss-once-in-{count}", {"loss": spoilt(falling(count), lambda at: at == 4)}, STUMBLE)
    scattered = spoilt(loss, lambda at: at in {30, 40} or at >= 90)
    yield one("loss-stumbles-then-is-lost", {"loss": scattered, "grad_norm": norms()}, lost(91))
    dense = spoilt(loss, lambda at: at >= 60 and at % 3 != 0)
    yield one("loss-mostly-lost", {"loss": dense}, lost(62))


def _ends() -> Iterator[Made]:
    """How much of a run is lost at its end, and what goes on beside it."""
    loss = falling()
    for left in (1, 2, 3, 30):
        bad = STEPS - left
        cells = {"loss": spoilt(loss, lambda at, b=bad: at >= b), "grad_norm": norms()}
        yield one(f"loss-lost-for-the-last-{left}", cells, lost(bad + 1, "data_or_numerics"))
        cells = {"loss": loss, "grad_norm": spoilt(norms(), lambda at, b=bad: at >= b)}
        yield one(f"gradient-lost-for-the-last-{left}", cells, STUMBLE if left < 2 else lost(bad + 1))
        cells = {"loss": loss, "grad_norm": spoilt(norms(), lambda at, b=bad: at >= b, _INF)}
        yield one(f"gradient-infinite-for-the-last-{left}", cells, STUMBLE if left < 2 else lost(bad + 1))
        cells = {"loss": spoilt(loss, lambda at, b=bad: at < b), "grad_norm": norms()}
        yield one(f"loss-found-for-the-last-{left}", cells, Label(outcome="failed|suspect|healthy", shape="nan|none"))
    both = {"loss": spoilt(loss, lambda at: at >= 80), "grad_norm": spoilt(norms(), lambda at: at >= 78)}
    yield one("gradient-before-loss", both, lost(79))
    both = {"loss": spoilt(loss, lambda at: at >= 80), "grad_norm": spoilt(norms(), lambda at: at == 79, _INF)}
    yield one("gradient-infinite-then-loss", both, lost(80))
    last = {"loss": spoilt(loss, lambda at: at >= 117), "grad_norm": [*norms()[:119], NAN]}
    yield one("gradient-after-loss", last, lost(118))


def _rises() -> Iterator[Made]:
    """What rose before the onset: how far, how long before, and in which series."""
    loss = spoilt(falling(), lambda at: at >= 100)
    for ratio in (2.0, 3.2, 20.0):
        for lead in (1, 9, 12):
            grads = norms(lambda at, r=ratio, d=lead: r if at == 100 - d else 1.0)
            cause = "optimization_blowup" if ratio > 3 and lead < 11 else "data_or_numerics"
            yield one(f"gradient-rises-{ratio}-{lead}-before", {"loss": loss, "grad_norm": spoilt(grads, lambda at: at >= 100)}, lost(101, cause))  # fmt: skip
    for sd in (0.01, 0.25, 0.6):
        grads = norms(lambda at: 4.0 if at >= 96 else 1.0, sd=sd)
        yield one(f"gradient-rises-in-noise-{sd}", {"loss": loss, "grad_norm": spoilt(grads, lambda at: at >= 100)}, lost(101))  # fmt: skip
    for ratio in (1.6, 3.0):
        for lead in (1, 3, 5):
            up = [v * (ratio if 100 - lead <= at < 100 else 1) for at, v in enumerate(falling())]
            yield one(f"loss-rises-{ratio}-{lead}-before", {"loss": spoilt(up, lambda at: at >= 100)}, lost(101, "optimization_blowup"))  # fmt: skip
    for past in (4, 6):
        up = spoilt(norms(lambda at, p=past: 30.0 if at == p else 1.0, count=20), lambda at, p=past: at > p)
        yield one(f"gradient-rises-after-{past}", {"loss": spoilt(falling(20), lambda at, p=past: at > p), "grad_norm": up}, lost(past + 2))  # fmt: skip
    far = [None if at > 80 else v for at, v in enumerate(norms())]
    yield one("gradient-ends-long-before", {"loss": loss, "grad_norm": far}, lost(101))
    drift = norms(lambda at: 1.0 + max(0, at - 40) / 6)
    yield one("gradient-drifts-up", {"loss": loss, "grad_norm": spoilt(drift, lambda at: at >= 100)}, lost(101))
    long = norms(lambda at: 8.0 if 5 <= at < 40 else 1.0, count=STEPS)
    yield one("gradient-rose-long-ago", {"loss": loss, "grad_norm": spoilt(long, lambda at: at >= 100)}, lost(101, "data_or_numerics"))  # fmt: skip
    yield one("gradient-falls-to-nothing", {"loss": loss, "grad_norm": spoilt(norms(lambda at: 0.001 if at > 90 else 1.0), lambda at: at >= 100)}, lost(101))  # fmt: skip


def _starts() -> Iterator[Made]:
    """Runs that are lost from their first records, or whose log begins late."""
    for good in (0, 1, 2):
        cells = {"loss": spoilt(falling(40), lambda at, g=good: at >= g)}
        label = lost(good + 1, "from_start") if good < 2 else lost(good + 1)
        yield one(f"lost-after-{good}", cells, label)
        yield one(f"lost-after-{good}-with-gradients", {**cells, "grad_norm": norms(count=40)}, label)
    for first, every in ((2, 1), (3, 1), (10, 10), (51, 1)):
        cause = "from_start" if first <= 50 else "unknown"  # 50 steps before it are not in the log
        yield one(f"log-begins-at-{first}", {"loss": [NAN] * 30}, lost(first, cause), first, every)
        cells = {"loss": spoilt(falling(30), lambda at: at >= 1)}
        yield one(f"one-record-at-{first}-by-{every}", cells, lost(first + every), first, every)
    for first in (20, 30):
        cells = {"loss": spoilt(falling(30), lambda at: at >= 1)}
        yield one(f"one-record-by-ten-at-{first}", cells, lost(first + 10), first, 10)


def _names() -> Iterator[Made]:
    """Which metrics are watched, and which hold NaN by design."""
    loss, gone = falling(), spoilt(falling(seed=5), lambda at: at >= 80)
    yield one("part-lost-with-loss", {"loss": spoilt(loss, lambda at: at >= 80), "loss_cls": gone}, lost(81))
    yield one("part-lost-alone", {"loss": loss, "loss_cls": gone}, HEALTHY)
    yield one("part-lost-and-no-loss", {"loss_cls": gone, "loss_box": falling(seed=6)}, lost(81))
    yield one("part-always-lost", {"loss": loss, "loss_cls": [NAN] * STEPS}, HEALTHY)
    yield one("part-always-lost-and-no-loss", {"loss_cls": [NAN] * STEPS, "loss_box": falling(seed=6)}, Label(outcome="failed|suspect|healthy", shape="nan|none"))  # fmt: skip
    every = [None if at % 20 else v for at, v in enumerate(gone)]
    for count in (1, 2, 6):
        shown = [NAN if at % (120 // count) == 0 else None for at in range(STEPS)]
        yield one(f"evaluation-always-lost-{count}", {"loss": loss, "eval_loss": shown}, Label(outcome="healthy|suspect|failed", shape="none|nan|bad_eval"))  # fmt: skip
    for count in (1, 2, 3):
        yield one(f"evaluation-alone-lost-{count}", {"eval_loss": [NAN] * count, "lr": [0.001] * 20}, Label(outcome="failed|suspect|cannot_say", shape="none|nan|bad_eval"))  # fmt: skip
    yield one("evaluation-lost", {"loss": loss, "eval_loss": every}, Label(outcome="healthy|suspect|failed", shape="none|nan|bad_eval"))  # fmt: skip
    yield one("perplexity-lost", {"perplexity": gone}, lost(81))
    yield one("good-name-lost", {"loss": loss, "best_loss": gone, "loss_scale": [1024.0] * STEPS}, HEALTHY)
    for count in (2, 3, 4):
        shown = {"loss": [*falling(count)], "loss_cls": [*falling(count)[:-1], NAN]}
        yield one(f"part-lost-beside-{count}", shown, STUMBLE)
    for names in (("G", "D"), ("gen", "disc", "cycle", "idt"), ("gen", "disc", "cycle", "idt", "rec")):
        for onset in (117, 118):
            cells = {name: spoilt(falling(seed=at), lambda place, o=onset: place >= o) if at < 2 else falling(seed=at) for at, name in enumerate(names)}  # fmt: skip
            label = lost(onset + 1) if 0 < onset < 118 and 1 < len(names) < 5 else Label(outcome="failed|suspect|healthy|cannot_say", shape="nan|none")  # fmt: skip
            yield one(f"together-{len(names)}-from-{onset}", cells, label)
    cells = {"G": spoilt(falling(), lambda at: at >= 60), "D": spoilt(falling(seed=3), lambda at: 60 <= at < 119)}
    yield one("together-one-comes-back", cells, Label(outcome="failed|suspect|healthy|cannot_say", shape="nan|none"))


def _hidden() -> Iterator[Made]:
    """Zeros that a writer put in the place of NaN, and zeros that are true."""
    loss = falling()
    for left in (2, 3, 40):
        yield one(f"loss-zero-for-{left}", {"loss": spoilt(loss, lambda at, b=STEPS - left: at >= b, 0.0)}, lost(STEPS - left + 1, "filtered_by_writer") if left > 2 else STUMBLE)  # fmt: skip
    for last in (0.04, 0.06, 0.2):
        near = [max(last, v * 0.95**at) for at, v in enumerate(loss)]
        yield one(f"loss-falls-to-{last}-then-zero", {"loss": spoilt(near, lambda at: at >= 90, 0.0)}, HEALTHY if last < 0.05 else lost(91))  # fmt: skip
    zero = spoilt(loss, lambda at: at >= 90, 0.0)
    yield one("loss-zero-with-gradients", {"loss": zero, "grad_norm": norms()}, Label(outcome="healthy|suspect|failed|cannot_say", shape="none|nan|learning"))  # fmt: skip
    yield one("loss-zero-with-gradients-lost", {"loss": zero, "grad_norm": spoilt(norms(), lambda at: at >= 90)}, lost(91, "filtered_by_writer"))  # fmt: skip
    yield one("loss-zero-then-more-with-gradients-lost", {"loss": [*zero[:-1], 1.0], "grad_norm": spoilt(norms(), lambda at: at >= 90)}, lost(91))  # fmt: skip
    mixed = [0.0 if at >= 90 and at % 2 else NAN if at >= 90 else v for at, v in enumerate(loss)]
    yield one("loss-zero-and-lost-with-gradients-lost", {"loss": mixed, "grad_norm": spoilt(norms(), lambda at: at >= 90)}, lost(91))  # fmt: skip
    yield one("loss-zero-once-then-for-good", {"loss": spoilt(zero, lambda at: at == 30, 0.0)}, lost(91, "filtered_by_writer"))  # fmt: skip
    yield one("loss-zero-with-rewards", {"loss": zero, "reward": [at / 100 for at in range(STEPS)]}, HEALTHY)
    yield one("loss-zero-after-negative", {"loss": [-v if at == 40 else v for at, v in enumerate(zero)]}, HEALTHY)
    for good in (2, 3, 4):
        label = lost(good + 1, "filtered_by_writer") if good > 2 else STUMBLE
        yield one(f"loss-zero-after-{good}", {"loss": spoilt(falling(20), lambda at, g=good: at >= g, 0.0)}, label)


def _checkpoints() -> Iterator[Made]:
    """From which checkpoint to go on: saved before the rise, after it, after the onset."""
    loss = spoilt(falling(), lambda at: at >= 100)
    calm = spoilt(norms(), lambda at: at >= 100)
    rise = spoilt(norms(lambda at: 10.0 if at >= 94 else 1.0), lambda at: at >= 100)
    for name, grads in (("calm", calm), ("rise", rise), ("none", None)):
        for steps in ((40, 95), (97, 110), (100,), (99, 100, 101)):
            cells = {"loss": loss} | ({"grad_norm": grads} if grads else {})
            files = {"metrics.jsonl": records(cells)}
            files |= {f"checkpoint-{step}/pytorch_model.bin": _WEIGHTS for step in steps}
            best = max((step for step in steps if step < (95 if name == "rise" else 101)), default=None)
            yield Made(f"edge-nan-saved-{name}-{'-'.join(map(str, steps))}", files, lost(101, checkpoint=best))
    files = {
        "metrics.jsonl": records({"loss": loss, "grad_norm": calm}),
        "checkpoint-95/pytorch_model.bin": _WEIGHTS[:12],
    }
    yield Made("edge-nan-saved-95-cut", files, lost(101))
    collapse = {"loss": falling(), "loss_scale": [65536.0 * 0.5 ** max(0, at - 101) for at in range(STEPS)]}
    files = {"metrics.jsonl": records(collapse), "checkpoint-90/pytorch_model.bin": _WEIGHTS, "checkpoint-110/pytorch_model.bin": _WEIGHTS}  # fmt: skip
    yield Made("edge-nan-saved-before-collapse", files, lost(103, "loss_scale_collapse", checkpoint=90))


def _stores() -> Iterator[Made]:
    """Several files: ranks that are lost at different steps, and stores that do not agree."""
    for ahead in (0, 1, 5):
        files = {
            f"rank_{rank}/metrics.jsonl": records(
                {
                    "loss": spoilt(falling(seed=rank), lambda at, b=80 - ahead * (rank == 1): at >= b),
                    "grad_norm": norms(seed=rank),
                },
                rank=rank,
            )
            for rank in range(3)
        }
        yield Made(f"edge-nan-rank-first-by-{ahead}", files, lost(81 - ahead))
    files = {f"rank_{rank}/metrics.jsonl": records({"loss": falling(seed=rank) if rank else spoilt(falling(), lambda at: at >= 80)}, rank=rank) for rank in range(2)}  # fmt: skip
    yield Made("edge-nan-one-rank-only", files, lost(81))
    other = {"train/metrics.jsonl": records({"loss": spoilt(falling(), lambda at: at >= 80)}), "bar/metrics.jsonl": records({"loss": [NAN]}, first=5)}  # fmt: skip
    yield Made("edge-nan-a-store-of-one-record", other, lost(81))
    gone = spoilt(falling(seed=5), lambda at: at >= 80)
    parts = {
        "a/metrics.jsonl": records({"loss_cls": gone, "loss_box": gone}),
        "b/metrics.jsonl": records({"loss": falling()}),
    }
    yield Made("edge-nan-parts-lost-with-a-loss-elsewhere", parts, lost(81))
    lacking = [v if at < 90 else None for at, v in enumerate(falling())]
    ranks = {f"rank_{rank}/metrics.jsonl": records({"loss": falling(seed=2) if rank else lacking, "loss_scale": [1024.0] * STEPS}, rank=rank) for rank in range(2)}  # fmt: skip
    yield Made("edge-nan-loss-vanishes-of-one-rank", ranks, lost(91))
    split = {"loss/metrics.jsonl": records({"loss": spoilt(falling(), lambda at: at >= 80)}), "gradients/metrics.jsonl": records({"grad_norm": norms(lambda at: 12.0 if at > 74 else 1.0)})}  # fmt: skip
    yield Made("edge-nan-gradients-elsewhere", split, lost(81, "optimization_blowup"))


_TRACE = (
    "Traceback (most recent call last):",
    '  File "train.py", line 88, in <module>',
    "    loss.backward()",
    '  File "torch/autograd/graph.py", line 824, in _engine_run_backward',
    "    return Variable._execution_engine.run_backward(",
)


def log_of(loss: Sequence[float], first: int = 1) -> list[str]:
    """Lines of training."""
    return [f"step {first + at} loss {value:.4f} grad_norm {0.9 + at % 7 / 20:.4f} lr 1.00e-03" for at, value in enumerate(loss)]  # fmt: skip


def _words() -> Iterator[Made]:
    """Detectors that speak of NaN: whether training goes on after their words, and what they name."""
    returned = "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output."
    for after in (0, 1, 2, 30):
        text = lines(log_of(falling(60)), _TRACE, returned, log_of(falling(after, seed=3), 61))
        label = lost(61) if after < 2 else Label(outcome="healthy|suspect|failed|cannot_say", shape="none|nan|crash")
        yield Made(f"edge-nan-said-then-{after}", {"train.log": text}, label)
    word = "WARNING loss is nan at step {0}, skipping batch"
    for times in (1, 3, 4):
        said = [[word.format(10 * at + 5), *log_of(falling(10, seed=at), 10 * at + 1)] for at in range(1, times + 1)]
        text = lines(log_of(falling(10)), *said, log_of(falling(40, seed=9), 10 * times + 11))
        yield Made(f"edge-nan-skipped-batch-{times}", {"train.log": text}, STUMBLE)
    for last in ("Loss is nan, stopping training", "FloatingPointError: Loss became infinite or NaN at iteration=61!", "ValueError: Expected parameter logits to satisfy the constraint, but found invalid values: tensor([[nan, nan]])", "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0"):  # fmt: skip
        slug = "-".join(last.split()[:4]).lower().strip(":,").replace(":", "").replace("=", "").replace("!", "").replace(",", "")  # fmt: skip
        trace = _TRACE if "Error" in last else ()
        yield Made(f"edge-nan-{slug}", {"train.log": lines(log_of(falling(60)), trace, last)}, lost(61))
    yield Made("edge-nan-said-at-the-start", {"train.log": lines(log_of(falling(1)), "Loss is nan, stopping training")}, lost(2))  # fmt: skip
    said = lines(log_of(falling(30)), "Loss is nan, stopping training", log_of(falling(1, seed=2), 31), "Loss is nan, stopping training")  # fmt: skip
    yield Made("edge-nan-said-twice", {"train.log": said}, lost(31))
    mixed = lines(log_of(spoilt(falling(60), lambda at: at >= 50)), _TRACE, returned)
    yield Made("edge-nan-printed-and-said", {"train.log": mixed}, lost(51))
