"""The speed of the package compared with the command: HEEDFUL_PROGRAM=heedful python speed.py MODEL FILE [ROUNDS].

Both open the model, read the file and write one; runs alternate, so that both see the same phases of the machine. Each runs in
its own process; CPU seconds are more reliable than wall-clock seconds on a shared machine.
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


def by_package(model, file, output, method):
    translator = heedful.Translator(model)
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    with open(output, "w", encoding="utf-8") as out:
        for translation in getattr(translator, method)(lines):
            out.write(translation.text + "\n")


def seconds_of(arguments):
    """Wall-clock seconds and CPU seconds."""
    before, begin = os.times(), time.perf_counter()
    subprocess.run(arguments, check=True)
    wall, after = time.perf_counter() - begin, os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return wall, used


def by_two_threads(model, file):
    """Seconds of two calls in sequence, and in parallel."""
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
    names = ["command", "translate", "translate_iterable"]
    seconds = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        outputs = {name: os.path.join(folder, name) for name in names}
        command = [os.environ["HEEDFUL_PROGRAM"], "translate", model, file, "--quiet", "-o"]
        for _ in range(int(rounds)):
            for name, output in outputs.items():
                Path(output).unlink(missing_ok=True)
                ours = [sys.executable, __file__, "--once", model, file, output, name]
                seconds[name].append(seconds_of([*command, output] if name == "command" else ours))
            if len({Path(output).read_bytes() for output in outputs.values()}) != 1:
                sys.exit("the outputs differ")
    for name, measured in seconds.items():
        wall, used = (median(column) for column in zip(*measured))
        ratios = [[ours / theirs for ours, theirs in zip(*pair)] for pair in zip(measured, seconds["command"])]
        by_clock, by_processor = (median(column) for column in zip(*ratios))
        print(f"{name:20} {wall:7.2f} s ({by_clock:.3f})   CPUs {used:7.2f} s ({by_processor:.3f})")
    alone, together = by_two_threads(model, file)
    print(f"two calls: {alone:.2f} s one after the other, {together:.2f} s at the same time")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        by_package(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
