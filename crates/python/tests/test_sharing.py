"""Results and models shared between processes and threads, results as values, and vocabularies."""

import concurrent.futures
import inspect
import json
import multiprocessing
import pickle
import signal
import threading
import time
import unittest

import heedful
import models
import numpy as np
from heedful import _heedful


def setUpModule():
    global PLACE, FOLDER, TRANSLATOR, SOURCES, TARGETS
    # A shell that runs tests in the background makes them ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    PLACE, FOLDER = models.trained()
    TRANSLATOR = heedful.Translator(FOLDER / "run")
    SOURCES, TARGETS = (list(side) for side in zip(*models.pairs()))


def tearDownModule():
    PLACE.cleanup()


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
    """The contents after JSON, which has no tuples."""
    if isinstance(contents, dict):
        return {name: plain(value) for name, value in contents.items()}
    return [plain(value) for value in contents] if isinstance(contents, (list, tuple)) else contents


class Results(unittest.TestCase):
    def test_results_survive_pickling_between_processes(self):
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
        with self.assertRaisesRegex(ValueError, "was pickled without its model"):
            best.attention

    def test_results_are_compared_by_value(self):
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

    def test_dicts_of_results_are_plain_and_have_every_attribute(self):
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
    def test_ids_pieces_and_texts_match_those_of_results(self):
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

    def test_a_spawned_process_gives_the_same_results(self):
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
            # This thread runs too: neither call holds the GIL.
            most = max(most, _heedful.calls_in_flight())
            time.sleep(0.001)
        self.assertEqual(most, 2)
        self.assertEqual(_heedful.calls_in_flight(), 0)
        self.assertEqual(found[0], [one.text for one in TRANSLATOR.translate(texts[0::2])])


if __name__ == "__main__":
    unittest.main()
