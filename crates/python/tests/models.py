"""Small models of every task, trained by the command in a few seconds."""

import os
import subprocess
import tempfile
from pathlib import Path

PROGRAM = os.environ["HEEDFUL_PROGRAM"]

SUBJECTS = {"a dog": "ein Hund", "a cat": "eine Katze", "the car": "das Auto", "my friend": "mein Freund"}
VERBS = {"runs": "läuft", "sleeps": "schläft", "waits": "wartet", "sings": "singt"}
PLACES = {"here": "hier", "at home": "zu Hause", "in the rain": "im Regen", "today": "heute", "in winter": "im Winter"}


def pairs():
    """Sentences and their translations."""
    return [
        (f"{subject} {verb} {place} {number}.", f"{SUBJECTS[subject]} {VERBS[verb]} {PLACES[place]} {number}.")
        for subject in SUBJECTS
        for verb in VERBS
        for place in PLACES
        for number in range(4)
    ]


def command(folder, *arguments, text=""):
    """The output of the command."""
    arguments = [PROGRAM, *map(str, arguments)]
    done = subprocess.run(
        arguments, cwd=folder, input=text, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: {done.stderr}")
    return done.stdout


def trained():
    """A temporary folder with the models `run`, `mood`, `writer` and `reader`."""
    place = tempfile.TemporaryDirectory(prefix="heedful-python-")
    folder = Path(place.name)
    sources, targets = zip(*pairs())
    (folder / "train.en").write_text("\n".join(sources) + "\n", encoding="utf-8")
    (folder / "train.de").write_text("\n".join(targets) + "\n", encoding="utf-8")
    moods = {"good": ["fine", "warm"], "bad": ["dull", "cold"]}
    labelled = [
        f"{mood}\tthe {thing} was {word} in year {year}\n"
        for year in range(12)
        for thing in ["day", "film", "soup"]
        for mood, words in moods.items()
        for word in words
    ]
    (folder / "mood.tsv").write_text("".join(labelled), encoding="utf-8")
    shared = "--preset tiny --batch-tokens 512 --warmup 10 --lr 3e-3 --threads 2 --quiet".split()
    tasks = {
        "run": "--src train.en --tgt train.de --valid-src train.en --valid-tgt train.de --vocabulary-size 300 --steps 120",
        "mood": "--task classify --label-text mood.tsv --valid-label-text mood.tsv --vocabulary-size 300 --steps 40",
        "writer": "--task lm --text train.en --valid-text train.en --vocabulary-size 300 --steps 40",
        "reader": "--task mlm --text train.en --valid-text train.en --vocabulary-size 300 --steps 40",
    }
    for name, arguments in tasks.items():
        command(folder, "train", *arguments.split(), *shared, "--out", name)
    return place, folder
