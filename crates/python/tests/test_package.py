"""The package against the command: the same results, to the bit; and what only Python has."""

import ast
import concurrent.futures
import doctest
import gc
import html
import inspect
import itertools
import json
import multiprocessing
import os
import pickle
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
from heedful import _heedful

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "python.md"


def setUpModule():
    global PLACE, FOLDER, TRANSLATOR, SOURCES, TARGETS
    # A shell that starts tests in the background has them ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    PLACE, FOLDER = models.trained()
    TRANSLATOR = heedful.Translator(FOLDER / "run")
    SOURCES, TARGETS = (list(side) for side in zip(*models.pairs()))


def tearDownModule():
    PLACE.cleanup()


class Translating(unittest.TestCase):
    def test_texts_and_scores_are_those_of_the_command(self):
        texts = ["", *SOURCES[::7], "  ", "words that nobody knows", SOURCES[0]]
        for flags, options in [
            ("", {}),
            ("--beam 6 --n-best 3 --length-penalty 1.5", dict(beam_size=6, num_hypotheses=3, length_penalty=1.5)),
            ("--sample --top-k 5 --seed 7 --temperature 0.8", dict(sample=True, top_k=5, seed=7, temperature=0.8)),
            ("--beam 1 --max-length 3 --no-repeat-ngram 2", dict(beam_size=1, max_length=3, no_repeat_ngram_size=2)),
        ]:
            with self.subTest(flags):
                said = models.command(FOLDER, "translate", "run", "--json", *flags.split(), text="\n".join(texts) + "\n")
                told = [json.loads(line)["translations"] for line in said.splitlines()]
                found = [
                    [
                        {"text": one.text, "score": one.score, "log_probability": one.log_probability}
                        for one in translation.hypotheses
                    ]
                    for translation in TRANSLATOR.translate(texts, **options)
                ]
                # Numbers are read as they are written: every bit counts.
                self.assertEqual(found, told)

    def test_a_packed_model_is_the_model(self):
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
        said = models.command(FOLDER, "translate", "run", "--scores", "--align", "--max-tokens", "64", text=text + "\n")
        translation = heedful.Translator(FOLDER / "run", max_tokens=64).translate(text)
        links = " ".join(f"{source}-{target}" for source, target in sorted(translation.alignment))
        self.assertEqual(f"{translation.text} ||| {translation.score:.6f} ||| {links}\n", said)
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

    def test_prefixes_and_terms_are_kept(self):
        self.assertTrue(TRANSLATOR.translate("a dog runs here 1.", prefixes="das Auto").text.startswith("das Auto"))
        self.assertIn("Kater", TRANSLATOR.translate("a cat sleeps here 1.", terms={"cat": "Kater"}, beam_size=8).text)
        with self.assertRaisesRegex(ValueError, "2 prefixes for 1 texts"):
            TRANSLATOR.translate(["a"], prefixes=["b", "c"])
        with self.assertRaisesRegex(ValueError, "write words"):
            TRANSLATOR.translate("a", terms={"a\tb": "c"})

    def test_attention_is_the_models_own_memory(self):
        one = TRANSLATOR.translate(SOURCES[5])
        attention = one.attention
        cross = [name for name in attention if name.endswith(".cross")]
        self.assertTrue(cross)
        for head in attention[cross[0]]:
            # <eos> is predicted too.
            self.assertEqual(head.shape, (len(one.tokens) + 1, len(one.source_tokens)))
            self.assertEqual(head.dtype, np.float32)
            np.testing.assert_allclose(head.sum(axis=1), 1.0, rtol=1e-5)
            # Made by heedful and taken over: NumPy did not allocate it.
            self.assertFalse(head.flags.owndata)
            self.assertIn("PySliceContainer", type(first_owner(head)).__name__)
        kept = attention[cross[0]][0]
        copy = kept.copy()
        del attention, one
        gc.collect()
        np.testing.assert_array_equal(kept, copy)

    def test_scores_are_those_of_the_command(self):
        sources, targets = ["", *SOURCES[:9], ""], ["", *TARGETS[1:10], "x"]
        (FOLDER / "a").write_text("\n".join(sources) + "\n", encoding="utf-8")
        (FOLDER / "b").write_text("\n".join(targets) + "\n", encoding="utf-8")
        said = models.command(FOLDER, "score", "run", "--src", "a", "--tgt", "b", "--json")
        told = [json.loads(line) for line in said.splitlines()]
        scores = TRANSLATOR.score(sources, targets)
        self.assertEqual([list(score.tokens) for score in scores], [line["tokens"] for line in told])
        logs = [line["log_probability"] for line in told]
        self.assertEqual([float(score) for score in scores], [-np.inf if log is None else log for log in logs])

    def test_an_ensemble_is_that_of_the_command(self):
        both = heedful.Translator(FOLDER / "run", FOLDER / "run")
        said = models.command(FOLDER, "translate", "run", "run", "--scores", "--text", SOURCES[2])
        found = both.translate(SOURCES[2])
        self.assertEqual(f"{found.text} ||| {found.score:.6f}\n", said)


def first_owner(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.base


class Iterables(unittest.TestCase):
    def test_it_is_lazy_and_in_order(self):
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

    def test_an_exception_of_the_iterable_is_the_callers(self):
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
    def test_classification_is_that_of_the_command(self):
        classifier = heedful.Classifier(FOLDER / "mood")
        texts = ["the day was fine in year 3", "", "the soup was cold in year 5"]
        said = models.command(FOLDER, "classify", "mood", "--json", text="\n".join(texts) + "\n")
        told = [json.loads(line) for line in said.splitlines()]
        found = classifier.classify(texts)
        self.assertEqual([one.label for one in found], [line["label"] for line in told])
        for one, line in zip(found, told):
            named = dict(zip(classifier.labels, map(float, one.probabilities)))
            self.assertEqual(named, {name: np.float32(p) for name, p in line.get("probabilities", {}).items()})
        self.assertEqual(classifier.classify(texts[0]).label, told[0]["label"])
        self.assertAlmostEqual(sum(weight for _, weight in found[0].words), 1.0, places=5)

    def test_generation_is_that_of_the_command(self):
        writer = heedful.Generator(FOLDER / "writer")
        for flags, options in [
            ("--tokens 20 --seed 3", dict(max_tokens=20, seed=3)),
            ("--tokens 20 --beam 3 --n 2", dict(max_tokens=20, beam_size=3, num_hypotheses=2)),
        ]:
            said = models.command(FOLDER, "generate", "writer", "--prompt", "a dog", "--json", *flags.split())
            told = [json.loads(line)["text"] for line in said.splitlines()]
            self.assertEqual(writer.generate("a dog", **options), told)
        (FOLDER / "t").write_text("\n".join(SOURCES[:5]) + "\n", encoding="utf-8")
        said = models.command(FOLDER, "score", "writer", "--text", "t", "--quiet")
        self.assertEqual([f"{float(score):.6f}" for score in writer.score(SOURCES[:5])], said.split())

    def test_gaps_are_filled_as_the_command_does(self):
        reader = heedful.Filler(FOLDER / "reader")
        text = "a <mask> sleeps <mask> 1."
        told = json.loads(models.command(FOLDER, "fill", "reader", text, "--top", "3", "--json"))
        filled = reader.fill(text, top=3)
        self.assertEqual(filled.text, told["filled"])
        gaps = [[(guess["piece"], guess["probability"]) for guess in gap] for gap in told["gaps"]]
        self.assertEqual(filled.gaps, gaps)

    def test_explanations_show_themselves(self):
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
    def test_they_are_pythons_with_the_commands_words(self):
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

    def test_numbers_that_cannot_be_are_refused_by_their_name(self):
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
        # It goes on to work.
        self.assertTrue(TRANSLATOR.translate(SOURCES[0]).text)

    def test_ctrl_c_ends_a_call_that_is_one_step(self):
        # Minutes of work, in a process of its own: what is left of it ends there.
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
    def test_a_forked_process_is_refused_instead_of_waiting_for_ever(self):
        TRANSLATOR.translate(SOURCES[0])
        child = os.fork()
        if child == 0:
            try:
                TRANSLATOR.translate(SOURCES[0])
            except RuntimeError:
                os._exit(17)
            os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 17)


def translated_elsewhere(translator, text):
    return translator.translate(text).text


def results_elsewhere(folder):
    """One of every kind of result."""
    translator = heedful.Translator(folder / "run")
    hypotheses, references = ["the cat sat"], [["the cat sat down"]]
    return [
        translator.translate("a dog runs here 1.", num_hypotheses=3),
        translator.translate(""),
        translator.translate("a cat sleeps here 1.").hypotheses[0],
        *translator.score(["a dog runs here 1."], ["ein Hund"]),
        translator.explain("a dog"),
        heedful.Classifier(folder / "mood").classify("the day was fine"),
        heedful.Classifier(folder / "mood").classify(""),
        heedful.Filler(folder / "reader").fill("a <mask> runs"),
        heedful.corpus_bleu(hypotheses, references),
        heedful.corpus_chrf(hypotheses, references),
        heedful.corpus_ter(hypotheses, references),
    ]


def plain(contents):
    """As JSON has it, which knows no tuples."""
    if isinstance(contents, dict):
        return {name: plain(value) for name, value in contents.items()}
    return [plain(value) for value in contents] if isinstance(contents, (list, tuple)) else contents


class Results(unittest.TestCase):
    def test_they_come_from_other_processes_as_they_were(self):
        spawn = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
            received = pool.submit(results_elsewhere, FOLDER).result(timeout=120)
        made = results_elsewhere(FOLDER)
        self.assertEqual(received, made)
        for one, other in zip(received, made):
            self.assertIs(type(one), type(other))
            self.assertEqual((repr(one), str(one)), (repr(other), str(other)))
            self.assertEqual((hash(one), one.to_dict()), (hash(other), other.to_dict()))
            self.assertEqual(pickle.loads(pickle.dumps(one)), other)
        best = received[0]
        np.testing.assert_array_equal(best.token_ids, made[0].token_ids)
        self.assertEqual(best.hypotheses, made[0].hypotheses)
        with self.assertRaisesRegex(ValueError, "was pickled, and its model stayed where it was"):
            best.attention

    def test_they_are_compared_by_their_contents(self):
        made = results_elsewhere(FOLDER)
        self.assertEqual(len(set(made)), len(made))
        for number, one in enumerate(made):
            self.assertNotEqual(one, "another type")
            for other in made[number + 1 :]:
                self.assertNotEqual(one, other)
        wide, narrow = (TRANSLATOR.translate(SOURCES[0], num_hypotheses=count) for count in [2, 1])
        self.assertEqual(wide.text, narrow.text)
        self.assertNotEqual(wide, narrow)
        self.assertEqual(wide.hypotheses[0], narrow.hypotheses[0])

    def test_their_dicts_are_plain_and_have_every_attribute(self):
        for one in results_elsewhere(FOLDER):
            contents = one.to_dict()
            self.assertEqual(json.loads(json.dumps(contents)), plain(contents))
            attributes = {
                name
                for kind in type(one).__mro__[:-1]
                for name, member in vars(kind).items()
                if inspect.isgetsetdescriptor(member) and not name.startswith("_")
            }
            if not isinstance(one, heedful.Explanation):
                self.assertEqual(set(contents), attributes - {"attention", "alignment"})
            else:
                self.assertEqual(contents, json.loads(one.to_json()))


class Vocabularies(unittest.TestCase):
    def test_ids_pieces_and_texts_are_those_of_results(self):
        one = TRANSLATOR.translate(SOURCES[6])
        source, target = TRANSLATOR.tokenizer, TRANSLATOR.target_tokenizer
        self.assertEqual(source.pieces(SOURCES[6]), one.source_tokens)
        self.assertEqual(source.decode(source.encode(SOURCES[6])), SOURCES[6])
        self.assertEqual(target.decode(one.token_ids), one.text)
        self.assertEqual(target.encode(one.text), list(one.token_ids))
        for model in ["mood", "writer", "reader"]:
            kind = {"mood": heedful.Classifier, "writer": heedful.Generator, "reader": heedful.Filler}[model]
            tokenizer = kind(FOLDER / model).tokenizer
            self.assertEqual(tokenizer.decode(tokenizer.encode("a dog runs")), "a dog runs")

    def test_every_token_has_its_id(self):
        tokenizer = TRANSLATOR.tokenizer
        self.assertEqual(len(tokenizer), tokenizer.vocabulary_size)
        self.assertEqual(len(tokenizer.vocabulary), len(tokenizer))
        for id, token in enumerate(tokenizer.vocabulary):
            self.assertEqual((tokenizer.id_to_token(id), tokenizer.token_to_id(token)), (token, id))
        self.assertIsNone(tokenizer.token_to_id("no such token"))
        with self.assertRaisesRegex(ValueError, f"id is {len(tokenizer)}: ids are 0 to {len(tokenizer) - 1}"):
            tokenizer.id_to_token(len(tokenizer))
        with self.assertRaisesRegex(ValueError, "an id is -1"):
            tokenizer.decode([-1])


class Sharing(unittest.TestCase):
    def test_models_are_pickled_by_their_path(self):
        for model in [
            heedful.Translator(FOLDER / "run", max_tokens=99, compute="f32"),
            heedful.Classifier(FOLDER / "mood"),
            heedful.Generator(FOLDER / "writer"),
            heedful.Filler(FOLDER / "reader"),
        ]:
            sent = pickle.dumps(model)
            self.assertLess(len(sent), 1000)
            again = pickle.loads(sent)
            self.assertEqual(repr(again), repr(model))
            self.assertEqual(again.__getnewargs_ex__(), model.__getnewargs_ex__())

    def test_a_process_that_is_spawned_gives_the_same(self):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply_async(translated_elsewhere, (TRANSLATOR, SOURCES[4])).get(timeout=120)
        self.assertEqual(found, TRANSLATOR.translate(SOURCES[4]).text)

    def test_two_threads_translate_at_the_same_time(self):
        texts = [f"{text} {number}" for number in range(30) for text in SOURCES]
        found = [None, None]

        def work(index):
            found[index] = [one.text for one in TRANSLATOR.translate(texts[index::2])]

        threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        most = 0
        while any(thread.is_alive() for thread in threads):
            # This thread runs too: neither of the calls holds Python's lock.
            most = max(most, _heedful.calls_in_flight())
            time.sleep(0.001)
        self.assertEqual(most, 2)
        self.assertEqual(_heedful.calls_in_flight(), 0)
        self.assertEqual(found[0], [one.text for one in TRANSLATOR.translate(texts[0::2])])


class Metrics(unittest.TestCase):
    def test_scores_are_those_of_the_command(self):
        hypotheses, references = TARGETS[:20], TARGETS[1:21]
        (FOLDER / "hyp").write_text("\n".join(hypotheses) + "\n", encoding="utf-8")
        (FOLDER / "ref").write_text("\n".join(references) + "\n", encoding="utf-8")
        said = models.command(FOLDER, "evaluate", "hyp", "--ref", "ref", "--metric", "bleu,chrf,ter")
        for score in [
            heedful.corpus_bleu(hypotheses, [references]),
            heedful.corpus_chrf(hypotheses, [references]),
            heedful.corpus_ter(hypotheses, [references]),
        ]:
            self.assertIn(str(score), said)
            self.assertEqual(float(score), score.score)


def parameters(call):
    """Names, kinds and defaults of what a call takes."""
    return [(one.name, kind_of(one), one.default) for one in inspect.signature(call).parameters.values()]


def kind_of(parameter):
    names = {parameter.KEYWORD_ONLY: "keyword", parameter.VAR_POSITIONAL: "*"}
    return names.get(parameter.kind, "positional")


def declared(node):
    """The same of a function of the stub."""
    default = lambda value: inspect.Parameter.empty if value is None else ast.literal_eval(value)
    given = node.args
    missing = [None] * (len(given.args) - len(given.defaults))
    return [
        *((one.arg, "positional", default(value)) for one, value in zip(given.args, [*missing, *given.defaults])),
        *([(given.vararg.arg, "*", inspect.Parameter.empty)] if given.vararg else []),
        *((one.arg, "keyword", default(value)) for one, value in zip(given.kwonlyargs, given.kw_defaults)),
    ]


class Documentation(unittest.TestCase):
    def test_examples_do_what_they_say(self):
        before = os.getcwd()
        os.chdir(FOLDER)
        try:
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            results = [
                doctest.testmod(heedful, optionflags=flags),
                doctest.testfile(str(GUIDE), module_relative=False, optionflags=flags, encoding="utf-8"),
            ]
        finally:
            os.chdir(before)
        for result in results:
            self.assertEqual(result.failed, 0)
            self.assertGreater(result.attempted, 0)

    def test_every_name_has_a_stub(self):
        stub = (Path(heedful.__file__).parent / "__init__.pyi").read_text(encoding="utf-8")
        for name in heedful.__all__:
            self.assertRegex(stub, rf"(?m)^(class {name}\b|def {name}\(|{name}:)")
            members = vars(getattr(heedful, name)) if isinstance(getattr(heedful, name), type) else {}
            for member in members:
                if not member.startswith("_"):
                    self.assertRegex(stub, rf"\n    def {member}\(", f"{name}.{member}")
        self.assertTrue((Path(heedful.__file__).parent / "py.typed").exists())

    def test_signatures_are_those_of_the_stub(self):
        stub = ast.parse((Path(heedful.__file__).parent / "__init__.pyi").read_text(encoding="utf-8"))
        compared = 0
        for node in stub.body:
            if isinstance(node, ast.FunctionDef):
                self.assertEqual(parameters(getattr(heedful, node.name)), declared(node), node.name)
                compared += 1
            for member in node.body if isinstance(node, ast.ClassDef) else []:
                if not isinstance(member, ast.FunctionDef) or any(
                    isinstance(mark, ast.Name) and mark.id == "property" for mark in member.decorator_list
                ):
                    continue
                kind, name = getattr(heedful, node.name), f"{node.name}.{member.name}"
                if member.name == "__new__":
                    self.assertEqual(parameters(kind), declared(member)[1:], name)
                elif not member.name.startswith("_"):
                    self.assertEqual(parameters(getattr(kind, member.name))[1:], declared(member)[1:], name)
                compared += 1
        self.assertGreater(compared, 40)

    def test_defaults_are_what_is_done_without_them(self):
        writer = heedful.Generator(FOLDER / "writer")
        for call, arguments in [
            (TRANSLATOR.translate, (SOURCES[:5],)),
            (lambda *given, **named: list(TRANSLATOR.translate_iterable(*given, **named)), (SOURCES[:5],)),
            (TRANSLATOR.explain, (SOURCES[0],)),
            (writer.generate, ("a dog",)),
            (heedful.Classifier(FOLDER / "mood").classify, ("the day was fine",)),
            (heedful.Filler(FOLDER / "reader").fill, ("a <mask> runs",)),
            (heedful.corpus_bleu, (["a b c"], [["a b d"]])),
            (heedful.corpus_chrf, (["a b c"], [["a b d"]])),
            (heedful.corpus_ter, (["a b c"], [["a b d"]])),
        ]:
            shown = TRANSLATOR.translate_iterable if call.__name__ == "<lambda>" else call
            named = inspect.signature(shown).parameters.values()
            defaults = {one.name: one.default for one in named if one.kind is one.KEYWORD_ONLY}
            self.assertTrue(defaults)
            self.assertEqual(call(*arguments, **defaults), call(*arguments), shown.__name__)


if __name__ == "__main__":
    sys.exit(unittest.main())
