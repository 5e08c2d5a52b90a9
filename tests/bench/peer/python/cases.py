"""Bursts of runs until the time is up, and reads of a thread's history."""

import asyncio
import statistics
import time
from itertools import count

import savers
from graphs import Graph


class Bench:
    """One case on one store."""

    def __init__(self, graph: Graph, saver, store: str, order: dict):
        self.graph, self.saver, self.store, self.order = graph, saver, store, order
        self.compiled = graph.builder.compile(checkpointer=saver)
        self.durability = savers.durability(store)
        self.numbers = count()

    def runs(self) -> dict:
        """Measures bursts of runs. Threads are deleted between bursts, outside of the measured time."""
        if self.order["seconds"] > 0:
            self.run_and_forget(1)
        steps, seconds = 0, 0.0
        while True:
            started = time.perf_counter()
            threads = [self.run() for _ in range(self.order["runs"])]
            seconds += time.perf_counter() - started
            steps += self.graph.steps * len(threads)
            if seconds >= self.order["seconds"]:
                break
            self.forget(threads)
        stored = savers.stored_bytes(self.store, self.saver, self.order["place"])
        return {"steps": steps, "seconds": seconds, "stored_bytes": stored}

    def run_and_forget(self, runs: int) -> None:
        self.forget([self.run() for _ in range(runs)])

    def forget(self, threads: list[str]) -> None:
        for thread in threads:
            if self.saver is not None:
                self.saver.delete_thread(thread)

    def run(self) -> str:
        thread = self.new_thread()
        state = self.compiled.invoke(
            self.graph.give(), self.config(thread), **self.how()
        )
        self.expect(state)
        return thread

    async def runs_in_lanes(self) -> dict:
        """Measures bursts as `runs` does, with concurrent lanes, each of which executes its runs one after the other."""
        await self.forget_async([await self.run_async()])
        steps, seconds = 0, 0.0
        while seconds < self.order["seconds"]:
            started = time.perf_counter()
            lanes = await asyncio.gather(*[self.lane() for _ in range(self.order["lanes"])])
            seconds += time.perf_counter() - started
            threads = [thread for lane in lanes for thread in lane]
            steps += self.graph.steps * len(threads)
            await self.forget_async(threads)
        return {"steps": steps, "seconds": seconds, "stored_bytes": None}

    async def lane(self) -> list[str]:
        return [await self.run_async() for _ in range(self.order["runs"])]

    async def run_async(self) -> str:
        thread = self.new_thread()
        state = await self.compiled.ainvoke(
            self.graph.give(), self.config(thread), **self.how()
        )
        self.expect(state)
        return thread

    async def forget_async(self, threads: list[str]) -> None:
        for thread in threads:
            if self.saver is not None:
                await self.saver.adelete_thread(thread)

    def reads(self) -> dict:
        """Measures reads of one long thread: the newest 20 checkpoints, all of them, and the latest state."""
        started = time.perf_counter()
        config = self.config(self.run())
        seconds = time.perf_counter() - started
        history = self.compiled.get_state_history

        def page():
            length = len(list(history(config, limit=self.order["page"])))
            assert length == self.order["page"], length

        def everything():
            length = len(list(history(config)))
            assert length >= self.order["turns"], length

        def latest():
            self.expect(self.compiled.get_state(config).values)

        times = {
            "page_ms": self.median_ms(page, self.order["page_reads"]),
            "all_ms": self.median_ms(everything, self.order["all_reads"]),
            "latest_ms": self.median_ms(latest, self.order["latest_reads"]),
        }
        stored = savers.stored_bytes(self.store, self.saver, self.order["place"])
        return {
            "steps": self.graph.steps,
            "seconds": seconds,
            "stored_bytes": stored,
            "reads": times,
        }

    def median_ms(self, read, times: int) -> float:
        taken = []
        for _ in range(times):
            started = time.perf_counter()
            read()
            taken.append((time.perf_counter() - started) * 1000)
        return statistics.median(taken)

    def new_thread(self) -> str:
        return f"thread-{next(self.numbers)}"

    def config(self, thread: str) -> dict:
        return {"recursion_limit": self.graph.limit, "configurable": {"thread_id": thread}}

    def how(self) -> dict:
        return {} if self.durability is None else {"durability": self.durability}

    def expect(self, state: dict) -> None:
        assert self.graph.check(state), state
