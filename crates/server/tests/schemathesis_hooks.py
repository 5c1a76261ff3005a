"""What no JSON schema can say: fields that depend on each other."""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    """A search has at least as many hypotheses as outputs."""
    body = case.body
    if not isinstance(body, dict):
        return
    beam, n_best = body.get("beam"), body.get("n_best")
    temperature = body.get("temperature")
    if beam is None and isinstance(temperature, (int, float)) and abs(temperature) < 1e-40:
        beam = 1
    if type(beam) is int and isinstance(n_best, (int, float)) and 1 <= beam < n_best:
        case.body = {**body, "n_best": beam}
