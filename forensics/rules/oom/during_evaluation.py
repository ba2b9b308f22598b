"""OOM005 oom-during-evaluation: memory ran out in an evaluation or while text was generated, not in a training step.

What it detects: an out-of-memory error whose traceback runs through evaluation or generation.

Why it matters: the training step fits, so nothing about it has to change. Evaluations keep what training frees: they
run without the gradient machinery that would tell, with a batch size of their own, and gather every output.

How it decides: the frame that raised names an evaluation or a generation, in the first device error that the run did
not survive.

What else looks like this: a training function that is named `evaluate`; a reward model that is run in a rollout.

What to do next: run it under `torch.no_grad()` or `torch.inference_mode()`; lower its batch size; move outputs to the
host batch by batch (`eval_accumulation_steps` in transformers); empty the cache before it.

References: PyTorch, "Locally disabling gradient computation"; transformers, `eval_accumulation_steps`.

Example:
    ```events source,line,code,text,attrs
    train.log,90,traceback,torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.,"{""role"":""root"",""exc"":""torch.OutOfMemoryError"",""message"":""CUDA out of memory. Tried to allocate 2.00 GiB."",""frame"":""tools/train.py:88 evaluate""}"
    ```
    => OOM005 warning confidence=medium cause=oom_in_evaluation causal=context
Not this: the same error in the backward pass
    ```events source,line,code,text,attrs
    train.log,90,traceback,torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.,"{""role"":""root"",""exc"":""torch.OutOfMemoryError"",""message"":""CUDA out of memory. Tried to allocate 2.00 GiB."",""frame"":""torch/autograd/graph.py:88 backward""}"
    ```
    => nothing
"""  # noqa: E501 - a line of a log is one line

from __future__ import annotations

from forensics.rules.kit import Findings, Run, at_step, proof, rule
from forensics.rules.oom._memory import fatal, message_evidence, message_onset, ranks, size


@rule("oom", needs=("events", "metrics"), severity="warning", confidence="medium", causal="context")
def during_evaluation(run: Run) -> Findings:
    """Find the first fatal device error that was raised in an evaluation."""
    first = next(iter(fatal(run)), None)
    if first is None or first.phase not in {"evaluation", "generation"}:
        return
    tried = f" (tried to allocate {size(first.sizes.tried)})" if first.sizes.tried else ""
    yield during_evaluation.finding(
        f"memory ran out in {first.phase}{tried}, after {at_step(first.step)} of training",
        "the traceback runs through it: the training step fits",
        proof(message_evidence(first)),
        message_onset(first),
        culprits=ranks(first),
        cause=f"oom_in_{first.phase}",
        likely=(
            "gradients are recorded: no torch.no_grad()",
            "its batch is larger than the training batch",
            "outputs of all batches are kept on the device for a metric",
        ),
    )
