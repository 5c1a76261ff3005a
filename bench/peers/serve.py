"""The engine of LibreTranslate behind a minimal web server: CTranslate2 with dynamic batching in a FastAPI app.

{"op": "load", "folder": F, "computes": ["float32", "int8", …], "trial": [[id, …], …], "threads": n, "beam": n, "alpha": a, "longest": tokens of an output
at most, "batch": sentences, "wait_ms": w} converts a model that heedful trained, takes the type and number of threads (one or n) that translate the trial fastest,
starts the server and answers {"port", "way", "seconds": {way: seconds of the trial}}; {"op": "translate", "sources": [[id, …], …]} translates
without the server and answers {"seconds", "outputs"}; {"op": "memory"} answers {"bytes"}, the peak of this process.

POST /translate {"ids": [id, …]} answers {"ids": [id, …]}: tokens in and out, so the peer is spared the tokenizing. Requests that come within `wait_ms`
of the first, or while a batch is at work, make a batch together.
"""

import asyncio
import json
import socket
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import ctranslate2
import numpy
import uvicorn
from ctranslate2.specs import common_spec, transformer_spec
from fastapi import FastAPI, Request
from safetensors.numpy import load_file

from exchange import peak_memory, serve

LONGEST = 1024
SPECIAL = {0: "<blank>", 1: "<s>", 2: "</s>", 3: "<unk>"}


def name(token):
    return SPECIAL.get(token, f"t{token}")


def number(token):
    return next((i for i, special in SPECIAL.items() if special == token), None) or int(token[1:])


def convert(folder, into):
    """Writes a heedful model as CTranslate2 reads it; anything but a post-norm Transformer with one tied table is refused."""
    config = json.loads((Path(folder) / "config.json").read_text())
    for key, wanted in {"norm": "post", "positions": "sinusoidal", "tying": "all", "activation": "relu", "window": None}.items():
        if config[key] != wanted:
            raise ValueError(f"{key} is {config[key]}, this peer knows {wanted} alone")
    weights = load_file(Path(folder) / "model.safetensors")
    layers = (config["encoder_layers"], config["decoder_layers"])
    spec = transformer_spec.TransformerSpec.from_config(layers, config["heads"], pre_norm=False, activation=common_spec.Activation.RELU)

    def linear(place, name):
        # CTranslate2 keeps a linear map as out x in.
        place.weight = numpy.ascontiguousarray(weights[f"{name}.weight"].T)
        place.bias = weights[f"{name}.bias"].reshape(-1)

    def norm(place, name):
        place.gamma, place.beta = weights[f"{name}.gamma"].reshape(-1), weights[f"{name}.beta"].reshape(-1)

    def own(layer, name):
        linear(layer.self_attention.linear[0], f"{name}.self_attention.qkv")
        linear(layer.self_attention.linear[1], f"{name}.self_attention.output")
        norm(layer.self_attention.layer_norm, f"{name}.self_attention_norm")
        linear(layer.ffn.linear_0, f"{name}.feed_forward.inner")
        linear(layer.ffn.linear_1, f"{name}.feed_forward.outer")
        norm(layer.ffn.layer_norm, f"{name}.feed_forward_norm")

    for depth, layer in enumerate(spec.encoder.layer):
        own(layer, f"encoder.{depth}")
    for depth, layer in enumerate(spec.decoder.layer):
        own(layer, f"decoder.{depth}")
        for place, part in zip(layer.attention.linear, ("query", "key_value", "output")):
            linear(place, f"decoder.{depth}.cross_attention.{part}")
        norm(layer.attention.layer_norm, f"decoder.{depth}.cross_attention_norm")
    table = weights["embedding.weight"]
    spec.encoder.embeddings[0].weight = table
    spec.decoder.embeddings.weight = table
    spec.decoder.projection.weight = table
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = True
        side.position_encodings.encodings = sinusoids(LONGEST, config["d_model"])
    vocabulary = [name(token) for token in range(len(table))]
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.layer_norm_epsilon = config["norm_epsilon"]
    spec.validate()
    spec.optimize()
    spec.save(into)


def sinusoids(length, width):
    angles = numpy.arange(length)[:, None] / 10000.0 ** (numpy.arange(0, width, 2) / width)
    return numpy.stack([numpy.sin(angles), numpy.cos(angles)], -1).reshape(length, width).astype(numpy.float32)


class Engine:
    def __init__(self, request):
        self.folder = tempfile.TemporaryDirectory()
        model = Path(self.folder.name) / "model"
        model.mkdir()
        convert(request["folder"], str(model))
        self.beam, self.alpha, self.longest = request["beam"], request["alpha"], request["longest"]
        self.batch, self.wait = request["batch"], request["wait_ms"] / 1000
        known = ctranslate2.get_supported_compute_types("cpu")
        self.seconds = {}
        for compute in [compute for compute in request["computes"] if compute in known]:
            for threads in sorted({1, request["threads"]}):
                translator = ctranslate2.Translator(str(model), device="cpu", compute_type=compute, inter_threads=1, intra_threads=threads)
                seconds = min(self.trial(translator, request["trial"]) for _ in range(3))
                way = f"{compute}, {threads} threads"
                if seconds < min(self.seconds.values(), default=float("inf")):
                    self.translator, self.way = translator, way
                self.seconds[way] = seconds

    def trial(self, translator, sources):
        begin = time.perf_counter()
        self.translate(sources, translator)
        return time.perf_counter() - begin

    def translate(self, sources, translator=None):
        found = (translator or self.translator).translate_batch([[name(token) for token in source] for source in sources], beam_size=self.beam,
                                                length_penalty=self.alpha, max_decoding_length=self.longest, max_batch_size=self.batch)
        return [[number(token) for token in result.hypotheses[0]] for result in found]


def application(engine):
    worker = ThreadPoolExecutor(1)
    waiting = asyncio.Queue()

    async def work():
        while True:
            batch = [await waiting.get()]
            end = time.monotonic() + engine.wait
            while len(batch) < engine.batch:
                try:
                    batch.append(await asyncio.wait_for(waiting.get(), max(0.0, end - time.monotonic())))
                except asyncio.TimeoutError:
                    break
            loop = asyncio.get_running_loop()
            outputs = await loop.run_in_executor(worker, engine.translate, [source for source, _ in batch])
            for (_, future), output in zip(batch, outputs):
                future.set_result(output)

    @asynccontextmanager
    async def lifespan(_):
        task = asyncio.create_task(work())
        yield
        task.cancel()

    app = FastAPI(lifespan=lifespan)

    @app.post("/translate")
    async def translate(request: Request):
        future = asyncio.get_running_loop().create_future()
        await waiting.put(((await request.json())["ids"], future))
        return {"ids": await future}

    return app


def start(engine):
    """Serves on a free port of the loopback, in a thread; gives the port."""
    # Named as TCP: only then does asyncio send small answers at once, instead of after 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    server = uvicorn.Server(uvicorn.Config(application(engine), log_level="error", access_log=False))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return listener.getsockname()[1]


ENGINE = {}


def answer(request):
    if request["op"] == "load":
        ENGINE["now"] = Engine(request)
        engine = ENGINE["now"]
        return {"port": start(engine), "way": engine.way, "seconds": engine.seconds}
    if request["op"] == "translate":
        begin = time.perf_counter()
        outputs = ENGINE["now"].translate(request["sources"])
        return {"seconds": time.perf_counter() - begin, "outputs": outputs}
    return {"bytes": peak_memory()}


serve(answer)
