"""Sessions: plans that run."""
from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _cleave
from ._errors import Cancelled, NotFound
from ._model import Device, Log, Model, Opened, Pairs, devices_options, load_graph, open_all, open_context, pairs, sizes
from ._plan import Document, Plan
from ._progress import Progress

Path = str | os.PathLike[str]
Arrays = dict[str, np.ndarray[Any, Any]]
_PRECISIONS = {None: 0, "f32": 1, "float32": 1, "bf16": 16, "bfloat16": 16}


def devices(list: str | Sequence[str] = "auto", *, threads: int = 0, npu_specs: Sequence[Path] = (),
            device_options: Sequence[str] | Mapping[str, Any] = (), plugins: Sequence[Path] = (),
            log: Log | None = None) -> tuple[Device, ...]:
    """Opens devices and describes them. "auto": every physical device of this machine."""
    options = devices_options(list, threads, npu_specs, device_options)
    opened = _cleave.Devices(open_context(log, plugins=plugins), options)
    return tuple(Device(**{key: info[key] for key in Device.__dataclass_fields__}) for info in opened.infos())


def plan(model: Any, devices: str | Sequence[str] = "cpu", *, profile: Path | None = None, strategy: str | None = None,
         objective: str | None = None, split: str | None = None, pins: Pairs | None = None, forces: Pairs | None = None,
         weights: Pairs | None = None, values: Pairs | None = None, shapes: Mapping[str, Sequence[int]] | None = None,
         dims: Mapping[str, int] | None = None, keep: Sequence[str] = (), params: Sequence[Path] = (), threads: int = 0,
         npu_specs: Sequence[Path] = (), device_options: Sequence[str] | Mapping[str, Any] = (), plugins: Sequence[Path] = (),
         capture: str | None = None, cache: Path | None = None, no_fallback: bool = False, log: Log | None = None) -> Plan:
    """Plans a model for devices: which node runs where, in which partitions, with which transfers.

    model: the path of an ONNX file or of IR JSON (with `params`, files of its weights), bytes of one, or an onnx.ModelProto.
    devices: names in order of priority, "npu,cpu" or a list of them; "auto": every physical device.
    profile: a file of measured costs; without one, prices are estimates.
    pins, forces: patterns of node names, or of operators, and the device that must run them: {"layer4.*": "cpu"}.
    shapes, dims: the shapes of inputs, and the sizes of symbolic dimensions, that the plan is for.
    keep: names of inner values that runs return as further outputs.
    threads: for the cpu device; 0: one per core. capture: "off", "on" or "auto". cache: a folder for executables; "": none.
    log: a function of (level, text), level 0 for errors to 3; by default the logger "cleave" of `logging`.

    Raises an `Error` with the library's text: NotSupported with every device's reason if no device can run some node."""
    opened = open_all(model, params, open_context(log, capture, cache, plugins),
                      devices_options(devices, threads, npu_specs, device_options, no_fallback))
    options = {"strategy": strategy, "objective": objective, "split": split, "profile": profile, "pins": pairs(pins),
               "forces": pairs(forces), "weights": pairs(weights), "values": pairs(values), "sizes": sizes(shapes, dims),
               "keeps": list(keep), "name_others": True}
    return Plan(opened, _cleave.Plan(opened.graph, opened.devices, options), tuple(keep), options)


def read_plan(path: Path, model: Any, devices: str | Sequence[str], *, profile: Path | None = None, threads: int = 0,
              npu_specs: Sequence[Path] = (), device_options: Sequence[str] | Mapping[str, Any] = (),
              params: Sequence[Path] = (), log: Log | None = None) -> Plan:
    """Reads a plan file for a model and devices; the file may have been edited."""
    opened = open_all(model, params, open_context(log), devices_options(devices, threads, npu_specs, device_options))
    return Plan(opened, _cleave.Plan(opened.graph, opened.devices, None, path, profile), ())


class Profile(Document):
    """Measured costs of devices. `complete`: everything was measured that was asked for."""

    def __init__(self, complete: bool, text: str, data: str) -> None:
        super().__init__(text, data)
        self.complete = complete


def profile(models: Any, devices: str | Sequence[str] = "cpu", path: Path | None = None, *, runs: int = 15, budget: float = 0,
            resume: bool = False, shapes: Mapping[str, Sequence[int]] | None = None, dims: Mapping[str, int] | None = None,
            threads: int = 0, npu_specs: Sequence[Path] = (), device_options: Sequence[str] | Mapping[str, Any] = (),
            plugins: Sequence[Path] = (), params: Sequence[Path] = (), progress: bool = True, log: Log | None = None) -> Profile:
    """Measures devices, and the nodes of one model or several on each of them, for the option `profile` of plans. Measure on an idle
    machine.

    path: the file to write; an existing one is extended. resume: do not measure again what the file has. budget: about how many seconds
    to measure; 0: without limit. After Ctrl-C, the file has what was measured until then."""
    context = open_context(log, plugins=plugins)
    opened = _cleave.Devices(context, devices_options(devices, threads, npu_specs, device_options))
    given = models if isinstance(models, (list, tuple)) else [models]
    graphs = [(load_graph(context, model, params)[0], {"sizes": sizes(shapes, dims)}) for model in given]
    made = _cleave.Profile(context, path if resume and path is not None and os.path.exists(path) else None)
    bar = Progress(progress)

    def tell(model: str, device: str, what: str, done: int, of: int) -> None:
        bar(f"{device}: {what}", done, of)

    complete = False
    try:
        complete = made.measure(opened, graphs, {"runs": runs, "continues": resume, "budget_seconds": budget}, tell)
    finally:
        bar.close()
        if path is not None:
            made.update(path)
    return Profile(complete, made.text(0), made.text(1))


def _open_compiled(folder: Path, log: Log | None, capture: str | None, cache: Path | None) -> tuple[Plan, _cleave.Compiled]:
    context = open_context(log, capture, cache)
    compiled = _cleave.Compiled(context, folder)
    model, file, names, specs, device_options, threads = compiled.contents()
    opened = open_all(model, (), context, devices_options(names or "cpu", threads, specs, device_options))
    return Plan(opened, _cleave.Plan(opened.graph, opened.devices, None, file), ()), compiled


class Verification(Document):
    """The result of `Session.verify()`. `equal`: all partitions agree with the reference evaluator within their tolerance."""

    def __init__(self, equal: bool, text: str, data: str) -> None:
        super().__init__(text, data)
        self.equal = equal


class Bench(Document):
    """The result of `Session.bench()`. Times are in seconds."""

    def __init__(self, samples_ms: list[float], predicted_ms: float, first_run_ms: float, text: str, data: str) -> None:
        super().__init__(text, data)
        self.samples = [ms * 1e-3 for ms in samples_ms]
        self.predicted = predicted_ms * 1e-3
        self.first_run = first_run_ms * 1e-3

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


class Session:
    """A model that is planned, compiled and ready to run.

    model: as for `cleave.plan()`, whose options this takes too; or a `Plan`; or a folder that was compiled ahead of time.
    in_flight: how many runs may proceed at a time, up to 16; more wait.
    deterministic: exclude faster algorithms that round differently. tune: choose algorithms by measuring.
    device_time_limit: a device that does not answer within these seconds is removed. no_fallback: if a device fails, raise its
    error instead of moving its partitions to other devices.
    precision: "bf16" lets capable devices multiply f32 values in bf16.

    Threads may call `run()` of one session at the same time. The GIL is released while the library works, and Ctrl-C ends a run.
    A session can be used in a `with` statement, which closes it."""

    def __init__(self, model: Any, devices: str | Sequence[str] | None = None, *, in_flight: int = 1, deterministic: bool = False,
                 tune: bool = False, device_time_limit: float = 0, no_fallback: bool = False, precision: str | None = None,
                 bucket_multiple: int = 0, prepared_shapes: int = 0, **options: Any) -> None:
        if precision not in _PRECISIONS:
            raise ValueError(f"precision is {precision!r}: expected 'f32', 'bf16' or None")
        compiled: _cleave.Compiled | None = None
        if isinstance(model, Plan):
            if options or devices is not None:
                given = ["devices"] * (devices is not None) + sorted(options)
                raise TypeError(f"a session of a plan takes no options of plans: {', '.join(given)}")
            self.plan = model
        elif isinstance(model, (str, os.PathLike)) and os.path.isdir(model):
            self.plan, compiled = _open_compiled(model, options.get("log"), options.get("capture"), options.get("cache"))
        else:
            self.plan = plan(model, "cpu" if devices is None else devices, no_fallback=no_fallback, **options)
        given_options = {"in_flight": in_flight, "deterministic": deterministic, "tune": tune, "no_fallback": no_fallback,
                         "device_time_limit_s": device_time_limit, "precision": _PRECISIONS[precision],
                         "bucket_multiple": bucket_multiple, "prepared_shapes": prepared_shapes}
        self._session: _cleave.Session | None = _cleave.Session(self.plan._plan, self.plan._keeps,
                                                               None if compiled is not None else given_options, compiled)
        self._run = self._session.run
        self._output_names = self._session.names()[1]

    @property
    def model(self) -> Model:
        """The names, dtypes and shapes of inputs and outputs."""
        return self.plan.model

    def _wanted(self, outputs: Sequence[str] | None) -> tuple[int, ...] | None:
        if outputs is None:
            return None
        try:
            return tuple(self._output_names.index(name) for name in outputs)
        except ValueError:
            unknown = next(name for name in outputs if name not in self._output_names)
            raise NotFound(f"the model has no output '{unknown}'; it has {', '.join(self._output_names)}") from None

    def run(self, inputs: Mapping[str, Any] | Sequence[Any], outputs: Sequence[str] | None = None, *,
            timeout: float | None = None) -> Arrays:
        """Runs once and returns the outputs by name.

        inputs: by name, or in the order of the model's inputs: numpy arrays, or what speaks DLPack or the buffer protocol, or lists
        and numbers, which get the dtype that the model wants. Contiguous memory is not copied. Inputs with a default may be left out.
        outputs: names of those to return; None: all. timeout: seconds after which the run is stopped and TimedOut raised.

        Raises InvalidArgument with the input, its type and the expected type; DeviceError; TimedOut."""
        if type(inputs) is not dict and isinstance(inputs, Mapping):
            inputs = dict(inputs)
        result: Arrays = self._run(inputs, None if outputs is None else self._wanted(outputs), timeout, False)
        return result

    async def run_async(self, inputs: Mapping[str, Any] | Sequence[Any], outputs: Sequence[str] | None = None, *,
                        timeout: float | None = None) -> Arrays:
        """Like `run()`, without blocking the event loop. Up to `in_flight` runs proceed at a time. If the task is cancelled, so is the
        run. The arrays must not be written to until the run ends."""
        loop = asyncio.get_running_loop()
        if any(value.number == 8 for value in self.model.outputs):  # strings are read before the next run may begin
            return await loop.run_in_executor(None, lambda: self.run(inputs, outputs, timeout=timeout))
        ended: asyncio.Future[None] = loop.create_future()

        def tell() -> None:
            if not ended.done():
                ended.set_result(None)

        def done() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(tell)

        if isinstance(inputs, Mapping):
            inputs = dict(inputs)
        run = self._open().start(inputs, self._wanted(outputs), timeout, done)
        try:
            await ended
        except asyncio.CancelledError:
            run.cancel()
            try:
                await loop.run_in_executor(None, run.result)
            except Cancelled:
                pass
            raise
        result: Arrays = run.result()
        return result

    def verify(self, inputs: Mapping[str, Any] | Sequence[Any]) -> Verification:
        """Compares what each partition computes with the reference evaluator, which takes much longer than a run. Must not overlap with
        other calls of this session."""
        return Verification(*self._open().verify(dict(inputs) if isinstance(inputs, Mapping) else inputs))

    def bench(self, inputs: Mapping[str, Any] | Sequence[Any], runs: int = 50, *, duration: float = 0, warmup: int = 5,
              steps: bool = False, operators: bool = False, progress: bool = True) -> Bench:
        """Measures runs with these inputs, as `cleave bench` does: the times of all runs and, if asked, of every step, and of every operator
        with the least time that the hardware allows. duration: measure for these seconds instead of a number of runs.

        Must not overlap with other calls of this session. Ctrl-C ends it."""
        bar = Progress(progress)
        options = {"runs": 0 if duration else runs, "duration_s": duration, "warmup": warmup, "steps": steps, "operators": operators}
        try:
            return Bench(*self._open().bench(dict(inputs) if isinstance(inputs, Mapping) else inputs, options, bar))
        finally:
            bar.close()

    def compile(self, directory: Path) -> None:
        """Writes a directory with everything that the plan needs to run, for `cleave.Session(directory)` here or on a machine with the same
        devices: nothing is planned or compiled there again."""
        self._open().compile(directory, self.plan._opened.devices_options)

    @contextlib.contextmanager
    def trace(self, path: Path, operators_of: Mapping[str, Any] | Sequence[Any] | None = None) -> Iterator[None]:
        """Records the runs inside a `with` statement, and writes a timeline of all devices for https://ui.perfetto.dev.

        operators_of: inputs of one more run, which measures the operators inside partitions. Other threads must not run the session
        while the statement begins or ends."""
        session = self._open()
        session.trace_start()
        yield
        session.trace_write(path, dict(operators_of) if isinstance(operators_of, Mapping) else operators_of)

    def _open(self) -> _cleave.Session:
        if self._session is None:
            raise ValueError("the session is closed")
        return self._session

    def close(self) -> None:
        """Releases the session's memory, when the runs in progress have ended. Does nothing if it is closed."""
        self._session = None
        self._run = _closed

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cleave.Session of {self.plan}>"


def _closed(*arguments: Any) -> Any:
    raise ValueError("the session is closed")
