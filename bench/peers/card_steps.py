"""Training steps of one batch on a card, one after the other, as benches ask for them.

A run has `loss()`, which goes forward, and an `optimizer`. Modes: "eager", and "graph": the whole step, update included, is recorded
once as a CUDA graph and replayed, so that no time is lost between kernels.
"""

import collections
import time

import torch

WARM_UPS = 3
# Steps that may wait on the card: without a limit a round would go on long after its seconds.
AHEAD = 3


class CardSteps:
    def __init__(self, run, mode):
        self.run, self.graph, self.loss = run, None, None
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                self.eager()
        torch.cuda.current_stream().wait_stream(stream)
        if mode == "graph":
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.loss = self.run.loss()
                self.loss.backward()
                self.run.optimizer.step()
        torch.cuda.synchronize()

    def eager(self):
        self.loss = self.run.loss()
        self.loss.backward()
        self.run.optimizer.step()
        self.run.optimizer.zero_grad(set_to_none=True)

    def round(self, seconds):
        """Steps until the seconds are over, at least one; the mean seconds of one."""
        waiting, steps = collections.deque(), 0
        torch.cuda.synchronize()
        start = time.perf_counter()
        while steps == 0 or time.perf_counter() - start < seconds:
            if self.graph is None:
                self.eager()
            else:
                self.graph.replay()
            waiting.append(torch.cuda.Event())
            waiting[-1].record()
            if len(waiting) > AHEAD:
                waiting.popleft().synchronize()
            steps += 1
        torch.cuda.synchronize()
        return {"seconds": (time.perf_counter() - start) / steps, "steps": steps, "loss": self.loss.item()}
