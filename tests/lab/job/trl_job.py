"""A tiny language model, made on the spot, under TRL's trainers."""

from __future__ import annotations

import common
import hf_hooks
import hooks
import library
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

JOB = hooks.JOB


def tokenizer():
    """A word for each token of the chain."""
    names = ["<pad>", "<eos>", "<unk>", *(f"t{at}" for at in range(common.VOCAB))]
    inner = Tokenizer(models.WordLevel({name: at for at, name in enumerate(names)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def model_of(words):
    """A Llama of two layers; its embedding gives what `hidden` may change."""
    torch.manual_seed(JOB["seed"])
    made = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(words), hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, max_position_embeddings=64, pad_token_id=words.pad_token_id,
            eos_token_id=words.eos_token_id, bos_token_id=None,
        )
    )  # fmt: skip
    made.at = 0
    changed = lambda _module, _given, states: hooks.hidden(made.at, states) if made.training else states  # noqa: E731
    made.get_input_embeddings().register_forward_hook(changed)
    return made


def texts(count, first):
    """Rows of the chain as text."""
    generator = torch.Generator().manual_seed(JOB["seed"] * 1000 + first)
    return [" ".join(f"t{token}" for token in row) for _ in range(count) for row in common.chain(generator)[0].tolist()]


def pairs(rows):
    """A prompt, how the chain goes on, and the same words in another order."""
    halves = [(row.split()[:8], row.split()[8:]) for row in rows]
    return [
        {"prompt": " ".join(a), "chosen": " " + " ".join(b), "rejected": " " + " ".join(b[::-1])} for a, b in halves
    ]


class Batches(hf_hooks.Hooked):
    """The Trainer's step, with the hooks of a batch and of a loss."""

    def training_step(self, model, inputs, *given, **named):
        ids, labels = inputs["input_ids"], inputs.get("labels")
        ids, labels = hooks.batch(library_step(self), ids, ids if labels is None else labels)
        # a mask of another length is no longer of these tokens
        kept = {name: value for name, value in inputs.items() if name != "labels" and value.shape[:2] == ids.shape}
        inputs = {**kept, "input_ids": ids, **({"labels": labels} if "labels" in inputs else {})}
        return super().training_step(model, inputs, *given, **named)

    def compute_loss(self, model, inputs, *given, **named):
        told = super().compute_loss(model, inputs, *given, **named)
        value = told[0] if isinstance(told, tuple) else told
        if model.training:
            value = hooks.loss(library_step(self), value)
            hooks.look(library_step(self), value.item())
        else:
            value = library.evaluated(self.state.global_step, value)
        return (value, *told[1:]) if isinstance(told, tuple) else value


def library_step(trainer):
    """The step that trains."""
    return trainer.state.global_step + 1


def supervised(_words):
    """SFT: text as it is."""
    from trl import SFTConfig, SFTTrainer  # noqa: PLC0415 - each takes seconds

    return SFTConfig, SFTTrainer, lambda rows: [{"text": row} for row in rows], {"max_length": 32}, {}


def preferred(words):
    """DPO: against the net before training."""
    from trl import DPOConfig, DPOTrainer  # noqa: PLC0415

    return DPOConfig, DPOTrainer, pairs, {"max_length": 32}, {"ref_model": model_of(words).eval()}


KINDS = {"trl-sft": supervised, "trl-dpo": preferred}


def main():
    hooks.joining()
    words = tokenizer()
    model = model_of(words)
    optimizer = library.optimizer_of(model)
    config, library_trainer, laid_out, sizes, more = KINDS[JOB["trainer"]](words)
    sizes |= {"per_device_train_batch_size": common.BATCH, "per_device_eval_batch_size": common.BATCH, "bf16": False}
    trainer = type("Hooked", (Batches, library_trainer), {})(
        model=model, args=hf_hooks.arguments(config, **sizes), processing_class=words,
        train_dataset=Dataset.from_list(laid_out(texts(JOB["steps"], 0))),
        eval_dataset=Dataset.from_list(laid_out(texts(4, 1))),
        optimizers=(optimizer, library.schedule_of(optimizer)), callbacks=[hf_hooks.Steps(model)], **more,
    )  # fmt: skip
    hf_hooks.train(trainer)


if __name__ == "__main__":
    main()
