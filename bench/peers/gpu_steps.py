"""Training steps of one batch on a GPU, one after the other, as benches ask for them.

A run has `loss()`, which goes forward, and an `optimizer`. In "eager" every step is sent kernel by kernel; in all other modes the whole
step, update included, is recorded once as a CUDA graph and replayed, so that no time is lost between kernels.
"""

import collections
import contextlib
import time

import torch

WARM_UPS = 3
# Steps that may wait on the GPU: without a limit a round would go on long after its seconds.
AHEAD = 3
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def autocast(device, dtype):
    """Around a forward pass. Its casts are kept until it ends: a weight that every step of a loop uses is cast once."""
    return contextlib.nullcontext() if dtype == "f32" else torch.autocast(device, dtype=TYPES[dtype])


class GpuSteps:
    def __init__(self, run, mode, dtype):
        self.run, self.graph, self.loss = run, None, None
        # Gradients of f16 would be zero too often; it is all decided on the GPU.
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
        """Steps until the seconds are over, at least one; the mean seconds of one."""
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
            if len(waiting) > AHEAD:
                waiting.popleft().synchronize()
            steps += 1
        torch.cuda.synchronize()
        return {"seconds": (time.perf_counter() - start) / steps, "steps": steps, "loss": self.loss.item()}
