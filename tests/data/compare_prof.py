"""Compares two .prof files: the same keys, callers and numbers (relative 1e-12), apart from the
label in the root's name `<LABEL rank N>`. Both have to load with pstats."""

import marshal
import math
import pstats
import re
import sys


def load(path):
    assert pstats.Stats(path).stats, path
    with open(path, "rb") as file:
        entries = marshal.load(file)
    return {named(key): (*numbers, {named(c): of for c, of in callers.items()})
            for key, (*numbers, callers) in entries.items()}


def named(key):
    file, line, name = key
    return file, line, re.sub(r"^<.* rank (\d+)>$", r"<rank \1>", name) if file == "~" else name


def check(what, ours, theirs):
    assert len(ours) == len(theirs) == 4, what
    same = all(math.isclose(a, b, rel_tol=1e-12, abs_tol=0.0) for a, b in zip(ours, theirs))
    assert same, f"{what}: {ours}, not {theirs}"


ours, theirs = map(load, sys.argv[1:])
assert ours.keys() == theirs.keys(), f"only one has {sorted(ours.keys() ^ theirs.keys())}"
for key, (*numbers, callers) in ours.items():
    *their_numbers, their_callers = theirs[key]
    check(key, numbers, their_numbers)
    assert callers.keys() == their_callers.keys(), key
    for caller in callers:
        check((key, caller), callers[caller], their_callers[caller])
print(len(ours), "entries are equal")
