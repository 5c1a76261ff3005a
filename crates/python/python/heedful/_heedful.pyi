"""The extension module in Rust, which the package ``heedful`` re-exports."""

from heedful import (
    BleuScore as BleuScore,
    Classification as Classification,
    Classifier as Classifier,
    Explanation as Explanation,
    Filled as Filled,
    Filler as Filler,
    Generator as Generator,
    Hypothesis as Hypothesis,
    MetricScore as MetricScore,
    TextScore as TextScore,
    Tokenizer as Tokenizer,
    Translation as Translation,
    TranslationIterator as TranslationIterator,
    Translator as Translator,
    corpus_bleu as corpus_bleu,
    corpus_chrf as corpus_chrf,
    corpus_ter as corpus_ter,
    set_threads as set_threads,
    threads as threads,
)

VERSION: str

def calls_in_flight() -> int:
    """The number of calls that compute at this moment, in all threads."""
