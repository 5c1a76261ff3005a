"""The examples for Ray and Spark, run locally: they write the same lines as the command, in order."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

import models

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


class Clusters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place, cls.folder = models.trained()
        sources = [source for source, _ in models.pairs()]
        lines = [f"{source} {number}" for number in range(4) for source in sources]
        (cls.folder / "lines.en").write_text("\n".join(lines) + "\n", encoding="utf-8")
        cls.expected = models.command(cls.folder, "translate", "run", "lines.en")

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def translated_by(self, example):
        arguments = [self.folder / "run", self.folder / "lines.en", self.folder / f"{example}.de"]
        done = subprocess.run(
            [sys.executable, EXAMPLES / f"{example}.py", *arguments],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            encoding="utf-8",
            timeout=600,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return arguments[2].read_text(encoding="utf-8")

    def test_ray(self):
        self.assertEqual(self.translated_by("ray_map_batches"), self.expected)

    def test_spark(self):
        self.assertEqual(self.translated_by("spark_map_in_pandas"), self.expected)


if __name__ == "__main__":
    unittest.main()
