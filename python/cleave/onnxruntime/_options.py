"""SessionOptions, RunOptions and their enumerations.

Options that map to one of Cleave's are used; those that only steer how ONNX Runtime computes the same results are kept and ignored;
those that would change results, and that Cleave does not have, raise NotImplemented when they are set."""
from __future__ import annotations

import enum
import threading
from typing import Any, Generic, NoReturn, Protocol, TypeVar, overload

from ._errors import NotImplemented
from ._values import OrtValue

T = TypeVar("T")


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtAllocatorType(enum.IntEnum):
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    DEFAULT = 0


def refuse(what: str, instead: str) -> NoReturn:
    raise NotImplemented.of(f"Cleave does not have {what}: {instead}")


class _Field(Generic[T]):
    """An attribute of one type. Like ONNX Runtime, it rejects values of other types with a TypeError."""

    def __init__(self, default: T) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> _Field[T]: ...
    @overload
    def __get__(self, instance: _Options, owner: type) -> T: ...
    def __get__(self, instance: _Options | None, owner: type) -> _Field[T] | T:
        if instance is None:
            return self
        value: T = instance._values.get(self._name, self._default)
        return value

    def __set__(self, instance: _Options, value: T) -> None:
        wanted: type[Any] = type(self._default)
        if wanted is int and hasattr(value, "__index__"):
            instance._values[self._name] = value.__index__()
        elif isinstance(value, wanted):
            instance._values[self._name] = value
        else:
            raise TypeError(f"{type(instance).__name__}.{self._name}: expected {wanted.__name__}, not {type(value).__name__}")


class _Options:
    __slots__ = ("_values", "_entries")

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._entries: dict[str, str] = {}

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"{type(self).__name__} does not have configuration with key: {key}")
        return self._entries[key]

    def __repr__(self) -> str:
        given = ", ".join(f"{key}={value!r}" for key, value in (self._values | self._entries).items())
        return f"<{type(self).__name__} {given or 'of defaults'}>"


class SessionOptions(_Options):
    """The options of a session. `intra_op_num_threads`, `use_deterministic_compute`, `log_severity_level`, `enable_profiling`
    with `profile_file_prefix`, overrides of free dimensions by name, and the entries `session.disable_cpu_ep_fallback` and
    `session.load_model_format` have their meaning. The others are ignored, except those whose methods raise NotImplemented."""

    __slots__ = ("_dims", "_providers")
    enable_cpu_mem_arena = _Field(True)
    enable_mem_pattern = _Field(True)
    enable_mem_reuse = _Field(True)
    enable_profiling = _Field(False)
    execution_mode = _Field(ExecutionMode.ORT_SEQUENTIAL)
    execution_order = _Field(ExecutionOrder.DEFAULT)
    graph_optimization_level = _Field(GraphOptimizationLevel.ORT_ENABLE_ALL)
    inter_op_num_threads = _Field(0)
    intra_op_num_threads = _Field(0)
    log_severity_level = _Field(-1)
    log_verbosity_level = _Field(0)
    logid = _Field("")
    optimized_model_filepath = _Field("")
    profile_file_prefix = _Field("onnxruntime_profile_")
    use_deterministic_compute = _Field(False)
    use_per_session_threads = _Field(True)

    def __init__(self) -> None:
        super().__init__()
        self._dims: dict[str, int] = {}
        self._providers: list[tuple[str, dict[str, str]]] = []

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fixes the size of the symbolic dimension `name`."""
        self._dims[str(name)] = int(size)

    def add_provider(self, name: str, options: dict[str, str]) -> None:
        """Adds a provider, which is used if the session is created without providers."""
        self._providers.append((name, {str(key): str(value) for key, value in options.items()}))

    def has_providers(self) -> bool:
        return bool(self._providers)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        refuse("denotations of dimensions", "use add_free_dimension_override_by_name()")

    def add_initializer(self, name: str, value: OrtValue) -> None:
        refuse("initializers from options", "make it an input of the model with a default, and feed it")

    def add_external_initializers(self, names: list[str], values: list[OrtValue]) -> None:
        refuse("external initializers from options", "store them as external data beside the model")

    def add_external_initializers_from_files_in_memory(self, *arguments: Any) -> None:
        refuse("external initializers from memory", "store them as external data beside the model")

    def register_custom_ops_library(self, path: str) -> None:
        refuse("ONNX Runtime's custom operators", "write a backend, one shared library (docs/backend-guide.md)")

    def add_provider_for_devices(self, devices: Any, options: Any) -> None:
        refuse("ONNX Runtime's device objects", "name devices in the options of CleaveExecutionProvider")

    def set_provider_selection_policy(self, policy: Any) -> None:
        refuse("policies of providers", "name devices in the options of CleaveExecutionProvider")


class _Cancellable(Protocol):
    def cancel(self) -> None: ...


class RunOptions(_Options):
    """The options of runs. Setting `terminate` ends the runs in progress that have these options, and refuses new ones until it is
    unset. The others are kept and ignored."""

    __slots__ = ("_terminate", "_runs", "_lock")
    log_severity_level = _Field(-1)
    log_verbosity_level = _Field(0)
    logid = _Field("")
    only_execute_path_to_fetches = _Field(False)

    def __init__(self) -> None:
        super().__init__()
        self._terminate = False
        self._lock = threading.Lock()
        self._runs: list[_Cancellable] = []

    @property
    def terminate(self) -> bool:
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"RunOptions.terminate: expected bool, not {type(value).__name__}")
        with self._lock:
            self._terminate = value
            for run in self._runs if value else ():
                run.cancel()

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        return self._entry(key)

    def add_active_adapter(self, adapter: Any) -> None:
        refuse("LoRA adapters", "merge the adapter into the model's weights")
