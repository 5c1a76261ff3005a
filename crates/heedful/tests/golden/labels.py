"""Writes labels.json: scikit-learn's classification scores, for `metrics/label_report.rs`.

    python labels.py > labels.json        with scikit-learn 1.9
"""

import json
import random

from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_recall_fscore_support

CASES = [
    # name, labels, texts, how often a prediction is right, labels that are never predicted
    (["bad", "good"], 40, 0.8, []),
    (["business", "sport", "world", "中"], 120, 0.6, ["sport"]),
    (["a", "b", "c", "d", "e", "f", "g"], 30, 0.3, ["a", "b"]),
    (["x", "y"], 5, 1.0, []),
    (["x", "y"], 5, 0.0, []),
]


def case(labels, texts, right, never):
    actual = [random.choice(labels[:-1] if len(labels) > 4 else labels) for _ in range(texts)]
    allowed = [label for label in labels if label not in never]
    predicted = [
        label if random.random() < right and label in allowed else random.choice(allowed) for label in actual
    ]
    if right == 0.0:
        predicted = ["y" if label == "x" else "x" for label in actual]
    names = sorted(set(actual) | set(predicted))
    precision, recall, f1, count = precision_recall_fscore_support(
        actual, predicted, labels=names, zero_division=0
    )
    scores = zip(names, precision, recall, f1, count)
    average = lambda kind: f1_score(actual, predicted, average=kind, zero_division=0)
    return {
        "actual": actual,
        "predicted": predicted,
        "accuracy": accuracy_score(actual, predicted),
        "macro_f1": average("macro"),
        "micro_f1": average("micro"),
        "weighted_f1": average("weighted"),
        "labels": [
            {"label": n, "precision": float(p), "recall": float(r), "f1": float(f), "texts": int(c)}
            for n, p, r, f, c in scores
        ],
        "confusion": confusion_matrix(actual, predicted, labels=names).tolist(),
    }


random.seed(1)
print(json.dumps([case(*arguments) for arguments in CASES], ensure_ascii=False))
