"""Text classifiers in idiomatic PyTorch: an encoder, attention pooling, a linear layer.

Initialization: nn.LSTM has PyTorch's default; everything else is initialized as in heedful, whose Transformer and gated convolutions
follow the papers.
"""

import math

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from transformer import sinusoids

MAX_LENGTH = 4096


class Classifier(nn.Module):
    def __init__(self, config):
        super().__init__()
        encoder = config["encoder"]
        self.encoder = {"recurrent": Recurrent, "convolutional": Convolutional, "transformer": Transformer}[encoder["family"]](encoder)
        width = self.encoder.width
        self.key, self.query = nn.Linear(width, width), nn.Parameter(torch.randn(width) * width**-0.5)
        nn.init.xavier_uniform_(self.key.weight)
        nn.init.zeros_(self.key.bias)
        self.dropout = nn.Dropout(config["dropout"])
        self.labels = nn.Linear(width, config["labels"], bias=False)
        nn.init.normal_(self.labels.weight, std=width**-0.5)

        self.prepared = None

    def prepare(self, ids, lengths, packs):
        """Precomputes everything that needs the host, for the one batch of the benchmark, whose texts are sorted by length."""
        self.prepared = torch.arange(ids.shape[1], device=ids.device) >= lengths.to(ids.device)[:, None]
        self.encoder.prepared = pack_padded_sequence(ids, lengths, batch_first=True) if packs else ids

    def forward(self, ids, lengths):
        """Logits; `ids` are padded, `lengths` (on the CPU) are the lengths of the texts."""
        padding = self.prepared
        if padding is None:
            padding = torch.arange(ids.shape[1], device=ids.device) >= lengths.to(ids.device)[:, None]
        states = self.encoder(ids, lengths, padding)
        scores = (self.key(states).tanh() @ self.query).masked_fill(padding, -math.inf)
        pooled = torch.bmm(scores.softmax(-1)[:, None].to(states.dtype), states).squeeze(1)
        return self.labels(self.dropout(pooled))


class Embedding(nn.Module):
    """dropout(√d E[ids] (+ positions))."""

    def __init__(self, vocabulary, d, dropout, positions):
        super().__init__()
        self.scale, self.table = math.sqrt(d), nn.Embedding(vocabulary, d)
        nn.init.normal_(self.table.weight, std=d**-0.5)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoids(MAX_LENGTH, d) if positions == "sinusoidal" else None)

    def forward(self, ids):
        x = self.table(ids) * self.scale
        return self.dropout(x if self.positions is None else x + self.positions[: ids.shape[1]])


class Recurrent(nn.Module):
    def __init__(self, config):
        super().__init__()
        stack = config["stack"]
        self.width = 2 * stack["width"]
        self.embedding = Embedding(config["vocabulary"], stack["input"], config["dropout"], None)
        self.lstm = nn.LSTM(
            stack["input"], stack["width"], stack["layers"], batch_first=True, bidirectional=True, dropout=stack["dropout"]
        )

        self.prepared = None

    def forward(self, ids, lengths, _padding):
        packed = self.prepared
        if isinstance(packed, torch.Tensor):
            return self.lstm(self.embedding(packed))[0]
        if packed is None:
            packed = pack_padded_sequence(ids, lengths, batch_first=True, enforce_sorted=False)
        outputs, _ = self.lstm(packed._replace(data=self.embedding(packed.data)))
        return pad_packed_sequence(outputs, batch_first=True)[0]


class Convolutional(nn.Module):
    """(x + glu(conv(dropout(x)))) √½ in every layer."""

    def __init__(self, config):
        super().__init__()
        shape = config["stack"]
        self.width = d = shape["d_model"]
        self.embedding = Embedding(config["vocabulary"], d, config["dropout"], config["positions"])
        self.dropout = nn.Dropout(shape["dropout"])
        kernel_size = shape["taps"]
        self.layers = nn.ModuleList(nn.Conv1d(d, 2 * d, kernel_size, padding=kernel_size // 2) for _ in range(shape["layers"]))
        for layer in self.layers:
            nn.init.normal_(layer.weight, std=math.sqrt(4 * (1 - shape["dropout"]) / (kernel_size * d)))
            nn.init.zeros_(layer.bias)

    def forward(self, ids, _lengths, padding):
        real = ~padding[..., None]
        x = self.embedding(ids) * real
        for layer in self.layers:
            y = functional.glu(layer(self.dropout(x).transpose(1, 2)), dim=1).transpose(1, 2)
            # A window at the end of a text must see zeros behind it, not the previous layer's values at padding.
            x = (x + y) * math.sqrt(0.5) * real
        return x


class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.width = config["d_model"]
        dropout = config["dropout"]["residual"]
        self.embedding = Embedding(config["vocabulary"], self.width, dropout, config["positions"])
        self.layers = post_norm_layers(config)

    def forward(self, ids, _lengths, padding):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding)
        return x


def post_norm_layers(config):
    """PyTorch's layers with heedful's default dropout: on each sublayer's output."""
    assert config["norm"] == "post" and config["activation"] == "relu", config
    layers = nn.ModuleList()
    for _ in range(config["layers"]):
        layer = nn.TransformerEncoderLayer(
            config["d_model"], config["heads"], config["d_ff"], config["dropout"]["residual"], batch_first=True
        )
        layer.self_attn.dropout, layer.dropout.p = config["dropout"]["attention"], config["dropout"]["feed_forward"]
        for name, parameter in layer.named_parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        layers.append(layer)
    return layers
