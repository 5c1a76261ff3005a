"""The Transformer of the training bench, written for speed in PyTorch: fused projections, fused attention."""

import math
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional


class Size(NamedTuple):
    width: int
    inner: int
    layers: int
    heads: int
    vocabulary: int = 8000


SIZES = {"small": Size(256, 1024, 3, 4), "base": Size(512, 2048, 6, 8)}
DROPOUT, MAX_LENGTH = 0.1, 512


class Attention(nn.Module):
    def __init__(self, size, cross):
        super().__init__()
        self.heads, self.cross = size.heads, cross
        if cross:
            self.query = nn.Linear(size.width, size.width)
            self.key_value = nn.Linear(size.width, 2 * size.width)
        else:
            self.qkv = nn.Linear(size.width, 3 * size.width)
        self.output = nn.Linear(size.width, size.width)

    def forward(self, x, memory=None, mask=None, causal=False):
        if self.cross:
            (q,), (k, v) = self.split(self.query(x), 1), self.split(self.key_value(memory), 2)
        else:
            q, k, v = self.split(self.qkv(x), 3)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.output(mixed.transpose(1, 2).flatten(2))

    def split(self, x, parts):
        """[batch, length, parts * d] to parts of [batch, heads, length, d / heads], as views."""
        batch, length, _ = x.shape
        return x.view(batch, length, parts, self.heads, -1).permute(2, 0, 3, 1, 4)


class Layer(nn.Module):
    """Post-norm: x = norm(x + dropout(sublayer(x))), as in the paper."""

    def __init__(self, size, decoder, attention):
        super().__init__()
        self.self_attention = attention(size, cross=False)
        self.cross_attention = attention(size, cross=True) if decoder else None
        self.inner, self.outer = nn.Linear(size.width, size.inner), nn.Linear(size.inner, size.width)
        self.norms = nn.ModuleList(nn.LayerNorm(size.width) for _ in range(3 if decoder else 2))

    def forward(self, x, mask, memory=None, memory_mask=None):
        drop = lambda y: functional.dropout(y, DROPOUT, self.training)
        causal = self.cross_attention is not None
        x = self.norms[0](x + drop(self.self_attention(x, mask=mask, causal=causal)))
        if self.cross_attention is not None:
            x = self.norms[1](x + drop(self.cross_attention(x, memory, mask=memory_mask)))
        return self.norms[-1](x + drop(self.outer(functional.relu(self.inner(x)))))


class Transformer(nn.Module):
    def __init__(self, size, attention=Attention):
        super().__init__()
        self.scale = math.sqrt(size.width)
        # Three-way tied: source, target and output share one table.
        self.embedding = nn.Embedding(size.vocabulary, size.width)
        nn.init.normal_(self.embedding.weight, std=size.width**-0.5)
        self.encoder = nn.ModuleList(Layer(size, False, attention) for _ in range(size.layers))
        self.decoder = nn.ModuleList(Layer(size, True, attention) for _ in range(size.layers))
        self.register_buffer("positions", sinusoids(MAX_LENGTH, size.width))

    def forward(self, source, source_mask, target, real):
        """Logits of the real target tokens; `real` has their indices in the flattened batch, or is None without padding."""
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory, source_mask)
        x = self.embed(target)
        # Target padding comes after all real tokens, so the causal mask already hides it.
        for layer in self.decoder:
            x = layer(x, None, memory, source_mask)
        x = x.flatten(0, 1)
        return functional.linear(x if real is None else x[real], self.embedding.weight)

    def embed(self, tokens):
        x = self.embedding(tokens) * self.scale + self.positions[: tokens.shape[1]]
        return functional.dropout(x, DROPOUT, self.training)


def sinusoids(length, width):
    angles = torch.arange(length)[:, None] / 10000.0 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angles.sin(), angles.cos()], -1).view(length, width)
