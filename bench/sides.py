"""Runs Cleave, ONNX Runtime and OpenVINO, the sides that `bench.py` compares, each in a process of its own.

Such a process, a worker, loads a model, runs it once and writes "ready". Then it reads commands, each a line of words separated
by tabs, and answers each with a line.
    burst SECONDS       runs the model as often as fits in SECONDS, after one run that is not counted; answers the median in ms
    write FILE.npy...   runs the model once, writes the outputs to the files, and answers "done"
After a run, the threads of a worker look for more work for some ms. `Worker.ask` returns only when all of them sleep, so that
they do not slow down the next worker.

Cleave runs through the public interface of its shared library, the peers through their Python packages. All inputs are in memory.
"""
import contextlib
import ctypes
import glob
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

STILL_SECONDS_MOST = 0.5  # how long to wait at most until the threads of a worker sleep


# ---- In a worker's process ----


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 1020)]


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * 8), ("data", ctypes.c_void_p)]

    def to_array(self):
        import onnx
        dims, dtype = self.dims[:self.rank], onnx.helper.tensor_dtype_to_np_dtype(self.dtype)
        return np.frombuffer(ctypes.string_at(self.data, int(np.prod(dims)) * dtype.itemsize), dtype).reshape(dims)


class DevicesOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("list", ctypes.c_char_p), ("npu_spec_count", ctypes.c_uint32),
                ("npu_specs", ctypes.c_void_p), ("device_option_count", ctypes.c_uint32), ("device_options", ctypes.c_void_p),
                ("thread_count", ctypes.c_uint32)]


def tensor_of(array):
    """Returns a Tensor with the type and the memory of `array`, which must outlive it. Cleave numbers dtypes as ONNX does."""
    import onnx
    dims = (ctypes.c_int64 * 8)(*array.shape)
    return Tensor(onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.ndim, dims, array.ctypes.data)


def open_cleave(path, inputs, threads, library, devices):
    """Opens a model with Cleave's C API. include/cleave documents its functions and structs."""
    cleave = ctypes.CDLL(library)
    cleave.clv_graph_input_name.restype = ctypes.c_char_p
    error = Error()

    def call(name, *arguments):
        if getattr(cleave, name)(*arguments, ctypes.byref(error)) != 0:
            raise RuntimeError(f"{name}: {error.message.decode(errors='replace')}")

    def make(name, *arguments):
        made = ctypes.c_void_p()
        call(name, *arguments, ctypes.byref(made))
        return made

    options = DevicesOptions(ctypes.sizeof(DevicesOptions), devices.encode(), thread_count=threads)
    context = make("clv_context_create", None)
    opened = make("clv_devices_open", context, ctypes.byref(options))
    graph = make("clv_graph_load", context, path.encode())
    plan = make("clv_plan_make", graph, opened, None)
    session = make("clv_session_create", plan, None)
    input_count, output_count = cleave.clv_graph_input_count(graph), cleave.clv_graph_output_count(graph)
    names = [cleave.clv_graph_input_name(graph, index).decode() for index in range(input_count)]
    arrays = [np.ascontiguousarray(inputs[name]) if name in inputs else None for name in names]  # None: the model's default value
    given = (Tensor * input_count)(*(Tensor() if array is None else tensor_of(array) for array in arrays))

    def run(_keep=arrays): # keeps the memory that `given` points to
        outputs = (Tensor * output_count)()  # no data: the session uses its own memory
        call("clv_session_run", session, given, input_count, outputs, output_count)
        return outputs

    return run, lambda outputs: [output.to_array() for output in outputs]


def open_onnxruntime(path, inputs, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs), list


def open_openvino(path, inputs, threads):
    import openvino
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
    return lambda: request.infer(inputs, share_inputs=True), lambda outputs: list(outputs.to_tuple())


PEERS = {"onnxruntime": open_onnxruntime, "openvino": open_openvino}  # (model, inputs, threads) -> run(), which returns arrays
SIDES = {"cleave": open_cleave, **PEERS}


def peak_bytes():
    """Returns the peak memory of this process. getrusage() is not used, because it includes the peak of the process that forked
    it."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def tell_load(peer, model_path, inputs_path, threads):
    """Prints, as JSON, how long a peer takes to load the model and for the first run, and its peak memory."""
    __import__(peer)
    imports = peak_bytes()
    inputs = dict(np.load(inputs_path))
    start = time.perf_counter()
    run, _ = PEERS[peer](model_path, inputs, int(threads))
    loaded = time.perf_counter()
    run()
    first = time.perf_counter()
    for _ in range(2):
        run()
    print(json.dumps({"load_ms": (loaded - start) * 1e3, "first_run_ms": (first - loaded) * 1e3, "peak_rss_bytes": peak_bytes() - imports}))


def burst_ms(run, seconds):
    run()  # not counted: the other sides have evicted its data from the caches
    times, begin = [], time.perf_counter()
    while not times or time.perf_counter() - begin < seconds:
        before = time.perf_counter()
        run()
        times.append((time.perf_counter() - before) * 1e3)
    return statistics.median(times)


def be_worker(side, model_path, inputs_path, threads, *more):
    run, arrays_of = SIDES[side](model_path, dict(np.load(inputs_path)), int(threads), *more)
    run()
    print("ready", flush=True)
    for line in sys.stdin:
        command, *words = line.rstrip("\n").split("\t")
        if command == "burst":
            print(burst_ms(run, float(words[0])), flush=True)
        elif command == "write":
            for path, array in zip(words, arrays_of(run()), strict=True):
                np.save(path, array)
            print("done", flush=True)


# ---- In the process of bench.py ----


def run_json(command, threads):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment(threads))
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "no message").splitlines()[-1])
    return json.loads(done.stdout)


def environment(threads):
    return dict(os.environ, OMP_NUM_THREADS=str(threads))


def load_command(peer, model_path, inputs_path, threads):
    return [sys.executable, os.path.abspath(__file__), "load", peer, model_path, inputs_path, threads]


class Worker:
    """A worker process, started for a side. `more`: additional arguments of the side's function that opens a model."""

    def __init__(self, side, model_path, inputs_path, threads, *more):
        command = [sys.executable, os.path.abspath(__file__), "worker", side, model_path, inputs_path, str(threads), *more]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment(threads))
        self.answer()

    def ask(self, *words):
        with contextlib.suppress(BrokenPipeError):  # the process has ended: there will be no answer
            self.process.stdin.write("\t".join(map(str, words)) + "\n")
            self.process.stdin.flush()
        return self.answer()

    def answer(self):
        answer = self.process.stdout.readline()
        if not answer:
            error = self.process.stderr.read().strip()  # read() returns when the process ends
            raise RuntimeError(error.splitlines()[-1] if error else f"the process ended with exit status {self.process.wait()}")
        self.wait_until_still()
        return answer.strip()

    def is_running(self):
        """Returns whether a thread of the worker is running or ready to run."""
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/stat"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(path, encoding="utf-8") as file:  # the thread has ended
                if file.read().rpartition(") ")[2].startswith("R"):
                    return True
        return False

    def wait_until_still(self):
        end = time.monotonic() + STILL_SECONDS_MOST
        while self.is_running() and time.monotonic() < end:
            time.sleep(0.001)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


if __name__ == "__main__":
    {"load": tell_load, "worker": be_worker}[sys.argv[1]](*sys.argv[2:])
