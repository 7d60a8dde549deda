"""The reference's side of the call stack benchmark: one request per line on stdin, CPU seconds out.

load FOLDER   columns from starts.bin, ends.bin, threads.bin (may be missing), regions.txt
build         CPU seconds and extra peak bytes of build_call_arrays
paths, names  CPU seconds of build_pstats_dict on the calls built last
"""
import gc
import os
import sys
import time

import numpy as np
from scope_profiler.call_stack import build_call_arrays, regions_from_snapshot
from scope_profiler.prof_export import build_pstats_dict


def load(folder):
    def column(name):
        return np.fromfile(os.path.join(folder, name), dtype=np.int64)

    starts, ends = column("starts.bin"), column("ends.bin")
    threads = column("threads.bin") if os.path.exists(os.path.join(folder, "threads.bin")) else None
    snapshot, begin = {}, 0
    for line in open(os.path.join(folder, "regions.txt")):
        name, end = line.split()
        part = slice(begin, int(end))
        snapshot[name] = (starts[part], ends[part], None, None, None, None if threads is None else threads[part])
        begin = int(end)
    return regions_from_snapshot(snapshot, 0)


def memory(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1]) * 1024


regions = calls = None
for line in sys.stdin:
    request = line.split()
    gc.collect()
    if request[0] == "load":
        calls = regions = None
        regions = load(request[1])
        answer = [0, 0]
    elif request[0] == "build":
        calls = None
        gc.collect()
        open("/proc/self/clear_refs", "w").write("5")
        before, begin = memory("VmRSS"), time.process_time()
        calls = build_call_arrays(regions, 0)
        answer = [time.process_time() - begin, memory("VmHWM") - before]
    else:
        begin = time.process_time()
        stats = build_pstats_dict(calls, call_paths=request[0] == "paths")
        answer = [time.process_time() - begin, 0]
        del stats
    print(*answer, flush=True)
