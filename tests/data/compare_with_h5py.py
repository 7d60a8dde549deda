"""Prints a line for each thing that h5py sees differently in two files, but for what may differ: names, and
`storage`, which is how datasets lie in the file."""

import sys

import h5py
import numpy as np


def dtype(kind):
    text = h5py.check_string_dtype(kind)
    return f"text {text.encoding} {text.length}" if text else str(kind)


def attributes(name, node):
    for place, key in enumerate(node.attrs):
        if f"{name}@{key}" not in MAY_DIFFER:
            attribute = node.attrs.get_id(key)
            value = node.attrs[key]
            yield f"{name}@{key}", (place, dtype(attribute.dtype), attribute.shape, np.asarray(value).tolist())


def dataset(node):
    values = node[()]
    storage = (node.chunks, node.compression, node.compression_opts, node.shuffle, node.maxshape)
    if "storage" in MAY_DIFFER:
        storage = None
    return (dtype(node.dtype), node.shape, storage, values.tobytes() if node.dtype.hasobject is False else values.tolist())


def seen(path):
    with h5py.File(path) as file:
        found = dict(attributes("", file))

        def visit(name, node):
            found.update(attributes(name, node))
            found[name] = dataset(node) if isinstance(node, h5py.Dataset) else "group"

        file.visititems(visit)
        return found


MAY_DIFFER = sys.argv[3:]
first, second = seen(sys.argv[1]), seen(sys.argv[2])
for name in sorted(first.keys() | second.keys()):
    if first.get(name) != second.get(name):
        print(name, str(first.get(name))[:300], str(second.get(name))[:300], sep="\n  ")
print(len(first), "compared")
