"""Beam search with cached keys and values in PyTorch, on a model that heedful trained.

{"op": "load", "folder": F, "sources": [[id, …], …], "dtype": "f32" | "bf16", "beam": n, "alpha": a, "bos": b, "eos": e,
"sizes": [sentences of a batch, …]} loads the weights, translates once in each size and answers {"size": the fastest}; {"op": "translate"} answers {"seconds", "outputs": [[id, …], …]};
{"op": "memory"} answers {"bytes"}, the peak of this process.

The search is heedful's: of all expansions the `beam` best stay, those that end with eos are found with log p / ((5 + n) / 6)^alpha,
at most 50 tokens more than the source, and a sentence is over when nothing open can become better.
"""

import json
import math
import time
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.nn import functional

from exchange import peak_memory, serve
from transformer import sinusoids

BEYOND_SOURCE, LONGEST = 50, 1024


class Model:
    """A post-norm Transformer with sinusoidal positions and one tied table; anything else is refused."""

    def __init__(self, folder, dtype):
        self.config = config = json.loads((Path(folder) / "config.json").read_text())
        for key, wanted in {"norm": "post", "positions": "sinusoidal", "tying": "all", "activation": "relu", "window": None}.items():
            if config[key] != wanted:
                raise ValueError(f"{key} is {config[key]}, this peer knows {wanted} alone")
        weights = {name: value.to(dtype) for name, value in load_file(Path(folder) / "model.safetensors").items()}
        # PyTorch keeps a linear map as out x in.
        self.weights = {n: v.T.contiguous() if n.endswith(".weight") and n != "embedding.weight" else v.squeeze() for n, v in weights.items()}
        self.width, self.heads = config["d_model"], config["heads"]
        self.positions = sinusoids(LONGEST, self.width).to(dtype)

    def linear(self, name, x):
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def norm(self, name, x):
        gamma, beta = self.weights[f"{name}.gamma"], self.weights[f"{name}.beta"]
        return functional.layer_norm(x, (self.width,), gamma, beta, self.config["norm_epsilon"])

    def feed_forward(self, name, x):
        inner = functional.relu(self.linear(f"{name}.feed_forward.inner", x))
        return self.norm(f"{name}.feed_forward_norm", x + self.linear(f"{name}.feed_forward.outer", inner))

    def embed(self, tokens, positions):
        return functional.embedding(tokens, self.weights["embedding.weight"]) * math.sqrt(self.width) + self.positions[positions]

    def split(self, x, parts):
        """[batch, length, parts * d] to parts of [batch, heads, length, d / heads]."""
        batch, length, _ = x.shape
        return x.view(batch, length, parts, self.heads, -1).permute(2, 0, 3, 1, 4)

    def encode(self, source, mask):
        x = self.embed(source, torch.arange(source.shape[1]))
        for layer in range(self.config["encoder_layers"]):
            name = f"encoder.{layer}"
            q, k, v = self.split(self.linear(f"{name}.self_attention.qkv", x), 3)
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
            x = self.norm(f"{name}.self_attention_norm", x + self.linear(f"{name}.self_attention.output", mixed))
            x = self.feed_forward(name, x)
        layers = range(self.config["decoder_layers"])
        return [self.split(self.linear(f"decoder.{layer}.cross_attention.key_value", x), 2) for layer in layers]

    def step(self, tokens, position, caches, memory, mask, beam):
        """One token for every row; rows of a sentence stand together, `beam` of them."""
        x = self.embed(tokens, position)[:, None]
        for layer in range(self.config["decoder_layers"]):
            name = f"decoder.{layer}"
            q, k, v = self.split(self.linear(f"{name}.self_attention.qkv", x), 3)
            if caches[layer] is not None:
                k, v = (torch.cat([old, new], 2) for old, new in zip(caches[layer], (k, v)))
            caches[layer] = (k, v)
            mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            x = self.norm(f"{name}.self_attention_norm", x + self.linear(f"{name}.self_attention.output", mixed))
            # The hypotheses of a sentence are so many queries on one memory: nothing is copied for each.
            q = self.linear(f"{name}.cross_attention.query", x).view(-1, beam, self.heads, self.width // self.heads).transpose(1, 2)
            mixed = functional.scaled_dot_product_attention(q, *memory[layer], attn_mask=mask).transpose(1, 2).reshape(-1, 1, self.width)
            x = self.norm(f"{name}.cross_attention_norm", x + self.linear(f"{name}.cross_attention.output", mixed))
            x = self.feed_forward(name, x)
        return functional.linear(x[:, 0], self.weights["embedding.weight"]).float()


class Search:
    def __init__(self, model, request):
        self.model = model
        self.beam, self.alpha, self.bos, self.eos = (request[key] for key in ("beam", "alpha", "bos", "eos"))

    def penalty(self, tokens):
        return ((5 + tokens) / 6) ** self.alpha

    @torch.inference_mode()
    def batch(self, sources):
        beam, model = self.beam, self.model
        lengths = torch.tensor([len(source) for source in sources])
        padded = torch.zeros(len(sources), int(lengths.max()), dtype=torch.long)
        for row, source in enumerate(sources):
            padded[row, : len(source)] = torch.tensor(source)
        mask = (torch.arange(padded.shape[1]) < lengths[:, None])[:, None, None, :]
        memory = model.encode(padded, mask)
        numbers = torch.arange(len(sources))
        limits = lengths + BEYOND_SOURCE
        found = [(-math.inf, []) for _ in sources]
        caches = [None] * len(memory)
        scores = torch.full((len(sources), beam), -math.inf)
        scores[:, 0] = 0.0
        tokens = torch.full((len(sources) * beam,), self.bos)
        said = torch.zeros(len(sources), beam, 0, dtype=torch.long)
        for length in range(int(limits.max()) + 1):
            logits = model.step(tokens, length, caches, memory, mask, beam).view(len(numbers), beam, -1)
            log_p = logits - logits.logsumexp(-1, keepdim=True)
            last = limits <= length
            if bool(last.any()):  # nothing but the end may follow
                only = torch.full_like(log_p[last], -math.inf)
                only[..., self.eos] = log_p[last][..., self.eos]
                log_p[last] = only
            best, index = (scores[..., None] + log_p).flatten(1).topk(beam)
            parent, token = index // log_p.shape[-1], index % log_p.shape[-1]
            ended = (token == self.eos) & best.isfinite()
            for row, place in ended.nonzero().tolist():
                number, score = int(numbers[row]), best[row, place].item() / self.penalty(length + 1)
                if score > found[number][0]:
                    found[number] = (score, said[row, parent[row, place]].tolist())
            scores = best.masked_fill(ended, -math.inf)
            worst = torch.tensor([found[number][0] for number in numbers.tolist()])
            most = torch.maximum(self.penalty(length + 2) * torch.ones(len(numbers)), self.penalty(limits + 1.0))
            alive = (scores.max(1).values / most > worst) & scores.max(1).values.isfinite()
            if not bool(alive.any()):
                break
            keep = alive.nonzero()[:, 0]
            rows = (keep[:, None] * beam + parent[keep]).flatten()
            said = torch.cat([said.flatten(0, 1)[rows], token[keep].view(-1, 1)], 1).view(len(keep), beam, -1)
            tokens, scores = token[keep].flatten(), scores[keep]
            caches = [tuple(part[rows] for part in cache) for cache in caches]
            if len(keep) < len(numbers):
                memory = [layer[:, keep] for layer in memory]
                mask, limits, numbers = mask[keep], limits[keep], numbers[keep]
        return [tokens for _, tokens in found]

    def all(self, sources, size):
        order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
        outputs = [None] * len(sources)
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            for number, output in zip(chosen, self.batch([sources[i] for i in chosen])):
                outputs[number] = output
        return outputs


class Server:
    def answer(self, request):
        match request["op"]:
            case "load":
                model = Model(request["folder"], {"f32": torch.float32, "bf16": torch.bfloat16}[request["dtype"]])
                self.search, self.sources = Search(model, request), request["sources"]
                times = {size: self.translate(size)["seconds"] for size in request["sizes"]}
                self.size = min(times, key=times.get)
                return {"size": self.size}
            case "translate":
                return self.translate(self.size)
            case "memory":
                return {"bytes": peak_memory()}
            case other:
                raise ValueError(f"no operation {other!r}")

    def translate(self, size):
        start = time.perf_counter()
        outputs = self.search.all(self.sources, size)
        return {"seconds": time.perf_counter() - start, "outputs": outputs}


if __name__ == "__main__":
    torch.set_num_threads(2)
    serve(Server().answer)
