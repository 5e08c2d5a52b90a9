"""LangGraph's checkpointers, opened as in its documentation."""

import contextlib
import os

from langgraph.checkpoint.memory import InMemorySaver

# Number of connections for concurrent runs. The saver uses one connection at a time.
POOL = 8


def durability(store: str) -> str | None:
    """Returns `sync` for a store with that suffix, and otherwise LangGraph's default, `async`."""
    if store == "none":
        return None
    return "sync" if store.endswith("-sync") else "async"


@contextlib.contextmanager
def opened(store: str, place: str):
    match store.removesuffix("-sync"):
        case "none":
            yield None
        case "memory":
            yield InMemorySaver()
        case "sqlite":
            from langgraph.checkpoint.sqlite import SqliteSaver

            with SqliteSaver.from_conn_string(sqlite_file(place)) as saver:
                yield saver
        case "postgres":
            from langgraph.checkpoint.postgres import PostgresSaver

            with PostgresSaver.from_conn_string(place) as saver:
                saver.setup()
                yield saver


@contextlib.asynccontextmanager
async def opened_async(store: str, place: str):
    match store.removesuffix("-sync"):
        case "none":
            yield None
        case "memory":
            yield InMemorySaver()
        case "sqlite":
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

            async with AsyncSqliteSaver.from_conn_string(sqlite_file(place)) as saver:
                yield saver
        case "postgres":
            async with postgres_pool(place) as pool:
                from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

                saver = AsyncPostgresSaver(pool)
                await saver.setup()
                yield saver


def postgres_pool(place: str):
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    connection = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    return AsyncConnectionPool(place, min_size=POOL, max_size=POOL, open=False, kwargs=connection)


def sqlite_file(place: str) -> str:
    return os.path.join(place, "checkpoints.sqlite")


def stored_bytes(store: str, saver, place: str) -> int | None:
    """Returns the size of the store on disk: the file, or the tables with their indexes."""
    match store.removesuffix("-sync"):
        case "sqlite":
            saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return os.path.getsize(sqlite_file(place))
        case "postgres":
            with saver.conn.cursor() as cursor:
                cursor.execute(
                    "SELECT sum(pg_total_relation_size(oid))::bigint AS bytes FROM pg_class "
                    "WHERE relkind = 'r' AND relname LIKE 'checkpoint%%'"
                )
                return cursor.fetchone()["bytes"]
    return None
