"""PyTorch's matrix product as a layer runs it: x [m, k] times a weight kept as nn.Linear keeps it, [n, k].

Request {"m", "k", "n", "dtype": "f32" | "bf16", "iterations"}, answer {"seconds": one per iteration, "way": which}.
Each cell is served by the fastest way PyTorch offers for it, found out at the cell's first request.
"""

import statistics
import time

import torch
from torch.nn import functional

from exchange import serve

TRIALS = 7
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
cells = {}


def ways(m, k, n, dtype):
    """Every way to compute the product, by name, over one pair of operands."""
    x = torch.randn(m, k).to(dtype)
    weight = torch.nn.Linear(k, n, bias=False).weight.detach().to(dtype)
    found = {"linear": lambda: functional.linear(x, weight)}
    transposed = weight.t().contiguous()
    found["matmul"] = lambda: x @ transposed
    # Weights laid out once for oneDNN, as torch.compile does when it freezes a model; builds without oneDNN have no such op.
    if torch.backends.mkldnn.is_available():
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, m)
        found["prepacked"] = lambda: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
    return found


def seconds(run, iterations):
    times = []
    for _ in range(iterations):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


def fastest(m, k, n, dtype):
    """Taken in turns, so that a slow moment of the machine falls on all of them."""
    found = ways(m, k, n, dtype)
    times = {name: [] for name in found}
    for _ in range(TRIALS):
        for name, run in found.items():
            times[name] += seconds(run, 3)[1:]
    name = min(times, key=lambda name: statistics.median(times[name]))
    return name, found[name]


@torch.inference_mode()
def answer(request):
    cell = (request["m"], request["k"], request["n"], request["dtype"])
    if cell not in cells:
        cells[cell] = fastest(*cell[:3], DTYPES[cell[3]])
    name, run = cells[cell]
    return {"seconds": seconds(run, request["iterations"]), "way": name}


if __name__ == "__main__":
    torch.set_num_threads(2)
    torch.manual_seed(1)
    serve(answer)
