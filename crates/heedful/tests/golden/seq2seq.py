"""Writes the golden files of the recurrent encoder-decoder: without attention, and with it before and after the step.

Run it with `cargo xtask golden`. Every sentence is computed alone, step by step, so that nothing leaks across borders: only
the gates of one step are PyTorch's own (`gru_cell`, `lstm_cell`). The metadata's `config` is heedful's model configuration.
"""

import json
import math
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn import functional

from generate import SMOOTHING, VOCABULARY, batch, flat, smoothed_loss
from parameters import parameter_value

WIDTH, ENCODER_WIDTH, SCORE_WIDTH, EPSILON = 24, 12, 14, 1e-5


def sinusoids(length, width):
    angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000.0 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angles.sin(), angles.cos()], -1).reshape(length, width).float()


class Parameters(dict):
    """Parameters generated from their names on first use, stored as [in, out] like ours."""

    def __call__(self, name, *shape):
        if name not in self:
            self[name] = parameter_value(name, shape, WIDTH).requires_grad_()
        assert self[name].shape == shape, f"{name} has two shapes"
        return self[name]

    def linear(self, name, x, width):
        return x @ self(f"{name}.weight", x.shape[-1], width) + self(f"{name}.bias", width)


class Seq2Seq:
    """One sentence at a time: matrices of tokens × width. A state is (h,) or (h, c)."""

    def __init__(self, config):
        self.config = config
        self.parameters = Parameters()
        self.is_lstm = config["cell"] == "lstm"

    def embed(self, side, tokens):
        return functional.embedding(torch.tensor(tokens), self.table(side)) * math.sqrt(WIDTH)

    def table(self, side):
        tied = self.config["tying"] == "all"
        name = "embedding" if tied else "output" if side == "output" else f"{side}_embedding"
        return self.parameters(f"{name}.weight", VOCABULARY, WIDTH)

    def cell(self, name, x, state, context=None):
        """One step. The context is an additional part of the input, with its own rows of the input matrix."""
        width = state[0].shape[-1]
        gates = (4 if self.is_lstm else 3) * width
        weight = self.parameters(f"{name}.input.weight", x.shape[-1], gates)
        if context is not None:
            weight = torch.cat([weight, self.parameters(f"{name}.context.weight", context.shape[-1], gates)])
            x = torch.cat([x, context], -1)
        hidden = self.parameters(f"{name}.hidden.weight", width, gates)
        bias = self.parameters(f"{name}.input.bias", gates)
        if self.is_lstm:
            return torch.lstm_cell(x, state, weight.T, hidden.T, bias, torch.zeros(gates))
        hidden_bias = self.parameters(f"{name}.hidden.bias", gates)
        return (torch.gru_cell(x, state[0], weight.T, hidden.T, bias, hidden_bias),)

    def norm(self, name, x):
        if self.config["norm_epsilon"] is None:
            return x
        gamma, beta = (self.parameters(f"{name}.norm.{part}", x.shape[-1]) for part in ["gamma", "beta"])
        return functional.layer_norm(x, x.shape[-1:], gamma, beta, EPSILON)

    def run(self, name, x, state):
        outputs = []
        for token in x:
            state = self.cell(name, token[None], state)
            outputs.append(state[0])
        return torch.cat(outputs), state

    def convolve(self, source):
        """A convolutional encoder: its outputs, and their mean as the only last state."""
        choices = self.config["convolution"]["stack"]
        x = self.embed("source", source) + sinusoids(len(source), WIDTH)
        for layer in range(choices["layers"]):
            taps, dilation, gated = choices["taps"], choices["dilation"]**layer, choices["kind"] == "gated"
            width = 2 * WIDTH if gated else WIDTH
            weight = self.parameters(f"encoder.{layer}.convolution.weight", taps * WIDTH, width)
            bias = self.parameters(f"encoder.{layer}.convolution.bias", width)
            kernel = weight.view(taps, WIDTH, width).permute(2, 1, 0)
            y = functional.conv1d(x.T[None], kernel, bias, padding=taps // 2 * dilation, dilation=dilation)
            x = (x + (functional.glu(y, dim=1) if gated else y.relu())[0].T) * math.sqrt(0.5)
        return x, [[x.mean(0, keepdim=True)] * 2]

    def encode(self, source):
        """The top layer's outputs, and the last states of every layer, both directions side by side."""
        if self.config.get("convolution"):
            return self.convolve(source)
        x, last = self.embed("source", source), []
        zeros = (torch.zeros(1, ENCODER_WIDTH),) * (2 if self.is_lstm else 1)
        for layer in range(self.config["encoder_layers"]):
            forward, to_the_right = self.run(f"encoder.{layer}.forward", x, zeros)
            if self.config["directions"] == "forward":
                x = self.norm(f"encoder.{layer}", forward)
                last.append(to_the_right)
                continue
            backward, to_the_left = self.run(f"encoder.{layer}.backward", x.flip(0), zeros)
            x = self.norm(f"encoder.{layer}", torch.cat([forward, backward.flip(0)], -1))
            last.append([torch.cat(pair, -1) for pair in zip(to_the_right, to_the_left)])
        return x, last

    def start(self, last):
        """The initial state of every decoder layer, from the encoder layer at the same depth, counted from the top."""
        depth = self.config["decoder_layers"]
        for layer in range(depth):
            ends = last[max(layer + len(last) - depth, 0)]
            h = self.parameters.linear(f"bridge.{layer}.h", ends[0], WIDTH).tanh()
            yield (h, self.parameters.linear(f"bridge.{layer}.c", ends[1], WIDTH)) if self.is_lstm else (h,)

    def look(self, state, memory, layer="decoder.0"):
        score = self.config["attention"]["score"]
        width = memory.shape[-1]
        if score == "additive":
            query = state @ self.parameters(f"{layer}.query.weight", WIDTH, SCORE_WIDTH)
            keys = self.parameters.linear(f"{layer}.key", memory, SCORE_WIDTH)
            scores = self.parameters(f"{layer}.score.weight", 1, SCORE_WIDTH) @ (query + keys).tanh().T
        elif score == "general":
            scores = state @ self.parameters(f"{layer}.query.weight", WIDTH, width) @ memory.T
        else:
            scores = state @ memory.T / (math.sqrt(width) if score == "scaled-dot" else 1)
        return scores.softmax(-1) @ memory

    def step(self, token, states, memory, context):
        """The top layer's output, the context, and the states of all layers."""
        if self.config["attention"] is None:
            x = torch.cat([token, context], -1)
            names = [f"decoder.{layer}.forward" for layer in range(len(states))]
            after = []
        else:
            context = self.look(states[0][0], memory)
            after = [self.cell("decoder.0", token, states[0], context)]
            x = torch.cat([self.norm("decoder.0", after[0][0]), context], -1)
            names = [f"decoder.above.{layer}.forward" for layer in range(len(states) - 1)]
        output = x if names else self.norm("decoder.0", after[0][0])
        for name, state in zip(names, states[len(after):]):
            after.append(self.cell(name, output, state))
            output = self.norm(name.removesuffix(".forward"), after[-1][0])
        return output, context, after

    def stack(self, x, states):
        """One step of all layers: the top layer's output, and the states."""
        after = []
        for layer, state in enumerate(states):
            after.append(self.cell(f"decoder.{layer}.forward", x, state))
            x = self.norm(f"decoder.{layer}", after[-1][0])
        return x, after

    def logits_after(self, source, target):
        """The decoder that attends after its step (Luong), with and without input feeding."""
        memory, last = self.encode(source)
        states, read, said = list(self.start(last)), torch.zeros(1, WIDTH), []
        for token in self.embed("target", target):
            feeding = self.config["attention"]["order"] == "feeding"
            x = torch.cat([token[None], read], -1) if feeding else token[None]
            output, states = self.stack(x, states)
            context = self.look(output, memory, f"decoder.{len(states) - 1}")
            read = self.parameters.linear("readout", torch.cat([output, context], -1), WIDTH).tanh()
            said.append(read @ self.table("output").T)
        return torch.cat(said)

    def logits(self, source, target):
        if (self.config["attention"] or {}).get("order", "before") != "before":
            return self.logits_after(source, target)
        memory, last = self.encode(source)
        states, summary = list(self.start(last)), last[-1][0]
        said = []
        for token in self.embed("target", target):
            output, context, states = self.step(token[None], states, memory, summary)
            x = torch.cat([output, token[None], context], -1)
            said.append(self.parameters.linear("readout", x, WIDTH).tanh() @ self.table("output").T)
        return torch.cat(said)


def case(cell, layers, attention, norm, tying, order=None, directions="both", convolution=None):
    config = dict(source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, cell=cell, d_model=WIDTH,
                  d_encoder=ENCODER_WIDTH, encoder_layers=layers[0], decoder_layers=layers[1], directions=directions,
                  norm_epsilon=EPSILON if norm else None, tying=tying, dropout=0.0, label_smoothing=SMOOTHING,
                  attention=attention and dict(score=attention, width=SCORE_WIDTH, hardness="soft"))
    if order is not None:
        config["attention"]["order"] = order
    if convolution is not None:
        stack = dict(d_model=WIDTH, layers=layers[0], balance="scale", norm_epsilon=EPSILON, dropout=0.0, **convolution)
        config["convolution"] = dict(stack=stack, positions="sinusoidal")
    model = Seq2Seq(config)
    source, target_in, target_out = batch()
    logits = torch.cat([model.logits(s, t) for s, t in zip(source, target_in)])
    loss = smoothed_loss(logits, flat(target_out).long())
    loss.backward()
    lengths = lambda sequences: torch.tensor([len(s) for s in sequences], dtype=torch.int32)
    tensors = dict(source=flat(source), source_lengths=lengths(source), target_in=flat(target_in),
                   target_out=flat(target_out), target_lengths=lengths(target_in), logits=logits.detach(),
                   loss=loss.detach())
    tensors |= {f"grad.{name}": parameter.grad for name, parameter in model.parameters.items()}
    return tensors, {"config": json.dumps(config)}


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    folder = Path(__file__).parent / "recurrent"
    folder.mkdir(exist_ok=True)
    for name, *choices in [
        ("seq2seq-lstm-plain", "lstm", (2, 1), None, False, "none"),
        ("seq2seq-gru-plain", "gru", (1, 2), None, False, "all"),
        ("seq2seq-gru-additive", "gru", (1, 1), "additive", False, "all"),
        ("seq2seq-lstm-scaled-dot", "lstm", (2, 2), "scaled-dot", False, "all"),
        ("seq2seq-gru-general-norm", "gru", (2, 2), "general", True, "none"),
        ("seq2seq-gru-after-additive", "gru", (1, 1), "additive", False, "all", "after"),
        ("seq2seq-lstm-after-general-norm", "lstm", (2, 2), "general", True, "all", "after", "forward"),
        ("seq2seq-gru-feeding-dot", "gru", (1, 2), "dot", False, "all", "feeding"),
        ("seq2seq-lstm-convolution", "lstm", (2, 2), "additive", False, "all", "before", "both",
         dict(taps=3, dilation=2, kind="relu")),
    ]:
        tensors, metadata = case(*choices)
        path = folder / f"{name}.safetensors"
        save_file(tensors, path, metadata)
        print(f"{path.name}: loss {tensors['loss']:.6f}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
