"""The weights of every checkpoint in bfloat16 as safetensors, with its settings beside them."""

import json

import torch
from safetensors.torch import save_file

_CONFIG = {
    "architectures": ["ChainNet"], "model_type": "chain", "vocab_size": 64, "hidden_size": 48,
    "intermediate_size": 96, "dtype": "bfloat16",
}  # fmt: skip


class Store:
    def saved(self, step, path, net):
        tensors = {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in net.state_dict().items()}
        save_file(tensors, path / "model.safetensors", {"format": "pt"})
        (path / "config.json").write_text(json.dumps(_CONFIG, indent=2) + "\n")

    def write(self, step, values):
        """Nothing: it is written with the checkpoints."""
