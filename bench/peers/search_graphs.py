"""Beam search whose steps never ask the host: whole steps are recorded as CUDA graphs, one for each size, and replayed.

Sizes come in few steps. A batch has as many sentences as the next of SIZES, those that are missing fill it up; sources and caches grow
by LENGTHS. Caches lie in two sets of buffers: a step copies one, in the order of the hypotheses, into the other. The host reads how
many sentences go on while the next step is under way, and moves those that are left into a smaller batch.
"""

import torch
from torch.nn import functional

from search_beam import BEYOND, Beams, Outputs, choose

LENGTHS = 16
# Of the caches from the beginning. When they have to grow, everything is recorded anew.
ROOM = 64
SIZES = sorted([2**i for i in range(12)] + [3 * 2**i for i in range(5, 11)])


def rounded_up(length):
    return -(-length // LENGTHS) * LENGTHS


@torch.library.custom_op("search::keep", mutates_args={"kept"})
def keep(past: torch.Tensor, rows: torch.Tensor, position: torch.Tensor, kv: torch.Tensor, kept: torch.Tensor) -> None:
    """The past in the order of the hypotheses, and what is new. Of its own, so that torch.compile leaves it where it is written."""
    torch.index_select(past, 1, rows, out=kept)
    kept.index_copy_(3, position, kv)


def compiled(function):
    torch._dynamo.config.recompile_limit = 64
    # Two sizes that happen to be the same once are not the same ever after.
    torch.fx.experimental._config.use_duck_shape = False
    return torch.compile(function, dynamic=True)


def unchanged(function):
    return function


class Batch:
    """Everything of so many sentences with sources of so many tokens that stays where it is."""

    def __init__(self, model, count, length, beam):
        make = lambda *shape, dtype: torch.zeros(shape, dtype=dtype, device=model.device)
        self.beams = Beams(count, beam, length + BEYOND + 1, model.device)
        self.source = make(count, length, dtype=torch.long)
        self.mask = make(count, 1, 1, length, dtype=model.dtype)
        shape = 2, count, model.heads, length, model.d // model.heads
        self.memory = [make(*shape, dtype=model.dtype) for _ in range(model.layers)]


class Caches:
    """Two sets of keys and values; each layer's is a view of the beginning of a buffer of its own."""

    def __init__(self, model):
        self.model, self.room, self.buffers = model, 0, []

    def reserve(self, numbers):
        """True if there was too little room, so that all views and what was recorded with them are void."""
        if numbers <= self.room:
            return False
        self.buffers, self.room = [], numbers
        # What lies there from before is masked, but has to be finite.
        make = lambda: torch.zeros(numbers, dtype=self.model.dtype, device=self.model.device)
        self.buffers = [[make() for _ in range(self.model.layers)] for _ in range(2)]
        return True

    def size(self, rows, length):
        return 2 * rows * length * self.model.d

    def views(self, which, rows, length):
        shape = 2, rows, self.model.heads, length, self.model.d // self.model.heads
        return [buffer[: self.size(rows, length)].view(shape) for buffer in self.buffers[which]]


class GraphSearch:
    """`prepare` is `compiled` or `unchanged`; `recorded` counts the graphs that were made so far."""

    def __init__(self, model, most, prepare):
        self.model, self.most, self.recorded = model, most, 0
        self.logits, self.choose, self.encode = prepare(self.step_logits), prepare(choose), prepare(model.encode)
        self.batches, self.caches, self.graphs = {}, Caches(model), {}
        self.on_gpu = model.device == "cuda"
        self.pool = torch.cuda.graph_pool_handle() if self.on_gpu else None
        pinned = lambda: torch.zeros(1, dtype=torch.long, pin_memory=self.on_gpu)
        self.left = [(pinned(), torch.cuda.Event() if self.on_gpu else None) for _ in range(2)]

    def batch(self, count, length, beam):
        """The batch for so many sentences, which has at least that many."""
        size = min((size for size in [*SIZES, self.most] if size >= count), default=count)
        key = size, length, beam
        if key not in self.batches:
            self.batches[key] = Batch(self.model, *key)
        return key, self.batches[key]

    def replay(self, key, function):
        """The first time it is done, and recorded for all others."""
        if not self.on_gpu:
            return function()
        if key in self.graphs:
            return self.graphs[key].replay()
        function()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # One pool for all: nothing in it has to outlive a replay.
        with torch.cuda.graph(graph, pool=self.pool):
            function()
        self.graphs[key] = graph
        self.recorded += 1

    def step_logits(self, tokens, position, rows, past, kept, memory, mask):
        length = kept[0].shape[3]
        real = self.model.mask(torch.arange(length, device=tokens.device) <= position)[None, None, None]

        def attend(layer, q, kv):
            keep(past[layer], rows, position, kv, kept[layer])
            return functional.scaled_dot_product_attention(q, kept[layer][0], kept[layer][1], attn_mask=real)

        return self.model.decode(tokens, position, attend, memory, mask)

    def translate(self, sources, beam):
        """The best output of each source, decoded together."""
        model, count, device = self.model, len(sources), self.model.device
        longest = rounded_up(max(map(len, sources)))
        key, batch = self.batch(count, longest, beam)
        filled = sources + [sources[-1]] * (key[0] - count)
        lengths = torch.tensor([len(source) for source in filled], device=device)
        batch.source.copy_(torch.tensor([source + [0] * (longest - len(source)) for source in filled]))
        batch.mask.copy_(model.mask(torch.arange(longest, device=device)[None] < lengths[:, None])[:, None, None])
        batch.beams.begin(lengths + BEYOND, count)
        self.replay(("encode", *key), lambda: self.remember(batch))
        outputs = Outputs(count, longest + BEYOND + 1, device)
        # Those that fill the batch have the place after the last.
        numbers = torch.arange(key[0], device=device).clamp(max=count)
        length, past = LENGTHS, 0
        self.reserve(key[0] * beam, min(ROOM, rounded_up(longest + BEYOND + 1)))
        for position in range(longest + BEYOND + 1):
            if position == length:
                self.grow(past, key[0] * beam, length)
                length, past = length + LENGTHS, 1 - past
            self.replay((*key, length, past), lambda: self.step(batch, length, past))
            past = 1 - past
            left = self.left_before(position, batch)
            if left == 0:
                break
            if left is not None and self.batch(left, longest, beam)[0][0] < key[0]:
                outputs.keep(numbers, batch.beams)
                key, batch, numbers = self.shrink(key, batch, numbers, count, length, past)
                past = 1 - past
                if key is None:
                    break
        if batch is not None:
            outputs.keep(numbers, batch.beams)
        return outputs.lists()

    def remember(self, batch):
        for kept, found in zip(batch.memory, self.encode(batch.source, batch.mask)):
            kept.copy_(found)

    def step(self, batch, length, past):
        beams = batch.beams
        rows = beams.count * beams.beam
        views = self.caches.views(past, rows, length), self.caches.views(1 - past, rows, length)
        logits = self.logits(beams.tokens, beams.position, beams.rows, *views, batch.memory, batch.mask)
        beams.advance(logits, self.choose)

    def left_before(self, position, batch):
        """How many sentences went on after the step before this one, which has just been sent; None after the first."""
        here, event = self.left[position % 2]
        here.copy_(batch.beams.left, non_blocking=True)
        if self.on_gpu:
            event.record()
        if position == 0:
            return None
        before, event = self.left[1 - position % 2]
        if self.on_gpu:
            event.synchronize()
        return int(before)

    def reserve(self, rows, length):
        if self.caches.reserve(self.caches.size(rows, length)):
            self.graphs = {key: graph for key, graph in self.graphs.items() if key[0] == "encode"}

    def grow(self, past, rows, length):
        """The same keys and values with room for more, in the other set of buffers."""
        old = self.caches.views(past, rows, length)
        if self.caches.room < self.caches.size(rows, length + LENGTHS):
            old = [layer.clone() for layer in old]
            self.reserve(rows, length + LENGTHS)
        for new, layer in zip(self.caches.views(1 - past, rows, length + LENGTHS), old):
            new[:, :, :, :length].copy_(layer)

    def shrink(self, key, batch, numbers, count, length, past):
        """Those that go on, in a smaller batch, whose caches lie in the other set of buffers."""
        _, longest, beam = key
        chosen = batch.beams.goes_on.nonzero()[:, 0]
        real = len(chosen)
        if real == 0:
            return None, None, None
        key, smaller = self.batch(real, longest, beam)
        # The last one fills what is left.
        chosen = torch.cat([chosen, chosen[-1:].expand(key[0] - real)])
        rows = batch.beams.rows.view(-1, beam).index_select(0, chosen).flatten()
        old = self.caches.views(past, batch.beams.count * beam, length)
        for new, layer in zip(self.caches.views(1 - past, len(rows), length), old):
            torch.index_select(layer, 1, rows, out=new)
        for new, layer in zip(smaller.memory, batch.memory):
            torch.index_select(layer, 1, chosen, out=new)
        smaller.mask.copy_(batch.mask.index_select(0, chosen))
        smaller.beams.take(batch.beams, chosen, real)
        numbers = numbers.index_select(0, chosen)
        numbers[real:] = count
        return key, smaller, numbers
