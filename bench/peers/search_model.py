"""The Transformer of the beam search benchmark, with weights from the folder of a heedful run."""

import json
import struct
from pathlib import Path

import torch
from torch.nn import functional

from transformer import sinusoids

MAX_LENGTH = 1024
SUPPORTED = {"norm": "post", "positions": "sinusoidal", "tying": "all", "activation": "relu", "window": None}


def read(path):
    """The tensors of a safetensors file."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    kinds = {"F32": torch.float32, "BF16": torch.bfloat16}
    return {
        name: torch.frombuffer(bytearray(data[8 + length + at[0] : 8 + length + at[1]]), dtype=kinds[it["dtype"]]).view(it["shape"])
        for name, it in json.loads(data[8 : 8 + length]).items()
        if name != "__metadata__" and it["dtype"] in kinds
        for at in [it["data_offsets"]]
    }


def to_torch_layout(name, x):
    """Linear weights as out x in; 1 x d matrices as vectors."""
    if x.dim() == 2 and name.endswith(".weight") and name != "embedding.weight":
        return x.T.contiguous()
    return x.flatten() if x.shape[0] == 1 else x


class Model:
    """bf16 on a GPU; f32 on the CPU, which is only for testing the search."""

    def __init__(self, folder, device):
        self.device, self.dtype = device, torch.bfloat16 if device == "cuda" else torch.float32
        self.config = config = json.loads((Path(folder) / "config.json").read_text())
        for key, supported in SUPPORTED.items():
            if config[key] != supported:
                raise ValueError(f"{key} is {config[key]}, this peer supports only {supported}")
        found = read(Path(folder) / "model.safetensors")
        self.weights = {name: to_torch_layout(name, x).to(device, self.dtype) for name, x in found.items()}
        self.positions = sinusoids(MAX_LENGTH, config["d_model"]).to(device, self.dtype)
        self.table, self.heads, self.d = self.weights["embedding.weight"], config["heads"], config["d_model"]
        self.layers = config["decoder_layers"]

    def linear(self, x, name):
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def norm(self, x, name):
        gamma, beta = self.weights[f"{name}.gamma"], self.weights[f"{name}.beta"]
        return functional.layer_norm(x, (self.d,), gamma, beta, self.config["norm_epsilon"])

    def split(self, x, parts):
        batch, length, _ = x.shape
        return x.view(batch, length, parts, self.heads, -1).permute(2, 0, 3, 1, 4)

    def feed_forward(self, x, name):
        inner = self.linear(x, f"{name}.feed_forward.inner").relu()
        return self.norm(x + self.linear(inner, f"{name}.feed_forward.outer"), f"{name}.feed_forward_norm")

    def mask(self, real):
        """The additive mask of scores: 0 where `real`, else minus infinity."""
        return torch.zeros_like(real, dtype=self.dtype).masked_fill(~real, -torch.inf)

    def encode(self, source, mask):
        """The keys and values of the memory, [2, sentences, heads, length, d], for every decoder layer."""
        x = self.table[source] * self.d**0.5 + self.positions[: source.shape[1]]
        for number in range(self.config["encoder_layers"]):
            name = f"encoder.{number}"
            q, k, v = self.split(self.linear(x, f"{name}.self_attention.qkv"), 3)
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
            x = self.norm(x + self.linear(mixed, f"{name}.self_attention.output"), f"{name}.self_attention_norm")
            x = self.feed_forward(x, name)
        names = [f"decoder.{number}.cross_attention.key_value" for number in range(self.layers)]
        return [self.split(self.linear(x, name), 2).contiguous() for name in names]

    def decode(self, tokens, position, attend, memory, mask):
        """Logits after tokens of [sentences, beam], all at `position`, a tensor with one element.

        `attend(layer, q, kv)` appends keys and values of [2, sentences * beam, heads, 1, d] to the KV cache and attends to all of it.
        """
        sentences, beam = tokens.shape
        x = self.table[tokens].view(sentences * beam, 1, self.d) * self.d**0.5 + self.positions.index_select(0, position)
        for number in range(self.layers):
            name = f"decoder.{number}"
            q, k, v = self.split(self.linear(x, f"{name}.self_attention.qkv"), 3)
            mixed = attend(number, q, torch.stack([k, v])).transpose(1, 2).flatten(2)
            x = self.norm(x + self.linear(mixed, f"{name}.self_attention.output"), f"{name}.self_attention_norm")
            # All hypotheses of a sentence are queries of one attention.
            q = self.linear(x, f"{name}.cross_attention.query").view(sentences, beam, self.heads, -1).transpose(1, 2)
            mixed = functional.scaled_dot_product_attention(q, memory[number][0], memory[number][1], attn_mask=mask)
            mixed = mixed.transpose(1, 2).reshape(sentences * beam, 1, self.d)
            x = self.norm(x + self.linear(mixed, f"{name}.cross_attention.output"), f"{name}.cross_attention_norm")
            x = self.feed_forward(x, name)
        return functional.linear(x.view(sentences * beam, self.d), self.table)
