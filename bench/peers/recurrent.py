"""PyTorch's two-layer bidirectional LSTM on packed sequences, forward and backward.

Request {"d", "lengths", "dtype": "f32" | "bf16"}, answer {"seconds"}. bf16 is autocast, as in training.
"""

import contextlib
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from exchange import serve

built = {}


def build(d, lengths):
    module = nn.LSTM(d, d, 2, bidirectional=True)
    x = [torch.rand(length, d) - 0.5 for length in lengths]
    return module, pack_sequence(x, enforce_sorted=False), torch.rand(sum(lengths), 2 * d) - 0.5


def answer(request):
    key = (request["d"], tuple(request["lengths"]))
    if key not in built:
        built[key] = build(*key)
    module, packed, gradient = built[key]
    x = packed._replace(data=packed.data.clone().requires_grad_())
    autocast = torch.autocast("cpu", torch.bfloat16) if request["dtype"] == "bf16" else contextlib.nullcontext()
    start = time.perf_counter()
    module.zero_grad(set_to_none=True)
    with autocast:
        outputs, _ = module(x)
    outputs.data.backward(gradient.to(outputs.data.dtype))
    return {"seconds": time.perf_counter() - start}


if __name__ == "__main__":
    torch.set_num_threads(2)
    torch.manual_seed(1)
    serve(answer)
