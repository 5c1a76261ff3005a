"""PyTorch's matrix product as a layer runs it: x [m, k] times a weight in the layout of nn.Linear, [n, k].

Request {"m", "k", "n", "dtype": "f32" | "bf16", "iterations"}, answer {"seconds": one per iteration, "way": the implementation}.
Each cell uses PyTorch's fastest implementation for it, which is determined at the cell's first request.
"""

import statistics
import time

import torch
from torch.nn import functional

from exchange import serve

TRIALS = 7
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
cells = {}


def implementations(m, k, n, dtype):
    """Every implementation of the product, by name, for one pair of operands."""
    x = torch.randn(m, k).to(dtype)
    weight = torch.nn.Linear(k, n, bias=False).weight.detach().to(dtype)
    found = {"linear": lambda: functional.linear(x, weight)}
    transposed = weight.t().contiguous()
    found["matmul"] = lambda: x @ transposed
    # Weights prepacked for oneDNN, as torch.compile does when it freezes a model; builds without oneDNN lack this op.
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
    """The trials alternate, so that a slow phase of the machine affects all implementations."""
    found = implementations(m, k, n, dtype)
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
