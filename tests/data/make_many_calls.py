"""Writes a file with many calls as scope-profiler stores them, and what is right for it as JSON.

    make_many_calls.py FILE.h5 EXPECTED.json CALLS

Two threads call `step`, which calls `cell` nine times. Chunks of 1,024 entries, gzip and shuffle,
call ids and parents, no totals per call path.
"""
import json
import sys

import h5py
import numpy as np

path, expected, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
steps = calls // 20  # of each thread
step = np.arange(steps, dtype=np.int64)
cell = np.arange(9 * steps, dtype=np.int64)
cell_duration = 100 + cell * 7919 % 100_003
start_in_step = np.arange(9) * 200_000 + 50
step_duration = 2_000_000 + step % 4_093
step_start = 5_000_000_000 + step * 2_100_000
cell_start = np.repeat(step_start, 9) + np.tile(start_in_step, steps)

# Ids in order of start: the second thread is one ns behind the first.
step_id, cell_id = step * 20, np.repeat(step, 9) * 20 + np.tile(np.arange(1, 10) * 2, steps)


def column(of_step, of_cell, shift):
    """The values of both threads, region by region."""
    return np.concatenate([of_step, of_step + shift, of_cell, of_cell + shift])


no_parent = np.full(steps, -1, dtype=np.int64)
starts = column(step_start, cell_start, 1)
first_cell = 2 * steps
deltas = np.diff(starts, prepend=0)
deltas[first_cell] = starts[first_cell]
parents = np.concatenate([no_parent, no_parent, np.repeat(step_id, 9), np.repeat(step_id, 9) + 1])
threads = np.repeat([0, 1, 0, 1], [steps, steps, 9 * steps, 9 * steps])
columns = {
    "start_deltas": deltas,
    "durations": column(step_duration, cell_duration, 0),
    "call_ids": column(step_id, cell_id, 1),
    "parent_ids": parents,
    "thread_ids": threads,
}
text = h5py.string_dtype()
with h5py.File(path, "w") as file:
    file.attrs["scope_profiler_schema"] = np.int64(3)
    file.attrs["storage_layout"] = "columnar"
    events = file.create_group("events")
    for name, values in columns.items():
        events.create_dataset(
            name, data=values, maxshape=(None,), chunks=(1024,), shuffle=True, compression="gzip", compression_opts=1
        )
    file["region_table/names"] = np.array(["step", "cell"], dtype=text)
    rows = file.create_group("rank_region_index")
    rows["region_ids"] = np.arange(2, dtype=np.uint32)
    rows["ranks"] = np.zeros(2, dtype=np.uint32)
    rows["event_offsets"] = np.array([0, first_cell], dtype=np.uint64)
    rows["event_counts"] = np.array([2 * steps, 18 * steps], dtype=np.uint64)
    rows["source_lines"] = np.full(2, -1, dtype=np.int64)
    for name in ("source_files", "source_texts", "tags"):
        rows[name] = np.array(["", ""], dtype=text)


def statistics(names, durations, inner):
    """As `cargo scope inspect --json` has them; both threads have the same durations."""
    p50, p95, p99 = np.percentile(np.tile(durations, 2), [50, 95, 99])
    total = 2 * int(durations.sum())
    return {
        "path": names,
        "calls": 2 * durations.size,
        "total_ns": total,
        "self_ns": total - inner,
        "min_ns": int(durations.min()),
        "max_ns": int(durations.max()),
        "p50_ns": p50,
        "p95_ns": p95,
        "p99_ns": p99,
    }


with open(expected, "w") as file:
    inner = 2 * int(cell_duration.sum())
    json.dump([statistics(["step"], step_duration, inner), statistics(["step", "cell"], cell_duration, 0)], file)
