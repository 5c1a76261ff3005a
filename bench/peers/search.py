"""Beam search on a card in PyTorch, with a model that heedful trained: cached keys and values, bf16.

    search.py FOLDER MODE BATCH    MODE is "eager" or "compile"; BATCH sentences are decoded together

Requests: {"op": "translate", "sources": [[token, …], …], "beam"} answers {"seconds", "outputs"}; {"op": "quit"} ends it. Sentences are
sorted by length; keys of the memory are shared by a sentence's hypotheses; sentences that are finished leave the batch when half of
them are. Scores, ends and limits are those of `heedful translate`: log p / ((5 + n) / 6)^0.6, at most 50 tokens more than the source.
"""

import json
import struct
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional

from exchange import serve
from transformer import sinusoids

BOS, EOS, ALPHA, BEYOND, LONGEST = 1, 2, 0.6, 50, 1024
DEVICE, DTYPE = "cuda", torch.bfloat16


def read(path):
    """The tensors of a safetensors file."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    kinds = {"F32": torch.float32, "BF16": torch.bfloat16}
    return {
        name: torch.frombuffer(bytearray(data[8 + length + at[0] : 8 + length + at[1]]), dtype=kinds[it["dtype"]]).view(it["shape"])
        for name, it in json.loads(data[8 : 8 + length]).items()
        if name != "__metadata__" and it["dtype"] in kinds
        for at in [it["data_offsets"]]
    }


class Model:
    def __init__(self, folder, mode):
        self.config = config = json.loads((Path(folder) / "config.json").read_text())
        for key, wanted in {"norm": "post", "positions": "sinusoidal", "tying": "all", "activation": "relu", "window": None}.items():
            if config[key] != wanted:
                raise ValueError(f"{key} is {config[key]}, this peer knows {wanted} alone")
        # Linear maps are kept as out x in.
        turn = lambda name, x: x.T.contiguous() if x.dim() == 2 and name.endswith(".weight") and name != "embedding.weight" else x.flatten() if x.shape[0] == 1 else x
        self.weights = {name: turn(name, x).to(DEVICE, DTYPE) for name, x in read(Path(folder) / "model.safetensors").items()}
        self.positions = sinusoids(LONGEST, config["d_model"]).to(DEVICE, DTYPE)
        self.table, self.heads, self.d = self.weights["embedding.weight"], config["heads"], config["d_model"]
        self.step = torch.compile(self.plain_step, dynamic=True) if mode == "compile" else self.plain_step

    def linear(self, x, name):
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def norm(self, x, name):
        return functional.layer_norm(x, (self.d,), self.weights[f"{name}.gamma"], self.weights[f"{name}.beta"], self.config["norm_epsilon"])

    def split(self, x, parts):
        batch, length, _ = x.shape
        return x.view(batch, length, parts, self.heads, -1).permute(2, 0, 3, 1, 4)

    def feed_forward(self, x, name):
        return self.norm(x + self.linear(self.linear(x, f"{name}.feed_forward.inner").relu(), f"{name}.feed_forward.outer"), f"{name}.feed_forward_norm")

    def embed(self, tokens, first):
        return self.table[tokens] * self.d**0.5 + self.positions[first : first + tokens.shape[1]]

    def encode(self, source, mask):
        """The keys and values of the memory for every decoder layer."""
        x = self.embed(source, 0)
        for number in range(self.config["encoder_layers"]):
            name = f"encoder.{number}"
            q, k, v = self.split(self.linear(x, f"{name}.self_attention.qkv"), 3)
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = self.norm(x + self.linear(mixed.transpose(1, 2).flatten(2), f"{name}.self_attention.output"), f"{name}.self_attention_norm")
            x = self.feed_forward(x, name)
        layers = range(self.config["decoder_layers"])
        return [self.split(self.linear(x, f"decoder.{number}.cross_attention.key_value"), 2).contiguous() for number in layers]

    def plain_step(self, tokens, position, cache, memory, mask):
        """Log-probabilities of the next token for tokens of [sentences, beam]; cache is [2, rows, heads, length, d] for each layer."""
        sentences, beam = tokens.shape
        x = self.table[tokens].view(sentences * beam, 1, self.d) * self.d**0.5 + self.positions[position]
        added = []
        for number in range(self.config["decoder_layers"]):
            name = f"decoder.{number}"
            q, k, v = self.split(self.linear(x, f"{name}.self_attention.qkv"), 3)
            past = torch.cat([cache[number], torch.stack([k, v])], 3)
            added.append(past)
            mixed = functional.scaled_dot_product_attention(q, past[0], past[1])
            x = self.norm(x + self.linear(mixed.transpose(1, 2).flatten(2), f"{name}.self_attention.output"), f"{name}.self_attention_norm")
            # All hypotheses of a sentence are queries of one attention.
            q = self.linear(x, f"{name}.cross_attention.query").view(sentences, beam, self.heads, -1).transpose(1, 2)
            mixed = functional.scaled_dot_product_attention(q, memory[number][0], memory[number][1], attn_mask=mask)
            mixed = mixed.transpose(1, 2).reshape(sentences * beam, 1, self.d)
            x = self.norm(x + self.linear(mixed, f"{name}.cross_attention.output"), f"{name}.cross_attention_norm")
            x = self.feed_forward(x, name)
        logits = functional.linear(x.view(sentences * beam, self.d), self.table).float()
        return functional.log_softmax(logits, -1), added

    @torch.inference_mode()
    def translate(self, sources, beam):
        """The best output of each source, decoded together."""
        lengths = torch.tensor([len(source) for source in sources], device=DEVICE)
        longest = max(map(len, sources))
        padded = torch.tensor([source + [0] * (longest - len(source)) for source in sources]).to(DEVICE)
        mask = (torch.arange(longest, device=DEVICE)[None] < lengths[:, None])[:, None, None]
        memory = self.encode(padded, mask)
        count, vocabulary = len(sources), self.table.shape[0]
        limits, numbers = lengths + BEYOND, torch.arange(count, device=DEVICE)
        penalty = lambda tokens: ((5 + tokens) / 6) ** ALPHA
        scores = torch.full((count, beam), -torch.inf, device=DEVICE)
        scores[:, 0] = 0
        tokens = torch.full((count, beam), BOS, device=DEVICE)
        said = torch.zeros((count, beam, 0), dtype=torch.long, device=DEVICE)
        cache = [torch.zeros((2, count * beam, self.heads, 0, self.d // self.heads), device=DEVICE, dtype=DTYPE)] * self.config["decoder_layers"]
        found_score = torch.full((count,), -torch.inf, device=DEVICE)
        found = torch.full((count, longest + BEYOND + 1), EOS, device=DEVICE)
        for position in range(longest + BEYOND + 1):
            log_p, cache = self.step(tokens, position, cache, memory, mask)
            open_count = len(numbers)
            total = scores[:, :, None] + log_p.view(open_count, beam, vocabulary)
            # At the limit nothing but the end is left.
            at_limit = (limits[numbers] == position)[:, None, None]
            only_end = torch.full((vocabulary,), -torch.inf, device=DEVICE)
            only_end[EOS] = 0
            total = torch.where(at_limit, total + only_end, total).view(open_count, beam * vocabulary)
            best, at = total.topk(2 * beam)
            origin, token = at // vocabulary, at % vocabulary
            ends = token == EOS
            # Ends among the best are finished.
            score = torch.where(ends, best, -torch.inf)[:, :beam] / penalty(position + 1)
            score, which = score.max(1)
            better = score > found_score[numbers]
            text = said.gather(1, origin.gather(1, which[:, None])[:, :, None].expand(-1, 1, said.shape[2]))[:, 0]
            rows = numbers[better]
            found_score[rows] = score[better]
            found[rows] = EOS
            found[rows, : said.shape[2]] = text[better]
            # Of the others the best go on.
            scores, place = torch.where(ends, -torch.inf, best).topk(beam)
            origin, tokens = origin.gather(1, place), token.gather(1, place)
            said = torch.cat([said.gather(1, origin[:, :, None].expand(-1, -1, said.shape[2])), tokens[:, :, None]], 2)
            reach = scores[:, 0] / penalty(limits[numbers] + 1)
            goes_on = (reach > found_score[numbers]) & ~at_limit[:, 0, 0]
            left = int(goes_on.sum())
            if left == 0:
                break
            rows = (torch.arange(open_count, device=DEVICE)[:, None] * beam + origin).flatten()
            if left <= open_count // 2:
                rows = rows.view(open_count, beam)[goes_on].flatten()
                scores, tokens, said, numbers, mask = scores[goes_on], tokens[goes_on], said[goes_on], numbers[goes_on], mask[goes_on]
                memory = [layer[:, goes_on] for layer in memory]
            cache = [layer.index_select(1, rows) for layer in cache]
        outputs = found.tolist()
        return [output[: output.index(EOS)] if EOS in output else output for output in outputs]


class Server:
    def __init__(self, folder, mode, batch):
        self.model, self.batch = Model(folder, mode), int(batch)

    def answer(self, request):
        sources, beam = request["sources"], request["beam"]
        torch.cuda.synchronize()
        start = time.perf_counter()
        order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
        outputs = [None] * len(sources)
        for first in range(0, len(order), self.batch):
            part = order[first : first + self.batch]
            for i, output in zip(part, self.model.translate([sources[i] for i in part], beam)):
                outputs[i] = output
        torch.cuda.synchronize()
        return {"seconds": time.perf_counter() - start, "outputs": outputs}


if __name__ == "__main__":
    serve(Server(*sys.argv[1:]).answer)
