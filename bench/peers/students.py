"""Words per second and core of a student (6 + 2 layers, SSRU, d 512), beside fxtranslate and CTranslate2, greedily, on one thread.

    students.py HEEDFUL FXTRANSLATE FOLDER SRC TGT TEXT [ROUNDS] [ISA] [PROGRAMS]

FXTRANSLATE is the program of `fxtranslate/`. The vocabulary and the shortlist are learned from SRC and TGT, parallel text;
all files go to FOLDER, and a second call uses those that it finds. ISA is avx2, avx512 or all; PROGRAMS are
some of student, fxtranslate, plain and ctranslate2 (all of them), separated by commas.
The student repeats its source (`students_model.py`): every program must print TEXT. CTranslate2 has no SSRU, so it gets
the same student with self attention in the decoder. All have the same lists of target tokens.

A turn is a whole command on one core, programs take turns, and the seconds are user and system time, less those of the
same command with one line. fxtranslate and CTranslate2 race in their fastest batch size.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import students_model

VOCABULARY, BATCHES, LISTED_PAIRS = 32000, (4, 16, 64), 2500
PROGRAMS = ("student", "fxtranslate", "plain", "ctranslate2")


def prepare(heedful, folder, src, tgt):
    import sentencepiece

    def ours(*arguments):
        subprocess.run([heedful, *map(str, arguments), "--quiet"], check=True)

    if not (folder / "vocab.model").exists():
        files = ",".join(map(str, (src, tgt)))
        sentencepiece.SentencePieceTrainer.train(
            input=files, model_prefix=str(folder / "vocab"), vocab_size=VOCABULARY, bos_id=-1, eos_id=0, unk_id=1, input_sentence_size=100_000, minloglevel=2
        )
    for name, recurrent in (("student", True), ("plain", False)):
        if (folder / f"{name}.int8").exists():
            continue
        marian = folder / f"{name}.marian"
        marian.mkdir(exist_ok=True)
        shutil.copy(folder / "vocab.model", marian / "vocab.spm")
        students_model.write(marian / "model.bin", VOCABULARY, recurrent, quantized=True)
        ours("import", marian / "model.bin", "-o", folder / name)
        ours("quantize", folder / name, "--to", "int8", "-o", folder / f"{name}.int8")
    if not (folder / "plain.int8" / "shortlist.bin").exists():
        for side, text in (("src", src), ("tgt", tgt)):
            lines = text.read_text().splitlines(keepends=True)
            (folder / f"list.{side}").write_text("".join(lines[:LISTED_PAIRS]))
        ours("shortlist", folder / "student.int8", "--src", folder / "list.src", "--tgt", folder / "list.tgt", "--force")
        shutil.copy(folder / "student.int8" / "shortlist.bin", folder / "plain.int8")
        ours("seal", folder / "plain.int8")
    if not (folder / "ct2" / "vmap.txt").exists():
        pieces = sentencepiece.SentencePieceProcessor(str(folder / "vocab.model"))
        lists = students_model.shortlist((folder / "student.int8" / "shortlist.bin").read_bytes(), pieces.eos_id(), folder / "lex.bin")
        ours("export", folder / "plain", "--to", "ctranslate2", "-o", folder / "ct2")
        # CTranslate2 sees no end of the source here, so the empty key has its list.
        keys = ["" if token == pieces.eos_id() else pieces.id_to_piece(token) for token in range(VOCABULARY)]
        values = [" ".join(pieces.id_to_piece(int(one)) for one in {token, *map(int, found)}) for token, found in enumerate(lists)]
        (folder / "ct2" / "vmap.txt").write_text("".join(f"{key}\t{value}\n" for key, value in zip(keys, values)))


def ctranslate2(folder, batch, text, out, lists):
    """The peer: translates `text` in batches of `batch` sentences, sorted by length by CTranslate2."""
    import ctranslate2 as library
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(str(folder / "vocab.model"))
    translator = library.Translator(str(folder / "ct2"), compute_type="int8", inter_threads=1, intra_threads=1)
    sources = [pieces.encode(line, out_type=str) for line in text.read_text().splitlines()]
    found = translator.translate_batch(sources, beam_size=1, max_batch_size=batch, use_vmap=lists == "lists")
    out.write_text("".join(pieces.decode(one.hypotheses[0]) + "\n" for one in found))


def environment(isa):
    if isa == "all":
        return {}
    math = {"avx2": "AVX2", "avx512": "AVX512"}[isa]
    return {
        "HEEDFUL_ISA": isa, "CT2_FORCE_CPU_ISA": math, "MKL_ENABLE_INSTRUCTIONS": math,
        "ONEDNN_MAX_CPU_ISA": {"AVX2": "AVX2", "AVX512": "AVX512_CORE_VNNI"}[math],
    }


def main(heedful, fxtranslate, folder, src, tgt, text, rounds=5, isa="all", programs=",".join(PROGRAMS)):
    folder, text = Path(folder), Path(text)
    folder.mkdir(exist_ok=True)
    prepare(heedful, folder, Path(src), Path(tgt))
    out, line = folder / "out", folder / "line"
    line.write_text(text.read_text().split("\n")[0] + "\n")
    marian = folder / "student.marian"
    settings = os.environ | environment(isa)

    def command(program, lists, batch, source):
        if program in ("student", "plain"):
            options = ["--shortlist"] * lists
            return [heedful, "translate", folder / f"{program}.int8", source, "--beam", 1, "--threads", 1, "-o", out, "--force", "-q", *options]
        if program == "fxtranslate":
            return [fxtranslate, batch, marian / "model.bin", marian / "vocab.spm", source, out, *[folder / "lex.bin"] * lists]
        return [sys.executable, __file__, "--ctranslate2", folder, batch, source, out, "lists" if lists else "all"]

    def seconds(program, lists, batch, source):
        started = subprocess.Popen(list(map(str, command(program, lists, batch, source))), env=settings, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        _, status, used = os.wait4(started.pid, 0)
        assert status == 0, (program, status)
        same = sum(a == b for a, b in zip(out.read_text().splitlines(), source.read_text().splitlines(), strict=True))
        return used.ru_utime + used.ru_stime, same

    core = max(os.sched_getaffinity(0))
    words, count = len(text.read_text().split()), len(text.read_text().splitlines())
    kinds = [(program, lists) for program in programs.split(",") for lists in (True, False)]
    peers = [kind for kind in kinds if kind[0] in ("fxtranslate", "ctranslate2")]
    best = {kind: min(BATCHES, key=lambda batch: seconds(*kind, batch, text)[0]) if kind in peers else 0 for kind in kinds}
    found = {kind: [] for kind in kinds}
    for turn in range(int(rounds)):
        for kind in kinds if turn % 2 == 0 else kinds[::-1]:
            start, _ = seconds(*kind, best[kind], line)
            whole, same = seconds(*kind, best[kind], text)
            found[kind].append((words / (whole - start), start, same))
    for (program, lists), turns in found.items():
        speeds = sorted(speed for speed, *_ in turns)
        row = {
            "program": program, "lists": lists, "isa": isa, "batch": best[program, lists], "words": words, "lines": count,
            "words/s": round(statistics.median(speeds)), "least": round(speeds[0]), "most": round(speeds[-1]),
            "start": round(statistics.median(start for _, start, _ in turns), 3), "equal": min(same for *_, same in turns),
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ctranslate2"]:
        folder, batch, text, out, lists = sys.argv[2:]
        ctranslate2(Path(folder), int(batch), Path(text), Path(out), lists)
    else:
        main(*sys.argv[1:])
