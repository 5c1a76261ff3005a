"""Predicts a masked token with CTranslate2's encoder and the head in head.safetensors.

    pip install ctranslate2 tokenizers safetensors numpy
    python fill.py "the small cat runs" 2        masks the token with this index and prints the best predictions
"""

import json
import math
import sys
from pathlib import Path

import ctranslate2
import numpy
from safetensors.numpy import load_file
from tokenizers import Tokenizer

FOLDER = Path(__file__).resolve().parent
HEAD = "cls.predictions"


def scores(states, head, epsilon):
    """The logits of all tokens for each state."""
    hidden = states @ head[f"{HEAD}.transform.dense.weight"].T + head[f"{HEAD}.transform.dense.bias"]
    hidden = hidden * 0.5 * (1 + numpy.vectorize(math.erf)(hidden / math.sqrt(2)))
    centred = hidden - hidden.mean(-1, keepdims=True)
    normed = centred / numpy.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    normed = normed * head[f"{HEAD}.transform.LayerNorm.weight"] + head[f"{HEAD}.transform.LayerNorm.bias"]
    return normed @ head[f"{HEAD}.decoder.weight"].T + head.get(f"{HEAD}.bias", 0)


if __name__ == "__main__":
    encoder = ctranslate2.Encoder(str(FOLDER), compute_type="float32")
    head = load_file(str(FOLDER / "head.safetensors"))
    settings = json.loads((FOLDER / "config.json").read_text())
    vocabulary = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    ids, index = vocabulary.encode(sys.argv[1]).ids, int(sys.argv[2])
    ids[index] = vocabulary.token_to_id(settings["mask_token"])
    states = numpy.array(encoder.forward_batch([ids]).last_hidden_state)[0]
    logits = scores(states[index], head, settings["layer_norm_epsilon"])
    for token in numpy.argsort(-logits)[:5]:
        print(vocabulary.decode([int(token)]))
