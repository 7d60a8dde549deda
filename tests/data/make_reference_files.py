"""Makes the profile files in this folder by running scope-profiler, and what it reads from them.

    python make_reference_files.py [FOLDER]

For each `NAME.h5` there is a `NAME.json`: the same file as `scope-profiler export json` sees it.
Files that the package no longer writes, or writes only elsewhere (schemas 1 and 2, big-endian
numbers, fixed strings, ranks with holes), are rewritten from one that it does write.
"""

import asyncio
import gzip
import json
import platform
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import h5py
import numpy as np
from scope_profiler import ProfileManager

# The files are passed on, so they do not say where they were made.
platform.platform = lambda: "Linux-6.1-x86_64-with-glibc2.36"
FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)


def work(repeats):
    with ProfileManager.region("work"):
        for _ in range(repeats):
            with ProfileManager.region("inner", tags=["a", "täg"]):
                pass


def session(name, body=lambda: work(3), **options):
    ProfileManager.setup(file_path=str(FOLDER / f"{name}.h5"), replace=True, **options)
    with ProfileManager.region("main"):
        body()
    ProfileManager.finalize()


def threads():
    team = [threading.Thread(target=work, args=(2,), name=f"w{i}") for i in range(3)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()


async def job(number):
    with ProfileManager.region("job"):
        await asyncio.sleep(0.001 * number)
        work(1)


async def jobs():
    await asyncio.gather(*(job(number) for number in range(3)))


def rewrite(name, source, change):
    """Copies `source` to `name` and lets `change` loose on it."""
    with h5py.File(FOLDER / f"{source}.h5") as old, h5py.File(FOLDER / f"{name}.h5", "w") as new:
        for key in old:
            old.copy(key, new)
        for key, value in old.attrs.items():
            new.attrs[key] = value
        change(new)


def replace(file, path, values, **options):
    del file[path]
    file.create_dataset(path, data=values, **options)


def full(file):
    """Metadata as the level `full` has it, which would name a person and a machine."""
    attributes = file["metadata"].attrs
    attributes["hostname"] = "node1"
    attributes["PATH"] = "/opt/bin:" * 6_000
    attributes["modules"] = ["gcc/13", "openmpi/4", ""]
    attributes["SLURM_NTASKS"] = "1"


def big_endian(file):
    for path in ["start_deltas", "durations", "call_ids", "parent_ids"]:
        replace(file, f"events/{path}", file[f"events/{path}"][()].astype(">i8"))
    for path in ["event_offsets", "event_counts"]:
        replace(file, f"rank_region_index/{path}", file[f"rank_region_index/{path}"][()].astype(">u8"))
    replace(file, "rank_region_index/ranks", file["rank_region_index/ranks"][()].astype(">u2"))


def fixed_strings(file):
    for path in ["region_table/names"] + [
        f"rank_region_index/{name}" for name in ["source_files", "source_texts", "tags", "event_metadata"]
    ]:
        values = [value.decode() if isinstance(value, bytes) else value for value in file[path][()]]
        width = max(1, max(len(value.encode()) for value in values))
        replace(file, path, np.array([value.encode() for value in values], dtype=h5py.string_dtype("utf-8", width)))


def unsigned(file):
    for path in ["start_deltas", "durations"]:
        replace(file, f"events/{path}", file[f"events/{path}"][()].view(np.uint64))


def bare(file):
    for path in ["events/call_ids", "events/parent_ids", "rank_region_index/exclusive_totals",
                 "rank_region_index/summary_statistics", "rank_region_index/event_metadata", "metadata"]:
        del file[path]
    del file.attrs["storage_layout"]


def absolute_columns(file):
    """The events of schema 2: start and end of each call as they were."""
    index = file["rank_region_index"]
    starts = file["events/start_deltas"][()]
    for first, count in zip(index["event_offsets"][()], index["event_counts"][()]):
        run = slice(int(first), int(first + count))
        starts[run] = np.cumsum(starts[run])
    ends = starts + file["events/durations"][()]
    del file["events/start_deltas"], file["events/durations"]
    file["events/start_times"], file["events/end_times"] = starts, ends


def schema_2(file):
    absolute_columns(file)
    file.attrs["scope_profiler_schema"] = 2


def schema_1(file):
    """Groups `rank<N>/regions/<name>`, and no version."""
    absolute_columns(file)
    names = [name.decode() for name in file["region_table/names"][()]]
    index, events = file["rank_region_index"], file["events"]
    for row, (region, rank) in enumerate(zip(index["region_ids"][()], index["ranks"][()])):
        first, count = index["event_offsets"][row], index["event_counts"][row]
        group = file.create_group(f"rank{rank}/regions/{names[region]}")
        for column in events:
            group[column] = events[column][int(first):int(first + count)]
        group.attrs["source_file"] = index["source_files"][row]
        group.attrs["source_lineno"] = index["source_lines"][row]
        group.attrs["tags"] = json.loads(index["tags"][row])
    del file["events"], file["rank_region_index"], file["region_table"]
    del file.attrs["scope_profiler_schema"], file.attrs["storage_layout"]


def holes(file):
    """Ranks 1, 2 and 10 of 12, the first region on one of them only."""
    index, events = file["rank_region_index"], file["events"]
    rows = len(index["ranks"])
    for name in list(index):
        again = index[name][()]
        if name == "ranks":
            joined = np.concatenate([again + 1, again[1:] + 2, again[1:] + 10])
        elif name == "event_offsets":
            step = len(events["durations"])
            joined = np.concatenate([again, again[1:] + step, again[1:] + 2 * step])
        else:
            joined = np.concatenate([again, again[1:], again[1:]])
        replace(file, f"rank_region_index/{name}", joined)
    for name in list(events):
        replace(file, f"events/{name}", np.concatenate([events[name][()]] * 3))
    file["metadata"].attrs["mpi_size"] = 12
    assert rows > 1


def latest(name, source):
    """The newest structures that the library knows: other headers, links and chunk indices."""
    with h5py.File(FOLDER / f"{source}.h5") as old:
        with h5py.File(FOLDER / f"{name}.h5", "w", libver="latest") as new:
            for key, value in old.attrs.items():
                new.attrs[key] = value
            for group in old:
                made = new.create_group(group)
                for key, value in old[group].attrs.items():
                    made.attrs[key] = value
                for key, data in old[group].items():
                    made.create_dataset(key, data=data[()], dtype=data.dtype, maxshape=(None,), chunks=(64,))


def export(path):
    """What the package reads from `path`."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "scope_profiler", "export", "json", str(path), "-o", folder, "--gzip"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with gzip.open(Path(folder) / "profile.json.gz") as file:
            path.with_suffix(".json").write_text(json.dumps(json.load(file)) + "\n")


def ranks():
    """Run by each rank of an MPI job: the second has one call less, and a region of its own."""
    from mpi4py import MPI
    rank = MPI.COMM_WORLD.Get_rank()

    def body():
        work(3 - rank)
        if rank == 1:
            with ProfileManager.region("on rank 1"):
                MPI.COMM_WORLD.Barrier()
        else:
            MPI.COMM_WORLD.Barrier()

    session("two_ranks", body)


def main():
    if sys.argv[2:] == ["ranks"]:
        return ranks()
    session("plain", capture_region_source=True, label="plain run")
    session("threads", threads, track_threads=True)
    session("tasks", lambda: asyncio.run(jobs()), track_async=True)
    session("aggregate", aggregation_mode=True)
    session("gzip", lambda: work(300), hdf5_compression="gzip", hdf5_chunk_size=128)
    session("lzf", lambda: work(300), hdf5_compression="lzf", hdf5_chunk_size=128)
    for change in [full, big_endian, fixed_strings, unsigned, bare, schema_2, schema_1, holes]:
        rewrite(change.__name__, "plain", change)
    latest("latest", "tasks")
    # Needs mpi4py.
    subprocess.run(["mpirun", "-n", "2", sys.executable, __file__, str(FOLDER), "ranks"], check=True)
    for path in sorted(FOLDER.glob("*.h5")):
        export(path)


if __name__ == "__main__":
    main()
