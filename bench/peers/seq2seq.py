"""One training step of a recurrent encoder-decoder with additive attention in PyTorch: forward, backward, Adam.

{"op": "build", "d", "vocabulary", "dtype": "f32" | "bf16", "lengths": [[source, target], …]} builds a model and its batch and
answers {"parameters"}; {"op": "step"} answers {"seconds", "loss"}. With "device": "cuda" and a "mode" it trains on a GPU
(gpu_steps.py), where {"op": "round", "seconds"} answers {"seconds", "steps", "loss"}, the mean of some steps, and "dtype" may be "f16".

The encoder is nn.LSTM on packed sequences. The decoder runs step by step: keys and the input side of the gates are
projected once, the query and the state's side of the gates are one GEMM, pairs are sorted by target length so that a step
computes only those that still have a token, and keys are cut to the longest source among them.

Modes: "eager"; "graph"; "compiled", a graph whose decoder step is compiled with torch.compile. Every shape is compiled separately, so
the number of pairs of a step is rounded up to the next size in ROWS; finished pairs are computed but ignored.
"""

import math
import time

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

from gpu_steps import TYPES, GpuSteps, autocast
from exchange import serve

SMOOTHING, RATE, DROPOUT = 0.1, 1e-4, 0.2
# Bucket sizes for the pairs of a compiled decoder step: few, because each is compiled separately.
ROWS = (16, 32)


class Batch:
    """Random tokens, longest target first. Targets are stored step by step: the first tokens of all pairs, then the second ones.

    A step computes `rows` pairs; the first `active` of them still have a token. `real` has the indices of their tokens, or is None
    if no row is padding.
    """

    def __init__(self, lengths, vocabulary, generator, device, few_shapes):
        lengths = sorted(lengths, key=lambda pair: -pair[1])
        draw = lambda count: torch.randint(3, vocabulary, (count,), generator=generator).to(device)
        # pack_sequence needs the longest source first. The order is computed here: a graph must not synchronize with the host.
        order = sorted(range(len(lengths)), key=lambda pair: -lengths[pair][0])
        self.source = pack_sequence([draw(lengths[pair][0]) for pair in order])
        self.back = torch.tensor(order).argsort().to(device)
        source = torch.tensor([source for source, _ in lengths])
        self.padding = (torch.arange(int(source.max())) >= source[:, None]).to(device)
        self.active = [sum(target > step for _, target in lengths) for step in range(lengths[0][1])]
        at_least = lambda active: next((rows for rows in ROWS if active <= rows < len(lengths)), len(lengths))
        self.rows = [at_least(active) for active in self.active] if few_shapes else self.active
        self.longest = [int(source[:rows].max()) for rows in self.rows]
        self.target, self.labels = draw(sum(self.rows)), draw(sum(self.active))
        starts = torch.tensor([0] + self.rows[:-1]).cumsum(0).tolist()
        real = torch.cat([torch.arange(start, start + active) for start, active in zip(starts, self.active)])
        self.real = real.to(device) if few_shapes else None


class Seq2Seq(nn.Module):
    def __init__(self, d, vocabulary):
        super().__init__()
        self.d = d
        self.embedding = nn.Embedding(vocabulary, d)
        nn.init.normal_(self.embedding.weight, std=d**-0.5)
        self.encoder = nn.LSTM(d, d, 2, bidirectional=True, dropout=DROPOUT)
        self.bridge_h, self.bridge_c = nn.Linear(2 * d, d), nn.Linear(2 * d, d)
        self.key, self.score = nn.Linear(2 * d, d), nn.Linear(d, 1, bias=False)
        self.from_input = nn.Linear(d, 4 * d)
        self.from_context = nn.Linear(2 * d, 4 * d, bias=False)
        self.from_state = nn.Linear(d, d + 4 * d, bias=False)
        self.readout = nn.Linear(d + d + 2 * d, d)
        self.dropout = nn.Dropout(DROPOUT)
        self.step = decoder_step

    def embed(self, tokens):
        return self.dropout(self.embedding(tokens) * math.sqrt(self.d))

    def encode(self, batch):
        outputs, (h, c) = self.encoder(batch.source._replace(data=self.embed(batch.source.data)))
        last = lambda state: torch.cat([state[-2], state[-1]], -1)[batch.back]
        values = pad_packed_sequence(outputs, batch_first=True)[0][batch.back]
        return values, self.bridge_h(last(h)).tanh(), self.bridge_c(last(c))

    def forward(self, batch, dtype):
        values, h, c = self.encode(batch)
        keys = self.key(values)
        embedded = self.embed(batch.target)
        # Cast once: the compiled step would cast them every time.
        weights = [weight.to(TYPES.get(dtype, weight.dtype)) for weight in self.recurrent_weights()]
        states, contexts = [], []
        inputs = self.from_input(embedded).split(batch.rows)
        for gates, rows, active, longest in zip(inputs, batch.rows, batch.active, batch.longest):
            past = h[:rows], c[:rows]
            memory = keys[:rows, :longest], values[:rows, :longest], batch.padding[:rows, :longest]
            h, c, context = self.step(gates, *past, *memory, *weights)
            states.append(h[:active])
            contexts.append(context[:active])
        if batch.real is not None:
            embedded = embedded[batch.real]
        read = self.readout(torch.cat([torch.cat(states), embedded, torch.cat(contexts)], -1)).tanh()
        return functional.linear(self.dropout(read), self.embedding.weight)

    def recurrent_weights(self):
        return self.from_state.weight, self.from_context.weight, self.score.weight


def decoder_step(gates, h, c, keys, values, padding, from_state, from_context, score):
    """One token of all pairs: the next hidden state, the next cell state and the attention context."""
    query, recurrent = functional.linear(h, from_state).split([h.shape[1], 4 * h.shape[1]], -1)
    scores = functional.linear((query[:, None] + keys).tanh(), score).squeeze(-1)
    weights = scores.masked_fill(padding, -math.inf).softmax(-1)
    context = torch.bmm(weights[:, None].to(values.dtype), values).squeeze(1)
    input_gate, forget_gate, candidate, output_gate = (gates + recurrent + functional.linear(context, from_context)).chunk(4, -1)
    c = forget_gate.sigmoid() * c + input_gate.sigmoid() * candidate.tanh()
    return output_gate.sigmoid() * c.tanh(), c, context


class Run:
    def __init__(self, request):
        torch.manual_seed(1)
        self.device = request.get("device", "cpu")
        mode, draw = request.get("mode", "eager"), torch.Generator().manual_seed(2)
        self.batch = Batch(request["lengths"], request["vocabulary"], draw, self.device, mode == "compiled")
        self.model = Seq2Seq(request["d"], request["vocabulary"]).to(self.device).train()
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, fused=True, capturable=self.device == "cuda"
        )
        if mode == "compiled":
            self.model.step = torch.compile(decoder_step, dynamic=False)
        self.dtype = request["dtype"]
        self.steps = GpuSteps(self, mode, self.dtype) if self.device == "cuda" else None

    def loss(self):
        with autocast(self.device, self.dtype):
            logits = self.model(self.batch, self.dtype)
            return functional.cross_entropy(logits, self.batch.labels, label_smoothing=SMOOTHING)

    def step(self):
        start = time.perf_counter()
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        loss = loss.item()
        return {"seconds": time.perf_counter() - start, "loss": loss}


class Server:
    run = None

    def answer(self, request):
        match request["op"]:
            case "build":
                self.run = Run(request)
                return {"parameters": sum(p.numel() for p in self.run.model.parameters())}
            case "step":
                return self.run.step()
            case "round":
                return self.run.steps.round(request["seconds"])
            case other:
                raise ValueError(f"unknown operation {other!r}")


if __name__ == "__main__":
    torch.set_num_threads(2)
    torch.set_float32_matmul_precision("high")
    serve(Server().answer)
