"""Which devices the providers of a session are."""
from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._errors import InvalidArgument
from ._options import SessionOptions

CLEAVE, CPU = "CleaveExecutionProvider", "CPUExecutionProvider"
AVAILABLE = [CLEAVE, CPU]
# The names that ONNX Runtime knows. Any other name is a mistake of the caller.
KNOWN = ["NvTensorRTRTXExecutionProvider", "TensorrtExecutionProvider", "CUDAExecutionProvider", "MIGraphXExecutionProvider",
         "OpenVINOExecutionProvider", "DnnlExecutionProvider", "VitisAIExecutionProvider", "QNNExecutionProvider",
         "NnapiExecutionProvider", "VSINPUExecutionProvider", "JsExecutionProvider", "CoreMLExecutionProvider",
         "ACLExecutionProvider", "DmlExecutionProvider", "RknpuExecutionProvider", "WebNNExecutionProvider",
         "WebGpuExecutionProvider", "XnnpackExecutionProvider", "CANNExecutionProvider", "ROCMExecutionProvider",
         "AzureExecutionProvider", CLEAVE, CPU]

Providers = Sequence[str | tuple[str, Mapping[Any, Any]]]

# Options of CleaveExecutionProvider for sessions that do not give them: see install() of the package.
defaults: dict[str, str] = {}

_TEXTS = ("profile", "strategy", "objective", "split", "capture", "cache", "precision")
_NUMBERS = ("threads", "in_flight", "bucket_multiple", "prepared_shapes")
_FLAGS = ("deterministic", "tune", "no_fallback")
_LISTS = {"npu_spec": "npu_specs", "plugins": "plugins", "device_options": "device_options"}
OPTIONS = ("devices", *_TEXTS, *_NUMBERS, *_FLAGS, *_LISTS, "device_time_limit")


@dataclass
class Choice:
    """The providers of a session, and the options of `cleave.Session` that they stand for."""

    names: list[str]
    options: dict[str, dict[str, str]]
    session: dict[str, Any] = field(default_factory=dict)


def _flag(name: str, value: str) -> bool:
    if value.lower() in ("1", "true"):
        return True
    if value.lower() in ("0", "false", ""):
        return False
    raise InvalidArgument.of(f"{CLEAVE}: option '{name}' is '{value}': expected 0 or 1")


def _session_options(given: Mapping[str, str]) -> dict[str, Any]:
    """Converts options of the provider, which are texts, to those of `cleave.Session`."""
    result: dict[str, Any] = {}
    for name, value in given.items():
        try:
            if name == "devices" or name in _TEXTS:
                result[name] = value
            elif name in _NUMBERS:
                result[name] = int(value)
            elif name == "device_time_limit":
                result[name] = float(value)
            elif name in _FLAGS:
                result[name] = _flag(name, value)
            elif name in _LISTS:
                result[_LISTS[name]] = [part for part in value.split(";" if name == "device_options" else ",") if part]
            else:
                raise InvalidArgument.of(f"{CLEAVE} has no option '{name}'; it has {', '.join(OPTIONS)}")
        except ValueError:
            raise InvalidArgument.of(f"{CLEAVE}: option '{name}' is '{value}': expected a number") from None
    return result


def check_options(given: Mapping[str, Any]) -> dict[str, str]:
    """Returns the options as texts. Raises InvalidArgument for those that do not exist or are malformed."""
    texts = {str(key): ",".join(value) if isinstance(value, (list, tuple)) else str(value) for key, value in given.items()}
    _session_options(texts)
    return texts


def _normalised(providers: Providers, provider_options: Sequence[Mapping[Any, Any]] | None) -> dict[str, dict[str, str]]:
    """The checks and the warnings of ONNX Runtime."""
    if not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    pairs: list[tuple[str, Mapping[Any, Any]]] = []
    if provider_options is not None:
        if not isinstance(provider_options, Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(providers) != len(provider_options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(provider, str) for provider in providers):
            raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
        if not all(isinstance(options, Mapping) for options in provider_options):
            raise ValueError("'provider_options' values must be dicts.")
        pairs = [(str(name), options) for name, options in zip(providers, provider_options)]
    else:
        for provider in providers:
            if isinstance(provider, str):
                pairs.append((provider, {}))
            elif (isinstance(provider, tuple) and len(provider) == 2 and isinstance(provider[0], str)
                  and isinstance(provider[1], Mapping)):
                pairs.append(provider)
            else:
                raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
    result: dict[str, dict[str, str]] = {}
    for name, options in pairs:
        if name not in AVAILABLE:
            warnings.warn(f"Specified provider '{name}' is not in available provider names."
                          f"Available providers: '{', '.join(AVAILABLE)}'", stacklevel=5)
        if name in result:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=5)
            continue
        result[name] = {str(key): str(value) for key, value in options.items()}
    return result


def choose(providers: Providers | None, provider_options: Sequence[Mapping[Any, Any]] | None, options: SessionOptions) -> Choice:
    """Raises ValueError and RuntimeError where ONNX Runtime does: its sessions then fall back to the CPU. Raises InvalidArgument
    for options of CleaveExecutionProvider that are wrong."""
    given = dict(options._providers) if not providers and options._providers else _normalised(providers or [], provider_options)
    for name in given:
        if name not in KNOWN:
            raise RuntimeError(f"Unknown Provider Type: {name}")
    no_cpu = options._entries.get("session.disable_cpu_ep_fallback") == "1"
    session: dict[str, Any] = {"threads": max(options.intra_op_num_threads, 0)}
    own = given.get(CLEAVE)
    merged = defaults | (own or {})
    session |= _session_options(merged)
    devices = str(session.get("devices", "cpu"))
    if own is not None and CPU in given and "cpu" not in devices.split(","):
        devices += ",cpu"
    session["devices"] = devices
    if no_cpu:
        session["no_fallback"] = True
    if options.use_deterministic_compute:
        session["deterministic"] = True
    if options._dims:
        session["dims"] = dict(options._dims)
    names = [CLEAVE] if own is not None or defaults else []
    if not names or "cpu" in devices.split(","):
        names.append(CPU)
    return Choice(names, {name: dict(merged) if name == CLEAVE else {} for name in names}, session)
