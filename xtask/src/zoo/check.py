"""Imported models beside their originals: `cargo xtask zoo` runs this.

    python check.py ZOO HEEDFUL EXAMPLES CHINESE ENGLISH

ZOO is a folder in which the originals were fetched and imported as `heedful models NAME` says; HEEDFUL is the program, EXAMPLES
the folder of the library's examples; CHINESE and ENGLISH are the same sentences, line by line. Each line that this
prints is one measure with its bound; it fails if one is missed. Speed has none.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import ctranslate2
import numpy as np
import sacrebleu
import sentencepiece
import torch
import transformers

from marian import Marian

ZOO, HEEDFUL, EXAMPLES, CHINESE, ENGLISH = sys.argv[1:6]
ZOO, EXAMPLES, THREADS = Path(ZOO), Path(EXAMPLES), 2
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


def argos():
    """CTranslate2 in float32 on the package's own files."""
    import zipfile

    package = ZOO / zoo("argos-zh-en")["path"]
    unpacked = ZOO / "argos"
    if not unpacked.exists():
        zipfile.ZipFile(package).extractall(unpacked)
    inner = next(unpacked.iterdir())
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(inner / "sentencepiece.model"))
    original = ctranslate2.Translator(str(inner / "model"), compute_type="float32", intra_threads=THREADS)
    ours, sources, references = ZOO / "argos-zh-en", lines(CHINESE), lines(ENGLISH)
    tokens = [pieces.encode(source, out_type=str) for source in sources]
    vocabulary = json.loads((inner / "model" / "shared_vocabulary.json").read_text(encoding="utf-8"))
    numbers = {token: i for i, token in enumerate(vocabulary)}
    unknown = numbers["<unk>"]
    expected = [[numbers.get(token, unknown) for token in line] for line in tokens]
    found = [[int(i) for i in line.split()] for line in heedful("vocab", "--encode", ours / "source.tokenizer.json", text="\n".join(sources) + "\n")]
    same = sum(a == b for a, b in zip(expected, found))
    say("argos-zh-en, ids of sentences", f"{same} of {len(sources)}", same == len(sources), "all those of SentencePiece")

    def translate(beam):
        results = original.translate_batch(tokens, beam_size=beam, max_batch_size=64, batch_type="examples", length_penalty=0)
        return [result.hypotheses[0] for result in results]

    # As Argos Translate does it: the package has pieces of the source alone.
    joined = lambda pieces: "".join(pieces).replace("▁", " ").strip()
    greedy = translate(1)
    mine = heedful("translate", ours, CHINESE, "--beam", 1, "--compute", "f32", "--quiet")
    same = sum(joined(a) == b.strip() for a, b in zip(greedy, mine))
    say("argos-zh-en, greedy texts", f"{same} of {len(sources)}", same >= 0.99 * len(sources), "99 % are CTranslate2's in float32")

    scores = original.score_batch(tokens, greedy, max_batch_size=64)
    eos = [numbers["</s>"]] if json.loads((inner / "model" / "config.json").read_text()).get("add_source_eos") else []
    pairs = [{"source": source + eos, "target": [numbers[token] for token in target]} for source, target in zip(expected, greedy)]
    forced = program(EXAMPLES / "forced_decoding", ours, text="".join(json.dumps(pair) + "\n" for pair in pairs))
    off = np.concatenate([np.abs(np.subtract(score.log_probs, json.loads(line))) for score, line in zip(scores, forced, strict=True)])
    # Beside the same in float64, CTranslate2's own float32 is up to 9e-5 off, and heedful's 1e-5.
    value = f"{len(off)} tokens, {(off > 1e-4).sum()} more than 1e-4 off, {off.max():.1e} at most"
    say("argos-zh-en, forced log-probabilities", value, off.max() <= 2e-4 and (off > 1e-4).mean() < 1e-3, "1e-4 for 99.9 % of tokens, 2e-4 for all")

    bleu = lambda texts: sacrebleu.corpus_bleu(texts, [references]).score
    theirs = [*map(joined, translate(4))]
    mine = heedful("translate", ours, CHINESE, "--beam", 4, "--length-penalty", 0, "--compute", "f32", "--quiet")
    a, b, same = bleu(theirs), bleu(mine), sum(a == b.strip() for a, b in zip(theirs, mine))
    say("argos-zh-en, BLEU at beam 4", f"{b:.2f}, the original {a:.2f}; {same} of {len(sources)} texts are the same", abs(a - b) <= 0.1, "0.1")

    small = ZOO / "argos-zh-en-int8"
    if not small.exists():
        heedful("quantize", ours, "--to", "int8", "-o", small)
    peer = ctranslate2.Translator(str(inner / "model"), compute_type="int8", intra_threads=THREADS)
    ratios = []
    for _ in range(3):
        start = time.time()
        peer.translate_batch(tokens, beam_size=1, max_batch_size=2048, batch_type="tokens")
        between = time.time()
        heedful("translate", small, CHINESE, "--beam", 1, "--compute", "int8", "--threads", THREADS, "--quiet")
        ratios.append((between - start) / (time.time() - between))
    # Told, not judged: it is the machine's too.
    told = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
    print(f"        argos-zh-en, speed in int8, greedy, {THREADS} threads: {told} times CTranslate2's, ours with start and tokenization", flush=True)


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
    say("bergamot-en-pt, greedy texts", f"{same} of {len(texts)}", same >= 0.95 * len(texts), "95 % are those of Marian's arithmetic in numpy, float32")


for part in (argos, minilm, bergamot):
    part()
sys.exit(f"missed: {', '.join(MISSED)}" if MISSED else 0)
