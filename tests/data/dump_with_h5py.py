"""Prints all that h5py sees in a file: {"group/dataset": [dtype, values], "group@attribute": value}."""

import json
import sys

import h5py
import numpy as np


def plain(value):
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.void):
        return {name: plain(value[name]) for name in value.dtype.names}
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def dump(file):
    seen = {}

    def visit(name, node):
        seen.update({f"{name}@{key}": plain(value) for key, value in node.attrs.items()})
        if isinstance(node, h5py.Dataset):
            assert node.ndim == 1, name
            text = h5py.check_string_dtype(node.dtype)
            dtype = f"text {text.encoding}" if text else str(node.dtype)
            values = node[()]
            seen[name] = [dtype, values.tolist() if dtype.startswith(("int", "uint")) else plain(values)]

    visit("", file)
    file.visititems(visit)
    return seen


with h5py.File(sys.argv[1]) as profile:
    json.dump(dump(profile), sys.stdout)
