"""Our parameter names, their location in PyTorch's modules, and the values that both sides use."""

from typing import NamedTuple

import numpy
import torch


class Parameter(NamedTuple):
    name: str
    tensor: torch.nn.Parameter
    rows: slice = slice(None)

    def take(self, tensor):
        """The part of PyTorch's tensor for our parameter, as a view: nn.Linear stores [out, in], we store [in, out]."""
        part = tensor[self.rows]
        embedding = self.name.endswith(("embedding.weight", "position.weight")) or self.name == "output.weight"
        return part if embedding or part.dim() == 1 else part.T


def parameter_value(name, shape, width, draw=0):
    """FNV-1a of name and draw, stepped by the golden ratio per element, mixed, mapped to [-1, 1), scaled by kind."""
    base = 0x811C9DC5
    for byte in (f"{name}#{draw}" if draw else name).encode():
        base = (base ^ byte) * 0x01000193 & 0xFFFFFFFF
    count = int(numpy.prod(shape))
    mask = numpy.uint64(0xFFFFFFFF)
    x = (numpy.uint64(base) + numpy.arange(count, dtype=numpy.uint64) * numpy.uint64(0x9E3779B1)) & mask
    x ^= x >> numpy.uint64(16)
    x = x * numpy.uint64(0x7FEB352D) & mask
    x ^= x >> numpy.uint64(15)
    x = x * numpy.uint64(0x846CA68B) & mask
    x ^= x >> numpy.uint64(16)
    # 24 bits, so that u is exact in f32; each scale is rounded to f32 before the one product.
    u = ((x >> numpy.uint64(8)).astype(numpy.float64) * 2.0**-23 - 1.0).astype(numpy.float32)
    if name.endswith(".gamma"):
        value = numpy.float32(1.0) + numpy.float32(0.2) * u
    elif name.endswith((".beta", ".bias")):
        value = numpy.float32(0.1) * u
    elif name.endswith("embedding.weight") or name == "output.weight":
        value = numpy.float32((3.0 / width) ** 0.5) * u
    else:
        value = numpy.float32((6.0 / sum(shape)) ** 0.5) * u
    return torch.from_numpy(value.reshape(tuple(shape)))


def named_parameters(model):
    """Every parameter of the reference model under our name, tied ones once."""
    if model.output.weight is model.source_embedding.weight:
        found = [Parameter("embedding.weight", model.output.weight)]
    else:
        found = [Parameter("source_embedding.weight", model.source_embedding.weight),
                 Parameter("target_embedding.weight", model.target_embedding.weight),
                 Parameter("output.weight", model.output.weight)]
    if model.positions == "learned":
        found += [Parameter("source_position.weight", model.source_position.weight),
                  Parameter("target_position.weight", model.target_position.weight)]
    for i, layer in enumerate(model.encoder):
        found += attention(f"encoder.{i}.self_attention", layer.self_attn, {"qkv": slice(None)})
        found += norm(f"encoder.{i}.self_attention_norm", layer.norm1)
        found += feed_forward(f"encoder.{i}", layer) + norm(f"encoder.{i}.feed_forward_norm", layer.norm2)
    for i, layer in enumerate(model.decoder):
        d = layer.self_attn.embed_dim
        found += attention(f"decoder.{i}.self_attention", layer.self_attn, {"qkv": slice(None)})
        found += norm(f"decoder.{i}.self_attention_norm", layer.norm1)
        found += attention(f"decoder.{i}.cross_attention", layer.multihead_attn,
                           {"query": slice(0, d), "key_value": slice(d, None)})
        found += norm(f"decoder.{i}.cross_attention_norm", layer.norm2)
        found += feed_forward(f"decoder.{i}", layer) + norm(f"decoder.{i}.feed_forward_norm", layer.norm3)
    for side in ["encoder", "decoder"]:
        final = getattr(model, f"{side}_norm")
        if isinstance(final, torch.nn.LayerNorm):
            found += norm(f"{side}.norm", final)
    covered = sum(p.tensor[p.rows].numel() for p in found)
    assert covered == sum(p.numel() for p in model.parameters()), "a parameter has no name"
    return found


def attention(name, module, parts):
    found = []
    for part, rows in parts.items():
        found += [Parameter(f"{name}.{part}.weight", module.in_proj_weight, rows),
                  Parameter(f"{name}.{part}.bias", module.in_proj_bias, rows)]
    return found + linear(f"{name}.output", module.out_proj)


def feed_forward(name, layer):
    return linear(f"{name}.feed_forward.inner", layer.linear1) + linear(f"{name}.feed_forward.outer", layer.linear2)


def linear(name, module):
    return [Parameter(f"{name}.weight", module.weight), Parameter(f"{name}.bias", module.bias)]


def norm(name, module):
    return [Parameter(f"{name}.gamma", module.weight), Parameter(f"{name}.beta", module.bias)]
