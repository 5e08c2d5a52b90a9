"""The benchmark's cases on LangGraph for Python.

usage: main.py <case> <store> <order>

The order is JSON with the sizes of the case. The result is one line of JSON on standard output: steps,
seconds, peak memory, stored bytes, times of reads and the version.
"""

import asyncio
import json
import platform
import sys
from importlib import metadata

import cases
import graphs
import savers


def main() -> None:
    case, store, order = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    if order["lanes"] > 1:
        answer = asyncio.run(many_lanes(case, store, order))
    else:
        with savers.opened(store, order["place"]) as saver:
            bench = cases.Bench(graphs.build(case, order), saver, store, order)
            answer = bench.reads() if case == "history" else bench.runs()
    answer["peak_rss_bytes"] = peak_rss_bytes()
    langgraph, python = metadata.version("langgraph"), platform.python_version()
    answer["version"] = f"LangGraph {langgraph} on Python {python}"
    print(json.dumps(answer))


async def many_lanes(case: str, store: str, order: dict) -> dict:
    """Uses asyncio for concurrent runs, as LangGraph's documentation advises."""
    async with savers.opened_async(store, order["place"]) as saver:
        bench = cases.Bench(graphs.build_async(case, order), saver, store, order)
        return await bench.runs_in_lanes()


def peak_rss_bytes() -> int:
    """Reads the peak memory from `/proc`. The peak of `getrusage` includes the memory of the parent process."""
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM in /proc/self/status")


main()
