"""Writes the goldens of `heedful attend`: every table of small exercises, computed with numpy in f64.

Run it with `cargo xtask golden`. Each case is an input file of `heedful attend` (`numbers`) with the expected tables. Masked
scores are null, as in its JSON.
"""

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "src/explain/calculator/examples"


def visible(numbers, queries, keys):
    """Which keys each query may attend to; positions are counted from the end."""
    distance = np.arange(keys)[None, :] - (np.arange(queries)[:, None] + keys - queries)
    seen = np.ones((queries, keys), bool)
    mask = numbers.get("mask", "none")
    if mask == "causal":
        seen &= distance <= 0
    elif mask != "none":
        seen &= np.array(mask, bool)
    if "window" in numbers:
        seen &= np.abs(distance) <= numbers["window"]
    return seen


def tables(numbers):
    get = lambda key: np.array(numbers[key], np.float64)
    bias = lambda key: get(key) if key in numbers else 0.0
    if "x" in numbers:
        memory = get("memory") if "memory" in numbers else get("x")
        q = get("x") @ get("w_q") + bias("b_q")
        k = memory @ get("w_k") + bias("b_k")
        v = memory @ get("w_v") + bias("b_v")
    else:
        q, k, v = get("q"), get("k"), get("v")
    score, count = numbers.get("score", "scaled-dot"), numbers.get("heads", 1)
    heads = []
    for hq, hk, hv in zip(np.split(q, count, 1), np.split(k, count, 1), np.split(v, count, 1)):
        if score == "general":
            scores = np.einsum("id,de,je->ij", hq, get("score_matrix"), hk)
        elif score == "additive":
            inner = (hq @ get("score_query"))[:, None, :] + (hk @ get("score_key"))[None, :, :]
            scores = np.tanh(inner + bias("score_bias")) @ get("score_vector")
        else:
            scores = hq @ hk.T
        scaled = scores / np.sqrt(hk.shape[1]) if score == "scaled-dot" else scores
        masked = np.where(visible(numbers, len(q), len(k)), scaled, -np.inf)
        powers = np.exp(masked - masked.max(1, keepdims=True))
        weights = powers / powers.sum(1, keepdims=True)
        heads.append(dict(scores=scores, scaled=scaled, masked=masked, weights=weights, result=weights @ hv))
    result = np.concatenate([head["result"] for head in heads], 1)
    output = result @ get("w_o") + bias("b_o") if "w_o" in numbers else None
    return dict(q=q, k=k, v=v, heads=heads, result=result, output=output)


def plain(value):
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return [[None if np.isinf(number) else float(number) for number in row] for row in value]
    return value


def drawn():
    """Random exercises: every score with every mask, with biases and unequal widths where they are allowed."""
    rng = np.random.default_rng(16)
    draw = lambda *shape: np.round(rng.normal(size=shape), 3).tolist()
    masks = [{}, {"mask": "causal"}, {"window": 1}, {"mask": "causal", "window": 2}, {"mask": draw_mask(rng, 4, 5)}]
    for score in ["dot", "scaled-dot", "general", "additive"]:
        for mask in masks:
            d_k = 3 if score in ["dot", "scaled-dot"] else 2
            numbers = {"x": draw(4, 3), "memory": draw(5, 2), "w_q": draw(3, 3), "w_k": draw(2, d_k), "w_v": draw(2, 4)}
            numbers |= {"b_q": draw(3), "b_k": draw(d_k), "b_v": draw(4), "score": score} | mask
            if score == "general":
                numbers["score_matrix"] = draw(3, d_k)
            if score == "additive":
                numbers |= {"score_query": draw(3, 6), "score_key": draw(d_k, 6), "score_bias": draw(6), "score_vector": draw(6)}
            yield numbers
    yield {"x": draw(6, 8), "w_q": draw(8, 12), "w_k": draw(8, 12), "w_v": draw(8, 6), "heads": 3, "w_o": draw(6, 5),
           "b_o": draw(5), "mask": "causal"}
    # Scores far apart: the softmax must not overflow.
    yield {"q": [[1000.0, -1000.0]], "k": [[1000.0, 0.0], [999.0, 1.0], [0.0, 1000.0]], "v": [[1.0], [2.0], [3.0]], "score": "dot"}


def draw_mask(rng, queries, keys):
    mask = rng.random((queries, keys)) < 0.5
    mask[np.arange(queries), rng.integers(keys, size=queries)] = True
    return mask.tolist()


def main():
    examples = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(EXAMPLES.glob("*.json"))]
    cases = [dict(numbers=numbers, tables=plain(tables(numbers))) for numbers in examples + list(drawn())]
    text = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    (HERE / "calculator.json").write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
