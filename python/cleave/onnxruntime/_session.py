"""InferenceSession and IOBinding on a session of Cleave."""
from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import numpy as np

from .. import _cleave
from .._errors import Cancelled, Error, InvalidModel
from .._model import Value
from .._session import Session as _CleaveSession
from . import _providers
from ._errors import Fail, InvalidArgument, InvalidProtobuf, NotImplemented, translated
from ._metadata import Damaged, ModelMetadata, read_metadata
from ._options import RunOptions, SessionOptions, refuse
from ._values import Array, OrtValue, array_at, number_of, require_cpu, type_text

_LETTERS = "VIWEF"
_default_severity = 2
_threads = ThreadPoolExecutor(thread_name_prefix="cleave.onnxruntime")


def set_default_logger_severity(severity: int) -> None:
    """0: verbose, 1: information, 2: warnings, 3: errors, 4: nothing but fatal errors. The default is 2."""
    global _default_severity
    if not 0 <= severity <= 4:
        raise RuntimeError(f"Invalid logging severity {severity}")
    _default_severity = severity


class NodeArg:
    """The name, type and shape of an input or an output. A size that is not known is the name of a symbolic dimension, or None."""

    __slots__ = ("_name", "_type", "_shape")

    def __init__(self, name: str, type: str, shape: list[int | str | None]) -> None:
        self._name, self._type, self._shape = name, type, shape

    @property
    def name(self) -> str:
        return self._name

    @property
    def type(self) -> str:
        return self._type

    @property
    def shape(self) -> list[int | str | None]:
        return self._shape

    def __repr__(self) -> str:
        return f"NodeArg(name={self._name!r}, type={self._type!r}, shape={self._shape!r})"


def _node_arg(value: Value, dims: Mapping[str, int]) -> NodeArg:
    shape = [dims.get(size, size) if isinstance(size, str) else size for size in value.shape or ()]
    return NodeArg(value.name, type_text(value.number), shape)


class InferenceSession:
    """A session of Cleave with the methods of ONNX Runtime's.

    providers: "CPUExecutionProvider" is the device cpu. ("CleaveExecutionProvider", {"devices": "npu,cpu", ...}) takes the devices
    and options of `cleave.Session`, as texts. Other providers of ONNX Runtime are reported and ignored, as by an ONNX Runtime
    without them. Threads may call `run()` at the same time; the option "in_flight" is how many runs proceed at a time."""

    def __init__(self, path_or_bytes: str | bytes | os.PathLike[str], sess_options: SessionOptions | None = None,
                 providers: _providers.Providers | None = None,
                 provider_options: Sequence[Mapping[Any, Any]] | None = None, **kwargs: Any) -> None:
        if not isinstance(path_or_bytes, (str, bytes, os.PathLike)):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        self._model = path_or_bytes if isinstance(path_or_bytes, bytes) else os.fspath(path_or_bytes)
        self._sess_options = sess_options if sess_options is not None else SessionOptions()
        self._enable_fallback = int(kwargs.get("enable_fallback", 1)) == 1
        try:
            choice = _providers.choose(providers, provider_options, self._sess_options)
        except (ValueError, RuntimeError) as error:
            if not self._enable_fallback:
                raise
            print("*************** EP Error ***************")
            print(f"EP Error {error} when using {providers}")
            print(f"Falling back to ['{_providers.CPU}'] and retrying.")
            print("****************************************")
            choice = _providers.choose([_providers.CPU], None, self._sess_options)
            self._enable_fallback = False
        self._open(choice)

    # ---- Opening ----

    def _log(self, level: int, text: str) -> None:
        severity = self._sess_options.log_severity_level
        if 3 - level >= (_default_severity if severity < 0 else severity):
            print(f"[{_LETTERS[max(3 - level, 0)]}:cleave] {text}", file=sys.stderr)

    def _open(self, choice: _providers.Choice) -> None:
        options = self._sess_options
        if options.optimized_model_filepath:
            refuse("optimised models in ONNX files", "cleave compile stores what was compiled, or use the cache")
        if options._entries.get("session.load_model_format", "").upper() == "ORT" or (
                isinstance(self._model, str) and self._model.endswith(".ort")):
            refuse("the ORT format", "use the ONNX file")
        metadata: ModelMetadata | Damaged | OSError
        try:
            metadata = read_metadata(self._model)
        except (Damaged, OSError) as error:
            metadata = error
        try:
            self._sess = _CleaveSession(self._model, log=self._log, **choice.session)
        except InvalidModel as error:
            if isinstance(metadata, Damaged):
                raise InvalidProtobuf.of(str(error)) from error
            raise translated(error) from error
        except Error as error:
            raise translated(error) from error
        self._meta = metadata if isinstance(metadata, ModelMetadata) else ModelMetadata()
        self._run = self._sess._run
        self._providers, self._provider_options = choice.names, choice.options
        model = self._sess.model
        self._values = {value.name: value for value in model.inputs}
        self._all_inputs = {value.name: _node_arg(value, options._dims) for value in model.inputs}
        self._inputs = [self._all_inputs[value.name] for value in model.inputs if not value.has_default]
        self._initializers = [self._all_inputs[value.name] for value in model.inputs if value.has_default]
        self._outputs = [_node_arg(value, options._dims) for value in model.outputs]
        self._output_numbers = [value.number for value in model.outputs]
        self._output_indices = {value.name: i for i, value in enumerate(model.outputs)}
        self._chosen: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._profile = ""
        self._profile_start_ns = 0
        session = self._sess._session
        if options.enable_profiling and session is not None:
            self._profile = f"{options.profile_file_prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
            self._profile_start_ns = time.monotonic_ns()
            session.trace_start()

    def set_providers(self, providers: _providers.Providers | None = None,
                      provider_options: Sequence[Mapping[Any, Any]] | None = None) -> None:
        """Opens the model again with other providers."""
        self._open(_providers.choose(providers, provider_options, self._sess_options))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Cleave's InferenceSession has no '{name}': docs/from-onnxruntime.md lists what it has")

    # ---- Descriptions ----

    def get_session_options(self) -> SessionOptions:
        return self._sess_options

    def get_inputs(self) -> list[NodeArg]:
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        return self._initializers

    def get_modelmeta(self) -> ModelMetadata:
        return self._meta

    def get_providers(self) -> list[str]:
        return self._providers

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return self._provider_options

    def disable_fallback(self) -> None:
        self._enable_fallback = False

    def enable_fallback(self) -> None:
        self._enable_fallback = True

    # ---- Runs ----

    def _wanted(self, output_names: Sequence[str]) -> tuple[int, ...]:
        """Returns the indices of outputs. Raises InvalidArgument for unknown names."""
        if isinstance(output_names, str):
            raise TypeError(f"run(): output_names is a str, {output_names!r}: expected a sequence of names")
        names = tuple(output_names)
        found = self._chosen.get(names)
        if found is None:
            for name in names:
                if name not in self._output_indices:
                    raise InvalidArgument.of(f"Invalid output name:{name}")
            found = tuple(self._output_indices[name] for name in names)
            if len(self._chosen) < 64:
                self._chosen[names] = found
        return found

    def _compute(self, feed: dict[str, Any], wanted: tuple[int, ...] | None, options: RunOptions | None) -> list[Array]:
        if options is not None and not isinstance(options, RunOptions):
            raise TypeError(f"run(): run_options is a {type(options).__name__}: expected RunOptions")
        unique = wanted
        if wanted is not None and len(set(wanted)) < len(wanted):
            unique = tuple(dict.fromkeys(wanted))
        try:
            if options is None:
                arrays: list[Array] = self._run(feed, unique, None, True)
            else:
                arrays = self._terminable(feed, unique, options)
        except (Error, TypeError, ValueError) as error:
            self._fail(feed, error)
        if unique is wanted or unique is None or wanted is None:
            return arrays
        return [arrays[unique.index(i)] for i in wanted]

    def _terminable(self, feed: dict[str, Any], wanted: tuple[int, ...] | None, options: RunOptions) -> list[Array]:
        """A run that `terminate` of its options ends."""
        if options.terminate:
            raise Cancelled("Exiting due to terminate flag being set to true.")
        if 8 in self._output_numbers or self._sess._session is None:  # strings are read before the next run may begin
            result: list[Array] = self._run(feed, wanted, None, True)
            return result
        ended = threading.Event()
        run = self._sess._session.start(feed, wanted, None, ended.set)
        with options._lock:
            options._runs.append(run)
            if options._terminate:
                run.cancel()
        try:
            ended.wait()
        except BaseException:  # Ctrl-C
            run.cancel()
            ended.wait()
            raise
        finally:
            with options._lock:
                options._runs.remove(run)
        names = self._sess._output_names
        arrays = run.result()
        return list(arrays.values()) if wanted is None else [arrays[names[i]] for i in wanted]

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None) -> Any:
        """Runs once and returns the outputs in the order of `output_names`; None or none: all of the model's outputs.

        input_feed: by name, numpy arrays, OrtValues, or lists. Contiguous arrays are not copied.
        Raises ValueError for a missing input, InvalidArgument for an unknown name, a wrong type or shape, RuntimeError for an
        object that is not a tensor, Fail if `terminate` of the options ended it."""
        feed = input_feed
        for value in feed.values():
            if type(value) is OrtValue:
                feed = {name: value._array if type(value) is OrtValue else value for name, value in feed.items()}
                break
        if run_options is None and not output_names and type(feed) is dict:
            try:
                return self._run(feed, None, None, True)
            except (Error, TypeError, ValueError) as error:
                self._fail(feed, error)
        return self._compute(feed if type(feed) is dict else dict(feed), self._wanted(output_names) if output_names else None,
                             run_options)

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        """Like `run()`, with OrtValues."""
        feed = {name: value._get_c_value()._array for name, value in input_dict_ort_values.items()}
        wanted = self._wanted(output_names) if output_names else tuple(range(len(self._outputs)))
        arrays = self._compute(feed, wanted, run_options)
        return [OrtValue(array, self._output_numbers[i]) for array, i in zip(arrays, wanted)]

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
                  callback: Callable[[Any, Any, str], object], user_data: Any = None, run_options: RunOptions | None = None) -> None:
        """Returns at once. callback(results, user_data, error) is called in another thread; error is "" if there is none."""
        def work() -> None:
            try:
                results, message = self.run(output_names, input_feed, run_options), ""
            except Exception as error:
                results, message = [], str(error)
            callback(results, user_data, message)

        self._require(input_feed)
        _threads.submit(work)

    def _require(self, feed: Mapping[str, Any]) -> None:
        missing = [value.name for value in self._inputs if value.name not in feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")

    def _fail(self, feed: Mapping[str, Any], error: Exception) -> NoReturn:
        """Raises what ONNX Runtime raises for this input, or the error itself as one of its exceptions."""
        self._require(feed)
        for name, value in feed.items():
            if name not in self._values:
                raise InvalidArgument.of(f"Invalid input name: {name}") from error
            expected = self._values[name]
            if value is None and not expected.has_default:
                raise Fail.of(f"Missing Input: {name}") from error
            if not isinstance(value, (np.ndarray, list, tuple, str, bytes, int, float)) and not hasattr(value, "__array__"):
                raise RuntimeError(f"Unable to handle object of type {type(value)} for input '{name}'") from error
            array = value if isinstance(value, np.ndarray) else None
            if array is None:
                continue
            number = number_of(array.dtype)
            if number != expected.number:
                raise InvalidArgument.of(f"Unexpected input data type for '{name}'. Actual: ({type_text(number)}) , expected: "
                                         f"({type_text(expected.number)})") from error
            if expected.shape is None:
                continue
            shape = self._all_inputs[name].shape
            if len(shape) != array.ndim:
                raise InvalidArgument.of(f"Invalid rank for input: {name} Got: {array.ndim} Expected: {len(shape)} Please fix either "
                                         "the inputs/outputs or the model.") from error
            wrong = [f"\n index: {i} Got: {array.shape[i]} Expected: {size}" for i, size in enumerate(shape)
                     if isinstance(size, int) and size != array.shape[i]]
            if wrong:
                raise InvalidArgument.of(f"Got invalid dimensions for input: {name} for the following indices{''.join(wrong)}\n "
                                         "Please fix either the inputs/outputs or the model.") from error
        if isinstance(error, Error):
            raise translated(error) from error
        raise RuntimeError(str(error)) from error

    # ---- Bindings ----

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs with bound inputs and writes the bound outputs."""
        if iobinding._session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        try:
            iobinding._run(run_options)
        except (ValueError, Fail, InvalidArgument, NotImplemented) as error:
            raise RuntimeError(f"Error in execution: {error}") from error

    # ---- Profiling ----

    def get_profiling_start_time_ns(self) -> int:
        """0 without `enable_profiling`."""
        return self._profile_start_ns

    def end_profiling(self) -> str:
        """Writes the timeline of the runs, for Perfetto, and returns its path. Returns "" without `enable_profiling`, or if
        profiling has ended. No run may be in progress."""
        path, self._profile = self._profile, ""
        session = self._sess._session
        if path and session is not None:
            session.trace_write(path, None)
        return path


class IOBinding:
    """Inputs and outputs that runs read and write. Inputs are read from the caller's memory, which is not copied."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Array] = {}
        self._targets: dict[str, OrtValue | None] = {}  # None: memory is made by the run
        self._results: list[OrtValue] = []

    def _known_input(self, name: str) -> None:
        if name not in self._session._values:
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        self._known_input(name)
        if not isinstance(arr_on_cpu, np.ndarray):
            raise RuntimeError("Unable to create OrtValue from the given python object")
        self._inputs[name] = arr_on_cpu

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        """Binds memory at an address, which must stay valid until the input is bound again."""
        require_cpu(device_type)
        self._known_input(name)
        self._inputs[name] = array_at(buffer_ptr, number_of(element_type), shape)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._known_input(name)
        self._inputs[name] = ortvalue._get_c_value()._array

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """With an address, the result is written there; else each run makes new memory."""
        require_cpu(device_type)
        if buffer_ptr is None:
            self._targets[name] = None
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        number = number_of(element_type)
        self._targets[name] = OrtValue(array_at(buffer_ptr, number, shape), number)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._targets[name] = ortvalue

    def _run(self, options: RunOptions | None) -> None:
        session = self._session
        if not self._targets:
            raise ValueError("At least one output should be requested.")
        wanted = session._wanted(tuple(self._targets))
        arrays = session._compute(self._inputs, wanted, options)
        results = []
        for (name, target), array, index in zip(self._targets.items(), arrays, wanted):
            number = session._output_numbers[index]
            if target is None:
                results.append(OrtValue(array, number))
                continue
            if target._number != number or target._array.shape != array.shape:
                raise InvalidArgument.of(f"The output OrtValue provided for output '{name}' has {target.data_type()} of shape "
                                         f"{target.shape()}, but the result has {type_text(number)} of shape {list(array.shape)}")
            np.copyto(target._array, array)
            results.append(target)
        self._results = results

    def synchronize_inputs(self) -> None:
        """Does nothing: runs end before they return."""

    def synchronize_outputs(self) -> None:
        """Does nothing: runs end before they return."""

    def get_outputs(self) -> list[OrtValue]:
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[Array]:
        return [value._array for value in self._results]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._targets.clear()
        self._results = []
