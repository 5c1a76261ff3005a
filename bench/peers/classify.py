"""One training step of a text classifier in PyTorch: forward, backward, Adam.

{"op": "build", "config": a classifier's config.json, "dtype": "f32" | "bf16", "lengths": […]} builds a model and its batch and
answers {"parameters"}; {"op": "step"} answers {"seconds", "loss"}. The LSTM reads packed sequences. With "device": "cuda" and a
"mode" it trains on a GPU (gpu_steps.py), where {"op": "round", "seconds"} answers {"seconds", "steps", "loss"}, the mean of
some steps; there texts are sorted by length, so that packing does not synchronize with the host, and "dtype" may be "f16".

Modes: "eager"; "graph"; "padded", a graph whose LSTM also reads the padding. The reverse direction then begins in the padding, so this
is not exactly the same function; it is included because cuDNN may choose other kernels without packing.
"""

import time

import torch
from torch.nn import functional

from gpu_steps import GpuSteps, autocast
from classifier import Classifier
from exchange import serve
from study import padded

RATE = 1e-4


class Run:
    def __init__(self, request):
        torch.manual_seed(1)
        config, draw = request["config"], torch.Generator().manual_seed(2)
        token = lambda count: torch.randint(4, config["encoder"]["vocabulary"], (count,), generator=draw).tolist()
        self.device = request.get("device", "cpu")
        lengths = request["lengths"] if self.device == "cpu" else sorted(request["lengths"], reverse=True)
        self.ids, self.lengths = padded([token(length) for length in lengths])
        self.ids = self.ids.to(self.device)
        self.labels = torch.randint(config["labels"], (len(self.lengths),), generator=draw).to(self.device)
        self.model = Classifier(config).to(self.device).train()
        if self.device == "cuda":
            self.model.prepare(self.ids, self.lengths, request["mode"] != "padded")
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, fused=True, capturable=self.device == "cuda"
        )
        self.dtype = request["dtype"]
        self.steps = GpuSteps(self, request["mode"], self.dtype) if self.device == "cuda" else None

    def loss(self):
        with autocast(self.device, self.dtype):
            return functional.cross_entropy(self.model(self.ids, self.lengths), self.labels)

    def step(self):
        start = time.perf_counter()
        loss = self.loss()
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
            case "round":
                return self.run.steps.round(request["seconds"])
            case other:
                raise ValueError(f"unknown operation {other!r}")


if __name__ == "__main__":
    torch.set_num_threads(2)
    torch.set_float32_matmul_precision("high")
    serve(Server().answer)
