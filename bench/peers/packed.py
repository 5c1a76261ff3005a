"""The same Transformer on packed sequences without padding, with PyTorch's variable-length flash attention."""

import inspect
from typing import NamedTuple

import torch
from torch.nn import functional

from transformer import DROPOUT, Attention, Transformer


class Packing(NamedTuple):
    """The starts of a batch's sequences and the position of every token in its sequence; the same on both sides."""

    starts: torch.Tensor
    positions: torch.Tensor
    longest: int

    @classmethod
    def of(cls, lengths, sequences, longest):
        """Padded with empty sequences to `sequences`."""
        positions = torch.cat([torch.arange(length) for length in lengths])
        lengths = torch.tensor(list(lengths) + [0] * (sequences - len(lengths)))
        starts = functional.pad(lengths.cumsum(0), (1, 0)).int()
        return cls(starts.cuda(), positions.cuda(), longest)


class PackedAttention(Attention):
    def forward(self, x, memory=None, mask=None, causal=False):
        if self.cross:
            (q,), (k, v) = self.split(self.query(x), 1), self.split(self.key_value(memory), 2)
        else:
            q, k, v = self.split(self.qkv(x), 3)
        starts, _, longest = mask
        mixed = varlen(q, k, v, starts, starts, longest, longest, **(CAUSAL if causal else {}))
        return self.output(mixed.flatten(1)[None])

    def split(self, x, parts):
        """[1, tokens, parts * d] to parts of [tokens, heads, d / heads], as views."""
        return x.view(x.shape[1], parts, self.heads, -1).unbind(1)


class PackedTransformer(Transformer):
    def __init__(self, size):
        super().__init__(size, PackedAttention)

    def forward(self, source, packing, target, real):
        memory = self.embed_at(source, packing)
        for layer in self.encoder:
            memory = layer(memory, packing)
        x = self.embed_at(target, packing)
        for layer in self.decoder:
            x = layer(x, packing, memory, packing)
        return functional.linear(x.flatten(0, 1), self.embedding.weight)

    def embed_at(self, tokens, packing):
        x = self.embedding(tokens) * self.scale + self.positions[packing.positions]
        return functional.dropout(x, DROPOUT, self.training)


try:
    from torch.nn.attention.varlen import varlen_attn as varlen

    # PyTorch 2.10 has a flag, later versions have a window.
    HAS_WINDOW = "window_size" in inspect.signature(varlen).parameters
    CAUSAL = {"window_size": (-1, 0)} if HAS_WINDOW else {"is_causal": True}
except ImportError as reason:
    MISSING = str(reason)

    def varlen(*_, **__):
        raise RuntimeError(f"packed sequences need PyTorch 2.10: {MISSING}")
