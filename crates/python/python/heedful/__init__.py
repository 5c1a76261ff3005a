"""Attention models that translate, classify, generate and explain themselves.

>>> import heedful
>>> heedful.corpus_bleu(["the cat sat on the mat today"], [["the cat sat on the mat"]]).score
80.91067115702207

A model is a folder written by ``heedful train`` or ``heedful import``:

>>> translator = heedful.Translator("run")                                # doctest: +SKIP
>>> translator.translate("A dog runs.", beam_size=4).text                 # doctest: +SKIP
'Ein Hund läuft.'
"""

from ._heedful import VERSION as __version__
from ._heedful import (
    BleuScore,
    Classification,
    Classifier,
    Explanation,
    Filled,
    Filler,
    Generator,
    Hypothesis,
    MetricScore,
    TextScore,
    Tokenizer,
    Translation,
    TranslationIterator,
    Translator,
    corpus_bleu,
    corpus_chrf,
    corpus_ter,
    set_threads,
    threads,
)

__all__ = [
    "BleuScore",
    "Classification",
    "Classifier",
    "Explanation",
    "Filled",
    "Filler",
    "Generator",
    "Hypothesis",
    "MetricScore",
    "TextScore",
    "Tokenizer",
    "Translation",
    "TranslationIterator",
    "Translator",
    "__version__",
    "corpus_bleu",
    "corpus_chrf",
    "corpus_ter",
    "set_threads",
    "threads",
]
