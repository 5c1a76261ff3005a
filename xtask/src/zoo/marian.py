"""Marian's Transformer with SSRU decoder layers in numpy, in float32: greedy search without a shortlist.

Written from Marian's documentation and the shapes in its files, to be compared with heedful; it shares no code with heedful.
"""

import struct

import numpy as np


def read(path):
    """The tensors of a .bin file: int8 ones are dequantized and transposed to the layout of float ones."""
    data = open(path, "rb").read()
    version, count = struct.unpack_from("<QQ", data)
    assert version == 1, version
    headers = [struct.unpack_from("<QQQQ", data, 16 + 32 * i) for i in range(count)]
    at = 16 + 32 * count
    names, shapes = [], []
    for length, *_ in headers:
        names.append(data[at : at + length - 1].decode())
        at += length
    for _, _, rank, _ in headers:
        shapes.append(struct.unpack_from(f"<{rank}i", data, at))
        at += 4 * rank
    (pad,) = struct.unpack_from("<Q", data, at)
    at += 8 + pad
    tensors = {}
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers):
        raw = data[at : at + size]
        at += size
        number = int(np.prod(shape))
        if kind == 0x404:
            tensors[name] = np.frombuffer(raw, np.float32, number).reshape(shape)
        elif kind == 0x4101:
            integers = np.frombuffer(raw, np.int8, number).astype(np.float32)
            (multiplier,) = struct.unpack_from("<f", raw, number)
            values = integers / np.float32(multiplier)
            # A prepared matrix is stored transposed; the embedding table is not.
            tensors[name] = values.reshape(shape) if name.startswith("Wemb") else values.reshape(shape[::-1]).T
    return tensors


class Marian:
    def __init__(self, path, layers, heads):
        self.t = read(path)
        self.heads = heads
        self.encoder_layers, self.decoder_layers = layers
        table = next(self.t[name] for name in self.t if name in ("Wemb", "encoder_Wemb"))
        self.table, self.d = table, table.shape[1]

    def dense(self, x, name, weight="W", bias="b"):
        return x @ self.t[name + weight] + self.t[name + bias].reshape(-1)

    def norm(self, x, name):
        scale, bias = self.t[name + "_ln_scale"].reshape(-1), self.t[name + "_ln_bias"].reshape(-1)
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + 1e-9) * scale + bias

    def position(self, at):
        half = self.d // 2
        angle = at * np.exp(np.arange(half) * (-np.log(10000.0) / (half - 1)))
        return np.concatenate([np.sin(angle), np.cos(angle)]).astype(np.float32)

    def embed(self, ids, first=0):
        positions = np.stack([self.position(first + i) for i in range(len(ids))])
        return self.table[ids] * np.float32(np.sqrt(self.d)) + positions

    def heads_of(self, x):
        return x.reshape(len(x), self.heads, -1).transpose(1, 0, 2)

    def attend(self, queries, keys, values):
        q, k, v = map(self.heads_of, (queries, keys, values))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(np.float32(q.shape[-1]))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return (weights @ v).transpose(1, 0, 2).reshape(len(queries), self.d)

    def feed_forward(self, x, name):
        inner = np.maximum(x @ self.t[name + "_W1"] + self.t[name + "_b1"].reshape(-1), 0)
        return self.norm(x + inner @ self.t[name + "_W2"] + self.t[name + "_b2"].reshape(-1), name + "_ffn")

    def encode(self, ids):
        x = self.embed(ids)
        for layer in range(1, self.encoder_layers + 1):
            name = f"encoder_l{layer}_self_"
            attended = self.attend(*(self.dense(x, name, "W" + part, "b" + part) for part in "qkv"))
            x = self.norm(x + self.dense(attended, name, "Wo", "bo"), name + "Wo")
            x = self.feed_forward(x, f"encoder_l{layer}_ffn")
        return x

    def greedy(self, ids, eos, longest):
        memory = self.encode(ids)
        context = []
        for layer in range(1, self.decoder_layers + 1):
            name = f"decoder_l{layer}_context_"
            context.append([self.dense(memory, name, "W" + part, "b" + part) for part in "kv"])
        states = [np.zeros(self.d, np.float32) for _ in range(self.decoder_layers)]
        out, embedded = [], np.zeros((1, self.d), np.float32)
        while len(out) < longest:
            # The first input is only its position encoding.
            x = embedded + self.position(len(out)) if not out else self.embed([out[-1]], len(out))
            for layer in range(1, self.decoder_layers + 1):
                name = f"decoder_l{layer}_rnn_"
                forget = 1 / (1 + np.exp(-self.dense(x, name, "Wf", "bf")))
                states[layer - 1] = forget * states[layer - 1] + (1 - forget) * (x @ self.t[name + "W"])
                x = self.norm(x + np.maximum(states[layer - 1], 0), name + "ffn")
                name = f"decoder_l{layer}_context_"
                attended = self.attend(self.dense(x, name, "Wq", "bq"), *context[layer - 1])
                x = self.norm(x + self.dense(attended, name, "Wo", "bo"), name + "Wo")
                x = self.feed_forward(x, f"decoder_l{layer}_ffn")
            scores = x[0] @ self.table.T + self.t["decoder_ff_logit_out_b"].reshape(-1)
            token = int(scores.argmax())
            if token == eos:
                break
            out.append(token)
        return out
