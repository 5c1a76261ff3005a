"""Continues a prompt with CTranslate2 (greedy search).

    pip install ctranslate2 tokenizers
    python generate.py "Once upon a time" 50
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

if __name__ == "__main__":
    prompt, length = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 50
    vocabulary = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    generator = ctranslate2.Generator(str(FOLDER), compute_type="float32")
    encoded = vocabulary.encode(prompt, add_special_tokens=False)
    options = dict(beam_size=1, max_length=length, include_prompt_in_result=False, suppress_sequences=SUPPRESSED or None)
    results = generator.generate_batch([[SETTINGS["bos_token"], *encoded.tokens]], **options)
    print(vocabulary.decode(encoded.ids + results[0].sequences_ids[0]))
