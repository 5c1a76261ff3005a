"""Translates lines with CTranslate2, as heedful does with --beam 1.

    pip install ctranslate2 tokenizers sentencepiece
    python translate.py < source.txt > translated.txt
"""

import json
import sys
from pathlib import Path

import ctranslate2

FOLDER = Path(__file__).resolve().parent
SETTINGS = json.loads((FOLDER / "config.json").read_text())
# Tokens that the model never generates.
SUPPRESSED = [[token] for token in SETTINGS["suppressed_tokens"]]
# A translation has at most as many tokens more than its source.
MORE = 50 + SETTINGS["add_source_eos"]


def tokenizer(side):
    """Functions from a text to tokens, and back."""
    for name in (f"{side}.spm", "sentencepiece.model"):
        if (FOLDER / name).exists():
            import sentencepiece

            pieces = sentencepiece.SentencePieceProcessor(str(FOLDER / name))
            return lambda text: pieces.encode(text, out_type=str), pieces.decode
    from tokenizers import Tokenizer

    name = "tokenizer.json" if (FOLDER / "tokenizer.json").exists() else f"{side}.tokenizer.json"
    vocabulary = Tokenizer.from_file(str(FOLDER / name))
    encode = lambda text: vocabulary.encode(text, add_special_tokens=False).tokens
    return encode, lambda tokens: vocabulary.decode([vocabulary.token_to_id(token) for token in tokens])


if __name__ == "__main__":
    (encode, _), (_, decode) = tokenizer("source"), tokenizer("target")
    translator = ctranslate2.Translator(str(FOLDER), compute_type="float32")
    lines = [line.rstrip("\n") for line in sys.stdin]
    texts = [encode(line) for line in lines]
    filled = [tokens for tokens in texts if tokens]
    longest = max(map(len, filled), default=0) + MORE
    options = dict(beam_size=1, max_decoding_length=longest, max_batch_size=32, suppress_sequences=SUPPRESSED or None)
    found = iter(translator.translate_batch(filled, **options))
    for tokens in texts:
        print(decode(next(found).hypotheses[0][: len(tokens) + MORE]) if tokens else "")
