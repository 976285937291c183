"""What an ONNX file says of itself: the few fields of its protobuf that the library does not keep. Weights are skipped unread."""
from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO


@dataclass
class ModelMetadata:
    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


class Damaged(ValueError):
    """The bytes are not a protobuf message."""


_LENGTH_DELIMITED, _FIXED = 2, {1: 8, 5: 4}


def _varint(file: BinaryIO) -> int | None:
    """Returns None at the end of the file."""
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            if shift == 0:
                return None
            break
        value |= (byte[0] & 127) << shift
        if byte[0] < 128:
            return value
    raise Damaged("a number is cut off or too long")


def _fields(file: BinaryIO, end: int) -> Iterator[tuple[int, int, int]]:
    """Yields (number, value or size, position of the contents or -1) of each field from the current position to `end`."""
    while file.tell() < end:
        key = _varint(file)
        value = _varint(file) if key is not None and key & 7 in (0, _LENGTH_DELIMITED) else 0
        if key is None or value is None or key >> 3 == 0:
            raise Damaged("a field is cut off")
        if key & 7 == 0:
            yield key >> 3, value, -1
            continue
        size = value if key & 7 == _LENGTH_DELIMITED else _FIXED.get(key & 7, end)
        start = file.tell()
        if size > end - start:
            raise Damaged("a field is longer than its message")
        yield key >> 3, size, start
        file.seek(start + size)


def _text(file: BinaryIO, size: int, start: int) -> str:
    if start < 0:
        raise Damaged("a number stands where a text should be")
    file.seek(start)
    return file.read(size).decode("utf-8", "replace")


def _entry(file: BinaryIO, size: int, start: int) -> tuple[str, str]:
    file.seek(start)
    parts = {1: "", 2: ""}
    for number, length, position in _fields(file, start + size):
        if number in parts:
            parts[number] = _text(file, length, position)
    return parts[1], parts[2]


def _read(file: BinaryIO, size: int) -> ModelMetadata:
    result = ModelMetadata()
    for number, value, start in _fields(file, size):
        if number == 2:
            result.producer_name = _text(file, value, start)
        elif number == 4:
            result.domain = _text(file, value, start)
        elif number == 5:
            result.version = value - (1 << 64) if value >= 1 << 63 else value
        elif number == 6:
            result.description = _text(file, value, start)
        elif number == 14:
            key, text = _entry(file, value, start)
            result.custom_metadata_map[key] = text
        elif number == 7 and start >= 0:
            file.seek(start)
            for inner, length, position in _fields(file, start + value):
                if inner == 2:
                    result.graph_name = _text(file, length, position)
                elif inner == 10:
                    result.graph_description = _text(file, length, position)
    return result


def read_metadata(model: str | os.PathLike[str] | bytes) -> ModelMetadata:
    """Reads the metadata of an ONNX model, a file or bytes. A model in IR JSON has none. Raises Damaged."""
    if isinstance(model, bytes):
        return ModelMetadata() if model[:64].lstrip()[:1] == b"{" else _read(io.BytesIO(model), len(model))
    with open(model, "rb") as file:
        is_json = file.read(64).lstrip()[:1] == b"{"
        file.seek(0)
        return ModelMetadata() if is_json else _read(file, os.fstat(file.fileno()).st_size)
