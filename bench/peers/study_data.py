"""Converts the data sets of the studies to heedful's text formats: `study_data.py DATA OUT`.

DATA has a folder for each data set, with line-aligned files compressed with xz: SPLIT.txt.xz and SPLIT.label.xz.
"""

import lzma
import sys
from pathlib import Path

LABELLED = {"ag-news-10k": ("train10k", "test"), "thucnews-titles-20k": ("dev", "test"), "zh-online-shopping": ("train", "test")}
# Of Shakespeare's lines, the last tenth is held out.
HELD_OUT = 4000


def lines(path):
    return lzma.open(path, "rt", encoding="utf-8", newline="\n").read().split("\n")[:-1]


def main(data, out):
    out.mkdir(parents=True, exist_ok=True)
    write = lambda name, rows: (out / name).write_text("".join(row + "\n" for row in rows), encoding="utf-8")
    for name, splits in LABELLED.items():
        for split, role in zip(splits, ("train", "test")):
            rows = zip(lines(data / name / f"{split}.label.xz"), lines(data / name / f"{split}.txt.xz"), strict=True)
            write(f"{name}.{role}.tsv", (f"{label}\t{text}" for label, text in rows))
    for role in ("train", "valid"):
        write(f"wikitext2-raw.{role}.txt", lines(data / "wikitext2-raw" / f"{role}.txt.xz"))
    shakespeare = lines(data / "tinyshakespeare" / "input.txt.xz")
    write("tinyshakespeare.train.txt", shakespeare[:-HELD_OUT])
    write("tinyshakespeare.valid.txt", shakespeare[-HELD_OUT:])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
