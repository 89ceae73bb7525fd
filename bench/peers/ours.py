"""The library by its shared object, see ours.cpp: arrays where they stand, actions by their names."""

import ctypes

import numpy as np


class Library:
    def __init__(self, path):
        self.call = ctypes.CDLL(path)
        address, text, number, indices = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int64)
        for name, result, arguments in (
            ("peer_make", address, [text, indices, number, number]),
            ("peer_free", None, [address]),
            ("peer_names", text, [address]),
            ("peer_array", address, [address, text, indices, ctypes.POINTER(number), text]),
            ("peer_run", ctypes.c_double, [address, text]),
        ):
            function = getattr(self.call, name)
            function.restype, function.argtypes = result, arguments


class Problem:
    """problem["lambda"] is an array in the library's memory, problem.run("forward") returns the action's number."""

    def __init__(self, library, kind, sizes, threads):
        self.call = library.call
        self.address = self.call.peer_make(kind.encode(), (ctypes.c_int64 * len(sizes))(*sizes), len(sizes), threads)
        self.names = self.call.peer_names(self.address).decode().split()

    def __del__(self):
        self.call.peer_free(self.address)

    def _array(self, name):
        extents, rank, kind = (ctypes.c_int64 * 8)(), ctypes.c_int(), ctypes.create_string_buffer(1)
        data = self.call.peer_array(self.address, name.encode(), extents, ctypes.byref(rank), kind)
        number = ctypes.c_int32 if kind.raw == b"i" else ctypes.c_float
        shape = tuple(extents[: rank.value])
        return np.ctypeslib.as_array(ctypes.cast(data, ctypes.POINTER(number)), shape), kind.raw

    def __getitem__(self, name):
        return self._array(name)[0]

    def decays(self, name):
        """Whether AdamW's decay shrinks the parameter."""
        return self._array(name)[1] == b"F"

    def run(self, action):
        return self.call.peer_run(self.address, action.encode())
