r"""PyTorch's own examples: word_language_model (`| epoch E | i/ N batches | …`), imagenet and MNIST.

word_language_model: ms per batch, loss and perplexity averaged over the log interval, epochs from 1; imagenet:
seconds per batch with the running mean in brackets, epochs from 0; MNIST: `[samples/all samples]`. The step is (epoch
- first) * N + i. These scripts go on through NaN to the end; a NaN validation loss is never the best, so no
checkpoint is written after it.

Example:
    ```log
    | epoch   2 |   200/  900 batches | lr 5.0000 | ms/batch  8.50 | loss  5.25 | ppl   190.57
    | end of epoch   2 | time: 35.50s | valid loss   nan | valid ppl      nan
    ```
    => step=1100 lr=5 step_time_s=0.0085 loss=5.25 ppl=190.57
    => step=1100 eval_loss=nan eval_ppl=nan

Example:
    ```log
    Epoch: [0][  10/500]	Time  0.250 ( 0.375)	Data  0.125 ( 0.250)	Loss 6.7500e+00 (6.8750e+00)	Acc@1   0.50 (  0.25)	Acc@5   1.50 (  1.25)
    ```
    => step=10 step_time_s=0.25 data_time_s=0.125 loss=6.75 acc1=0.5

Example:
    ```log
    Train Epoch: 2 [640/6000 (11%)]	Loss: 0.375000
    ```
    => step=6640 loss=0.375

Not this:
    ```log
    | epoch | batches | lr | ms/batch | loss | ppl |
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects._epochs import global_step
from forensics.dialects.spec import Dialect, Line, N, Name

DIALECT = Dialect(
    name="word_lm",
    title="PyTorch examples (word_language_model, imagenet, MNIST)",
    lines=(
        Line(
            "metrics",
            "| ms/batch ",
            r"\| epoch\s+(?P<epoch>\d+) \|\s+(?P<iter>\d+)/\s*(?P<iters>\d+) batches \| "
            rf"lr (?P<lr>{N}) \| ms/batch\s+(?P<ms_per_batch>{N}) \| loss\s+(?P<loss>{N}) \| ppl\s+(?P<ppl>{N})",
            names={"ms_per_batch": Name("step_time_s", 0.001)},
        ),
        Line(
            "metrics",
            "| valid loss ",
            r"\| end of epoch\s+(?P<epoch>\d+) \| time:\s+(?P<epoch_time_s>"
            rf"{N})s \| valid loss\s+(?P<eval_loss>{N}) \| valid ppl\s+(?P<eval_ppl>{N})",
        ),
        Line(
            "metrics",
            "Acc@1 ",
            rf"Epoch: \[(?P<epoch>\d+)\]\[\s*(?P<iter>\d+)/(?P<iters>\d+)\]\s+Time\s+(?P<step_time_s>{N}) \(.*?\)\s+"
            rf"Data\s+(?P<data_time_s>{N}) \(.*?\)\s+Loss\s+(?P<loss>{N}) \(.*?Acc@1\s+(?P<acc1>{N})",
        ),
        Line(
            "metrics",
            "Train Epoch: ",
            rf"Train Epoch: (?P<epoch>\d+) \[(?P<iter>\d+)/(?P<iters>\d+) \(\d+%\)\]\s+Loss: (?P<loss>{N})",
        ),
        Line("ended", "| End of training | ", r"\| End of training \| test loss"),
    ),
    finish=global_step,
    doc=__doc__ or "",
)
