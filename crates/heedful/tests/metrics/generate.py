"""Writes goldens.json: sacreBLEU's results for the sentences of corpora.py, with every option.

Run it with `cargo xtask golden`. Options have sacreBLEU's names; only those that differ from its defaults are stored.
"""

import itertools
import json
import logging
from pathlib import Path

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from corpora import corpora

METRICS = {"bleu": BLEU, "chrf": CHRF, "ter": TER}
# Sentence scores are stored for these options only, because there are many.
WITH_SENTENCES = [
    ("bleu", {"effective_order": True}),
    ("bleu", {"effective_order": True, "tokenize": "intl"}),
    ("bleu", {"effective_order": True, "tokenize": "zh", "smooth_method": "floor"}),
    ("bleu", {"tokenize": "char", "smooth_method": "add-k"}),
    ("chrf", {}),
    ("chrf", {"word_order": 2}),
    ("chrf", {"word_order": 2, "eps_smoothing": True}),
    ("ter", {}),
    ("ter", {"normalized": True, "asian_support": True}),
    ("ter", {"normalized": True, "no_punct": True}),
]
RESAMPLES, TRIALS = 200, 400


def option_sets():
    tokenizers = ["13a", "intl", "zh", "char", "none"]
    smoothings = [("exp", None), ("none", None), ("floor", None), ("floor", 0.01), ("add-k", None), ("add-k", 0.5)]
    for tokenize, (method, value), effective in itertools.product(tokenizers, smoothings, [False, True]):
        yield "bleu", dict(tokenize=tokenize, smooth_method=method, smooth_value=value, effective_order=effective)
    for tokenize in tokenizers:
        yield "bleu", dict(tokenize=tokenize, lowercase=True)
    for order in [1, 2, 6]:
        yield "bleu", dict(max_ngram_order=order)
    for word_order, lowercase, whitespace, smoothing in itertools.product([0, 1, 2], *[[False, True]] * 3):
        yield "chrf", dict(word_order=word_order, lowercase=lowercase, whitespace=whitespace, eps_smoothing=smoothing)
    for char_order, beta in [(1, 1), (3, 3), (6, 1), (8, 2)]:
        yield "chrf", dict(char_order=char_order, beta=beta)
    for flags in itertools.product([False, True], repeat=4):
        yield "ter", dict(zip(["normalized", "no_punct", "asian_support", "case_sensitive"], flags))


DEFAULTS = dict(tokenize="13a", smooth_method="exp", word_order=0)


def stored(options):
    return {key: value for key, value in options.items() if value not in (None, False) and DEFAULTS.get(key) != value}


def cases(texts):
    for corpus, (hypotheses, references) in texts.items():
        for name, options in option_sets():
            if corpus == "long" and name == "ter" and (options["no_punct"] or options["asian_support"]):
                continue  # Minutes each, and these options change nothing.
            metric = METRICS[name](**options)
            score = metric.corpus_score(hypotheses, references)
            signature = str(metric.get_signature())
            case = dict(corpus=corpus, metric=name, options=stored(options), score=score.score, signature=signature)
            if name == "bleu":
                case["detail"] = score._verbose
            if (name, stored(options)) in WITH_SENTENCES:
                columns = [[line for line in lines if line is not None] for lines in zip(*references)]
                scores = [metric.sentence_score(*pair) for pair in zip(hypotheses, columns)]
                case["sentences"] = [sentence.score for sentence in scores]
            yield case


def other_system(hypotheses, references):
    """Better in every third sentence and worse in every third."""
    def changed(i, line):
        return [references[0][i], line[2:], line][i % 3]
    return [changed(i, line) for i, line in enumerate(hypotheses)]


def resamplings(texts):
    for corpus in ["english", "scripts", "long"]:
        hypotheses, references = texts[corpus]
        for name, metric in METRICS.items():
            score = metric().corpus_score(hypotheses, references, n_bootstrap=RESAMPLES)
            case = dict(corpus=corpus, metric=name, mean=float(score._mean), margin=float(score._ci))
            for test, trials in [("bs", RESAMPLES), ("ar", TRIALS)]:
                systems = [("one", hypotheses), ("other", other_system(hypotheses, references))]
                tested = PairedTest(systems, {name: metric()}, references, test, trials)()[1]
                case[test] = [results for key, results in tested.items() if key != "System"][0][1].p_value
            yield case


def main():
    logging.disable()
    texts = corpora()
    stored_texts = {name: dict(hypotheses=h, references=r, other=other_system(h, r)) for name, (h, r) in texts.items()}
    goldens = dict(sacrebleu=sacrebleu.__version__, resamples=RESAMPLES, trials=TRIALS, corpora=stored_texts)
    lines = json.dumps(goldens, ensure_ascii=False)[:-1] + ",\n\"cases\": [\n"
    lines += ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases(texts)) + "\n],\n\"resamplings\": [\n"
    lines += ",\n".join(json.dumps(case, ensure_ascii=False) for case in resamplings(texts)) + "\n]}\n"
    json.loads(lines)
    Path(__file__).with_name("goldens.json").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
