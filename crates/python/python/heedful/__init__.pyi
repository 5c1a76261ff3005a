from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, final, overload

import numpy as np
from numpy.typing import NDArray

__version__: str
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

_Compute = Literal["bf16", "f32", "int8"]
_Device = Literal["cpu", "cuda", "auto"]
_Long = Literal["split", "cut", "error"]
_Attention = dict[str, tuple[NDArray[np.float32], ...]]

@final
class Translator:
    """A translation model, or an ensemble of models of the same vocabulary.

    ``compute`` is the number type of matrix products (default bf16, or int8 for a quantized model, as on the command line);
    ``device`` is the CPU or an NVIDIA GPU; ``max_tokens`` is the maximum number of tokens of a text.
    Calls release the GIL, and Ctrl-C ends them. A translator is pickled as its paths and options.
    """

    def __new__(
        cls, *paths: str | PathLike[str], compute: _Compute | None = None, device: _Device | None = None, max_tokens: int | None = None
    ) -> Translator: ...
    @property
    def paths(self) -> list[Path]: ...
    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of source texts."""
    @property
    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of translations: the same as that of sources if they share a vocabulary."""
    # A str is also an iterable of str, and means one text.
    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        texts: str,
        *,
        prefixes: str | None = None,
        beam_size: int = 4,
        length_penalty: float = 0.6,
        num_hypotheses: int = 1,
        max_length: int | None = None,
        min_length: int = 0,
        no_repeat_ngram_size: int | None = None,
        sample: bool = False,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 1,
        terms: Mapping[str, str] | None = None,
        shortlist: bool = False,
        long: _Long = "split",
        batch_tokens: int | None = None,
    ) -> Translation: ...
    @overload
    def translate(
        self,
        texts: Iterable[str],
        *,
        prefixes: Iterable[str] | None = None,
        beam_size: int = 4,
        length_penalty: float = 0.6,
        num_hypotheses: int = 1,
        max_length: int | None = None,
        min_length: int = 0,
        no_repeat_ngram_size: int | None = None,
        sample: bool = False,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 1,
        terms: Mapping[str, str] | None = None,
        shortlist: bool = False,
        long: _Long = "split",
        batch_tokens: int | None = None,
    ) -> list[Translation]:
        """Translates a text, or an iterable of texts into a list, with the same bits as ``heedful translate``.

        A translation depends only on its text and the options; a blank text has a blank translation.
        """
    def translate_iterable(
        self,
        texts: Iterable[str],
        *,
        prefetch: int = 4096,
        beam_size: int = 4,
        length_penalty: float = 0.6,
        num_hypotheses: int = 1,
        max_length: int | None = None,
        min_length: int = 0,
        no_repeat_ngram_size: int | None = None,
        sample: bool = False,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 1,
        terms: Mapping[str, str] | None = None,
        shortlist: bool = False,
        long: _Long = "split",
        batch_tokens: int | None = None,
    ) -> TranslationIterator:
        """Translates the texts of any iterable, in order and in bounded memory.

        At most ``prefetch`` texts are read ahead.
        """
    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[TextScore]:
        """The log-probability of each target, given its source, as ``heedful score`` prints it."""
    def explain(
        self, text: str, target: str | None = None, *, beam_size: int = 4, num_hypotheses: int = 1
    ) -> Explanation:
        """The attention of the model while it translates a text, or scores a given target."""

@final
class Tokenizer:
    """The tokenizer of a model, with its vocabulary."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, without special tokens."""
    def pieces(self, text: str) -> list[str]:
        """The tokens of a text in readable form: spaces as ▁."""
    def token_to_id(self, token: str) -> int | None: ...
    def id_to_token(self, id: int) -> str: ...
    @property
    def vocabulary(self) -> list[str]:
        """All tokens, in the order of their ids."""
    @property
    def vocabulary_size(self) -> int: ...
    def __len__(self) -> int: ...

@final
class TranslationIterator(Iterator[Translation]):
    def __iter__(self) -> TranslationIterator: ...
    def __next__(self) -> Translation: ...

@final
class Hypothesis:
    """One translation of a text."""

    def __new__(
        cls, text: str, score: float, log_probability: float, tokens: Sequence[str], token_ids: Sequence[int]
    ) -> Hypothesis: ...
    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float:
        """The log-probability divided by the length penalty."""
    @property
    def log_probability(self) -> float: ...
    @property
    def tokens(self) -> list[str]:
        """Subword tokens in readable form: spaces as ▁."""
    @property
    def token_ids(self) -> NDArray[np.uint32]: ...
    @property
    def attention(self) -> _Attention:
        """For each layer name (``decoder.0.cross``) one array for every head: queries × keys.

        It is computed by the model on access: an unpickled translation has none.
        """
    @property
    def alignment(self) -> list[tuple[int, int]]:
        """Pairs of source word and target word; words are separated by white space and count from 0."""
    def to_dict(self) -> dict[str, Any]:
        """The contents as plain values, for ``json.dumps``."""
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Translation:
    """The translations of one text. Attributes are those of the best one."""

    def __new__(cls, hypotheses: Sequence[Hypothesis], source_tokens: Sequence[str]) -> Translation: ...
    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def log_probability(self) -> float: ...
    @property
    def tokens(self) -> list[str]: ...
    @property
    def token_ids(self) -> NDArray[np.uint32]: ...
    @property
    def source_tokens(self) -> list[str]: ...
    @property
    def attention(self) -> _Attention: ...
    @property
    def alignment(self) -> list[tuple[int, int]]: ...
    @property
    def hypotheses(self) -> list[Hypothesis]:
        """All translations, best first; empty for a blank text."""
    def to_dict(self) -> dict[str, Any]:
        """The contents as plain values, for ``json.dumps``."""
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

@final
class TextScore:
    """The log-probability of a text, and of each of its tokens."""

    def __new__(cls, log_probability: float, tokens: Sequence[float]) -> TextScore: ...
    @property
    def log_probability(self) -> float: ...
    @property
    def tokens(self) -> NDArray[np.float64]: ...
    def to_dict(self) -> dict[str, Any]:
        """The contents as plain values, for ``json.dumps``."""
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __float__(self) -> float: ...

@final
class Classifier:
    """Classifies texts."""

    def __new__(
        cls, path: str | PathLike[str], *, compute: _Compute | None = None, device: _Device | None = None, max_tokens: int | None = None
    ) -> Classifier: ...
    @property
    def labels(self) -> list[str]: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    @overload
    def classify(  # type: ignore[overload-overlap]
        self, texts: str, *, long: _Long = "cut"
    ) -> Classification: ...
    @overload
    def classify(self, texts: Iterable[str], *, long: _Long = "cut") -> list[Classification]:
        """The label of a text, or of each of several, as in ``heedful classify``."""
    def explain(self, text: str, *, num_hypotheses: int = 1) -> Explanation: ...

@final
class Classification:
    """The label of one text."""

    def __new__(
        cls, label: str | None, probability: float, probabilities: Sequence[float], words: Sequence[tuple[str, float]]
    ) -> Classification: ...
    @property
    def label(self) -> str | None:
        """The most probable label; None for a blank text."""
    @property
    def probability(self) -> float: ...
    @property
    def probabilities(self) -> NDArray[np.float32]:
        """The probability of every label, in the order of ``Classifier.labels``."""
    @property
    def words(self) -> list[tuple[str, float]]:
        """The words of the text with the attention to each."""
    def to_dict(self) -> dict[str, Any]:
        """The contents as plain values, for ``json.dumps``."""
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Generator:
    """Continues texts."""

    def __new__(
        cls, path: str | PathLike[str], *, compute: _Compute | None = None, device: _Device | None = None, max_tokens: int | None = None
    ) -> Generator: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    def generate(
        self,
        prompt: str = "",
        *,
        max_tokens: int = 100,
        num_hypotheses: int = 1,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 1,
        beam_size: int | None = None,
        no_repeat_ngram_size: int | None = None,
        long: Literal["cut", "error"] = "error",
    ) -> list[str]:
        """Continues a prompt: returns prompt and continuation, ``num_hypotheses`` times.

        Tokens are sampled; ``temperature=0`` is greedy, and ``beam_size`` selects beam search.
        """
    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """The log-probability of each text; a model of running text scores them as one text."""
    def explain(self, text: str) -> Explanation: ...

@final
class Filler:
    """Predicts masked tokens."""

    def __new__(
        cls, path: str | PathLike[str], *, compute: _Compute | None = None, device: _Device | None = None, max_tokens: int | None = None
    ) -> Filler: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    def fill(self, text: str, *, top: int = 5) -> Filled:
        """The ``top`` most probable tokens for every ``<mask>`` of a text."""
    def explain(self, text: str) -> Explanation: ...

@final
class Filled:
    """A text whose masked tokens were predicted."""

    def __new__(cls, text: str, gaps: Sequence[Sequence[tuple[str, float]]]) -> Filled: ...
    @property
    def text(self) -> str: ...
    @property
    def gaps(self) -> list[list[tuple[str, float]]]: ...
    def to_dict(self) -> dict[str, Any]:
        """The contents as plain values, for ``json.dumps``."""
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Explanation:
    """The attention of a model. A notebook shows it as a page. The constructor takes its JSON."""

    def __new__(cls, json: str) -> Explanation: ...
    @property
    def text(self) -> str:
        """The text of the best output."""
    @property
    def html(self) -> str:
        """A self-contained page, which needs no network."""
    def to_json(self) -> str:
        """The numbers, as ``heedful explain -o FILE.json`` writes them for one text."""
    def to_dict(self) -> dict[str, Any]:
        """The contents as plain values, for ``json.dumps``."""
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def _repr_html_(self) -> str: ...

class MetricScore:
    """The score of a corpus. ``str()`` gives sacreBLEU's line, with the signature."""

    def __new__(cls, name: str, score: float, signature: str, line: str) -> MetricScore: ...
    @property
    def name(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def signature(self) -> str: ...
    @property
    def line(self) -> str: ...
    def to_dict(self) -> dict[str, Any]:
        """The contents as plain values, for ``json.dumps``."""
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __float__(self) -> float: ...

@final
class BleuScore(MetricScore):
    def __new__(
        cls,
        name: str,
        score: float,
        signature: str,
        line: str,
        precisions: Sequence[float],
        bp: float,
        sys_len: int,
        ref_len: int,
    ) -> BleuScore: ...
    @property
    def precisions(self) -> NDArray[np.float64]: ...
    @property
    def bp(self) -> float: ...
    @property
    def sys_len(self) -> int: ...
    @property
    def ref_len(self) -> int: ...

def corpus_bleu(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: Literal["13a", "intl", "zh", "char", "none"] = "13a",
    lowercase: bool = False,
    smooth_method: Literal["exp", "floor", "add-k", "none"] = "exp",
    smooth_value: float | None = None,
    use_effective_order: bool = False,
) -> BleuScore:
    """BLEU with sacreBLEU's digits. ``references`` is a list of reference sets, each of all sentences."""

def corpus_chrf(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    char_order: int = 6,
    word_order: int = 0,
    beta: int = 2,
    lowercase: bool = False,
) -> MetricScore:
    """chrF with sacreBLEU's digits; ``word_order=2`` is chrF++."""

def corpus_ter(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, case_sensitive: bool = False
) -> MetricScore:
    """TER with sacreBLEU's digits; lower is better."""

def set_threads(count: int) -> None:
    """Sets the number of compute threads. Results do not depend on it."""

def threads() -> int:
    """The number of compute threads."""
