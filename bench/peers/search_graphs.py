"""Beam search without host synchronization within a step: whole steps are captured as CUDA graphs, one for each size, and replayed.

Sizes are rounded up to buckets: the batch size to the next of SIZES, with padding; the lengths of sources and KV caches to multiples of
LENGTHS. The KV cache has two sets of buffers: a step copies one into the other, in the order of the hypotheses. The host reads the number
of unfinished sentences while the next step runs, and moves them into a smaller batch.
"""

import torch
from torch.nn import functional

from search_beam import EXTRA_TOKENS, Beams, Outputs, choose

LENGTHS = 16
# Initial length of the KV caches. When they grow, all graphs are captured again.
INITIAL_LENGTH = 64
SIZES = sorted([2**i for i in range(12)] + [3 * 2**i for i in range(5, 11)])


def rounded_up(length):
    return -(-length // LENGTHS) * LENGTHS


@torch.library.custom_op("search::append", mutates_args={"updated"})
def append_to_cache(past: torch.Tensor, rows: torch.Tensor, position: torch.Tensor, kv: torch.Tensor, updated: torch.Tensor) -> None:
    """Reorders the cache by hypothesis and appends new keys and values. A custom op, so that torch.compile keeps the write in place."""
    torch.index_select(past, 1, rows, out=updated)
    updated.index_copy_(3, position, kv)


def compiled(function):
    torch._dynamo.config.recompile_limit = 64
    # Two dimensions that are equal in one call are not always equal.
    torch.fx.experimental._config.use_duck_shape = False
    return torch.compile(function, dynamic=True)


def not_compiled(function):
    return function


class Batch:
    """The tensors of a batch size and a source length. They keep their addresses."""

    def __init__(self, model, count, length, beam):
        make = lambda *shape, dtype: torch.zeros(shape, dtype=dtype, device=model.device)
        self.beams = Beams(count, beam, length + EXTRA_TOKENS + 1, model.device)
        self.source = make(count, length, dtype=torch.long)
        self.mask = make(count, 1, 1, length, dtype=model.dtype)
        shape = 2, count, model.heads, length, model.d // model.heads
        self.memory = [make(*shape, dtype=model.dtype) for _ in range(model.layers)]


class Caches:
    """Two sets of keys and values; those of a layer are a view of the beginning of its buffer."""

    def __init__(self, model):
        self.model, self.capacity, self.buffers = model, 0, []

    def reserve(self, elements):
        """True if the buffers were reallocated: all views and the graphs captured with them are then invalid."""
        if elements <= self.capacity:
            return False
        self.buffers, self.capacity = [], elements
        # Unused elements are masked, but must be finite.
        make = lambda: torch.zeros(elements, dtype=self.model.dtype, device=self.model.device)
        self.buffers = [[make() for _ in range(self.model.layers)] for _ in range(2)]
        return True

    def size(self, rows, length):
        return 2 * rows * length * self.model.d

    def views(self, which, rows, length):
        shape = 2, rows, self.model.heads, length, self.model.d // self.model.heads
        return [buffer[: self.size(rows, length)].view(shape) for buffer in self.buffers[which]]


class GraphSearch:
    """`prepare` is `compiled` or `not_compiled`; `captured` counts the graphs captured so far."""

    def __init__(self, model, max_batch, prepare):
        self.model, self.max_batch, self.captured = model, max_batch, 0
        self.logits, self.choose, self.encode = prepare(self.step_logits), prepare(choose), prepare(model.encode)
        self.batches, self.caches, self.graphs = {}, Caches(model), {}
        self.on_gpu = model.device == "cuda"
        self.pool = torch.cuda.graph_pool_handle() if self.on_gpu else None
        pinned = lambda: torch.zeros(1, dtype=torch.long, pin_memory=self.on_gpu)
        self.left = [(pinned(), torch.cuda.Event() if self.on_gpu else None) for _ in range(2)]

    def batch(self, count, length, beam):
        """The batch for `count` sentences: its size is rounded up to a bucket."""
        size = min((size for size in [*SIZES, self.max_batch] if size >= count), default=count)
        key = size, length, beam
        if key not in self.batches:
            self.batches[key] = Batch(self.model, *key)
        return key, self.batches[key]

    def replay(self, key, function):
        """Runs and captures the function the first time, then replays it."""
        if not self.on_gpu:
            return function()
        if key in self.graphs:
            return self.graphs[key].replay()
        function()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # One memory pool for all graphs: nothing in it must outlive a replay.
        with torch.cuda.graph(graph, pool=self.pool):
            function()
        self.graphs[key] = graph
        self.captured += 1

    def step_logits(self, tokens, position, rows, past, updated, memory, mask):
        length = updated[0].shape[3]
        real = self.model.mask(torch.arange(length, device=tokens.device) <= position)[None, None, None]

        def attend(layer, q, kv):
            append_to_cache(past[layer], rows, position, kv, updated[layer])
            return functional.scaled_dot_product_attention(q, updated[layer][0], updated[layer][1], attn_mask=real)

        return self.model.decode(tokens, position, attend, memory, mask)

    def translate(self, sources, beam):
        """The best output of each source, decoded in one batch."""
        model, count, device = self.model, len(sources), self.model.device
        longest = rounded_up(max(map(len, sources)))
        key, batch = self.batch(count, longest, beam)
        padded = sources + [sources[-1]] * (key[0] - count)
        lengths = torch.tensor([len(source) for source in padded], device=device)
        batch.source.copy_(torch.tensor([source + [0] * (longest - len(source)) for source in padded]))
        batch.mask.copy_(model.mask(torch.arange(longest, device=device)[None] < lengths[:, None])[:, None, None])
        batch.beams.begin(lengths + EXTRA_TOKENS, count)
        self.replay(("encode", *key), lambda: self.encode_sources(batch))
        outputs = Outputs(count, longest + EXTRA_TOKENS + 1, device)
        # Padding sentences write to the extra row after the last.
        numbers = torch.arange(key[0], device=device).clamp(max=count)
        length, past = LENGTHS, 0
        self.reserve(key[0] * beam, min(INITIAL_LENGTH, rounded_up(longest + EXTRA_TOKENS + 1)))
        for position in range(longest + EXTRA_TOKENS + 1):
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

    def encode_sources(self, batch):
        for memory, encoded in zip(batch.memory, self.encode(batch.source, batch.mask)):
            memory.copy_(encoded)

    def step(self, batch, length, past):
        beams = batch.beams
        rows = beams.count * beams.beam
        views = self.caches.views(past, rows, length), self.caches.views(1 - past, rows, length)
        logits = self.logits(beams.tokens, beams.position, beams.rows, *views, batch.memory, batch.mask)
        beams.advance(logits, self.choose)

    def left_before(self, position, batch):
        """The number of unfinished sentences after the previous step; the current one has just been launched. None after the first."""
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
        """Copies keys and values to the other set of buffers, with a larger capacity."""
        old = self.caches.views(past, rows, length)
        if self.caches.capacity < self.caches.size(rows, length + LENGTHS):
            old = [layer.clone() for layer in old]
            self.reserve(rows, length + LENGTHS)
        for new, layer in zip(self.caches.views(1 - past, rows, length + LENGTHS), old):
            new[:, :, :, :length].copy_(layer)

    def shrink(self, key, batch, numbers, count, length, past):
        """Moves the unfinished sentences to a smaller batch, whose caches are in the other set of buffers."""
        _, longest, beam = key
        chosen = batch.beams.unfinished.nonzero()[:, 0]
        real = len(chosen)
        if real == 0:
            return None, None, None
        key, smaller = self.batch(real, longest, beam)
        # The last sentence pads the batch.
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
