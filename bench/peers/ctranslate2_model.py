"""Converts a heedful model to CTranslate2, and token ids to the names of tokens there."""

import json
from pathlib import Path

import ctranslate2
import numpy
from ctranslate2.specs import common_spec, transformer_spec

MAX_LENGTH = 1024
SPECIAL = {0: "<blank>", 1: "<s>", 2: "</s>", 3: "<unk>"}


def opened(model, config, threads):
    """The translator of a configuration, and its number of workers.

    A configuration is a compute type ("int8": one worker with all threads), or a type and a split ("int8 4x2": four
    workers of two threads each), optionally with a batch size ("int8 4x2 32").
    """
    compute, split = (config.split() + [f"1x{threads}"])[:2]
    workers, each = map(int, split.split("x"))
    return ctranslate2.Translator(str(model), device="cpu", compute_type=compute, inter_threads=workers, intra_threads=each), workers


def name(token):
    return SPECIAL.get(token, f"t{token}")


def number(token):
    return next((i for i, special in SPECIAL.items() if special == token), None) if token[0] == "<" else int(token[1:])


def convert(folder, into, stored=None):
    """Writes the model to an existing folder, its weights `stored` as float32 (None), int8, int16 or bfloat16.

    Supports only post-norm Transformers with one tied embedding table.
    """
    # Imported here: safetensors is only needed for conversion.
    from safetensors.numpy import load_file

    config = json.loads((Path(folder) / "config.json").read_text())
    for key, supported in {"norm": "post", "positions": "sinusoidal", "tying": "all", "activation": "relu", "window": None}.items():
        if config[key] != supported:
            raise ValueError(f"{key} is {config[key]}, this peer supports only {supported}")
    weights = load_file(Path(folder) / "model.safetensors")
    layers = (config["encoder_layers"], config["decoder_layers"])
    spec = transformer_spec.TransformerSpec.from_config(layers, config["heads"], pre_norm=False, activation=common_spec.Activation.RELU)

    def linear(target, name):
        # CTranslate2 stores linear weights as out x in.
        target.weight = numpy.ascontiguousarray(weights[f"{name}.weight"].T)
        target.bias = weights[f"{name}.bias"].reshape(-1)

    def norm(target, name):
        target.gamma, target.beta = weights[f"{name}.gamma"].reshape(-1), weights[f"{name}.beta"].reshape(-1)

    def self_attention_and_ffn(layer, name):
        linear(layer.self_attention.linear[0], f"{name}.self_attention.qkv")
        linear(layer.self_attention.linear[1], f"{name}.self_attention.output")
        norm(layer.self_attention.layer_norm, f"{name}.self_attention_norm")
        linear(layer.ffn.linear_0, f"{name}.feed_forward.inner")
        linear(layer.ffn.linear_1, f"{name}.feed_forward.outer")
        norm(layer.ffn.layer_norm, f"{name}.feed_forward_norm")

    for depth, layer in enumerate(spec.encoder.layer):
        self_attention_and_ffn(layer, f"encoder.{depth}")
    for depth, layer in enumerate(spec.decoder.layer):
        self_attention_and_ffn(layer, f"decoder.{depth}")
        for target, part in zip(layer.attention.linear, ("query", "key_value", "output")):
            linear(target, f"decoder.{depth}.cross_attention.{part}")
        norm(layer.attention.layer_norm, f"decoder.{depth}.cross_attention_norm")
    table = weights["embedding.weight"]
    spec.encoder.embeddings[0].weight = table
    spec.decoder.embeddings.weight = table
    spec.decoder.projection.weight = table
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = True
        side.position_encodings.encodings = sinusoids(MAX_LENGTH, config["d_model"])
    vocabulary = [name(token) for token in range(len(table))]
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.layer_norm_epsilon = config["norm_epsilon"]
    spec.validate()
    spec.optimize(quantization=stored)
    spec.save(str(into))


def sinusoids(length, width):
    angles = numpy.arange(length)[:, None] / 10000.0 ** (numpy.arange(0, width, 2) / width)
    return numpy.stack([numpy.sin(angles), numpy.cos(angles)], -1).reshape(length, width).astype(numpy.float32)
