"""Constraints that no JSON schema can express: fields that depend on each other."""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.body, dict):
        rules = [outputs, scores, prefixes] + ([gaps] if case.path == "/v1/fill" else [])
        for rule in rules:
            case.body = rule(case.body)
        if case.media_type == "multipart/form-data":
            case.body = names(case.body)


def names(body):
    """The name of a form field is part of a header, which cannot contain control characters."""
    return {name: value for name, value in body.items() if isinstance(name, str) and name.isprintable()}


def outputs(body):
    """A search has at least as many hypotheses as outputs."""
    beam, n_best = body.get("beam"), body.get("n_best")
    temperature = body.get("temperature")
    if beam is None and isinstance(temperature, (int, float)) and abs(temperature) < 1e-40:
        beam = 1
    if type(beam) is int and isinstance(n_best, (int, float)) and 1 <= beam < n_best:
        return {**body, "n_best": beam}
    return body


def scores(body):
    """Scores are sent only with attention weights."""
    if body.get("raw_scores") is True and body.get("attention") in (None, "none"):
        return {**body, "attention": "rows"}
    return body


def prefixes(body):
    """The number of prefixes equals the number of texts."""
    texts, begins = (listed(body.get(field)) for field in ("text", "prefix"))
    if texts is None or begins is None or len(texts) == len(begins):
        return body
    return {**body, "prefix": (begins + [""] * len(texts))[: len(texts)]}


def gaps(body):
    """A text to fill has a gap."""
    texts = listed(body.get("text"))
    if texts is None:
        return body
    return {**body, "text": [text if "<mask>" in text else text + " <mask>" for text in texts]}


def listed(value):
    """A text or several as a list; None for anything else."""
    if isinstance(value, str):
        return [value]
    is_list = isinstance(value, list) and all(isinstance(text, str) for text in value)
    return value if is_list else None
