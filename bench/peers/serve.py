"""The engine of LibreTranslate behind a minimal web server: CTranslate2 with dynamic batching in a FastAPI app.

{"op": "load", "folder": F, "computes": ["float32", "int8", …], "threads": n, "beam": n, "alpha": a, "longest": maximum
  output tokens, "wait_ms": w} converts a heedful model and answers {"computes"}, those of the compute types that this
  CPU supports;
{"op": "trial", "way": way, "sources": [[id, …], …], "batch": n} translates them in batches of n sentences and answers
  {"seconds"};
{"op": "start", "way": way, "batch": n} starts a server with this configuration and batches of at most n sentences,
  stops the previous one, and answers {"port"};
{"op": "translate", "sources": [[id, …], …]} translates without the server and answers {"outputs"};
{"op": "memory"} answers {"bytes"}, the peak of this process.

A "way" is a configuration as in translate.py: a compute type and a split of the threads. The bench chooses the fastest
for each number of clients. A batch is divided evenly among the workers. Scores are returned, because heedful computes
them too.

POST /translate {"ids": [id, …]} answers {"ids": [id, …]}: tokens in and out, so the peer does not tokenize. Requests
that arrive within `wait_ms` of the first, or while a batch is computed, form a batch.
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

from ctranslate2_model import convert, name, number, opened
from exchange import peak_memory, serve


class Engine:
    def __init__(self, request):
        self.temp = tempfile.TemporaryDirectory()
        self.model = Path(self.temp.name) / "model"
        self.model.mkdir()
        convert(request["folder"], self.model)
        self.threads, self.wait = request["threads"], request["wait_ms"] / 1000
        self.options = {"beam_size": request["beam"], "length_penalty": request["alpha"], "max_decoding_length": request["longest"], "return_scores": True}
        known = ctranslate2.get_supported_compute_types("cpu")
        self.computes = [compute for compute in request["computes"] if compute in known]
        self.way = None

    def configure(self, way, batch):
        self.batch = batch
        if way != self.way:
            self.translator, self.workers = opened(self.model, way, self.threads)
            self.way = way

    def trial(self, sources):
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            for start in range(0, len(sources), self.batch):
                self.translate(sources[start:start + self.batch])
            times.append(time.perf_counter() - begin)
        return min(times)

    def translate(self, sources):
        batch = [[name(token) for token in source] for source in sources]
        found = self.translator.translate_batch(batch, max_batch_size=min(self.batch, -(-len(batch) // self.workers)), **self.options)
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
    """Serves on a free loopback port, in a thread; returns the port and the server."""
    # With an explicit IPPROTO_TCP asyncio sets TCP_NODELAY; otherwise small answers are delayed by 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    server = uvicorn.Server(uvicorn.Config(application(engine), log_level="error", access_log=False))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return listener.getsockname()[1], server


STATE = {}


def answer(request):
    if request["op"] == "load":
        STATE["engine"] = Engine(request)
        return {"computes": STATE["engine"].computes}
    if request["op"] == "memory":
        return {"bytes": peak_memory()}
    engine = STATE["engine"]
    if request["op"] == "trial":
        engine.configure(request["way"], request["batch"])
        return {"seconds": engine.trial(request["sources"])}
    if request["op"] == "start":
        if "server" in STATE:
            STATE.pop("server").should_exit = True
        engine.configure(request["way"], request["batch"])
        port, STATE["server"] = start(engine)
        return {"port": port}
    return {"outputs": engine.translate(request["sources"])}


serve(answer)
