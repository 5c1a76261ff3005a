"""Writes the golden files: the results of PyTorch's Transformer modules for eight small encoder-decoders.

Run it with `cargo xtask golden`. The model is built from torch.nn.TransformerEncoderLayer and TransformerDecoderLayer,
padded and masked, so that it shares neither code nor method with the tested implementation.
Parameters are not stored: both sides generate them from their names (see `parameter_value`).
"""

import json
import math
from pathlib import Path

import numpy
import safetensors
import torch
from safetensors.torch import save_file
from torch import nn

from parameters import named_parameters, parameter_value

VOCABULARY, WIDTH, INNER, LAYERS, LONGEST = 61, 32, 48, 2, 32
SMOOTHING, WARMUP, ADAM_STEPS = 0.1, 4, 10
# The distance from bf16 to f32 is measured over this many random draws of the parameters. A single draw is too noisy: a ReLU
# that rounding flips in one implementation only moves a gradient by more than all other rounding.
BF16_DRAWS = 64
# The schedule's own learning rate is so high for a model this small that ten steps amplify the last bit of f32 to 3e-4 of the
# loss; at a tenth of it f32 and f64 agree to 2e-7.
RATE_FACTOR = 0.1
BEGIN, END, FIRST_WORD = 1, 2, 3
SOURCE_LENGTHS, TARGET_LENGTHS = [1, 9, 20, 5], [7, 1, 13, 4]


class Transformer(nn.Module):
    def __init__(self, norm, tied, activation, heads, positions):
        super().__init__()
        shape = dict(d_model=WIDTH, nhead=heads, dim_feedforward=INNER, dropout=0.0, activation=activation,
                     batch_first=True, norm_first=norm == "pre", layer_norm_eps=1e-5)
        self.source_embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.target_embedding = self.source_embedding if tied else nn.Embedding(VOCABULARY, WIDTH)
        self.output = nn.Linear(WIDTH, VOCABULARY, bias=False)
        if tied:
            self.output.weight = self.source_embedding.weight
        self.positions = positions
        if positions == "learned":
            self.source_position = nn.Embedding(LONGEST, WIDTH)
            self.target_position = nn.Embedding(LONGEST, WIDTH)
        self.encoder = nn.ModuleList(nn.TransformerEncoderLayer(**shape) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(nn.TransformerDecoderLayer(**shape) for _ in range(LAYERS))
        # Post-norm layers end in a norm; a pre-norm stack needs a final norm.
        self.encoder_norm = nn.LayerNorm(WIDTH, eps=1e-5) if norm == "pre" else nn.Identity()
        self.decoder_norm = nn.LayerNorm(WIDTH, eps=1e-5) if norm == "pre" else nn.Identity()

    def forward(self, source, source_padding, target, target_padding):
        memory = self.embed(source, self.source_embedding, getattr(self, "source_position", None))
        for layer in self.encoder:
            memory = layer(memory, src_key_padding_mask=source_padding)
        memory = self.encoder_norm(memory)
        x = self.embed(target, self.target_embedding, getattr(self, "target_position", None))
        future = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        for layer in self.decoder:
            x = layer(x, memory, tgt_mask=future, tgt_key_padding_mask=target_padding,
                      memory_key_padding_mask=source_padding)
        return self.output(self.decoder_norm(x))

    def embed(self, tokens, embedding, position):
        length = tokens.shape[1]
        places = sinusoids(length) if position is None else position.weight[:length]
        return embedding(tokens) * math.sqrt(WIDTH) + places.to(embedding.weight.dtype)


def sinusoids(length):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same."""
    angles = numpy.arange(length)[:, None] / 10000.0 ** (numpy.arange(0, WIDTH, 2) / WIDTH)
    table = numpy.stack([numpy.sin(angles), numpy.cos(angles)], axis=-1)
    return torch.from_numpy(table.reshape(length, WIDTH).astype(numpy.float32))


def smoothed_loss(logits, labels):
    """The paper's form: 1 - eps on the label, eps / (V - 1) on every other class; mean over target tokens."""
    log_probabilities = logits.log_softmax(-1)
    goal = torch.full_like(log_probabilities, SMOOTHING / (VOCABULARY - 1))
    goal.scatter_(1, labels[:, None], 1 - SMOOTHING)
    return -(goal * log_probabilities).sum(-1).mean()


def batch():
    """Deterministic pseudo-random words: a fixed quadratic congruence."""
    words = lambda seed, count: [FIRST_WORD + (seed * 17 + i * 23 + i * i * 5) % (VOCABULARY - FIRST_WORD)
                                 for i in range(count)]
    source = [words(3 + n, length) for n, length in enumerate(SOURCE_LENGTHS)]
    target = [words(40 + n, length - 1) for n, length in enumerate(TARGET_LENGTHS)]
    return source, [[BEGIN] + t for t in target], [t + [END] for t in target]


def padded(sequences):
    longest = max(map(len, sequences))
    tokens = torch.tensor([s + [0] * (longest - len(s)) for s in sequences])
    padding = torch.tensor([[i >= len(s) for i in range(longest)] for s in sequences])
    return tokens, padding


def flat(sequences):
    return torch.tensor([token for sequence in sequences for token in sequence], dtype=torch.int32)


def distance(other, reference):
    return float((other - reference).norm() / reference.norm())


def forward_backward(model, source, target_in, target_out):
    """Concatenated logits of the target tokens without padding, and the loss; gradients stay on the model."""
    model.zero_grad(set_to_none=True)
    (source, source_padding), (target, target_padding) = padded(source), padded(target_in)
    logits = model(source, source_padding, target, target_padding)[~target_padding]
    logits = logits.to(model.output.weight.dtype)
    loss = smoothed_loss(logits, flat(target_out).long())
    loss.backward()
    return logits.detach(), loss.detach()


def gradients(parameters):
    return {p.name: p.take(p.tensor.grad).contiguous().clone() for p in parameters}


def set_parameters(parameters, draw=0):
    with torch.no_grad():
        for p in parameters:
            part = p.take(p.tensor)
            part.copy_(parameter_value(p.name, part.shape, WIDTH, draw))


def bf16_distances(model, parameters, tokens):
    """Distances from autocast to f32 of the logits and of every gradient, one for each draw."""
    distances = {}
    for draw in range(BF16_DRAWS):
        set_parameters(parameters, draw)
        logits, _ = forward_backward(model, *tokens)
        exact = gradients(parameters)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            bf16_logits, _ = forward_backward(model, *tokens)
        distances.setdefault("bf16_logits_distance", []).append(distance(bf16_logits, logits))
        for name, rounded in gradients(parameters).items():
            distances.setdefault(f"bf16_distance.{name}", []).append(distance(rounded, exact[name]))
    return {name: torch.tensor(found) for name, found in distances.items()}


def adam_losses(model, *tokens):
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for step in range(1, ADAM_STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = RATE_FACTOR * WIDTH**-0.5 * min(step**-0.5, step * WARMUP**-1.5)
        losses.append(forward_backward(model, *tokens)[1])
        optimizer.step()
    return torch.stack(losses)


def case(norm, tying, activation, heads, positions):
    model = Transformer(norm, tying == "tied", activation, heads, positions)
    parameters = named_parameters(model)
    tokens = batch()
    source, target_in, target_out = tokens
    distances = bf16_distances(model, parameters, tokens)

    set_parameters(parameters)
    logits, loss = forward_backward(model, *tokens)
    lengths = lambda sequences: torch.tensor([len(s) for s in sequences], dtype=torch.int32)
    tensors = dict(source=flat(source), source_lengths=lengths(source), target_in=flat(target_in),
                   target_out=flat(target_out), target_lengths=lengths(target_in), logits=logits, loss=loss, **distances)
    for name, gradient in gradients(parameters).items():
        tensors[f"grad.{name}"] = gradient
    tensors["losses"] = adam_losses(model, *tokens)

    config = dict(vocabulary=VOCABULARY, d_model=WIDTH, d_ff=INNER, n_heads=heads, encoder_layers=LAYERS,
                  decoder_layers=LAYERS, max_len=LONGEST, norm=norm, tying=tying, activation=activation,
                  positions=positions, norm_eps=1e-5, label_smoothing=SMOOTHING, warmup=WARMUP,
                  rate_factor=RATE_FACTOR)
    config["versions"] = dict(torch=torch.__version__, numpy=numpy.__version__, safetensors=safetensors.__version__)
    # Only one entry: safetensors writes several in random order, and equal results must give equal bytes.
    return tensors, {"config": json.dumps(config)}


def cases():
    heads = [4, 8, 1]
    for norm in ["post", "pre"]:
        for tying in ["tied", "untied"]:
            for activation in ["relu", "gelu"]:
                positions = "learned" if (norm, tying, activation) == ("pre", "untied", "relu") else "sinusoidal"
                yield norm, tying, activation, heads[0], positions
                heads = heads[1:] + heads[:1]


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.mha.set_fastpath_enabled(False)
    folder = Path(__file__).parent
    for norm, tying, activation, heads, positions in cases():
        tensors, metadata = case(norm, tying, activation, heads, positions)
        suffix = "-learned" if positions == "learned" else ""
        path = folder / f"{norm}-{tying}-{activation}-h{heads}{suffix}.safetensors"
        save_file(tensors, path, metadata)
        print(f"{path.name}: loss {tensors['loss']:.6f} -> {tensors['losses'][-1]:.6f}, "
              f"bf16 logits off by {tensors['bf16_logits_distance'].median():.1e}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
