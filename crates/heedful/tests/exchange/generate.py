"""Small models of transformers and CTranslate2 with their outputs, for the tests of `heedful import`.

    pip install torch transformers sentencepiece ctranslate2==4.8.4
    python generate.py

writes a folder for each model below models/, with expected.json: tokens, and the logits or log-probabilities of the original.
"""

import json
import shutil
from pathlib import Path

import ctranslate2
import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, decoders

HERE = Path(__file__).parent / "models"
TEXT = ["a small cat sits on a mat", "the old dog runs to the small house", "a cat and a dog eat on the mat", "the house is old and small"] * 20


def random_weights(model, kind=torch.float32):
    """Values large enough to distinguish layers (transformers initializes close to 0), rounded to the type `kind`."""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:
                continue  # Sines and cosines, which are not saved.
            noise = torch.randn_like(parameter)
            is_norm = "norm" in name.lower() or ".ln_" in name
            parameter.copy_((1 + 0.2 * noise if is_norm and name.endswith("weight") else 0.3 * noise).to(kind))
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.copy_((0.5 * torch.randn_like(buffer)).to(kind))
    return model.eval()


def pieces(path, size):
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXT), model_prefix=str(path), vocab_size=size, model_type="unigram", hard_vocab_limit=False, bos_id=-1, eos_id=0, unk_id=1, minloglevel=2, normalization_rule_name="identity")
    path.with_suffix(".vocab").unlink()
    return sentencepiece.SentencePieceProcessor(str(path) + ".model")


def fresh(name):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def save(model, folder, kind=torch.float32):
    model.to(kind).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)


def marian(name, activation, tied, shared, kind=torch.float32):
    folder = fresh(name)
    encoder = pieces(folder / "source", 45)
    (folder / "source.model").rename(folder / "source.spm")
    shutil.copy(folder / "source.spm", folder / "target.spm")
    tokens = [encoder.id_to_piece(i) for i in range(encoder.get_piece_size())] + ["<pad>"]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}, ensure_ascii=False))
    pad = len(tokens) - 1
    config = transformers.MarianConfig(
        vocab_size=len(tokens), decoder_vocab_size=len(tokens), d_model=8, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=12, decoder_ffn_dim=12, activation_function=activation, scale_embedding=True, pad_token_id=pad, eos_token_id=0,
        bos_token_id=0, decoder_start_token_id=pad, forced_eos_token_id=0, tie_word_embeddings=tied, share_encoder_decoder_embeddings=shared, max_position_embeddings=32)
    model = random_weights(transformers.MarianMTModel(config), kind)
    source = encoder.encode("the small cat runs", out_type=int) + [0]
    target = encoder.encode("a dog sits", out_type=int)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([[pad] + target])).logits[0]
    expected = {"text": "the small cat runs", "source": source, "target": target, "logits": logits.tolist()}
    (folder / "expected.json").write_text(json.dumps(expected))
    save(model, folder, kind)
    return folder, encoder, tokens


def bert_parts(folder, **settings):
    """Saves a tokenizer; returns the configuration of a small BERT and a text with its ids."""
    words = sorted({word for line in TEXT for word in line.split()})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, "##s", "##t"]
    tokenizer = transformers.BertTokenizerFast(vocab={token: i for i, token in enumerate(vocabulary)}, do_lower_case=True)
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(vocab_size=len(vocabulary), hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, max_position_embeddings=16, **settings)
    text = "the old cat eats on a mat"
    return config, text, tokenizer(text)["input_ids"]


def bert_classifier(name):
    """Labels whose names are not in the order of their ids."""
    folder = fresh(name)
    config, text, ids = bert_parts(folder, id2label={0: "sport", 1: "business", 2: "world"}, label2id={"sport": 0, "business": 1, "world": 2})
    model = random_weights(transformers.BertForSequenceClassification(config))
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
    expected = {"text": text, "ids": ids, "logits": {config.id2label[i]: logit for i, logit in enumerate(logits.tolist())}}
    (folder / "expected.json").write_text(json.dumps(expected))
    save(model, folder)


def bert(name, has_head):
    folder = fresh(name)
    config, text, ids = bert_parts(folder)
    model = random_weights(transformers.BertForMaskedLM(config))
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
        states = model.bert(torch.tensor([ids])).last_hidden_state[0]
    expected = {"text": text, "ids": ids, "logits": logits.tolist(), "states": states.tolist()}
    (folder / "expected.json").write_text(json.dumps(expected))
    save(model if has_head else model.bert, folder)


def gpt2(name, activation):
    folder = fresh(name)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    from tokenizers import trainers
    tokenizer.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=270, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.save(str(folder / "tokenizer.json"))
    size, end = tokenizer.get_vocab_size(), tokenizer.token_to_id("<|endoftext|>")
    config = transformers.GPT2Config(vocab_size=size, n_positions=16, n_embd=8, n_layer=2, n_head=2, n_inner=12, activation_function=activation, bos_token_id=end, eos_token_id=end)
    model = random_weights(transformers.GPT2LMHeadModel(config))
    text = "the small cat"
    ids = tokenizer.encode(text).ids
    with torch.no_grad():
        logits = model(torch.tensor([[end] + ids])).logits[0]
    (folder / "expected.json").write_text(json.dumps({"text": text, "ids": ids, "logits": logits.tolist()}))
    save(model, folder)


def converted(name, original, quantization):
    """A transformers model converted to CTranslate2, and CTranslate2's log-probabilities of a target."""
    source_folder, encoder, tokens = original
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    converter = ctranslate2.converters.TransformersConverter(str(source_folder), load_as_float16=False)
    converter.convert(str(folder), quantization=quantization)
    shutil.copy(source_folder / "source.spm", folder / "sentencepiece.model")
    translator = ctranslate2.Translator(str(folder), device="cpu", compute_type="float32")
    source, target = ["the small cat runs", "a dog sits"]
    encode = lambda text: encoder.encode(text, out_type=str)
    scores = translator.score_batch([encode(source) + ["</s>"]], [encode(target)])[0].log_probs
    ids = [tokens.index(piece) for piece in encode(target)]
    (folder / "expected.json").write_text(json.dumps({"text": source, "target": ids, "log_probabilities": scores}))


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    swish = marian("marian-swish", "swish", True, True)
    marian("marian-relu-bf16", "relu", True, True, torch.bfloat16)
    marian("marian-gelu-untied", "gelu", False, True)
    bert("bert", True)
    bert("bert-without-head", False)
    bert_classifier("bert-classifier")
    gpt2("gpt2", "gelu_new")
    gpt2("gpt2-relu", "relu")
    converted("ctranslate2-int8", swish, "int8")
    converted("ctranslate2-float16", swish, "float16")
    converted("ctranslate2", swish, None)
    for path in HERE.rglob("*.json"):
        path.write_text(path.read_text().rstrip("\n") + "\n")
