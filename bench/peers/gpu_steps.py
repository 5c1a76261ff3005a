"""Training steps of one batch on a GPU, one after the other.

A run has `loss()`, the forward pass, and an `optimizer`. In "eager" every step is launched kernel by kernel; in all other modes the whole
step including the update is captured once as a CUDA graph and replayed, so that there are no gaps between kernels.
"""

import collections
import contextlib
import time

import torch

WARM_UPS = 3
# Steps that may be queued on the GPU: without a limit a round would take much longer than its seconds.
MAX_IN_FLIGHT = 3
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def autocast(device, dtype):
    """The autocast context of a forward pass. It caches casts: a weight that is used in every step of a loop is cast once."""
    return contextlib.nullcontext() if dtype == "f32" else torch.autocast(device, dtype=TYPES[dtype])


class GpuSteps:
    def __init__(self, run, mode, dtype):
        self.run, self.graph, self.loss = run, None, None
        # f16 gradients would underflow too often without loss scaling.
        self.scaler = torch.amp.GradScaler("cuda") if dtype == "f16" else None
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                self.step()
                self.run.optimizer.zero_grad(set_to_none=True)
        torch.cuda.current_stream().wait_stream(stream)
        if mode != "eager":
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.step()
        torch.cuda.synchronize()

    def step(self):
        self.loss = self.run.loss()
        if self.scaler is None:
            self.loss.backward()
            self.run.optimizer.step()
        else:
            self.scaler.scale(self.loss).backward()
            self.scaler.step(self.run.optimizer)
            self.scaler.update()

    def round(self, seconds):
        """Runs steps until the seconds have passed, at least one; returns the mean seconds of a step."""
        waiting, steps = collections.deque(), 0
        torch.cuda.synchronize()
        start = time.perf_counter()
        while steps == 0 or time.perf_counter() - start < seconds:
            if self.graph is None:
                self.step()
                self.run.optimizer.zero_grad(set_to_none=True)
            else:
                self.graph.replay()
            waiting.append(torch.cuda.Event())
            waiting[-1].record()
            if len(waiting) > MAX_IN_FLIGHT:
                waiting.popleft().synchronize()
            steps += 1
        torch.cuda.synchronize()
        return {"seconds": (time.perf_counter() - start) / steps, "steps": steps, "loss": self.loss.item()}
