"""Encodes messages as msgpack, with numpy arrays as one extension type; no pickle."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from rlplay.trace.records import AnyRecord

T = TypeVar("T")

_ARRAY = 1


def _array_to_ext(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        raise TypeError(f"cannot write {getattr(value, 'dtype', type(value).__name__)} to a record")
    little = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
    header = msgspec.msgpack.encode((little.dtype.str, list(value.shape)))
    return msgspec.msgpack.Ext(_ARRAY, bytes([len(header)]) + header + little.tobytes())


def _ext_to_array(code: int, data: memoryview) -> Any:
    if code != _ARRAY:
        raise ValueError(f"unknown extension type {code}")
    end = 1 + data[0]
    dtype, shape = msgspec.msgpack.decode(data[1:end])
    return np.frombuffer(data[end:], dtype=dtype).reshape(shape)


def _as_array(kind: type, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value
    raise TypeError(f"expected {kind}, found {type(value).__name__}")


class Codec(Generic[T]):
    """Encodes and decodes the messages of one (tagged union) type.

    `decode` raises `msgspec.ValidationError` or `msgspec.DecodeError` on bytes that are not such a message.
    Decoded arrays share the memory of the bytes and are read-only.
    """

    def __init__(self, kind: Any) -> None:
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_array_to_ext)
        self._decoder = msgspec.msgpack.Decoder(kind, dec_hook=_as_array, ext_hook=_ext_to_array)

    def encode(self, message: T) -> bytes:
        return self._encoder.encode(message)

    def decode(self, data: bytes | memoryview) -> T:
        message: T = self._decoder.decode(data)
        return message


RECORDS: Codec[AnyRecord] = Codec(AnyRecord)
