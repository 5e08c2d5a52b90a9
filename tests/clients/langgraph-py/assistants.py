"""Assistants: every graph is there as one, without anybody having made it; others are made."""

import uuid

from langgraph_sdk.client import LangGraphClient

from checks import is_uuid, refused, same, true

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


async def an_assistant_from_beginning_to_end(client: LangGraphClient) -> dict:
    assistants, mark = client.assistants, str(uuid.uuid4())
    made = await assistants.create(
        "factory_agent",
        context={"access_context": "of the assistant"},
        metadata={"mark": mark},
        name="by hand",
        description="says where it came from",
    )
    assistant_id = made["assistant_id"]
    true("the id is a UUID", is_uuid(assistant_id))
    same("its name", (made["name"], made["version"]), ("by hand", 1))
    same("its graph", made["graph_id"], "factory_agent")
    again = await assistants.create(
        "factory_agent", assistant_id=assistant_id, if_exists="do_nothing"
    )
    same("one that is there", again["name"], "by hand")
    twice = assistants.create("factory_agent", assistant_id=assistant_id)
    await refused("a second one", twice, 409)
    values = await client.runs.wait(None, assistant_id, input={"text": "hi"})
    same("its context", values["access_context"], "of the assistant")

    changed = await assistants.update(
        assistant_id, context={"access_context": "changed"}, metadata={"more": 1}, name="newer"
    )
    same("the new version", (changed["version"], changed["name"]), (2, "newer"))
    same("metadata is added to", changed["metadata"], {"mark": mark, "more": 1})
    versions = await assistants.get_versions(assistant_id)
    same("versions, newest first", [one["version"] for one in versions], [2, 1])
    back = await assistants.set_latest(assistant_id, 1)
    same("the old one is back", (back["version"], back["name"]), (1, "by hand"))
    values = await client.runs.wait(None, assistant_id, input={"text": "hi"})
    same("its old context", values["access_context"], "of the assistant")

    await assistants.delete(assistant_id)
    await refused("a deleted assistant", assistants.get(assistant_id), 404)
    return changed


async def assistants_are_found(client: LangGraphClient) -> list[str]:
    assistants, mark = client.assistants, str(uuid.uuid4())
    names = ["a one", "b two", "c two"]
    ids = [
        (await assistants.create("agent", name=name, metadata={"mark": mark}))["assistant_id"]
        for name in names
    ]
    same("how many", await assistants.count(metadata={"mark": mark}), 3)
    same("how many of a name", await assistants.count(metadata={"mark": mark}, name="two"), 2)
    found = await assistants.search(metadata={"mark": mark}, sort_by="name", sort_order="desc")
    same("sorted", [one["name"] for one in found], names[::-1])
    page = await assistants.search(
        metadata={"mark": mark}, sort_by="name", sort_order="asc", limit=2,
        response_format="object",
    )
    same("a page", [one["name"] for one in page["assistants"]], names[:2])
    same("where the next begins", page["next"], "2")
    [only] = await assistants.search(
        metadata={"mark": mark}, name="one", select=["assistant_id", "name"]
    )
    same("what is selected", set(only), {"assistant_id", "name"})
    for assistant_id in ids:
        await assistants.delete(assistant_id)
    return names


async def a_graph_is_described(client: LangGraphClient) -> dict:
    graph = await client.assistants.get_graph(AGENT, xray=True)
    nodes = {node["id"] for node in graph["nodes"]}
    true("its nodes", {"stream_message", "call_tool", "ask_human", "run_subgraph"} <= nodes)
    edges = {(edge["source"], edge["target"]) for edge in graph["edges"]}
    true("an edge", ("stream_message", "call_tool") in edges)
    schemas = await client.assistants.get_schemas(AGENT)
    same("whose they are", schemas["graph_id"], "agent")
    true("what goes in", "items" in schemas["input_schema"]["properties"])
    inside = await client.assistants.get_subgraphs(AGENT, recurse=True)
    true("graphs inside are an object", isinstance(inside, dict))
    nowhere = await client.assistants.get_subgraphs(AGENT, namespace="nowhere")
    same("those of a node without one", nowhere, {})
    return graph
