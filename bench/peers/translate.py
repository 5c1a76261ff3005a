"""CTranslate2 with a heedful model, batch by batch.

{"op": "types"} answers {"types": [compute type, …]}, those that this CPU supports, and {"version"};
{"op": "convert", "folder": F, "into": G} converts the model of F to G, once for each storage format of the weights;
{"op": "open", "folder": G, "compute": way, "threads": n} opens it and answers {"seconds"};
{"op": "close", "compute": way} closes it;
{"op": "translate", "compute": way, "batches": [[[id, …], …], …], "beam": n, "alpha": a, "shortest": n, "longest": n,
  "seconds": s, "outputs": bool, "lists": bool} translates all batches, and again until s seconds have passed, with the
  vocabulary map if "lists"; it answers {"times": [seconds of a batch, …], "tokens": of one pass, "outputs": [[id, …],
  …] of one pass, if requested}.

A "way" is a compute type ("int8": one worker with all threads), or a type and a split ("int8 4x2": four workers of two
threads each), optionally with a batch size ("int8 4x2 32"). A batch is divided among the workers, evenly or in batches
of that size (32 if it is a file: {"file": true}). Scores are returned, because heedful computes them too.
"""

import time
from itertools import chain
from pathlib import Path

import ctranslate2

from exchange import serve

OPEN = {}


def stored(compute):
    """The storage format of the weights that a compute type loads without conversion."""
    return compute.split("_")[0]


def types():
    order = ["int8", "int8_bfloat16", "int8_float32", "int16", "bfloat16", "float32"]
    known = ctranslate2.get_supported_compute_types("cpu")
    return [compute for compute in order if compute in known]


def convert(folder, into):
    from ctranslate2_model import convert

    for format in {stored(compute) for compute in types()}:
        target = Path(into) / format
        target.mkdir()
        convert(folder, target, None if format == "float32" else format)


def open_model(folder, way, threads):
    from ctranslate2_model import opened

    begin = time.perf_counter()
    OPEN[way] = opened(Path(folder) / stored(way.partition(" ")[0]), way, threads)
    return time.perf_counter() - begin


def translate(request):
    from ctranslate2_model import name, number

    translator, workers = OPEN[request["compute"]]
    sizes = request["compute"].split()[2:]
    size = int(sizes[0]) if sizes else 32 if request["file"] else None
    options = {"beam_size": request["beam"], "length_penalty": request["alpha"], "min_decoding_length": request["shortest"],
               "max_decoding_length": request["longest"], "return_scores": True, "use_vmap": request["lists"]}
    batches = [[[name(token) for token in source] for source in batch] for batch in request["batches"]]
    times, found = [], []
    begin = time.perf_counter()
    while not times or time.perf_counter() - begin < request["seconds"]:
        found = []
        for batch in batches:
            start = time.perf_counter()
            found.append(translator.translate_batch(batch, max_batch_size=size or -(-len(batch) // workers), **options))
            times.append(time.perf_counter() - start)
    best = [result.hypotheses[0] for result in chain.from_iterable(found)]
    outputs = [[number(token) for token in tokens] for tokens in best] if request["outputs"] else []
    return {"times": times, "tokens": sum(map(len, best)), "outputs": outputs}


def answer(request):
    match request["op"]:
        case "types":
            return {"types": types(), "version": ctranslate2.__version__}
        case "convert":
            convert(request["folder"], request["into"])
            return {}
        case "open":
            return {"seconds": open_model(request["folder"], request["compute"], request["threads"])}
        case "close":
            del OPEN[request["compute"]]
            return {}
        case "translate":
            return translate(request)


serve(answer)
