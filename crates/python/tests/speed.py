"""How fast the package translates a file beside the command: HEEDFUL_PROGRAM=heedful python speed.py MODEL FILE [ROUNDS].

Both open the model, read the file and write one; they take turns, so that both see the same phases of the machine.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

import heedful


def by_command(model, file, output):
    arguments = [os.environ["HEEDFUL_PROGRAM"], "translate", model, file, "--quiet"]
    with open(output, "wb") as out:
        subprocess.run(arguments, stdout=out, check=True)


def by_package(model, file, output, lazily):
    translator = heedful.Translator(model)
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    found = translator.translate_iterable(lines) if lazily else translator.translate(lines)
    with open(output, "w", encoding="utf-8") as out:
        for translation in found:
            out.write(translation.text + "\n")


def by_two_threads(model, file):
    """Seconds of two calls one after the other, and of both at the same time."""
    translator = heedful.Translator(model)
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    halves = [lines[0::2], lines[1::2]]

    def both(together):
        begin = time.perf_counter()
        threads = [threading.Thread(target=translator.translate, args=(half,)) for half in halves]
        for thread in threads:
            thread.start()
            if not together:
                thread.join()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begin

    return both(False), both(True)


def main(model, file, rounds="5"):
    ways = {
        "command": by_command,
        "translate": lambda *arguments: by_package(*arguments, lazily=False),
        "translate_iterable": lambda *arguments: by_package(*arguments, lazily=True),
    }
    seconds = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(int(rounds)):
            for name, way in ways.items():
                output = Path(folder) / name
                begin = time.perf_counter()
                way(model, file, output)
                seconds[name].append(time.perf_counter() - begin)
            outputs = {(Path(folder) / name).read_bytes() for name in ways}
            if len(outputs) != 1:
                sys.exit("the outputs differ")
    for name, measured in seconds.items():
        ratios = [ours / theirs for ours, theirs in zip(measured, seconds["command"])]
        print(f"{name:20} {median(measured):8.2f} s   {median(ratios):.3f} of the command's, median of {rounds} rounds")
    alone, together = by_two_threads(model, file)
    print(f"two calls: {alone:.2f} s one after the other, {together:.2f} s at the same time")


if __name__ == "__main__":
    main(*sys.argv[1:])
