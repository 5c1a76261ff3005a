"""A training step on a GPU in PyTorch: forward, backward, Adam; bf16 under autocast.

    gpu.py CELL MODE SECONDS    five rounds: target tokens a second, milliseconds a step, peak memory
    gpu.py products CELL        the limit: every product of a step with a weight (forward, dX, dW) and nothing else, as one graph
    gpu.py serve CELL MODE      the same on request

CELL is "base equal", "base log-normal", "iwslt equal" or "iwslt log-normal"; MODE one of MODES. Requests: {"op": "ready"} is answered
when everything is compiled; {"op": "round", "seconds"} answers {"tokens", "seconds", "steps", "loss", "held", "reserved"}, memory in
bytes, the peak of this process; {"op": "products"} answers {"seconds", "tokens"}; {"op": "quit"} ends it.
"""

import collections
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

from gpu_batches import CELLS, packed, padded
from exchange import serve
from packed import PackedTransformer
from transformer import Transformer

# What torch.compile is told. In `packed` the tokens lie end to end and nothing is padded, as on our side.
MODES = {
    "eager": None,
    "compile": {"dynamic": False},
    "reduce-overhead": {"dynamic": False, "mode": "reduce-overhead"},
    "packed": {"dynamic": False, "mode": "reduce-overhead"},
}
SMOOTHING, RATE = 0.1, 1e-4
ROUNDS = 5
# CUDA graphs are seen, recorded and replayed before anything counts.
WARM_UPS = 4
# Steps that may wait on the GPU: without a limit a round would go on long after its seconds.
AHEAD = 3


class Objective(nn.Module):
    """The loss of a batch. Cross entropy takes the logits in bf16, outside of autocast, which would copy them to f32."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, source, where, target, labels):
        with torch.autocast("cuda", torch.bfloat16):
            logits = self.model(source, where, target, None)
        return functional.cross_entropy(logits, labels, label_smoothing=SMOOTHING)


class Run:
    def __init__(self, cell, mode):
        torch.manual_seed(1)
        cell = CELLS[cell]
        if mode == "packed":
            self.batches, model = packed(cell), PackedTransformer(cell.size)
        else:
            self.batches, model = padded(cell), Transformer(cell.size)
        model.cuda().train()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.objective = Objective(model)
        if MODES[mode] is not None:
            # Every padded shape is compiled by itself; PyTorch gives up after eight.
            torch._dynamo.config.recompile_limit = 64
            self.objective = torch.compile(self.objective, **MODES[mode])
        for _ in range(WARM_UPS):
            self.round(0)

    def step(self, batch):
        loss = self.objective(batch.source, batch.where, batch.target, batch.labels)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def round(self, seconds):
        """Whole turns through the batches, at least one, until the seconds are over."""
        waiting = collections.deque()
        tokens = steps = 0
        torch.cuda.synchronize()
        start = time.perf_counter()
        while steps == 0 or time.perf_counter() - start < seconds:
            for batch in self.batches:
                loss = None  # a graph's next replay takes its memory
                loss = self.step(batch)
                waiting.append(torch.cuda.Event())
                waiting[-1].record()
                if len(waiting) > AHEAD:
                    waiting.popleft().synchronize()
                tokens, steps = tokens + batch.tokens, steps + 1
        torch.cuda.synchronize()
        took = time.perf_counter() - start
        held, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
        return {
            "tokens": tokens,
            "seconds": took,
            "steps": steps,
            "loss": loss.item(),
            "held": held,
            "reserved": reserved,
        }


def products(cell):
    """Seconds of the products of one step, by the faster of PyTorch's two libraries. Those inside attention are left out."""
    cell = CELLS[cell]
    d, inner, tokens = cell.size.width, cell.size.inner, cell.tokens
    encoder = [(d, 3 * d), (d, d), (d, inner), (inner, d)]
    decoder = [(d, 3 * d), (d, d), (d, d), (d, 2 * d), (d, d), (d, inner), (inner, d)]
    shapes = (encoder + decoder) * cell.size.layers + [(d, cell.size.vocabulary)]
    draw = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    widths = {width for shape in shapes for width in shape}
    x, dy, out = ({width: draw(tokens, width) for width in widths} for _ in range(3))
    weights = [draw(outputs, inputs) for inputs, outputs in shapes]
    gradients = [torch.empty_like(weight) for weight in weights]

    def step():
        for (inputs, outputs), weight in zip(shapes, weights):
            torch.mm(x[inputs], weight.t(), out=out[outputs])
        for (inputs, outputs), weight, gradient in reversed(list(zip(shapes, weights, gradients))):
            torch.mm(dy[outputs], weight, out=out[inputs])
            torch.mm(dy[outputs].t(), x[inputs], out=gradient)

    return {"seconds": min(replayed(step, library) for library in ("cublas", "cublaslt")), "tokens": tokens}


def replayed(step, library, replays=10, trials=5):
    """Median seconds of a step that is replayed as a graph."""
    torch.backends.cuda.preferred_blas_library(library)
    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    times = []
    for _ in range(trials + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(replays):
            graph.replay()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / replays)
    return statistics.median(times[1:])


def answers(cell, mode):
    run = Run(cell, mode)

    def answer(request):
        match request["op"]:
            case "ready":
                return {"name": torch.cuda.get_device_name(), "torch": torch.__version__}
            case "round":
                return run.round(request["seconds"])
            case "products":
                return products(cell)
            case other:
                raise ValueError(f"no operation {other!r}")

    return answer


def main(arguments):
    torch.set_float32_matmul_precision("high")
    match arguments:
        case ["serve", cell, mode]:
            serve(answers(cell, mode))
        case ["products", cell]:
            found = products(cell)
            rate = found["tokens"] / found["seconds"]
            print(f"{cell} products: {rate:.0f} target tokens/s, {1e3 * found['seconds']:.2f} ms a step")
        case [cell, mode, seconds]:
            run = Run(cell, mode)
            rounds = [run.round(float(seconds)) for _ in range(ROUNDS)]
            rate = statistics.median(found["tokens"] / found["seconds"] for found in rounds)
            step = statistics.median(1e3 * found["seconds"] / found["steps"] for found in rounds)
            last = rounds[-1]
            memory = f"memory {last['held'] >> 20} MiB of {last['reserved'] >> 20} MiB"
            print(f"{cell} {mode}: {rate:.0f} target tokens/s, {step:.2f} ms a step, loss {last['loss']:.3f}, {memory}")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
