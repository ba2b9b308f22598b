r"""Progress bars of tqdm, Lightning and Keras: `i/N [elapsed<left, R it/s]`, a clock of whatever trainer draws them.

Only bars that count iterations are read: one that counts examples, bytes or files draws data that is prepared or
loaded. A label other than an epoch or the training belongs to something else, such as a validation. The rows are no
metrics of a step, as a bar has no name: `bar_step` of `bar_total`, and what it says of the speed. `bar_ms` is Keras's
mean of the epoch so far, without its first step.

Example:
    ```log
     25%|██▌       | 5/20 [00:10<00:30,  2.00s/it]
    Epoch 3:  50%|█████     | 50/100 [00:05<00:05,  8.00it/s, v_num=0, loss=1.25]
    ```
    => bar_step=5 bar_total=20 bar_seconds=2 step=none
    => bar_step=50 bar_total=100 bar_rate=8 step=none

Example:
    ```log
    Epoch 2/5
    400/400 ━━━━━━━━━━━━━━━━━━━━ 5s 12ms/step - accuracy: 0.8750 - loss: 0.6250 - val_loss: 0.7500
    ```
    => bar_step=400 bar_total=400 bar_ms=12 step=none

Not this:
    ```log
    Map (num_proc=4): 100%|██████████| 18819/18819 [00:02<00:00, 7801.44 examples/s]
    Validation DataLoader 0:  50%|█████     | 2/4 [00:00<00:00, 61.10it/s]
     25%|██▌       | 5/20 [00:10<?, ?it/s]
    ```
"""

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line

_BAR = (
    r"^\s*(?:(?i:epoch|train|step|iter|update|global)[^|%]{0,40}?:?\s+)?\d+%\|[^|]*\|\s*"
    r"(?P<bar_step>\d+)/(?P<bar_total>\d+) \[[\d:]+<[\d:]+,\s*"
    r"(?:(?P<bar_rate>\d+(?:\.\d+)?)it/s|(?P<bar_seconds>\d+(?:\.\d+)?)s/it)"
)
_KERAS = (
    r"^\s*(?P<bar_step>\d+)/(?P<bar_total>\d+) (?:\[[=>.]*\]|[━ ]+|-) ?(?:- )?\d+s (?P<bar_ms>\d+(?:\.\d+)?)ms/step"
)

DIALECT = Dialect(
    name="progress_bars",
    title="progress bars (tqdm, Lightning, Keras)",
    lines=(Line("clock", "%|", _BAR), Line("clock", "ms/step", _KERAS)),
    sniff=(_BAR, _KERAS),
    doc=__doc__ or "",
)
