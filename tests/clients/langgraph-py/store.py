"""Items that threads share."""

import uuid

from langgraph_sdk.client import LangGraphClient

from checks import same, true


async def items_are_kept_and_found(client: LangGraphClient) -> dict:
    store, root = client.store, f"mark-{uuid.uuid4()}"
    same("an item that is not there", await store.get_item([root, "a"], key="one"), None)
    await store.put_item([root, "a"], key="one", value={"color": "red", "size": 1})
    await store.put_item([root, "a"], key="two", value={"color": "blue"}, index=False)
    await store.put_item([root, "b", "c"], key="one", value={"color": "red"}, ttl=60)
    item = await store.get_item([root, "a"], key="one")
    same("its value", item["value"], {"color": "red", "size": 1})
    same("where it is", (item["namespace"], item["key"]), ([root, "a"], "one"))
    true("it has times", item["created_at"] and item["updated_at"])
    await store.put_item([root, "a"], key="one", value={"color": "green"})
    changed = await store.get_item([root, "a"], key="one", refresh_ttl=False)
    same("its new value", changed["value"], {"color": "green"})
    same("when it was made", changed["created_at"], item["created_at"])

    async def found(**wanted: object) -> set[tuple]:
        items = (await store.search_items([root], **wanted))["items"]
        return {(*item["namespace"][1:], item["key"]) for item in items}

    same("all", await found(), {("a", "one"), ("a", "two"), ("b", "c", "one")})
    same("red ones", await found(filter={"color": "red"}), {("b", "c", "one")})
    same("on a page", len(await found(limit=1, offset=1)), 1)
    same("by a word", await found(query="blue", limit=1), {("a", "two")})

    await store.delete_item([root, "a"], key="one")
    same("a deleted item", await store.get_item([root, "a"], key="one"), None)
    await store.delete_item([root, "a"], key="one")
    return changed


async def namespaces_are_listed(client: LangGraphClient) -> list:
    store, root = client.store, f"mark-{uuid.uuid4()}"
    for place in (["x", "one"], ["x", "two"], ["y", "one"]):
        await store.put_item([root, *place], key="k", value={"is": True})

    async def listed(**wanted: object) -> list[list[str]]:
        answer = await store.list_namespaces(prefix=[root], **wanted)
        return sorted(place[1:] for place in answer["namespaces"])

    same("all", await listed(), [["x", "one"], ["x", "two"], ["y", "one"]])
    same("by their ends", await listed(suffix=["one"]), [["x", "one"], ["y", "one"]])
    same("not deep", await listed(max_depth=2), [["x"], ["y"]])
    same("on a page", len(await listed(limit=2, offset=2)), 1)
    return await listed()
