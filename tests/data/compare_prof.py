"""Compares two `.prof` files: the same keys, counts, and times to a relative 1e-12.

    python compare_prof.py OURS THEIRS [--names]

The root's name is left out of it, and so is the order of the first two numbers of a caller entry,
which scope-profiler 0.7.5 writes the wrong way round. Of a caller with recursive calls only the
number of all calls and the self time are compared: which of them are primitive is counted per caller
here, as cProfile does, and per region there. With `--names` a file has one entry per
region.
"""

import math
import pstats
import sys


def load(path):
    stats = pstats.Stats(path).stats
    root = [key for key in stats if key[0] == "~" and key[2].startswith("<") and " rank " in key[2]]
    assert len(root) == 1, f"{path} has the roots {root}"
    name = lambda key: ("~", 0, "<root>") if key == root[0] else key
    return {
        name(key): (numbers[:4], {name(caller): entry for caller, entry in numbers[4].items()})
        for key, numbers in stats.items()
    }


def check(what, ours, theirs):
    counts = ours[:2] == theirs[:2]
    times = all(math.isclose(a, b, rel_tol=1e-12, abs_tol=0) for a, b in zip(ours[2:], theirs[2:]))
    assert counts and times, f"{what}: {ours} instead of {theirs}"


ours, theirs = load(sys.argv[1]), load(sys.argv[2])
assert ours.keys() == theirs.keys(), f"keys differ: {ours.keys() ^ theirs.keys()}"
for key, (numbers, callers) in theirs.items():
    check(key, ours[key][0], numbers)
    assert ours[key][1].keys() == callers.keys(), f"callers of {key} differ"
    for caller, entry in callers.items():
        calls, primitive, self_s, inclusive_s = ours[key][1][caller]
        what = f"{caller} -> {key}"
        check(what, (calls, calls, self_s, self_s), (entry[1], entry[1], entry[2], entry[2]))
        if primitive == calls and entry[0] == entry[1]:
            check(what, (primitive, calls, self_s, inclusive_s), entry)
print(len(ours))
