"""`heedful explain lens` and `explain attribute` give the same numbers as captum and transformers on exported models.

    pip install torch transformers captum tokenizers safetensors numpy
    python explained.py HEEDFUL language MODEL TEXT        a causal language model, exported as GPT-2
    python explained.py HEEDFUL masked MODEL TEXT          a masked language model, exported as BERT; TEXT has a <mask>
    python explained.py HEEDFUL translator MODEL TEXT      a translator, exported as MarianMT or Pegasus, over its own translation

HEEDFUL is the program, MODEL the folder of a run, TEXT one sentence. Gradient x input, integrated gradients (64 steps) and
occlusion are captum's InputXGradient, IntegratedGradients and FeatureAblation over `inputs_embeds`, with zeros as baseline.
The lens is `output_hidden_states` through final norm and output matrix, rollout is NumPy over `output_attentions`. Exits with
1 if numbers differ by more than 1e-3 of the largest.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import torch
import transformers
from captum.attr import FeatureAblation, InputXGradient, IntegratedGradients

NEAR = 1e-3
STEPS = 64


def heedful(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"heedful {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def explained(command, model, text, to, *more):
    heedful("explain", command, model, text, "--compute", "f32", "-o", to, "--force", *more)
    return json.loads(Path(to).read_text())


class Language:
    def __init__(self, folder, text, ours):
        self.network = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
        vocabulary = transformers.AutoTokenizer.from_pretrained(folder)
        ids = vocabulary(text, add_special_tokens=False).input_ids
        self.ids = torch.tensor([[self.network.config.bos_token_id] + ids])
        self.targets = torch.tensor([target["target"]["id"] for target in ours["targets"]])
        self.embeds = (self.network.get_input_embeddings()(self.ids).detach(),)

    def log_p(self, embeds):
        logits = self.network(inputs_embeds=embeds).logits
        rows = torch.arange(len(self.targets))
        return torch.log_softmax(logits, -1)[:, rows, self.targets]

    def lens(self):
        states = self.network(self.ids, output_hidden_states=True).hidden_states
        head = lambda state: self.network.lm_head(self.network.transformer.ln_f(state))[0]
        logits = [head(state) for state in states[:-1]] + [self.network.lm_head(states[-1])[0]]
        rows = torch.arange(len(self.targets))
        return [torch.softmax(layer, -1)[rows, self.targets].tolist() for layer in logits]

    def rollout(self):
        return [rolled(self.network(self.ids, output_attentions=True).attentions)]


class Masked:
    def __init__(self, folder, text, ours):
        self.network = transformers.AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval()
        vocabulary = transformers.AutoTokenizer.from_pretrained(folder)
        # A known word holds the place of each mask.
        pieces, mask = ours["inputs"][0]["pieces"], vocabulary.mask_token_id
        word = next(word for word in text.split() if word != "<mask>")
        ids = vocabulary(text.replace("<mask>", word), return_tensors="pt").input_ids
        assert ids.shape[1] == len(pieces), "give a text whose words are one token each"
        masked = torch.tensor([piece == "<mask>" for piece in pieces])
        self.ids = torch.where(masked, mask, ids)
        self.rows = masked.nonzero()[:, 0]
        self.targets = torch.tensor([target["target"]["id"] for target in ours["targets"]])
        self.embeds = (self.network.get_input_embeddings()(self.ids).detach(),)

    def log_p(self, embeds):
        logits = self.network(inputs_embeds=embeds).logits
        return torch.log_softmax(logits, -1)[:, self.rows, self.targets]

    def lens(self):
        states = self.network(self.ids, output_hidden_states=True).hidden_states
        logits = [self.network.cls(state)[0] for state in states]
        return [torch.softmax(layer, -1)[self.rows, self.targets].tolist() for layer in logits]

    def rollout(self):
        return [rolled(self.network(self.ids, output_attentions=True).attentions)[self.rows]]


class Translator:
    def __init__(self, folder, text, ours):
        self.network = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager").eval()
        vocabulary = transformers.AutoTokenizer.from_pretrained(folder)
        self.source = vocabulary(text, return_tensors="pt").input_ids
        self.targets = torch.tensor([target["target"]["id"] for target in ours["targets"]])
        start = torch.tensor([self.network.config.decoder_start_token_id])
        self.prefix = torch.cat([start, self.targets[:-1]])[None]
        encoder, decoder = self.network.get_encoder(), self.network.get_decoder()
        # Whether a stack scales `inputs_embeds` differs between stacks and versions of transformers. Contributions are
        # the same for a scaled input.
        sizes = [(a, b) for a in (1.0, encoder.config.d_model**0.5) for b in (1.0, encoder.config.d_model**0.5)]
        with torch.no_grad():
            expected = self.network(input_ids=self.source, decoder_input_ids=self.prefix).logits
            expected = torch.log_softmax(expected, -1)[:, torch.arange(len(self.targets)), self.targets]
            source, prefix = encoder.embed_tokens(self.source), decoder.embed_tokens(self.prefix)
            fitting = [(source * a, prefix * b) for a, b in sizes]
            self.embeds = min(fitting, key=lambda embeds: (self.log_p(*embeds) - expected).abs().max())
            assert (self.log_p(*self.embeds) - expected).abs().max() < 1e-4, "inputs_embeds give other predictions"

    def log_p(self, source, target):
        logits = self.network(inputs_embeds=source, decoder_inputs_embeds=target).logits
        rows = torch.arange(len(self.targets))
        return torch.log_softmax(logits, -1)[:, rows, self.targets]

    def lens(self):
        states = self.network(input_ids=self.source, decoder_input_ids=self.prefix, output_hidden_states=True)
        rows = torch.arange(len(self.targets))
        bias, norm = self.network.final_logits_bias, getattr(self.network.get_decoder(), "layer_norm", None)
        states = list(states.decoder_hidden_states)
        if norm:
            # The last state is normalized already.
            states[:-1] = [norm(state) for state in states[:-1]]
        logits = [(self.network.lm_head(state) + bias)[0] for state in states]
        return [torch.softmax(layer, -1)[rows, self.targets].tolist() for layer in logits]

    def rollout(self):
        found = self.network(input_ids=self.source, decoder_input_ids=self.prefix, output_attentions=True)
        encoded = rolled(found.encoder_attentions)
        prefix, source = numpy.eye(self.prefix.shape[1]), numpy.zeros((self.prefix.shape[1], self.source.shape[1]))
        for own, cross in zip(found.decoder_attentions, found.cross_attentions):
            own, cross = own[0].mean(0).numpy(), cross[0].mean(0).numpy()
            prefix, source = (prefix + own @ prefix) / 2, (source + own @ source) / 2
            prefix, source = prefix / 2, (source + cross @ encoded) / 2
        return [source, prefix]


def rolled(attentions):
    shares = numpy.eye(attentions[0].shape[-1])
    for layer in attentions:
        shares = (shares + layer[0].mean(0).numpy() @ shares) / 2
    return shares


def scores_of(ours):
    """One matrix of targets x tokens for each stack."""
    stacks = len(ours["inputs"])
    return [numpy.array([target["scores"][stack] for target in ours["targets"]]) for stack in range(stacks)]


def captum_scores(case, method):
    found = [[] for _ in case.embeds]
    baselines = tuple(torch.zeros_like(embeds) for embeds in case.embeds)
    for target in range(len(case.targets)):
        inputs = tuple(embeds.clone().requires_grad_() for embeds in case.embeds)
        if method == "gradient-x-input":
            parts = InputXGradient(case.log_p).attribute(inputs, target=target)
        elif method == "integrated-gradients":
            steps = dict(n_steps=STEPS, internal_batch_size=STEPS)
            parts = IntegratedGradients(case.log_p).attribute(inputs, baselines, target=target, **steps)
        else:
            first, masks = 0, []
            for embeds in case.embeds:
                tokens = torch.arange(first, first + embeds.shape[1])
                masks.append(tokens[None, :, None].expand_as(embeds))
                first += embeds.shape[1]
            parts = FeatureAblation(case.log_p).attribute(inputs, baselines, target=target, feature_mask=tuple(masks))
        for stack, part in zip(found, parts):
            # An ablated token has its effect in every dimension.
            part = part[0].detach()
            stack.append((part[:, 0] if method == "occlusion" else part.sum(-1)).numpy())
    return [numpy.array(stack) for stack in found]


def near(name, ours, theirs):
    ours, theirs = [numpy.concatenate([numpy.ravel(part) for part in parts]) for parts in (ours, theirs)]
    assert ours.shape == theirs.shape, (name, ours.shape, theirs.shape)
    far = float(abs(ours - theirs).max() / max(abs(theirs).max(), 1e-9))
    print(f"{name}: {ours.size} numbers, {far:.1e} of the largest off at most")
    return far <= NEAR


def main(task, model, text):
    to = Path(tempfile.mkdtemp())
    heedful("export", model, "--to", "huggingface", "-o", to / "exported")
    cases = {"language": Language, "masked": Masked, "translator": Translator}
    methods = ["gradient-x-input", "integrated-gradients", "occlusion", "rollout"]
    results, case = [], None
    for method in methods:
        steps = ["--steps", STEPS] if method == "integrated-gradients" else []
        ours = explained("attribute", model, text, to / "ours.json", "--method", method, *steps)
        case = case or cases[task](to / "exported", text, ours)
        if method == "rollout":
            with torch.no_grad():
                theirs = case.rollout()
        else:
            theirs = captum_scores(case, method)
        results.append(near(method, scores_of(ours), theirs))
    lens = explained("lens", model, text, to / "lens.json")
    ours = [[prediction["probability"] for prediction in layer["predictions"]] for layer in lens["layers"]]
    with torch.no_grad():
        results.append(near("lens", ours, case.lens()))
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    PROGRAM = sys.argv[1]
    main(*sys.argv[2:5])
