"""Beam search on a GPU in PyTorch, with a model that heedful trained: cached keys and values, bf16.

    search.py FOLDER MODE BATCH [DEVICE]    MODE is one of MODES; BATCH is the batch size; DEVICE is cuda or cpu

Requests: {"op": "translate", "sources": [[token, …], …], "beam"} answers {"seconds", "outputs"}; {"op": "quit"} ends it. Sentences are
sorted by length; the hypotheses of a sentence share the encoder's keys and values; finished sentences leave the batch. Modes: "eager",
operation by operation; "graph", whole steps as CUDA graphs; "compile", the same with torch.compile (search_graphs.py). New sizes are
compiled and captured before the time is measured.
"""

import sys
import time

import torch
from torch.nn import functional

from exchange import serve
from search_beam import EXTRA_TOKENS, Beams, Outputs, choose
from search_graphs import GraphSearch, compiled, not_compiled
from search_model import Model


class EagerSearch:
    captured = 0

    def __init__(self, model):
        self.model = model

    def translate(self, sources, beam):
        """The best output of each source, decoded in one batch."""
        model, device = self.model, self.model.device
        lengths = torch.tensor([len(source) for source in sources], device=device)
        longest = max(map(len, sources))
        padded = torch.tensor([source + [0] * (longest - len(source)) for source in sources]).to(device)
        mask = model.mask(torch.arange(longest, device=device)[None] < lengths[:, None])[:, None, None]
        memory = model.encode(padded, mask)
        numbers, max_length = torch.arange(len(sources), device=device), longest + EXTRA_TOKENS + 1
        beams, outputs = Beams(len(sources), beam, max_length, device), Outputs(len(sources), max_length, device)
        beams.begin(lengths + EXTRA_TOKENS, len(sources))
        empty = torch.zeros((2, len(sources) * beam, model.heads, 0, model.d // model.heads), device=device, dtype=model.dtype)
        cache = [empty] * model.layers
        for _ in range(max_length):

            def attend(layer, q, kv):
                cache[layer] = torch.cat([cache[layer], kv], 3)
                return functional.scaled_dot_product_attention(q, cache[layer][0], cache[layer][1])

            beams.advance(model.decode(beams.tokens, beams.position, attend, memory, mask), choose)
            left = int(beams.left)
            if left == 0:
                break
            rows = beams.rows
            if left <= beams.count // 2:
                outputs.keep(numbers, beams)
                chosen = beams.unfinished.nonzero()[:, 0]
                rows = rows.view(beams.count, beam)[chosen].flatten()
                fewer = Beams(left, beam, max_length, device)
                fewer.take(beams, chosen, left)
                beams, numbers, mask = fewer, numbers[chosen], mask[chosen]
                memory = [layer.index_select(1, chosen) for layer in memory]
            cache = [layer.index_select(1, rows) for layer in cache]
        outputs.keep(numbers, beams)
        return outputs.lists()


MODES = {
    "eager": lambda model, batch: EagerSearch(model),
    "graph": lambda model, batch: GraphSearch(model, batch, not_compiled),
    "compile": lambda model, batch: GraphSearch(model, batch, compiled),
}


class Server:
    def __init__(self, folder, mode, batch, device="cuda"):
        self.device, self.batch = device, int(batch)
        self.search = MODES[mode](Model(folder, device), self.batch)

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    @torch.no_grad()
    def answer(self, request):
        while True:
            captured = self.search.captured
            seconds, outputs = self.translate(request["sources"], request["beam"])
            if self.search.captured == captured:
                return {"seconds": seconds, "outputs": outputs}

    def translate(self, sources, beam):
        self.wait()
        start = time.perf_counter()
        order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
        outputs = [None] * len(sources)
        for first in range(0, len(order), self.batch):
            part = order[first : first + self.batch]
            for i, output in zip(part, self.search.translate([sources[i] for i in part], beam)):
                outputs[i] = output
        self.wait()
        return time.perf_counter() - start, outputs


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    serve(Server(*sys.argv[1:]).answer)
