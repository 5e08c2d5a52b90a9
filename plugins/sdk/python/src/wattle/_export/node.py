"""The export `node`."""

from __future__ import annotations

from wit_world.exports import node as raw
from wit_world.imports import types

from wattle import _json
from wattle._export._answer import answer
from wattle._node import Context, Decision
from wattle._registry import plugin
from wattle._wire._convert import extra, raw_extra, value
from wattle.failure import Failure

CONFIG_SCHEMA = "config-schema"
"""Extension field of a node that contains the schema of its configuration."""

READS = "reads"
"""Extension field of a node that contains the channels that it reads apart from its parameters."""


class Node:
    """The nodes of the plugin."""

    def describe(self) -> list[raw.NodeInfo]:
        """Returns the descriptions of all nodes."""
        infos = []
        for entry in plugin().nodes.values():
            fields = {} if entry.config is None else {CONFIG_SCHEMA: entry.config.schema}
            if entry.reads is not None:
                fields[READS] = entry.reads.describe()
            infos.append(
                raw.NodeInfo(
                    entry.name,
                    entry.doc,
                    _json.write("the schema", entry.inputs.schema),
                    _json.write("the schema", entry.output_schema()),
                    raw_extra(fields),
                )
            )
        return infos

    def run(self, context: raw.TaskContext, input: str) -> raw.Outcome:
        """Runs the node that the context names."""
        return answer(lambda: _run(context, input))


def _run(context: raw.TaskContext, input: str) -> raw.Outcome:
    entry = plugin().nodes.get(context.node)
    if entry is None:
        raise Failure.not_found(f"the plugin has no node `{context.node}`")
    document = _json.read(f"the input of node `{context.node}`", input)
    return _raw_outcome(entry.run(_context(context), document))


def _context(of: raw.TaskContext) -> Context:
    return Context(
        node=of.node,
        graph=of.graph,
        thread_id=of.thread_id,
        run_id=of.run_id,
        task_id=of.task_id,
        step=of.step,
        attempt=of.attempt,
        remaining_steps=of.remaining_steps,
        tenant=of.tenant,
        context=value(of.context),
        extra=extra(of.extra),
    )


def _raw_outcome(of: Decision) -> raw.Outcome:
    updates = [
        types.Update(it.channel, _json.write(f"`{it.channel}`", it.value), it.overwrite)
        for it in of.updates
    ]
    sends = [
        types.Send(it.node, _json.write("the input", it.input), raw_extra(it.extra))
        for it in of.sends
    ]
    return raw.Outcome(updates, of.goto, sends, raw_extra(of.extra))
