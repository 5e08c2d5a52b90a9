"""Assistants: every graph is there as one, without anybody having made it."""

from langgraph_sdk.client import LangGraphClient

from checks import same

#: A name in the namespace of X.500 names: the same on every server.
AGENT = "fe096781-5601-53d2-b2f6-0d3403f7e9ca"


async def every_graph_is_one(client: LangGraphClient) -> list[str]:
    found = await client.assistants.search(graph_id="agent")
    same("assistants of `agent`", [one["assistant_id"] for one in found], [AGENT])
    assistant = await client.assistants.get(AGENT)
    same("the graph", assistant["graph_id"], "agent")
    same("who made it", assistant["metadata"].get("created_by"), "system")
    same("the version", assistant["version"], 1)
    known = {one["graph_id"] for one in await client.assistants.search(limit=100)}
    wanted = {"agent", "tools_agent", "deep_agent", "factory_agent"}
    same("missing graphs", wanted - known, set())
    return sorted(known)
