"""The examples of the guide run, and the stub matches the package."""

import ast
import doctest
import inspect
import os
import signal
import unittest
from pathlib import Path

import heedful
import models

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "python.md"


def setUpModule():
    global PLACE, FOLDER, TRANSLATOR, SOURCES, TARGETS
    # A shell that runs tests in the background makes them ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    PLACE, FOLDER = models.trained()
    TRANSLATOR = heedful.Translator(FOLDER / "run")
    SOURCES, TARGETS = (list(side) for side in zip(*models.pairs()))


def tearDownModule():
    PLACE.cleanup()


def parameters(call):
    """Names, kinds and defaults of a call's parameters."""
    return [(one.name, kind_of(one), one.default) for one in inspect.signature(call).parameters.values()]


def kind_of(parameter):
    names = {parameter.KEYWORD_ONLY: "keyword", parameter.VAR_POSITIONAL: "*"}
    return names.get(parameter.kind, "positional")


def declared(node):
    """Names, kinds and defaults of a stub function's parameters."""
    default = lambda value: inspect.Parameter.empty if value is None else ast.literal_eval(value)
    given = node.args
    missing = [None] * (len(given.args) - len(given.defaults))
    return [
        *((one.arg, "positional", default(value)) for one, value in zip(given.args, [*missing, *given.defaults])),
        *([(given.vararg.arg, "*", inspect.Parameter.empty)] if given.vararg else []),
        *((one.arg, "keyword", default(value)) for one, value in zip(given.kwonlyargs, given.kw_defaults)),
    ]


class Documentation(unittest.TestCase):
    def test_examples_run_with_the_shown_output(self):
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

    def test_signatures_match_the_stub(self):
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

    def test_defaults_of_the_stub_are_the_defaults_of_the_package(self):
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
    unittest.main()
