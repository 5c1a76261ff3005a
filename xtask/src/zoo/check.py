"""Compares imported models with the original implementations; run by `cargo xtask zoo`.

    python check.py ZOO HEEDFUL EXAMPLES ENGLISH

ZOO is a folder with the original and imported models, made by the commands of `heedful models NAME`; HEEDFUL is the
program, EXAMPLES the folder of the library's examples, ENGLISH a file of sentences. Each printed line is a measure with
its bound; the script fails if one is missed.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import transformers

from marian import Marian

ZOO, HEEDFUL, EXAMPLES, ENGLISH = sys.argv[1:5]
ZOO, EXAMPLES = Path(ZOO), Path(EXAMPLES)
MISSED = []


def say(what, value, holds, bound):
    print(f"{'ok    ' if holds else 'MISSED'}  {what}: {value}  ({bound})", flush=True)
    if not holds:
        MISSED.append(what)


def program(*words, text=None):
    run = subprocess.run([*map(str, words)], input=text, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {run.stderr}")
    return run.stdout.splitlines()


def heedful(*words, text=None):
    return program(HEEDFUL, *words, text=text)


def lines(path):
    return Path(path).read_text(encoding="utf-8").splitlines()


def zoo(name):
    return next(model for model in json.loads("\n".join(heedful("models", "--json")))["model"] if model["name"] == name)


def minilm():
    folder = ZOO / zoo("all-minilm-l6-v2")["path"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    texts = lines(ENGLISH)[:500]
    states = program(EXAMPLES / "hidden_states", ZOO / "all-minilm-l6-v2", text="\n".join(texts) + "\n")
    worst, others = 0.0, 0
    for text, line in zip(texts, states, strict=True):
        with torch.no_grad():
            expected = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()
        found = np.array(json.loads(line), np.float32)
        if found.shape != expected.shape:
            others += 1
            continue
        worst = max(worst, float(np.abs(found - expected).max()))
    say(f"all-minilm-l6-v2, hidden states of {len(texts)} texts", f"{worst:.1e} off at most, {others} of other lengths", worst <= 1e-4 and others == 0, "1e-4 of transformers")


def bergamot():
    model = zoo("bergamot-en-pt")
    folder = ZOO / model["path"]
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(next(folder.glob("vocab.*.spm"))))
    original = Marian(ZOO / model["file"], (6, 2), 8)
    texts = lines(ENGLISH)[:200]
    sources = ZOO / "english.txt"
    sources.write_text("\n".join(texts) + "\n", encoding="utf-8")
    mine = heedful("translate", ZOO / "bergamot-en-pt", sources, "--beam", 1, "--compute", "f32", "--quiet")
    same = 0
    for text, found in zip(texts, mine):
        ids = pieces.encode(text) + [pieces.eos_id()]
        same += pieces.decode(original.greedy(ids, pieces.eos_id(), 2 * len(ids) + 20)).strip() == found.strip()
    say("bergamot-en-pt, greedy texts", f"{same} of {len(texts)}", same >= 0.95 * len(texts), "95 % equal to Marian's arithmetic in numpy, float32")


for part in (minilm, bergamot):
    part()
sys.exit(f"missed: {', '.join(MISSED)}" if MISSED else 0)
