"""A training step on a GPU in PyTorch: forward, backward, Adam; bf16 under autocast.

    gpu.py CELL MODE SECONDS    five rounds: target tokens a second, milliseconds a step, peak memory
    gpu.py products CELL        the upper limit: only the weight GEMMs of a step (forward, dX, dW), as one CUDA graph
    gpu.py serve CELL MODE      answers requests

CELL is "base equal", "base log-normal", "iwslt equal" or "iwslt log-normal"; MODE one of MODES. Requests: {"op": "ready"} is answered
once everything is compiled; {"op": "round", "seconds"} answers {"tokens", "seconds", "steps", "loss", "held", "reserved"}, memory in
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

# The options of torch.compile. In `packed` sequences are concatenated without padding, as on our side.
MODES = {
    "eager": None,
    "compile": {"dynamic": False},
    "reduce-overhead": {"dynamic": False, "mode": "reduce-overhead"},
    "packed": {"dynamic": False, "mode": "reduce-overhead"},
}
SMOOTHING, RATE = 0.1, 1e-4
ROUNDS = 5
# Warm-up rounds, in which CUDA graphs are captured and replayed.
WARM_UPS = 4
# Steps that may be queued on the GPU: without a limit a round would take much longer than its seconds.
MAX_IN_FLIGHT = 3


class Objective(nn.Module):
    """The loss of a batch. Cross entropy runs on bf16 logits outside of autocast, which would convert them to f32."""

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
            # Every padded shape is compiled separately; the default limit is eight.
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
        """Trains whole passes over the batches, at least one, until the seconds have passed."""
        waiting = collections.deque()
        tokens = steps = 0
        torch.cuda.synchronize()
        start = time.perf_counter()
        while steps == 0 or time.perf_counter() - start < seconds:
            for batch in self.batches:
                loss = None  # the next replay of the graph overwrites its memory
                loss = self.step(batch)
                waiting.append(torch.cuda.Event())
                waiting[-1].record()
                if len(waiting) > MAX_IN_FLIGHT:
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
    """Seconds of the weight GEMMs of one step, with the faster of cuBLAS and cuBLASLt. Attention is not included."""
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
    """Median seconds of a step, replayed as a CUDA graph."""
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
                raise ValueError(f"unknown operation {other!r}")

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
