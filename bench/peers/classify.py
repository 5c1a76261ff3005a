"""One training step of a text classifier in PyTorch: forward, backward, Adam.

{"op": "build", "config": a classifier's config.json, "dtype": "f32" | "bf16", "lengths": […]} makes a model and its batch and
answers {"parameters"}; {"op": "step"} answers {"seconds", "loss"}. The LSTM reads packed sequences.
"""

import contextlib
import time

import torch
from torch.nn import functional

from classifier import Classifier
from exchange import serve
from study import padded

RATE = 1e-4


class Run:
    def __init__(self, request):
        torch.manual_seed(1)
        config, draw = request["config"], torch.Generator().manual_seed(2)
        token = lambda count: torch.randint(4, config["encoder"]["vocabulary"], (count,), generator=draw).tolist()
        self.ids, self.lengths = padded([token(length) for length in request["lengths"]])
        self.labels = torch.randint(config["labels"], (len(self.lengths),), generator=draw)
        self.model = Classifier(config).train()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.bf16 = request["dtype"] == "bf16"

    def step(self):
        start = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16) if self.bf16 else contextlib.nullcontext():
            loss = functional.cross_entropy(self.model(self.ids, self.lengths), self.labels)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        loss = loss.item()
        return {"seconds": time.perf_counter() - start, "loss": loss}


class Server:
    run = None

    def answer(self, request):
        match request["op"]:
            case "build":
                self.run = Run(request)
                return {"parameters": sum(p.numel() for p in self.run.model.parameters())}
            case "step":
                return self.run.step()
            case other:
                raise ValueError(f"no operation {other!r}")


if __name__ == "__main__":
    torch.set_num_threads(2)
    serve(Server().answer)
