"""Beam search on a GPU by CTranslate2, with a model that heedful trained.

    search_ctranslate2.py FOLDER MODE BATCH [DEVICE]    BATCH is the batch size

It answers the requests of search.py. Of the compute types that the device supports it uses the fastest, measured with the first request.
Outputs may differ from ours: it has a different length penalty, and all sentences of a request have the length limit of the longest one.
"""

import sys
import tempfile
import time

import ctranslate2

from ctranslate2_model import convert, name, number
from exchange import serve

TYPES = ["int8_float16", "int8_bfloat16", "float16", "bfloat16", "float32"]
ALPHA, EXTRA_TOKENS = 0.6, 50
# Sentences for the comparison of compute types.
TRIAL = 200


class Server:
    def __init__(self, folder, _mode, batch, device="cuda"):
        self.batch, self.device, self.translator = int(batch), device, None
        self.folder = tempfile.TemporaryDirectory()
        convert(folder, self.folder.name)

    def open(self, kind):
        return ctranslate2.Translator(self.folder.name, device=self.device, compute_type=kind)

    def answer(self, request):
        sources = [[name(token) for token in source] for source in request["sources"]]
        if self.translator is None:
            self.translator = self.fastest(sources[:TRIAL], request["beam"])
        seconds, found = self.translate(self.translator, sources, request["beam"])
        return {"seconds": seconds, "outputs": [[number(token) for token in tokens] for tokens in found], "type": self.translator.compute_type}

    def fastest(self, sources, beam):
        best = None
        for kind in TYPES:
            if kind not in ctranslate2.get_supported_compute_types(self.device):
                continue
            translator = self.open(kind)
            self.translate(translator, sources, beam)
            seconds, _ = self.translate(translator, sources, beam)
            print(f"CTranslate2 {ctranslate2.__version__} {kind}: {seconds:.3f} s for {len(sources)} sentences", file=sys.stderr)
            if best is None or seconds < best[0]:
                best = seconds, translator
        return best[1]

    def translate(self, translator, sources, beam):
        start = time.perf_counter()
        longest = max(map(len, sources)) + EXTRA_TOKENS
        # CTranslate2 sorts sentences by length itself.
        found = translator.translate_batch(
            sources,
            max_batch_size=self.batch,
            beam_size=beam,
            length_penalty=ALPHA,
            min_decoding_length=0,
            max_decoding_length=longest,
        )
        return time.perf_counter() - start, [result.hypotheses[0] for result in found]


if __name__ == "__main__":
    serve(Server(*sys.argv[1:]).answer)
