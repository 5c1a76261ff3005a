"""Translates a text file with Ray Data: python ray_map_batches.py MODEL FILE OUTPUT.

Every worker opens the model once and translates batches of lines. The translations are written in the order of the lines.
"""

import sys

import heedful
import ray


class Translate:
    """One of the workers."""

    def __init__(self, path: str) -> None:
        self.translator = heedful.Translator(path)

    def __call__(self, batch):
        batch["translation"] = [found.text for found in self.translator.translate(batch["text"])]
        return batch


def main(model: str, file: str, output: str) -> None:
    ray.init(include_dashboard=False, log_to_driver=False)
    # Otherwise lines would be written in the order in which they are finished.
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    lines = ray.data.read_text(file, drop_empty_lines=False)
    # One thread for each worker, and less than a core: reading needs some of the machine's cores too.
    shared = {"env_vars": {"HEEDFUL_THREADS": "1"}}
    translated = lines.map_batches(
        Translate, fn_constructor_args=[model], concurrency=2, batch_size=256, num_cpus=0.5, runtime_env=shared
    )
    with open(output, "w", encoding="utf-8") as out:
        for row in translated.iter_rows():
            out.write(row["translation"] + "\n")
    ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
