"""Writes the golden files of models for tasks other than translation: the results of torch.nn modules for a language model,
a masked language model and a classifier with attention pooling.

Run it with `cargo xtask golden`. Parameters are not stored: both sides generate them from their names.
"""

import json
import math
import sys
from pathlib import Path

import numpy
import safetensors
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parent.parent))
from generate import flat, padded, sinusoids  # noqa: E402
from parameters import Parameter, attention, feed_forward, linear, norm, parameter_value  # noqa: E402

VOCABULARY, WIDTH, INNER, LAYERS, HEADS, LABELS = 61, 32, 48, 2, 4, 5
BEGIN, END, MASK, FIRST_WORD = 1, 2, 3, 4
LENGTHS = [1, 9, 20, 5]


class Stack(nn.Module):
    """Embedding and layers; `sight` is the range of the attention: everything or the past."""

    def __init__(self, norm_place, sight):
        super().__init__()
        self.sight = sight
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, dropout=0.0, activation="gelu", batch_first=True,
                                       norm_first=norm_place == "pre", layer_norm_eps=1e-5) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-5) if norm_place == "pre" else nn.Identity()

    def forward(self, sequences):
        """The concatenated states of all tokens."""
        tokens, padding = padded(sequences)
        x = self.embedding(tokens) * math.sqrt(WIDTH) + sinusoids(tokens.shape[1])
        future = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).triu(1)
        for layer in self.layers:
            x = layer(x, src_mask=future if self.sight == "past" else None, src_key_padding_mask=padding)
        return self.norm(x)[~padding]

    def named(self):
        name = "decoder" if self.sight == "past" else "encoder"
        found = [Parameter("embedding.weight", self.embedding.weight)]
        for i, layer in enumerate(self.layers):
            found += attention(f"{name}.{i}.self_attention", layer.self_attn, {"qkv": slice(None)})
            found += norm(f"{name}.{i}.self_attention_norm", layer.norm1)
            found += feed_forward(f"{name}.{i}", layer) + norm(f"{name}.{i}.feed_forward_norm", layer.norm2)
        return found + (norm(f"{name}.norm", self.norm) if isinstance(self.norm, nn.LayerNorm) else [])


def words(seed, count):
    return [FIRST_WORD + (seed * 17 + i * 23 + i * i * 5) % (VOCABULARY - FIRST_WORD) for i in range(count)]


def language():
    stack = Stack("pre", "past")
    texts = [words(3 + n, length) for n, length in enumerate(LENGTHS)]
    inputs, labels = [[BEGIN] + t for t in texts], [t + [END] for t in texts]

    def logits():
        return stack(inputs) @ stack.embedding.weight.T

    return stack.named(), logits, flat(labels), dict(text=flat(texts))


def masked():
    stack, head, head_norm = Stack("post", "everything"), nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH, eps=1e-5)
    texts = [words(3 + n, length) for n, length in enumerate(LENGTHS)]
    rows = [0, 4, 9, 12, 20, 28, 33]
    hidden = flat(texts)[rows]
    text = flat(texts)
    text[rows[:-2]] = MASK
    text[rows[-2]] = FIRST_WORD
    seen = [list(map(int, part)) for part in text.split(LENGTHS)]

    def logits():
        told = head_norm(functional.gelu(head(stack(seen)[rows])))
        return told @ stack.embedding.weight.T

    named = stack.named() + linear("head", head) + norm("head_norm", head_norm)
    return named, logits, hidden, dict(text=text, rows=torch.tensor(rows, dtype=torch.int32))


def classifier():
    stack, key = Stack("post", "everything"), nn.Linear(WIDTH, WIDTH)
    # Stored as [d, n], because `Parameter` transposes everything but embeddings.
    query, labels = nn.Parameter(torch.zeros(WIDTH, 1)), nn.Parameter(torch.zeros(WIDTH, LABELS))
    texts = [words(3 + n, length) for n, length in enumerate(LENGTHS)]

    def logits():
        pooled = []
        for states in stack(texts).split(LENGTHS):
            weights = (torch.tanh(key(states)) @ query).softmax(0)
            pooled.append((weights * states).sum(0))
        return torch.stack(pooled) @ labels

    named = stack.named() + [Parameter("pooling.query.weight", query)] + linear("pooling.key", key)
    named.append(Parameter("labels.weight", labels))
    return named, logits, torch.tensor([4, 0, 2, 2], dtype=torch.int32), dict(text=flat(texts))


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.mha.set_fastpath_enabled(False)
    for case in [language, masked, classifier]:
        torch.manual_seed(0)
        named, logits, labels, inputs = case()
        with torch.no_grad():
            for p in named:
                part = p.take(p.tensor)
                part.copy_(parameter_value(p.name, part.shape, WIDTH))
        found = logits()
        loss = functional.cross_entropy(found, labels.long())
        loss.backward()
        tensors = dict(lengths=torch.tensor(LENGTHS, dtype=torch.int32), labels=labels, logits=found.detach().contiguous(),
                       loss=loss.detach(), **inputs)
        for p in named:
            tensors[f"grad.{p.name}"] = p.take(p.tensor.grad).contiguous().clone()
        versions = dict(torch=torch.__version__, numpy=numpy.__version__, safetensors=safetensors.__version__)
        path = Path(__file__).parent / f"{case.__name__}.safetensors"
        save_file(tensors, path, {"versions": json.dumps(versions)})
        print(f"{path.name}: loss {loss:.6f}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
