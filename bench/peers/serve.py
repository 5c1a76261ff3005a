"""The engine of LibreTranslate behind a minimal web server: CTranslate2 with dynamic batching in a FastAPI app.

{"op": "load", "folder": F, "computes": ["float32", "int8", …], "trial": [[id, …], …], "threads": n, "beam": n, "alpha": a, "longest": tokens of an output
at most, "batch": sentences, "wait_ms": w} converts a model that heedful trained, takes the type and number of threads (one or n) that translate the trial fastest,
starts the server and answers {"port", "way", "seconds": {way: seconds of the trial}}; {"op": "translate", "sources": [[id, …], …]} translates
without the server and answers {"seconds", "outputs"}; {"op": "memory"} answers {"bytes"}, the peak of this process.

POST /translate {"ids": [id, …]} answers {"ids": [id, …]}: tokens in and out, so the peer is spared the tokenizing. Requests that come within `wait_ms`
of the first, or while a batch is at work, make a batch together.
"""

import asyncio
import socket
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import ctranslate2
import uvicorn
from fastapi import FastAPI, Request

from ctranslate2_model import convert, name, number
from exchange import peak_memory, serve


class Engine:
    def __init__(self, request):
        self.folder = tempfile.TemporaryDirectory()
        model = Path(self.folder.name) / "model"
        model.mkdir()
        convert(request["folder"], model)
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
