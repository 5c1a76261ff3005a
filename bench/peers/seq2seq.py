"""One training step of a recurrent encoder-decoder with additive attention in PyTorch: forward, backward, Adam.

{"op": "build", "d", "vocabulary", "dtype": "f32" | "bf16", "lengths": [[source, target], …]} makes a model and its batch and
answers {"parameters"}; {"op": "step"} answers {"seconds", "loss"}. With "device": "cuda" and a "mode" of card_steps.py it
trains on a card, where {"op": "round", "seconds"} answers {"seconds", "steps", "loss"}, the mean of some steps.

The encoder is nn.LSTM on packed sequences. The decoder has to go step by step: keys and the input side of the gates are
projected once, the query and the state's side of the gates are one product, pairs are sorted by the target's length so that a
step computes only those that still have a token, and keys are cut to the longest source among them.
"""

import contextlib
import math
import time

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

from card_steps import CardSteps
from exchange import serve

SMOOTHING, RATE, DROPOUT = 0.1, 1e-4, 0.2


class Batch:
    """Random tokens, longest target first. Targets lie step by step: the first tokens of all pairs, then the second ones."""

    def __init__(self, lengths, vocabulary, generator, device):
        lengths = sorted(lengths, key=lambda pair: -pair[1])
        draw = lambda count: torch.randint(3, vocabulary, (count,), generator=generator).to(device)
        # The encoder wants the longest source first. Where each one went is looked up here: a graph must not ask the host.
        order = sorted(range(len(lengths)), key=lambda pair: -lengths[pair][0])
        self.source = pack_sequence([draw(lengths[pair][0]) for pair in order])
        self.back = torch.tensor(order).argsort().to(device)
        source = torch.tensor([source for source, _ in lengths])
        self.padding = (torch.arange(int(source.max())) >= source[:, None]).to(device)
        self.active = [sum(target > step for _, target in lengths) for step in range(lengths[0][1])]
        self.longest = [int(source[:rows].max()) for rows in self.active]
        self.target, self.labels = draw(sum(self.active)), draw(sum(self.active))


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

    def embed(self, tokens):
        return self.dropout(self.embedding(tokens) * math.sqrt(self.d))

    def encode(self, batch):
        outputs, (h, c) = self.encoder(batch.source._replace(data=self.embed(batch.source.data)))
        last = lambda state: torch.cat([state[-2], state[-1]], -1)[batch.back]
        values = pad_packed_sequence(outputs, batch_first=True)[0][batch.back]
        return values, self.bridge_h(last(h)).tanh(), self.bridge_c(last(c))

    def forward(self, batch):
        values, h, c = self.encode(batch)
        keys = self.key(values)
        embedded = self.embed(batch.target)
        states, contexts = [], []
        for gates, rows, longest in zip(self.from_input(embedded).split(batch.active), batch.active, batch.longest):
            h, c = h[:rows], c[:rows]
            query, recurrent = self.from_state(h).split([self.d, 4 * self.d], -1)
            scores = self.score((query[:, None] + keys[:rows, :longest]).tanh()).squeeze(-1)
            weights = scores.masked_fill(batch.padding[:rows, :longest], -math.inf).softmax(-1)
            context = torch.bmm(weights[:, None].to(values.dtype), values[:rows, :longest]).squeeze(1)
            take, keep, new, show = (gates + recurrent + self.from_context(context)).chunk(4, -1)
            c = keep.sigmoid() * c + take.sigmoid() * new.tanh()
            h = show.sigmoid() * c.tanh()
            states.append(h)
            contexts.append(context)
        read = self.readout(torch.cat([torch.cat(states), embedded, torch.cat(contexts)], -1)).tanh()
        return functional.linear(self.dropout(read), self.embedding.weight)


class Run:
    def __init__(self, request):
        torch.manual_seed(1)
        self.device = request.get("device", "cpu")
        self.batch = Batch(request["lengths"], request["vocabulary"], torch.Generator().manual_seed(2), self.device)
        self.model = Seq2Seq(request["d"], request["vocabulary"]).to(self.device).train()
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, fused=True, capturable=self.device == "cuda"
        )
        self.bf16 = request["dtype"] == "bf16"
        self.steps = CardSteps(self, request["mode"]) if self.device == "cuda" else None

    def loss(self):
        # Casts are kept within a step on the processor; a graph must not use those of the steps before it.
        is_kept = self.device == "cpu"
        autocast = torch.autocast(self.device, dtype=torch.bfloat16, cache_enabled=is_kept)
        with autocast if self.bf16 else contextlib.nullcontext():
            logits = self.model(self.batch)
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
                raise ValueError(f"no operation {other!r}")


if __name__ == "__main__":
    torch.set_num_threads(2)
    torch.set_float32_matmul_precision("high")
    serve(Server().answer)
