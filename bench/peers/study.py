"""Shared code of the quality studies: the token ids and settings of a heedful run, and a training loop that follows them.

The peer reads the run's own `corpus.bin`, `config.json` and `recipe.toml`, so both sides have the same tokens, sizes, batches by
tokens, steps, schedule and optimizer. Initialization, dropout and the order of batches are drawn independently; GEMMs are f32.
"""

import argparse
import json
import math
import random
import struct
import tomllib
from pathlib import Path

import torch

BOS = 1
# A study compares quality, not speed: it may run on any device.
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Run:
    """The folder of a `heedful train` run."""

    def __init__(self, folder):
        folder = Path(folder)
        self.training = tomllib.loads((folder / "recipe.toml").read_text())["training"]
        self.config = json.loads((folder / "config.json").read_text())
        self.examples = read_corpus(folder / "corpus.bin")


def read_corpus(path):
    """[(source ids, target ids), …] of a file of token ids: blocks of LEB128 integers, then an index of the blocks as JSON."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[-24:-16])
    examples = []
    for block in json.loads(data[-24 - length : -24])["blocks"]:
        numbers = leb128(data[block["offset"] : block["offset"] + block["bytes"]])
        for _ in range(block["pairs"]):
            source, target = next(numbers), next(numbers)
            examples.append(([next(numbers) for _ in range(source)], [next(numbers) for _ in range(target)]))
    return examples


def leb128(data):
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield number
            number = shift = 0


def cut(examples, batch_tokens):
    """Batches of neighbouring examples with at most `batch_tokens` tokens on each side."""
    batches, batch, totals = [], [], [0, 0]
    for example in examples:
        sizes = [len(example[0]), len(example[1]) + 1]
        if batch and any(total + size > batch_tokens for total, size in zip(totals, sizes)):
            batches.append(batch)
            batch, totals = [], [0, 0]
        batch.append(example)
        totals = [total + size for total, size in zip(totals, sizes)]
    return batches + [batch] if batch else batches


def by_length(examples):
    return sorted(examples, key=lambda example: max(len(example[0]), len(example[1]) + 1))


def endless_batches(examples, batch_tokens, seed):
    """Epoch after epoch: examples are shuffled and batched by similar length, then the batches are shuffled."""
    order = random.Random(seed)
    while True:
        examples = examples[:]
        order.shuffle(examples)
        batches = cut(by_length(examples), batch_tokens)
        order.shuffle(batches)
        yield from batches


def rate(training, step):
    """The cosine schedule, the only one the studies use."""
    assert training["schedule"] == "cosine", training["schedule"]
    peak, floor, warmup, total = (training[key] for key in ("lr", "min_lr", "warmup", "steps"))
    if step <= warmup:
        return peak * step / warmup
    progress = min(1.0, (step - warmup) / max(1, total - warmup))
    return floor + (peak - floor) * 0.5 * (1.0 + math.cos(math.pi * progress))


def train(model, run, loss_of, seed):
    """All steps of the run's recipe; `loss_of(batch)` is the mean loss of a batch."""
    training = run.training
    betas = (training["beta1"], training["beta2"])
    optimizer = torch.optim.Adam(model.parameters(), betas=betas, eps=training["adam_epsilon"])
    assert training["weight_decay"] == 0.0 and training["accumulate"] == 1
    model.train()
    batches = endless_batches(run.examples, training["batch_tokens"], seed)
    for step in range(1, training["steps"] + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate(training, step)
        loss = loss_of(next(batches))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if training["clip_norm"] != "none":
            torch.nn.utils.clip_grad_norm_(model.parameters(), training["clip_norm"])
        optimizer.step()
    model.eval()


def padded(rows):
    """Lists of ids as one padded tensor, and their lengths (on the CPU, which packing requires)."""
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long)
    for row, out in zip(rows, ids):
        out[: len(row)] = torch.tensor(row)
    return ids.to(DEVICE), lengths


def arguments(held_out):
    """The command line of a study; sets seed and threads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument(held_out)
    parser.add_argument("--seed", type=int, default=1)
    found = parser.parse_args()
    torch.manual_seed(found.seed)
    torch.set_num_threads(2)
    return found
