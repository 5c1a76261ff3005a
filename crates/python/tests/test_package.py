"""The package compared with the command: the same results, to the bit; and features that only Python has."""

import gc
import html
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import zipfile
from pathlib import Path

import heedful
import models
import numpy as np


def setUpModule():
    global PLACE, FOLDER, TRANSLATOR, SOURCES, TARGETS
    # A shell that runs tests in the background makes them ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    PLACE, FOLDER = models.trained()
    TRANSLATOR = heedful.Translator(FOLDER / "run")
    SOURCES, TARGETS = (list(side) for side in zip(*models.pairs()))


def tearDownModule():
    PLACE.cleanup()


class Translating(unittest.TestCase):
    def test_texts_and_scores_equal_those_of_the_command(self):
        texts = ["", *SOURCES[::7], "  ", "words that nobody knows", SOURCES[0]]
        for flags, options in [
            ("", {}),
            ("--beam 6 --n-best 3 --length-penalty 1.5", dict(beam_size=6, num_hypotheses=3, length_penalty=1.5)),
            ("--sample --top-k 5 --seed 7 --temperature 0.8", dict(sample=True, top_k=5, seed=7, temperature=0.8)),
            ("--beam 1 --max-length 3 --no-repeat-ngram 2", dict(beam_size=1, max_length=3, no_repeat_ngram_size=2)),
        ]:
            with self.subTest(flags):
                printed = models.command(FOLDER, "translate", "run", "--json", *flags.split(), text="\n".join(texts) + "\n")
                expected = [json.loads(line)["translations"] for line in printed.splitlines()]
                found = [
                    [
                        {"text": one.text, "score": one.score, "log_probability": one.log_probability}
                        for one in translation.hypotheses
                    ]
                    for translation in TRANSLATOR.translate(texts, **options)
                ]
                # Parsed from the printed digits, which preserve every bit.
                self.assertEqual(found, expected)

    def test_a_packed_model_gives_the_same_results(self):
        for model, options in [("run", {}), ("small", {}), ("run", dict(compute="f32"))]:
            if model == "small" and not (FOLDER / "small").exists():
                models.command(FOLDER, "quantize", "run", "--to", "int8", "-o", "small")
            models.command(FOLDER, "pack", model, "-o", f"{model}.zip", "--force")
            folder, package = (heedful.Translator(FOLDER / name, **options) for name in [model, f"{model}.zip"])
            with self.subTest(model):
                found = [[one.text for one in model.translate(SOURCES[::9])] for model in (folder, package)]
                self.assertEqual(*found)
        with self.assertRaisesRegex(ValueError, "is not the package of a model"):
            with zipfile.ZipFile(FOLDER / "other.zip", "w") as other:
                other.writestr("config.json", "{}")
            heedful.Translator(FOLDER / "other.zip")

    def test_long_texts_are_split_as_the_command_does(self):
        text = " ".join(SOURCES[:40])
        printed = models.command(FOLDER, "translate", "run", "--scores", "--align", "--max-tokens", "64", text=text + "\n")
        translation = heedful.Translator(FOLDER / "run", max_tokens=64).translate(text)
        links = " ".join(f"{source}-{target}" for source, target in sorted(translation.alignment))
        self.assertEqual(f"{translation.text} ||| {translation.score:.6f} ||| {links}\n", printed)
        with self.assertRaisesRegex(ValueError, "was split into"):
            translation.attention
        with self.assertRaisesRegex(ValueError, r"text 0 .* the model reads at a time; .* long=.cut., or open the model with max_tokens=N"):
            heedful.Translator(FOLDER / "run", max_tokens=64).translate(text, long="error")

    def test_one_text_has_one_translation(self):
        one = TRANSLATOR.translate(SOURCES[3])
        self.assertEqual(one.text, TRANSLATOR.translate([SOURCES[3]])[0].text)
        self.assertEqual(str(one), one.text)
        self.assertTrue(repr(one).startswith("Translation(text="))
        self.assertEqual(TRANSLATOR.translate([]), [])
        self.assertEqual("".join(one.tokens).replace("▁", " ").strip(), one.text)
        self.assertEqual(one.token_ids.dtype, np.uint32)

    def test_prefixes_and_terms_are_honoured(self):
        self.assertTrue(TRANSLATOR.translate("a dog runs here 1.", prefixes="das Auto").text.startswith("das Auto"))
        self.assertIn("Kater", TRANSLATOR.translate("a cat sleeps here 1.", terms={"cat": "Kater"}, beam_size=8).text)
        with self.assertRaisesRegex(ValueError, "2 prefixes for 1 texts"):
            TRANSLATOR.translate(["a"], prefixes=["b", "c"])
        with self.assertRaisesRegex(ValueError, "write words"):
            TRANSLATOR.translate("a", terms={"a\tb": "c"})

    def test_attention_shares_the_models_memory(self):
        one = TRANSLATOR.translate(SOURCES[5])
        attention = one.attention
        cross = [name for name in attention if name.endswith(".cross")]
        self.assertTrue(cross)
        for head in attention[cross[0]]:
            # <eos> is predicted too.
            self.assertEqual(head.shape, (len(one.tokens) + 1, len(one.source_tokens)))
            self.assertEqual(head.dtype, np.float32)
            np.testing.assert_allclose(head.sum(axis=1), 1.0, rtol=1e-5)
            # Allocated by heedful and owned by NumPy without a copy.
            self.assertFalse(head.flags.owndata)
            self.assertIn("PySliceContainer", type(first_owner(head)).__name__)
        kept = attention[cross[0]][0]
        copy = kept.copy()
        del attention, one
        gc.collect()
        np.testing.assert_array_equal(kept, copy)

    def test_scores_equal_those_of_the_command(self):
        sources, targets = ["", *SOURCES[:9], ""], ["", *TARGETS[1:10], "x"]
        (FOLDER / "a").write_text("\n".join(sources) + "\n", encoding="utf-8")
        (FOLDER / "b").write_text("\n".join(targets) + "\n", encoding="utf-8")
        printed = models.command(FOLDER, "score", "run", "--src", "a", "--tgt", "b", "--json")
        expected = [json.loads(line) for line in printed.splitlines()]
        scores = TRANSLATOR.score(sources, targets)
        self.assertEqual([list(score.tokens) for score in scores], [line["tokens"] for line in expected])
        logs = [line["log_probability"] for line in expected]
        self.assertEqual([float(score) for score in scores], [-np.inf if log is None else log for log in logs])

    def test_an_ensemble_equals_that_of_the_command(self):
        both = heedful.Translator(FOLDER / "run", FOLDER / "run")
        printed = models.command(FOLDER, "translate", "run", "run", "--scores", "--text", SOURCES[2])
        found = both.translate(SOURCES[2])
        self.assertEqual(f"{found.text} ||| {found.score:.6f}\n", printed)


def first_owner(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.base


class Iterables(unittest.TestCase):
    def test_iterables_are_translated_lazily_and_in_order(self):
        read = 0

        def texts():
            nonlocal read
            for text in itertools.cycle(["", *SOURCES]):
                read += 1
                yield text

        answers = TRANSLATOR.translate_iterable(texts(), prefetch=50)
        self.assertEqual(read, 0)
        expected = [one.text for one in TRANSLATOR.translate(["", *SOURCES])]
        for number, answer in enumerate(itertools.islice(answers, 700)):
            self.assertEqual(answer.text, expected[number % len(expected)])
            self.assertLessEqual(read, number + 51)

    def test_an_exception_of_the_iterable_reaches_the_caller(self):
        def texts():
            yield SOURCES[0]
            raise KeyError("over")

        answers = TRANSLATOR.translate_iterable(texts())
        with self.assertRaises(KeyError):
            list(answers)
        self.assertEqual(list(answers), [])
        with self.assertRaisesRegex(TypeError, "text 1 .* int"):
            list(TRANSLATOR.translate_iterable([SOURCES[0], 7]))
        self.assertEqual(list(TRANSLATOR.translate_iterable([])), [])
        self.assertEqual([one.text for one in TRANSLATOR.translate_iterable(iter(["", ""]))], ["", ""])


class Tasks(unittest.TestCase):
    def test_classification_equals_that_of_the_command(self):
        classifier = heedful.Classifier(FOLDER / "mood")
        texts = ["the day was fine in year 3", "", "the soup was cold in year 5"]
        printed = models.command(FOLDER, "classify", "mood", "--json", text="\n".join(texts) + "\n")
        expected = [json.loads(line) for line in printed.splitlines()]
        found = classifier.classify(texts)
        self.assertEqual([one.label for one in found], [line["label"] for line in expected])
        for one, line in zip(found, expected):
            named = dict(zip(classifier.labels, map(float, one.probabilities)))
            self.assertEqual(named, {name: np.float32(p) for name, p in line.get("probabilities", {}).items()})
        self.assertEqual(classifier.classify(texts[0]).label, expected[0]["label"])
        self.assertAlmostEqual(sum(weight for _, weight in found[0].words), 1.0, places=5)

    def test_generation_equals_that_of_the_command(self):
        writer = heedful.Generator(FOLDER / "writer")
        for flags, options in [
            ("--tokens 20 --seed 3", dict(max_tokens=20, seed=3)),
            ("--tokens 20 --beam 3 --n 2", dict(max_tokens=20, beam_size=3, num_hypotheses=2)),
        ]:
            printed = models.command(FOLDER, "generate", "writer", "--prompt", "a dog", "--json", *flags.split())
            expected = [json.loads(line)["text"] for line in printed.splitlines()]
            self.assertEqual(writer.generate("a dog", **options), expected)
        (FOLDER / "t").write_text("\n".join(SOURCES[:5]) + "\n", encoding="utf-8")
        printed = models.command(FOLDER, "score", "writer", "--text", "t", "--quiet")
        self.assertEqual([f"{float(score):.6f}" for score in writer.score(SOURCES[:5])], printed.split())

    def test_gaps_are_filled_as_by_the_command(self):
        reader = heedful.Filler(FOLDER / "reader")
        text = "a <mask> sleeps <mask> 1."
        expected = json.loads(models.command(FOLDER, "fill", "reader", text, "--top", "3", "--json"))
        filled = reader.fill(text, top=3)
        self.assertEqual(filled.text, expected["filled"])
        gaps = [[(guess["piece"], guess["probability"]) for guess in gap] for gap in expected["gaps"]]
        self.assertEqual(filled.gaps, gaps)

    def test_explanations_are_shown_in_notebooks(self):
        for model, text in [
            (TRANSLATOR, SOURCES[0]),
            (heedful.Classifier(FOLDER / "mood"), "the day was fine"),
            (heedful.Generator(FOLDER / "writer"), "a dog runs"),
            (heedful.Filler(FOLDER / "reader"), "a <mask> runs"),
        ]:
            explanation = model.explain(text)
            name = Path(model.__getnewargs_ex__()[0][0]).name
            models.command(FOLDER, "explain", name, text, "-o", f"{name}.json")
            self.assertEqual(json.loads(explanation.to_json()), json.loads((FOLDER / f"{name}.json").read_text("utf-8"))[0])
            self.assertIn("<!doctype html>", explanation.html.lower())
            frame = explanation._repr_html_()
            self.assertTrue(frame.startswith("<iframe sandbox=") and frame.endswith('"></iframe>'))
            page = frame.partition('srcdoc="')[2].removesuffix('"></iframe>')
            self.assertNotIn('"', page)
            self.assertEqual(html.unescape(page), explanation.html)
        forced = TRANSLATOR.explain(SOURCES[0], "ein Hund singt")
        self.assertEqual(forced.text, "ein Hund singt")


class Errors(unittest.TestCase):
    def test_errors_are_python_exceptions_with_the_commands_messages(self):
        with self.assertRaisesRegex(FileNotFoundError, "nowhere is not a folder"):
            heedful.Translator(FOLDER / "nowhere")
        with self.assertRaisesRegex(ValueError, "holds a classifier, not a translator: use heedful classify"):
            heedful.Translator(FOLDER / "mood")
        with self.assertRaisesRegex(ValueError, "needs a model"):
            heedful.Translator()
        with self.assertRaisesRegex(ValueError, "beam_size is 0: set it to at least 1"):
            TRANSLATOR.translate("a", beam_size=0)
        with self.assertRaisesRegex(ValueError, "at most 1000"):
            TRANSLATOR.translate("a", beam_size=1_000_000)
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'beam'"):
            TRANSLATOR.translate("a", beam=3)
        with self.assertRaisesRegex(TypeError, "beam_size is of type str, not int"):
            TRANSLATOR.translate("a", beam_size="wide")
        with self.assertRaisesRegex(TypeError, "a str or an iterable of str, not int"):
            TRANSLATOR.translate(3)
        with self.assertRaisesRegex(TypeError, "text 1 .* float"):
            TRANSLATOR.translate(["a", float("nan")])
        with self.assertRaisesRegex(ValueError, "has no shortlist"):
            TRANSLATOR.translate("a", shortlist=True)
        with self.assertRaisesRegex(ValueError, "bf16, f32 or int8"):
            heedful.Translator(FOLDER / "run", compute="f64")
        with self.assertRaisesRegex(ValueError, "no <mask>"):
            heedful.Filler(FOLDER / "reader").fill("whole")
        with self.assertRaisesRegex(ValueError, "count is 1000: it must be from 1 to"):
            heedful.set_threads(1000)
        with self.assertRaisesRegex(ValueError, "1 hypotheses, and a reference of 2"):
            heedful.corpus_bleu(["a"], [["a", "b"]])

    def test_errors_about_invalid_numbers_name_the_argument(self):
        classifier, writer = heedful.Classifier(FOLDER / "mood"), heedful.Generator(FOLDER / "writer")
        reader = heedful.Filler(FOLDER / "reader")
        calls = {
            lambda **given: TRANSLATOR.translate("a", **given): {
                "beam_size": 1, "num_hypotheses": 1, "max_length": 1, "min_length": 0, "no_repeat_ngram_size": 1, "top_k": 1,
                "seed": 0, "batch_tokens": 1,
            },
            lambda **given: TRANSLATOR.translate_iterable([], **given): {"prefetch": 1, "beam_size": 1},
            lambda **given: TRANSLATOR.explain("a", **given): {"beam_size": 1, "num_hypotheses": 1},
            lambda **given: classifier.explain("a", **given): {"num_hypotheses": 1},
            lambda **given: writer.generate("a", **given): {
                "max_tokens": 1, "num_hypotheses": 1, "top_k": 1, "seed": 0, "beam_size": 1, "no_repeat_ngram_size": 1,
            },
            lambda **given: reader.fill("a <mask>", **given): {"top": 1},
            lambda **given: heedful.corpus_chrf(["a"], [["a"]], **given): {"char_order": 0, "word_order": 0, "beta": 0},
            lambda **given: heedful.Translator(FOLDER / "run", **given): {"max_tokens": 1},
            lambda **given: heedful.Generator(FOLDER / "writer", **given): {"max_tokens": 1},
            heedful.set_threads: {"count": 1},
        }
        for call, least in calls.items():
            for name, smallest in least.items():
                for number in [smallest - 1, -(10**30)]:
                    with self.assertRaisesRegex(ValueError, f"^{name} is {number}: set it to at least {smallest}$"):
                        call(**{name: number})
                with self.assertRaisesRegex(ValueError, f"^{name} is {10**30}: set it to less$"):
                    call(**{name: 10**30})
                with self.assertRaisesRegex(TypeError, f"^{name} is of type float, not int$"):
                    call(**{name: 1.5})
        with self.assertRaisesRegex(ValueError, "char_order and word_order are 0"):
            heedful.corpus_chrf(["a"], [["a"]], char_order=0)
        for options in [dict(length_penalty=float("nan")), dict(sample=True, temperature=-1.0), dict(sample=True, top_p=-0.5)]:
            with self.assertRaisesRegex(ValueError, "it must be"):
                TRANSLATOR.translate("a", **options)

    def test_ctrl_c_ends_a_call(self):
        texts = [f"{text} {number}" for number in range(2000) for text in SOURCES]
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            TRANSLATOR.translate(texts)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            for _ in TRANSLATOR.translate_iterable(texts):
                pass
        # It keeps working.
        self.assertTrue(TRANSLATOR.translate(SOURCES[0]).text)

    def test_ctrl_c_ends_a_call_that_is_one_step(self):
        # Minutes of work, in a subprocess, where the abandoned thread ends.
        script = """
import heedful, random, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
words = [str(number) for number in range(300)]
hypotheses, references = ([" ".join(random.sample(words, 300)) for _ in range(2000)] for _ in range(2))
print("begins", flush=True)
heedful.corpus_ter(hypotheses, [references])
"""
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            self.assertEqual(child.stdout.readline(), "begins\n")
            time.sleep(0.3)
            child.send_signal(signal.SIGINT)
            try:
                _, complaint = child.communicate(timeout=60)
            finally:
                child.kill()
        self.assertIn("KeyboardInterrupt", complaint)

    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_a_forked_process_gets_an_error_instead_of_a_deadlock(self):
        TRANSLATOR.translate(SOURCES[0])
        child = os.fork()
        if child == 0:
            try:
                TRANSLATOR.translate(SOURCES[0])
            except RuntimeError:
                os._exit(17)
            os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 17)


class Metrics(unittest.TestCase):
    def test_scores_equal_those_of_the_command(self):
        hypotheses, references = TARGETS[:20], TARGETS[1:21]
        (FOLDER / "hyp").write_text("\n".join(hypotheses) + "\n", encoding="utf-8")
        (FOLDER / "ref").write_text("\n".join(references) + "\n", encoding="utf-8")
        printed = models.command(FOLDER, "evaluate", "hyp", "--ref", "ref", "--metric", "bleu,chrf,ter")
        for score in [
            heedful.corpus_bleu(hypotheses, [references]),
            heedful.corpus_chrf(hypotheses, [references]),
            heedful.corpus_ter(hypotheses, [references]),
        ]:
            self.assertIn(str(score), printed)
            self.assertEqual(float(score), score.score)


if __name__ == "__main__":
    sys.exit(unittest.main())
