"""The language model of a heedful run, trained again in PyTorch on the same blocks: `study_language.py RUN VALID [--seed N]`.

VALID is a run on the held-out text; only its `corpus.bin` is used. Prints one line of JSON: the perplexity per token, with <bos> at
the start of every block.
"""

import json
import math
import time

import torch
from torch import nn
from torch.nn import functional

from classifier import Embedding, post_norm_layers
from study import BOS, DEVICE, Run, arguments, by_length, cut, padded, read_corpus, train


class LanguageModel(nn.Module):
    """A decoder without a source; embedding and output projection are tied."""

    def __init__(self, stack):
        super().__init__()
        dropout = stack["dropout"]["residual"]
        self.embedding = Embedding(stack["vocabulary"], stack["d_model"], dropout, stack["positions"])
        self.layers = post_norm_layers(stack)

    def forward(self, ids):
        x = self.embedding(ids)
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], device=ids.device)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return functional.linear(x, self.embedding.table.weight)


def main():
    given = arguments("valid")
    run, valid = Run(given.run), read_corpus(f"{given.valid}/corpus.bin")
    start = time.perf_counter()
    model = LanguageModel(run.config["stack"]).to(DEVICE)

    def nats(batch):
        """−log p of every token of the blocks."""
        targets, lengths = padded([block for _, block in batch])
        inputs = functional.pad(targets, (1, 0), value=BOS)[:, :-1]
        real = (torch.arange(targets.shape[1]) < lengths[:, None]).to(DEVICE)
        return functional.cross_entropy(model(inputs)[real], targets[real], reduction="none")

    train(model, run, lambda batch: nats(batch).mean(), given.seed)
    total = tokens = 0
    with torch.no_grad():
        for batch in cut(by_length(valid), run.training["batch_tokens"]):
            losses = nats(batch)
            total, tokens = total + float(losses.double().sum()), tokens + losses.numel()
    found = {"perplexity": round(math.exp(total / tokens), 3), "tokens": tokens, "seconds": round(time.perf_counter() - start, 1)}
    print(json.dumps({"run": given.run, "seed": given.seed} | found), flush=True)


if __name__ == "__main__":
    main()
