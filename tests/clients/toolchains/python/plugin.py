"""A node that asks a question, and a tool."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import node, tool
from wit_world.imports import interrupt, types

TEXT = '{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}'
DECISION = '{"type":"object","properties":{"decision":{"type":"string"}}}'


class Node(exports.Node):
    def describe(self):
        return [node.NodeInfo("approve", "Asks a person.", TEXT, DECISION, [])]

    def run(self, context, input):
        text = json.loads(input)["text"]
        print("asking about", text)
        question = interrupt.Question(json.dumps({"ticket": text}), '{"type":"boolean"}', [])
        decision = "call" if json.loads(interrupt.ask(question)) else "ignore"
        update = types.Update("decision", json.dumps(decision), False)
        return node.Outcome([update], [], [], [])


class Tool(exports.Tool):
    def list(self):
        return [tool.ToolInfo("count_words", "Counts the words of a text.", TEXT, False, [])]

    def call(self, context, arguments):
        words = len(json.loads(arguments)["text"].split())
        if words == 0:
            raise ValueError("there are no words")
        answer = json.dumps({"words": words})
        return tool.ToolOutput([types.Part_Text(answer)], answer, False, [], [])
