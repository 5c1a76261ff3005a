"""Reference ids of SentencePiece and tokenizers, for the test `reference_cases` of heedful's tokenizers.

    python3 tokenizer_cases.py FOLDER --texts a.txt b.txt --models source.spm "sentencepiece.model+vocabulary.json" tokenizer.json

A vocabulary after a `+` is the list of the model's tokens; the index of a token is its id. Needs `pip install sentencepiece tokenizers`.
"""

import argparse
import json
import pathlib

import sentencepiece
import tokenizers


def of_sentencepiece(model, tokens, texts):
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    names = [pieces.id_to_piece(i) for i in range(len(pieces))]
    id_of = {name: i for i, name in enumerate(names if tokens is None else tokens)}
    unknown = id_of[names[pieces.unk_id()]]
    if tokens is None:
        # By id: the text of an unknown piece would be the input text.
        found = [[names[i] for i in pieces.encode(text)] for text in texts]
    else:
        # By text, as programs with their own vocabulary do: it may contain pieces that SentencePiece's does not.
        found = [pieces.encode(text, out_type=str) for text in texts]
    ids = [[id_of.get(piece, unknown) for piece in line] for line in found]
    known = [[piece for piece in line if id_of.get(piece, unknown) != unknown] for line in found]
    return ids, [pieces.decode(line) if line else "" for line in known]


def of_tokenizers(model, texts):
    tokenizer = tokenizers.Tokenizer.from_file(str(model))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    return ids, [tokenizer.decode(line, skip_special_tokens=True) for line in ids]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--texts", nargs="+", required=True)
    parser.add_argument("--models", nargs="+", required=True)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    texts = [line for name in arguments.texts for line in pathlib.Path(name).read_text().split("\n") if line]
    for number, named in enumerate(arguments.models):
        model, _, vocabulary = named.partition("+")
        model = pathlib.Path(model).resolve()
        tokens = json.loads(pathlib.Path(vocabulary).read_text()) if vocabulary else None
        found = of_tokenizers(model, texts) if model.suffix == ".json" else of_sentencepiece(model, tokens, texts)
        case = {"model": str(model), "tokens": tokens, "texts": texts, "ids": found[0], "decoded": found[1]}
        (arguments.folder / f"{number:02}-{model.stem}.case").write_text(json.dumps(case))


if __name__ == "__main__":
    main()
