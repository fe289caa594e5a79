"""The two vendors' own SDKs against the mock provider: streaming and plain, with tools, in three protocols.

Usage: sdk.py http://127.0.0.1:PORT. Prints what the SDKs saw as one JSON object; the caller holds the token counts
against the report of the server.
"""

import json
import sys

import anthropic
import openai

BASE = sys.argv[1].rstrip("/")
MODEL = "mock-model"
SAY = ["What is in the folder?", "Thank you."]
SYSTEM = "You are a careful assistant. " * 300
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
seen = {"prompt": 0, "read": 0, "written": 0, "output": 0, "requests": 0, "answers": {}}


def count(prompt, read, written, output):
    for name, value in (("prompt", prompt), ("read", read), ("written", written), ("output", output), ("requests", 1)):
        seen[name] += value or 0


def chat(stream):
    client = openai.OpenAI(base_url=BASE + "/v1", api_key="dummy", max_retries=0)
    tools = [{"type": "function", "function": {"name": "terminal", "description": "run", "parameters": SCHEMA}}]
    messages = [{"role": "system", "content": SYSTEM}]
    words = []
    for say in SAY:
        messages.append({"role": "user", "content": say})
        while True:
            if stream:
                text, calls, usage = "", {}, None
                chunks = client.chat.completions.create(
                    model=MODEL, messages=messages, tools=tools, stream=True, stream_options={"include_usage": True}
                )
                for chunk in chunks:
                    usage = chunk.usage or usage
                    for choice in chunk.choices:
                        text += choice.delta.content or ""
                        for call in choice.delta.tool_calls or []:
                            known = calls.setdefault(call.index, {"id": call.id, "name": call.function.name, "a": ""})
                            known["a"] += call.function.arguments or ""
                calls = [
                    {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["a"]}}
                    for c in calls.values()
                ]
            else:
                answer = client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
                message, usage = answer.choices[0].message, answer.usage
                text = message.content or ""
                calls = [call.model_dump() for call in message.tool_calls or []]
            count(usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens, 0, usage.completion_tokens)
            reply = {"role": "assistant", "content": text}
            if calls:
                reply["tool_calls"] = calls
            messages.append(reply)
            if not calls:
                words.append(text)
                break
            for call in calls:
                assert json.loads(call["function"]["arguments"]) == {"command": "ls"}
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": "a.txt b.txt"})
    return words


def responses(stream):
    client = openai.OpenAI(base_url=BASE + "/v1", api_key="dummy", max_retries=0)
    tools = [{"type": "function", "name": "terminal", "description": "run", "parameters": SCHEMA, "strict": False}]
    items, words = [], []
    for say in SAY:
        items.append({"role": "user", "content": say})
        while True:
            arguments = {"model": MODEL, "instructions": SYSTEM, "input": items, "tools": tools}
            if stream:
                with client.responses.stream(**arguments) as events:
                    for _ in events:
                        pass
                    answer = events.get_final_response()
            else:
                answer = client.responses.create(**arguments)
            usage = answer.usage
            count(usage.input_tokens, usage.input_tokens_details.cached_tokens, 0, usage.output_tokens)
            calls = [item for item in answer.output if item.type == "function_call"]
            for item in answer.output:
                fields = item.model_dump(exclude_none=True)
                fields.pop("parsed_arguments", None)
                for part in fields.get("content") or []:
                    part.pop("parsed", None)
                items.append(fields)
            if not calls:
                words.append(answer.output_text)
                break
            for call in calls:
                assert json.loads(call.arguments) == {"command": "ls"}
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": "a.txt b.txt"})
    return words


def messages(stream):
    client = anthropic.Anthropic(base_url=BASE, api_key="dummy", max_retries=0)
    tools = [{"name": "terminal", "description": "run", "input_schema": SCHEMA}]
    system = [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]
    history, words = [], []
    for say in SAY:
        history.append({"role": "user", "content": say})
        while True:
            arguments = {"model": MODEL, "max_tokens": 500, "system": system, "messages": history, "tools": tools}
            if stream:
                with client.messages.stream(**arguments) as events:
                    for _ in events:
                        pass
                    answer = events.get_final_message()
            else:
                answer = client.messages.create(**arguments)
            usage = answer.usage
            read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
            count(usage.input_tokens + read + written, read, written, usage.output_tokens)
            kept = {"text": ("type", "text"), "tool_use": ("type", "id", "name", "input")}
            blocks = [{name: getattr(block, name) for name in kept[block.type]} for block in answer.content]
            history.append({"role": "assistant", "content": blocks})
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                words.append("".join(block.text for block in answer.content if block.type == "text"))
                break
            for call in calls:
                assert call.input == {"command": "ls"}, call.input
            results = [{"type": "tool_result", "tool_use_id": call.id, "content": "a.txt b.txt"} for call in calls]
            history.append({"role": "user", "content": results})
    return words


def errors():
    """A fault of the history, as the SDKs raise it."""
    orphan = [{"role": "tool", "tool_call_id": "c9", "content": "x"}, {"role": "user", "content": SAY[0]}]
    try:
        openai.OpenAI(base_url=BASE + "/v1", api_key="dummy").chat.completions.create(model=MODEL, messages=orphan)
    except openai.BadRequestError as error:
        yield type(error).__name__, error.type
    orphan = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t9", "content": "x"}]}]
    try:
        anthropic.Anthropic(base_url=BASE, api_key="dummy").messages.create(
            model=MODEL, max_tokens=5, messages=orphan
        )
    except anthropic.BadRequestError as error:
        yield type(error).__name__, error.body["error"]["type"]


for name, play in (("chat", chat), ("responses", responses), ("messages", messages)):
    for stream in (False, True):
        seen["answers"][f"{name}{' streamed' if stream else ''}"] = play(stream)
anthropic_client = anthropic.Anthropic(base_url=BASE, api_key="dummy")
counted = anthropic_client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": SAY[0]}])
seen["counted"] = counted.input_tokens
seen["models"] = [model.id for model in openai.OpenAI(base_url=BASE + "/v1", api_key="dummy").models.list()]
seen["models"] += [model.id for model in anthropic_client.models.list()]
seen["errors"] = list(errors())
print(json.dumps(seen))
