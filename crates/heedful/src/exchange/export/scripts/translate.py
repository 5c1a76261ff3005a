"""Translates lines with CTranslate2, as heedful does with --beam 1.

    pip install ctranslate2 tokenizers sentencepiece
    python translate.py < source.txt > translated.txt
"""

import json
import sys
from pathlib import Path

import ctranslate2
from tokenizers import Tokenizer

FOLDER = Path(__file__).resolve().parent
SETTINGS = json.loads((FOLDER / "config.json").read_text())
# Tokens that the model never generates.
SUPPRESSED = [[token] for token in SETTINGS["suppressed_tokens"]]
# The maximum length of a translation is that of its source plus this many tokens.
MAX_EXTRA_TOKENS = 50 + SETTINGS["add_source_eos"]


def first_existing(*names):
    """The path of the first of these files that exists, or None."""
    return next((str(FOLDER / name) for name in names if (FOLDER / name).exists()), None)


def encoder(side="source"):
    """Returns a function that tokenizes a text."""
    if pieces := first_existing(f"{side}.spm", "sentencepiece.model"):
        import sentencepiece

        encoder = sentencepiece.SentencePieceProcessor(pieces)
        return lambda text: encoder.encode(text, out_type=str)
    vocabulary = Tokenizer.from_file(first_existing("tokenizer.json", f"{side}.tokenizer.json"))
    return lambda text: vocabulary.encode(text, add_special_tokens=False).tokens


def decoder():
    """Returns a function that converts target tokens to a text. The ids are those of the model."""
    tokens = json.loads(Path(first_existing("shared_vocabulary.json", "target_vocabulary.json")).read_text(encoding="utf-8"))
    ids = {token: id for id, token in enumerate(tokens)}
    vocabulary = Tokenizer.from_file(first_existing("target.tokenizer.json", "tokenizer.json"))
    return lambda tokens: vocabulary.decode([ids[token] for token in tokens])


if __name__ == "__main__":
    encode, decode = encoder(), decoder()
    translator = ctranslate2.Translator(str(FOLDER), compute_type="float32")
    lines = [line.rstrip("\n") for line in sys.stdin]
    texts = [encode(line) for line in lines]
    nonempty = [tokens for tokens in texts if tokens]
    longest = max(map(len, nonempty), default=0) + MAX_EXTRA_TOKENS
    options = dict(beam_size=1, max_decoding_length=longest, max_batch_size=32, suppress_sequences=SUPPRESSED or None)
    results = iter(translator.translate_batch(nonempty, **options))
    for tokens in texts:
        print(decode(next(results).hypotheses[0][: len(tokens) + MAX_EXTRA_TOKENS]) if tokens else "")
