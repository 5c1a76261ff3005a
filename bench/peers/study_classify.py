"""The classifier of a heedful run, trained again in PyTorch on the same tokens: `study_classify.py RUN TEST [--seed N]`.

TEST is a run on the held-out texts; only its `corpus.bin` is used. Prints one line of JSON: accuracy and macro F1
in percent.
"""

import json
import time

import torch
from torch.nn import functional

from classifier import Classifier
from study import DEVICE, Run, arguments, by_length, cut, padded, read_corpus, train


def main():
    given = arguments("test")
    run, test = Run(given.run), read_corpus(f"{given.test}/corpus.bin")
    start = time.perf_counter()
    model = Classifier(run.config).to(DEVICE)

    def logits_and_labels(batch):
        ids, lengths = padded([text for text, _ in batch])
        return model(ids, lengths), torch.tensor([label for _, (label,) in batch], device=DEVICE)

    train(model, run, lambda batch: functional.cross_entropy(*logits_and_labels(batch)), given.seed)
    confusion = torch.zeros(run.config["labels"], run.config["labels"])
    with torch.no_grad():
        for batch in cut(by_length(test), run.training["batch_tokens"]):
            logits, labels = logits_and_labels(batch)
            for label, predicted in zip(labels.tolist(), logits.argmax(-1).tolist()):
                confusion[label, predicted] += 1
    correct = confusion.diag()
    f1 = 2 * correct / (confusion.sum(0) + confusion.sum(1)).clamp(min=1)
    found = {"accuracy": 100 * float(correct.sum() / confusion.sum()), "macro_f1": 100 * float(f1.mean())}
    found = {name: round(value, 2) for name, value in found.items()}
    print(json.dumps({"run": given.run, "seed": given.seed} | found | {"seconds": round(time.perf_counter() - start, 1)}), flush=True)


if __name__ == "__main__":
    main()
