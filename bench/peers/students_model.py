"""A student that repeats its source, for `students.py`: in Marian's format, so that heedful and fxtranslate can open it.

All weights are random, except: the first dimensions of both halves of a vector hold positions only, cross attention
finds the source position that equals the target's, and copies the token there. A translation therefore equals its
source, in int8 too: outputs have realistic lengths, and can be checked. The products have the size of a real student.
"""

import struct

import numpy

DIM, FFN, HEADS, ENCODER, DECODER = 512, 2048, 8, 6, 2
# Position frequencies that no embedding uses: as many as a head has sines and cosines.
FREQUENCIES, SLOWEST = DIM // HEADS // 2, 8
# Size of embeddings against positions; then weights of queries and keys, and of the copied token against the previous one.
EMBEDDING = 2.0
FOCUS, COPY = 10.0, 4.0
INT8, F32, BYTES = 0x4101, 0x404, 0x101
# Largest activation that int8 represents.
LARGEST_ACTIVATION = 8.0


def parameters(vocabulary, recurrent, seed=1):
    """Marian's names and arrays; matrices are inputs x outputs."""
    random = numpy.random.default_rng(seed)
    positions = numpy.concatenate([numpy.arange(FREQUENCIES), DIM // 2 + numpy.arange(FREQUENCIES)])
    table = random.standard_normal((vocabulary, DIM)) * EMBEDDING / DIM**0.5
    slowest = DIM // 2 - 1 - numpy.arange(SLOWEST)
    table[:, numpy.concatenate([positions, slowest])] = 0
    found = {"Wemb": table, "decoder_ff_logit_out_b": numpy.zeros((1, vocabulary))}

    def linear(weight, bias, shape, value=None):
        found[weight] = random.standard_normal(shape) * 0.1 / shape[0] ** 0.5 if value is None else value
        if bias:
            found[bias] = numpy.zeros((1, shape[1]))

    def norm(name):
        found[f"{name}_ln_scale"], found[f"{name}_ln_bias"] = numpy.ones((1, DIM)), numpy.zeros((1, DIM))

    def attention(name, values):
        for part in "qkvo":
            linear(f"{name}_W{part}", f"{name}_b{part}", (DIM, DIM), values.get(part))
        norm(f"{name}_Wo")

    find = numpy.zeros((DIM, DIM))
    find[positions] = numpy.tile(FOCUS * numpy.eye(DIM // HEADS), HEADS)
    # The slowest sines are 0 at all positions: the norms' means.
    find[slowest] = -FOCUS / len(slowest)
    copy = {"q": find, "k": find, "v": numpy.eye(DIM), "o": COPY * numpy.eye(DIM)}
    for side, depth in (("encoder", ENCODER), ("decoder", DECODER)):
        for layer in (f"{side}_l{number + 1}" for number in range(depth)):
            if side == "encoder" or not recurrent:
                attention(f"{layer}_self", {})
            else:
                linear(f"{layer}_rnn_W", None, (DIM, DIM))
                linear(f"{layer}_rnn_Wf", f"{layer}_rnn_bf", (DIM, DIM))
                norm(f"{layer}_rnn_ffn")
            if side == "decoder":
                attention(f"{layer}_context", copy)
            linear(f"{layer}_ffn_W1", f"{layer}_ffn_b1", (DIM, FFN))
            linear(f"{layer}_ffn_W2", f"{layer}_ffn_b2", (FFN, DIM))
            norm(f"{layer}_ffn_ffn")
    return {name: value.astype(numpy.float32) for name, value in found.items()}


def settings(vocabulary, recurrent):
    lines = {
        "type": "transformer", "dim-emb": DIM, "transformer-dim-ffn": FFN, "transformer-heads": HEADS, "enc-depth": ENCODER,
        "dec-depth": DECODER, "tied-embeddings-all": "true", "transformer-ffn-activation": "relu", "transformer-ffn-depth": 2,
        "transformer-postprocess": "dan", "transformer-preprocess": '""', "transformer-postprocess-emb": "d",
        "transformer-decoder-autoreg": "rnn" if recurrent else "self-attention", "dec-cell": "ssru",
    }
    text = "".join(f"{key}: {value}\n" for key, value in lines.items())
    return f"{text}dim-vocabs:\n  - {vocabulary}\n  - {vocabulary}\n".encode() + b"\0"


def write(path, vocabulary, recurrent, quantized):
    """A `.bin` as `marian-conv` writes it, with float32 or intgemm8 matrices."""
    items = []
    for name, value in parameters(vocabulary, recurrent).items():
        if quantized and (name == "Wemb" or "_W" in name and "_ln_" not in name):
            multiplier = 127 / numpy.abs(value).max()
            integers = numpy.rint(value * multiplier).astype(numpy.int8)
            # intgemm stores columns, but the rows of the embedding.
            data = (integers if name == "Wemb" else integers.T).tobytes() + struct.pack("<f", multiplier)
            items.append((name, INT8, value.shape, data))
            scale = f"{'none' if name == 'Wemb' else name}_QuantMultA"
            items.append((scale, F32, (1, 1), struct.pack("<f", 127 / LARGEST_ACTIVATION)))
        else:
            items.append((name, F32, value.shape, value.tobytes()))
    text = settings(vocabulary, recurrent)
    items.append(("special:model.yml", BYTES, (len(text),), text))
    items = [(name.encode() + b"\0", kind, shape, data + bytes(-len(data) % 256)) for name, kind, shape, data in items]
    with open(path, "wb") as out:
        out.write(struct.pack("<QQ", 1, len(items)))
        for name, kind, shape, data in items:
            out.write(struct.pack("<QQQQ", len(name), kind, len(shape), len(data)))
        for name, *_ in items:
            out.write(name)
        for _, _, shape, _ in items:
            out.write(struct.pack(f"<{len(shape)}i", *shape))
        padding = -(out.tell() + 8) % 256
        out.write(struct.pack("<Q", padding) + bytes(padding))
        for *_, data in items:
            out.write(data)


def shortlist(ours, end, path):
    """Writes the lists of our `shortlist.bin` as Marian's `lex.s2t.bin`, and returns those of each source token.

    Marian's frequent tokens are the first of the vocabulary; ours become tokens of the list of `end`, which every source has.
    """
    numbers = numpy.frombuffer(ours.split(b"\n", 1)[1], "<u4")
    sources, _, frequent = numbers[:3]
    lengths, tokens = numbers[3 : 3 + sources], numbers[3 + sources :]
    lists = numpy.split(tokens[frequent:], numpy.cumsum(lengths)[:-1])
    lists[end] = numpy.union1d(lists[end], tokens[:frequent])
    starts = numpy.cumsum([0] + [len(tokens) for tokens in lists])
    with open(path, "wb") as out:
        out.write(struct.pack("<6Q", 0xF11A48D5013417F5, 0, 0, 100, len(starts), starts[-1]))
        out.write(starts.astype("<u8").tobytes() + numpy.concatenate(lists).astype("<u4").tobytes())
    return lists
