"""Translates a text file with Spark: python spark_map_in_pandas.py MODEL FILE OUTPUT.

Every partition opens the model once and translates its lines. The translations are written in the order of the lines.
"""

import sys
from collections.abc import Iterator

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import monotonically_increasing_id


def translation_with(model: str):
    """Translates the batches of a partition."""

    def translate(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        # Imported by the worker: the process that starts Spark needs no model.
        import heedful

        heedful.set_threads(1)
        translator = heedful.Translator(model)
        for batch in batches:
            texts = [found.text for found in translator.translate(batch["value"])]
            yield pd.DataFrame({"line": batch["line"], "translation": texts})

    return translate


def main(model: str, file: str, output: str) -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    lines = spark.read.text(file).withColumn("line", monotonically_increasing_id()).repartition(2)
    translated = lines.mapInPandas(translation_with(model), "line long, translation string")
    with open(output, "w", encoding="utf-8") as out:
        for row in translated.orderBy("line").toLocalIterator():
            out.write(row["translation"] + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
