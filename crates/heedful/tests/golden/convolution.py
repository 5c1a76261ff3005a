"""Writes the golden files of four convolutional models, computed with PyTorch's nn.Conv1d, glu, relu and softmax.

Run it with `cargo xtask golden`. Every sentence is computed alone, so that nothing leaks across borders, and attention is
written out: it shares neither code nor method with the tested implementation.
"""

import json
import math
import re
from pathlib import Path

import numpy
import safetensors
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from generate import (ADAM_STEPS, LONGEST, RATE_FACTOR, SMOOTHING, VOCABULARY, WARMUP, batch, flat, smoothed_loss)
from parameters import parameter_value

WIDTH, LAYERS = 16, 2
HALF = math.sqrt(0.5)


class Layer(nn.Module):
    def __init__(self, taps, norm, dilation, gated):
        super().__init__()
        self.convolution = nn.Conv1d(WIDTH, 2 * WIDTH if gated else WIDTH, taps, dilation=dilation)
        self.is_gated = gated
        self.norm = nn.LayerNorm(WIDTH, eps=1e-5) if norm else None

    def activated(self, x, before):
        """Tokens × width in and out; `before` is the number of taps before the token."""
        after = self.convolution.kernel_size[0] - 1 - before
        dilation = self.convolution.dilation[0]
        y = self.convolution(functional.pad(x.T[None], (before * dilation, after * dilation)))
        return (functional.glu(y, dim=1) if self.is_gated else functional.relu(y))[0].T

    def balanced(self, x, y):
        return (x + y) * HALF if self.norm is None else self.norm(x + y)


class DecoderLayer(Layer):
    def __init__(self, *shape):
        super().__init__(*shape)
        self.query = nn.Linear(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, embedded, keys, values, scale):
        h = self.activated(x, self.convolution.kernel_size[0] - 1)
        query = (self.query(h) + embedded) * HALF
        c = self.output((query @ keys.T * scale).softmax(-1) @ values)
        return self.balanced(x, (h + c) * HALF if self.norm is None else h + c)


class Convolutional(nn.Module):
    def __init__(self, norm, tied, taps, decoder_taps, positions, scaled, dilation, gated):
        super().__init__()
        self.source_embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.target_embedding = self.source_embedding if tied else nn.Embedding(VOCABULARY, WIDTH)
        self.output = nn.Linear(WIDTH, VOCABULARY, bias=False)
        if tied:
            self.output.weight = self.source_embedding.weight
        if positions == "learned":
            self.source_position = nn.Embedding(LONGEST, WIDTH)
            self.target_position = nn.Embedding(LONGEST, WIDTH)
        dilations = [dilation**layer for layer in range(LAYERS)]
        self.encoder = nn.ModuleList(Layer(taps, norm, each, gated) for each in dilations)
        self.decoder = nn.ModuleList(DecoderLayer(decoder_taps, norm, each, gated) for each in dilations)
        self.scale = WIDTH**-0.5 if scaled else 1.0

    def forward(self, source, target):
        embedded = self.embed(source, self.source_embedding, getattr(self, "source_position", None))
        z = embedded
        for layer in self.encoder:
            z = layer.balanced(z, layer.activated(z, layer.convolution.kernel_size[0] // 2))
        values = (z + embedded) * HALF * math.sqrt(len(source))
        embedded = self.embed(target, self.target_embedding, getattr(self, "target_position", None))
        x = embedded
        for layer in self.decoder:
            x = layer(x, embedded, z, values, self.scale)
        return self.output(x)

    def embed(self, tokens, embedding, position):
        places = sinusoids(len(tokens)) if position is None else position.weight[:len(tokens)]
        return embedding(torch.tensor(tokens)) * math.sqrt(WIDTH) + places


def sinusoids(length):
    angles = numpy.arange(length)[:, None] / 10000.0 ** (numpy.arange(0, WIDTH, 2) / WIDTH)
    table = numpy.stack([numpy.sin(angles), numpy.cos(angles)], axis=-1)
    return torch.from_numpy(table.reshape(length, WIDTH).astype(numpy.float32))


def our_name(name):
    name = re.sub(r"(decoder\.\d+)\.(query|output)\.", r"\1.cross_attention.\2.", name)
    return name.replace("norm.weight", "norm.gamma").replace("norm.bias", "norm.beta")


def ours(name, tensor):
    """PyTorch's tensor in our shape, as a view: Conv1d stores [out, in, tap], Linear [out, in]."""
    if tensor.dim() == 3:
        return tensor.permute(2, 1, 0)
    is_table = name.endswith(("embedding.weight", "position.weight")) or name == "output.weight"
    return tensor if is_table or tensor.dim() == 1 else tensor.T


def named_parameters(model, tied):
    for name, tensor in model.named_parameters():
        yield "embedding.weight" if tied and name == "source_embedding.weight" else our_name(name), tensor


def set_parameters(model, tied):
    with torch.no_grad():
        for name, tensor in named_parameters(model, tied):
            view = ours(name, tensor)
            shape = (view.shape[0] * view.shape[1], view.shape[2]) if view.dim() == 3 else view.shape
            view.copy_(parameter_value(name, shape, WIDTH).reshape(view.shape))


def forward_backward(model, source, target_in, target_out):
    model.zero_grad(set_to_none=True)
    logits = torch.cat([model(s, t) for s, t in zip(source, target_in)])
    loss = smoothed_loss(logits, flat(target_out).long())
    loss.backward()
    return logits.detach(), loss.detach()


def adam_losses(model, *tokens):
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for step in range(1, ADAM_STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = RATE_FACTOR * WIDTH**-0.5 * min(step**-0.5, step * WARMUP**-1.5)
        losses.append(forward_backward(model, *tokens)[1])
        optimizer.step()
    return torch.stack(losses)


def case(config):
    tied = config["tying"] == "tied"
    model = Convolutional(config["balance"] == "norm", tied, config["encoder_taps"], config["decoder_taps"],
                          config["positions"], config["score"] == "scaled-dot", config.get("dilation", 1),
                          config.get("kind", "gated") == "gated")
    tokens = batch()
    source, target_in, target_out = tokens
    set_parameters(model, tied)
    logits, loss = forward_backward(model, *tokens)
    lengths = lambda sequences: torch.tensor([len(s) for s in sequences], dtype=torch.int32)
    tensors = dict(source=flat(source), source_lengths=lengths(source), target_in=flat(target_in),
                   target_out=flat(target_out), target_lengths=lengths(target_in), logits=logits, loss=loss)
    for name, tensor in named_parameters(model, tied):
        tensors[f"grad.{name}"] = ours(name, tensor.grad).contiguous().clone()
    tensors["losses"] = adam_losses(model, *tokens)
    config |= dict(vocabulary=VOCABULARY, d_model=WIDTH, layers=LAYERS, max_len=LONGEST, label_smoothing=SMOOTHING,
                   warmup=WARMUP, rate_factor=RATE_FACTOR)
    config["versions"] = dict(torch=torch.__version__, numpy=numpy.__version__, safetensors=safetensors.__version__)
    return tensors, {"config": json.dumps(config)}


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    folder = Path(__file__).parent / "convolution"
    folder.mkdir(exist_ok=True)
    for name, config in [
        ("scale-tied", dict(balance="scale", tying="tied", encoder_taps=3, decoder_taps=3, positions="sinusoidal", score="scaled-dot")),
        ("norm-untied", dict(balance="norm", tying="untied", encoder_taps=5, decoder_taps=2, positions="learned", score="dot")),
        ("dilated-gated", dict(balance="scale", tying="tied", encoder_taps=3, decoder_taps=3, positions="sinusoidal",
                               score="scaled-dot", dilation=3)),
        ("dilated-relu", dict(balance="norm", tying="tied", encoder_taps=3, decoder_taps=2, positions="sinusoidal",
                              score="scaled-dot", dilation=2, kind="relu")),
    ]:
        path = folder / f"{name}.safetensors"
        tensors, metadata = case(config)
        save_file(tensors, path, metadata)
        print(f"{path.name}: loss {tensors['loss']:.6f} -> {tensors['losses'][-1]:.6f}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
