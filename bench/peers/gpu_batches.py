"""The cells of the GPU benchmark, and the peer's batches. Source and target of a pair have the same length."""

import math
import os
from typing import Any, NamedTuple

import torch

from packed import Packing
from transformer import Size


class Cell(NamedTuple):
    size: Size
    tokens: int  # of a batch, on each side, with padding
    spread: bool


BASE, IWSLT = Size(512, 2048, 6, 8, 32_000), Size(512, 1024, 6, 4, 10_000)
CELLS = {
    "base equal": Cell(BASE, 25_600, False),
    "base log-normal": Cell(BASE, 25_600, True),
    "iwslt equal": Cell(IWSLT, 4_096, False),
    "iwslt log-normal": Cell(IWSLT, 4_096, True),
}
EQUAL, MEAN, SIGMA, MIN_LENGTH, MAX_LENGTH = 32, 25, 0.6, 2, 250
BATCHES = 4
# Number of padded shapes for unequal lengths, each compiled separately, chosen evenly from POOL batches.
SHAPES, POOL = int(os.environ.get("HEEDFUL_PEER_SHAPES", "8")), 64
FIRST_WORD, IGNORED = 4, -100


class Batch(NamedTuple):
    source: torch.Tensor
    where: Any  # a mask over the source, None without padding, or a Packing
    target: torch.Tensor
    labels: torch.Tensor
    tokens: int  # of the target, without padding


def padded(cell):
    """Batches of similar length, padded to a multiple of 8."""
    generator = torch.Generator().manual_seed(2)
    if not cell.spread:
        return [rectangle([EQUAL] * (cell.tokens // EQUAL), cell, generator) for _ in range(BATCHES)]
    groups, group = [], []
    for length in sorted(draws(POOL * cell.tokens // MEAN, generator)):
        if group and (len(group) + 1) * rounded_up(length) > cell.tokens:
            groups.append(group)
            group = []
        group.append(length)
    # The last group, with the longest sentences, is not full.
    shapes = min(SHAPES, len(groups))
    chosen = [groups[(2 * i + 1) * len(groups) // (2 * shapes)] for i in range(shapes)]
    return [rectangle(group, cell, generator) for group in chosen]


def rectangle(lengths, cell, generator):
    lengths = torch.tensor(lengths)
    shape = (len(lengths), rounded_up(int(lengths.max())))
    real = torch.arange(shape[1]) < lengths[:, None]
    source, target, labels = (words(shape, cell, generator) for _ in range(3))
    labels = labels.masked_fill(~real, IGNORED).flatten()
    # Attention is faster without a mask.
    mask = None if bool(real.all()) else real[:, None, None, :].cuda()
    return Batch(source.cuda(), mask, target.cuda(), labels.cuda(), int(real.sum()))


def packed(cell):
    """Batches like ours: sentences in random order, packed without padding, with exactly `tokens` tokens."""
    generator = torch.Generator().manual_seed(2)
    batches = [packed_lengths(cell, generator) for _ in range(BATCHES)]
    # The same for all batches, so that one compiled graph fits all: empty sequences at the end cost nothing.
    sequences, longest = max(map(len, batches)), max(map(max, batches))
    made = []
    for lengths in batches:
        source, target, labels = (words((1, cell.tokens), cell, generator).cuda() for _ in range(3))
        made.append(Batch(source, Packing.of(lengths, sequences, longest), target, labels.flatten(), cell.tokens))
    return made


def packed_lengths(cell, generator):
    """Lengths that sum to the tokens of a batch."""
    if not cell.spread:
        return [EQUAL] * (cell.tokens // EQUAL)
    lengths, left = [], cell.tokens
    for length in draws(cell.tokens, generator):
        lengths.append(min(length, left))
        left -= lengths[-1]
        if left == 0:
            return lengths
    raise AssertionError("lengths are at least MIN_LENGTH")


def draws(count, generator):
    normal = torch.randn(count, generator=generator)
    lengths = (math.log(MEAN) - SIGMA**2 / 2 + SIGMA * normal).exp()
    return lengths.round().clamp(MIN_LENGTH, MAX_LENGTH).int().tolist()


def words(shape, cell, generator):
    return torch.randint(FIRST_WORD, cell.size.vocabulary, shape, generator=generator)


def rounded_up(length):
    return -(-length // 8) * 8
