"""Every class and method of the package with one model: `python matrix.py MODEL NUMBER`.

Classes, methods and their parameters are found by introspection, so new ones are included automatically. A class that refuses the model with
a proper error is skipped; every other one is called with the required arguments of each method and one optional argument, chosen by NUMBER.
Then every attribute of the results is read. The status is 1 on any other exception.
"""

import inspect
import itertools
import sys

import heedful

TEXT = "the cat sees <mask>"
REQUIRED = {
    "text": TEXT,
    "texts": [TEXT, "a dog runs"],
    "sources": ["the cat", "a dog"],
    "targets": ["die Katze", "ein Hund"],
    "prompt": "the",
}
# Values of optional parameters whose default does not determine one.
OPTIONAL = {"prefixes": ["die", ""], "terms": {"cat": "Katze"}, "long": "error", "top_p": 0.5, "translation": "ein Hund", "target": "ein Hund"}


def other(name, default):
    """A value that is not the default."""
    if name in OPTIONAL:
        return OPTIONAL[name]
    if isinstance(default, bool):
        return not default
    return 0.5 if isinstance(default, float) else 2


def arguments(method, number):
    """The required arguments of a method, and one optional one."""
    parameters = [parameter for parameter in inspect.signature(method).parameters.values() if parameter.name not in ("self", "args", "kwargs")]
    required = {parameter.name: REQUIRED[parameter.name] for parameter in parameters if parameter.name in REQUIRED}
    optional = [parameter for parameter in parameters if parameter.name not in required]
    chosen = number % (len(optional) + 1)
    if chosen < len(optional):
        required[optional[chosen].name] = other(optional[chosen].name, optional[chosen].default)
    return required


def public(value):
    return [name for name in dir(value) if not name.startswith("_")]


def visit(result, depth=0):
    """Reads all attributes of a result."""
    if depth > 4:
        return
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        for item in itertools.islice(result, 3):
            visit(item, depth + 1)
    elif type(result).__module__.startswith(("heedful", "_heedful")):
        for name in public(result):
            value = getattr(result, name)
            if not callable(value):
                visit(value, depth + 1)
            elif not any(p.default is p.empty for p in inspect.signature(value).parameters.values()):
                visit(value(), depth + 1)


def use(model, number):
    """The number of calls that returned."""
    used = 0
    for kind in vars(heedful).values():
        # Results are not opened from a model.
        if not inspect.isclass(kind) or "compute" not in str(inspect.signature(kind)):
            continue
        try:
            opened = kind(model)
        except (ValueError, OSError):
            continue
        for name in public(opened):
            method = getattr(opened, name)
            if not callable(method):
                visit(method)
                continue
            for given in (arguments(method, -1), arguments(method, number)):
                try:
                    result = method(**given)
                    visit(list(result) if inspect.isgenerator(result) or hasattr(result, "__next__") else result)
                    used += 1
                except ValueError as refused:
                    print(f"{kind.__name__}.{name}({given}): {refused}")
    return used


if __name__ == "__main__":
    count = use(sys.argv[1], int(sys.argv[2]))
    print(f"{count} calls")
    sys.exit(count == 0)
