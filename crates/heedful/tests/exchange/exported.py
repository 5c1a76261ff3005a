"""Exported heedful models give the same texts and log-probabilities in transformers and CTranslate2 as in heedful.

    pip install torch transformers ctranslate2==4.8.4 tokenizers safetensors numpy
    python exported.py HEEDFUL translator MODEL SOURCE     greedy translations of the first 200 lines of SOURCE
    python exported.py HEEDFUL language MODEL TEXT         greedy continuations of the beginnings of 200 lines, and all tokens of the lines
    python exported.py HEEDFUL masked MODEL TEXT           a masked token in each of 200 lines

HEEDFUL is the program, MODEL the folder of a run. Exits with 1 if a text differs, or a log-probability by more than 1e-4.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import ctranslate2
import numpy
import torch
import transformers
from safetensors.numpy import load_file
from tokenizers import Tokenizer

LINES = 200
NEAR = 1e-4
CONTINUATION = 20
torch.set_grad_enabled(False)


def heedful(*words, text=""):
    done = subprocess.run([PROGRAM, *map(str, words)], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"heedful {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def lines_of(path):
    found = (line.strip() for line in Path(path).read_text().split("\n"))
    return [line for line in found if len(line.split()) > 3][:LINES]


def encoded(file, lines):
    """heedful's token ids of each line."""
    found = heedful("vocab", "--encode", file, text="".join(line + "\n" for line in lines))
    return [[int(token) for token in line.split()] for line in found.split("\n")[: len(lines)]]


class Comparison:
    def __init__(self, name):
        self.name, self.texts, self.differ, self.far, self.numbers = name, 0, 0, 0.0, 0

    def text(self, ours, theirs):
        self.texts += 1
        if ours != theirs:
            self.differ += 1
            if self.differ < 4:
                print(f"  {self.name}\n    {ours!r}\n    {theirs!r}")

    def numbers_of(self, ours, theirs):
        ours, theirs = numpy.asarray(ours, dtype=float).ravel(), numpy.asarray(theirs, dtype=float).ravel()
        assert ours.shape == theirs.shape, (self.name, ours.shape, theirs.shape)
        self.numbers += ours.size
        self.far = max(self.far, float(abs(ours - theirs).max(initial=0)))

    def report(self):
        print(f"{self.name}: {self.texts} texts, {self.differ} differ; {self.numbers} log-probabilities, {self.far:.1e} off at most")
        return self.differ == 0 and self.far <= NEAR


def target_of(folder):
    return folder / "target" if (folder / "target").exists() else folder


def translator(model, source, to):
    lines = lines_of(source)
    (to / "source").write_text("".join(line + "\n" for line in lines))
    ours = heedful("translate", model, to / "source", "--beam", 1, "--compute", "f32").split("\n")[: len(lines)]
    (to / "target").write_text("".join(line + "\n" for line in ours))
    scored = heedful("score", model, "--src", to / "source", "--tgt", to / "target", "--compute", "f32", "--json")
    probabilities = [json.loads(line)["tokens"] for line in scored.strip().split("\n")]

    hugging, ctranslate = to / "huggingface", to / "ctranslate2"
    reports = []
    if export(model, "huggingface", hugging):
        compare = Comparison("transformers")
        network = transformers.AutoModelForSeq2SeqLM.from_pretrained(hugging).eval()
        encoder = transformers.AutoTokenizer.from_pretrained(hugging)
        decoder = transformers.AutoTokenizer.from_pretrained(target_of(hugging))
        same_ids(encoder, model, lines, "source.tokenizer.json")
        for line, known, scores in zip(lines, ours, probabilities):
            ids = encoder(line, return_tensors="pt")
            limit = ids.input_ids.shape[1] + 50
            found = network.generate(**ids, num_beams=1, do_sample=False, max_length=None, max_new_tokens=limit)
            compare.text(known, decoder.decode(found[0], skip_special_tokens=True))
            target = decoder(known, add_special_tokens=False).input_ids
            start, end = network.config.decoder_start_token_id, network.config.eos_token_id
            logits = network(**ids, decoder_input_ids=torch.tensor([[start] + target])).logits[0]
            chosen = torch.tensor(target + [end])
            compare.numbers_of(scores, torch.log_softmax(logits, -1)[range(len(chosen)), chosen])
        reports.append(compare.report())
    if export(model, "ctranslate2", ctranslate):
        compare = Comparison("CTranslate2")
        engine = ctranslate2.Translator(str(ctranslate), compute_type="float32")
        example = script(ctranslate, "translate")
        encode, target_encode, decode = example.encoder(), example.encoder("target"), example.decoder()
        for line, known, scores in zip(lines, ours, probabilities):
            pieces = encode(line)
            found = engine.translate_batch([pieces], beam_size=1, max_decoding_length=len(pieces) + 50, suppress_sequences=example.SUPPRESSED or None)
            compare.text(known, decode(found[0].hypotheses[0]))
            compare.numbers_of(scores, engine.score_batch([pieces], [target_encode(known)])[0].log_probs)
        printed = subprocess.run([sys.executable, ctranslate / "translate.py"], stdin=open(to / "source"), capture_output=True, text=True)
        written = Comparison("translate.py")
        for known, line in zip(ours, printed.stdout.split("\n")):
            written.text(known, line)
        reports += [compare.report(), written.report()]
    return all(reports)


def language(model, text, to):
    lines = lines_of(text)
    (to / "text").write_text("".join(line + "\n" for line in lines))
    config = json.loads((Path(model) / "config.json").read_text())
    prompts = [" ".join(line.split()[:3]) for line in lines]
    flags = ["--temperature", 0, "--tokens", CONTINUATION, "--compute", "f32", "--json"]
    ours = [json.loads(heedful("generate", model, "--prompt", prompt, *flags))["text"] for prompt in prompts]
    hugging, ctranslate = to / "huggingface", to / "ctranslate2"
    reports = []
    # The tokens of a single line: as one block of running text, or as a line with an end.
    per_line = []
    for line in lines:
        (to / "line").write_text(line + "\n")
        scored = heedful("score", model, "--text", to / "line", "--compute", "f32", "--json")
        per_line.append(json.loads(scored)["tokens"])
    end_of_line = "\n" if config["text"] == "running" else ""
    if export(model, "huggingface", hugging):
        compare = Comparison("transformers")
        network = transformers.AutoModelForCausalLM.from_pretrained(hugging).eval()
        vocabulary = transformers.AutoTokenizer.from_pretrained(hugging)
        end = [] if end_of_line else [network.config.eos_token_id]
        for prompt, known, line, scores in zip(prompts, ours, lines, per_line):
            ids = vocabulary(prompt, return_tensors="pt")
            found = network.generate(**ids, num_beams=1, do_sample=False, max_new_tokens=CONTINUATION)
            compare.text(known, vocabulary.decode(found[0], skip_special_tokens=True))
            read = vocabulary(line + end_of_line).input_ids + end
            logits = network(torch.tensor([read])).logits[0]
            compare.numbers_of(scores, torch.log_softmax(logits, -1)[range(len(read) - 1), read[1:]])
        reports.append(compare.report())
    if export(model, "ctranslate2", ctranslate):
        compare = Comparison("CTranslate2")
        engine = ctranslate2.Generator(str(ctranslate), compute_type="float32")
        vocabulary = Tokenizer.from_file(str(ctranslate / "tokenizer.json"))
        end = [] if end_of_line else [json.loads((ctranslate / "config.json").read_text())["eos_token"]]
        for prompt, known, line, scores in zip(prompts, ours, lines, per_line):
            read = vocabulary.encode(prompt)
            found = engine.generate_batch([read.tokens], beam_size=1, max_length=CONTINUATION, include_prompt_in_result=False)
            compare.text(known, vocabulary.decode(read.ids[1:] + found[0].sequences_ids[0]))
            compare.numbers_of(scores, engine.score_batch([vocabulary.encode(line + end_of_line).tokens + end])[0].log_probs)
        reports.append(compare.report())
    return all(reports)


def masked(model, text, to):
    lines = lines_of(text)
    words = [line.split() for line in lines]
    gaps = [" ".join([*line[:2], "<mask>", *line[3:]]) for line in words]
    ours = []
    for gap in gaps:
        guesses = json.loads(heedful("fill", model, gap, "--top", 5, "--compute", "f32", "--json"))["gaps"][0]
        ours.append([(guess["piece"], guess["probability"]) for guess in guesses])
    read = [encoded(model, [" ".join(line[:2])])[0] for line in words]
    rest = [encoded(model, [" ".join(line[3:])])[0] for line in words]
    hugging, ctranslate = to / "huggingface", to / "ctranslate2"
    reports = []

    def compare_all(compare, text_of, scores_of, mask):
        for known, before, after in zip(ours, read, rest):
            scores = scores_of(before + [mask] + after)[len(before)]
            best = numpy.asarray(scores) - numpy.logaddexp.reduce(numpy.asarray(scores, dtype=float))
            best[:4] = -numpy.inf  # Special tokens are not guesses.
            order = numpy.argsort(-best)[: len(known)]
            compare.text([piece.strip() for piece, _ in known], [text_of(int(token)).strip() for token in order])
            compare.numbers_of(numpy.log([probability for _, probability in known]), best[order])
        reports.append(compare.report())

    if export(model, "huggingface", hugging):
        network = transformers.AutoModelForMaskedLM.from_pretrained(hugging).eval()
        vocabulary = transformers.AutoTokenizer.from_pretrained(hugging)
        same_ids(vocabulary, model, lines, "tokenizer.json")
        scores = lambda ids: network(torch.tensor([ids])).logits[0].double().numpy()
        compare_all(Comparison("transformers"), lambda token: vocabulary.decode([token]), scores, vocabulary.mask_token_id)
    if export(model, "ctranslate2", ctranslate):
        engine = ctranslate2.Encoder(str(ctranslate), compute_type="float32")
        vocabulary = Tokenizer.from_file(str(ctranslate / "tokenizer.json"))
        head, settings = load_file(ctranslate / "head.safetensors"), json.loads((ctranslate / "config.json").read_text())
        fill = script(ctranslate, "fill")
        states = lambda ids: numpy.array(engine.forward_batch([ids]).last_hidden_state)[0]
        scores = lambda ids: fill.scores(states(ids), head, settings["layer_norm_epsilon"])
        mask = vocabulary.token_to_id(settings["mask_token"])
        compare_all(Comparison("CTranslate2"), lambda token: vocabulary.decode([token]), scores, mask)
    return all(reports)


def same_ids(theirs, model, lines, separate):
    """`AutoTokenizer` gives the ids of heedful's vocabulary and decodes them to the same text."""
    file = Path(model) / "tokenizer.json"
    for line, ids in zip(lines, encoded(file if file.exists() else Path(model) / separate, lines)):
        found = theirs(line, add_special_tokens=False).input_ids
        assert found == ids, (line, found, ids)
        assert theirs.decode(found) == line, (line, theirs.decode(found))
    print(f"AutoTokenizer: {len(lines)} lines have the same ids")


def export(model, form, to):
    done = subprocess.run([PROGRAM, "export", model, "--to", form, "-o", to], capture_output=True, text=True)
    if done.returncode:
        print(f"{form} is refused: {done.stderr.strip()}")
    return done.returncode == 0


def script(folder, name):
    """The script of an export, as a module."""
    specification = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


if __name__ == "__main__":
    PROGRAM, kind, model, text = sys.argv[1:5]
    with tempfile.TemporaryDirectory() as place:
        is_same = {"translator": translator, "language": language, "masked": masked}[kind](model, text, Path(place))
    sys.exit(0 if is_same else 1)
