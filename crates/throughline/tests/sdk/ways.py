"""The real SDKs of OpenAI and Anthropic as clients of the gateway.

Each backend is tried by each kind of client, with a two-turn tool conversation, whole and streamed. The
simulated model quotes what its tools said, so an answer shows whether a result arrived.

Arguments: the address of a gateway, then a model name for each backend.
"""

import sys

from anthropic import Anthropic
from openai import OpenAI

URL, MODELS = sys.argv[1], sys.argv[2:]
openai = OpenAI(base_url=URL + "/v1", api_key="none")
anthropic = Anthropic(base_url=URL, api_key="none")

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
QUESTION = "Please read the file a.txt"
CONTENT = 'line one\nline "two", \t96.50 \u00b0C\n'


def chat(model, stream):
    function = {"name": "read_file", "description": "Reads a file", "parameters": SCHEMA}
    tools = [{"type": "function", "function": function}]
    messages = [{"role": "user", "content": QUESTION}]

    def ask():
        if not stream:
            return openai.chat.completions.create(model=model, messages=messages, tools=tools)
        with openai.chat.completions.stream(model=model, messages=messages, tools=tools) as events:
            return events.get_final_completion()

    message = ask().choices[0].message
    call = message.tool_calls[0]
    arguments = {"name": call.function.name, "arguments": call.function.arguments}
    calls = [{"id": call.id, "type": "function", "function": arguments}]
    messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
    messages.append({"role": "tool", "tool_call_id": call.id, "content": CONTENT})
    assert CONTENT in ask().choices[0].message.content


def messages(model, stream):
    tools = [{"name": "read_file", "description": "Reads a file", "input_schema": SCHEMA}]
    talk = [{"role": "user", "content": QUESTION}]

    def ask():
        if not stream:
            return anthropic.messages.create(model=model, max_tokens=500, messages=talk, tools=tools)
        with anthropic.messages.stream(model=model, max_tokens=500, messages=talk, tools=tools) as events:
            return events.get_final_message()

    answer = ask()
    call = next(block for block in answer.content if block.type == "tool_use")
    talk.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]})
    result = {"type": "tool_result", "tool_use_id": call.id, "content": CONTENT}
    talk.append({"role": "user", "content": [result]})
    assert CONTENT in "".join(block.text for block in ask().content if block.type == "text")


def responses(model, stream):
    function = {"name": "read_file", "description": "Reads a file", "parameters": SCHEMA, "strict": False}
    tools = [{"type": "function", **function}]

    def ask(**fields):
        if not stream:
            return openai.responses.create(model=model, tools=tools, **fields)
        with openai.responses.stream(model=model, tools=tools, **fields) as events:
            return events.get_final_response()

    first = ask(input=QUESTION)
    call = next(item for item in first.output if item.type == "function_call")
    output = {"type": "function_call_output", "call_id": call.call_id, "output": CONTENT}
    second = ask(input=[output], previous_response_id=first.id)
    assert CONTENT in second.output_text
    assert openai.responses.retrieve(second.id).id == second.id
    openai.responses.delete(second.id)


def background(model, stream):
    if stream:
        events = list(openai.responses.create(model=model, input=QUESTION, background=True, stream=True))
        assert [event.sequence_number for event in events] == list(range(len(events)))
        response = events[-1].response
        again = openai.responses.retrieve(response.id, stream=True, starting_after=events[1].sequence_number)
        assert [event.type for event in again] == [event.type for event in events[2:]]
    else:
        response = openai.responses.create(model=model, input=QUESTION, background=True)
        while response.status in ("queued", "in_progress"):
            response = openai.responses.retrieve(response.id)
    assert response.status == "completed" and response.output_text
    assert openai.responses.cancel(response.id).status == "completed"


def compaction(model, stream):
    compacted = openai.responses.compact(model=model, input=QUESTION)
    # The SDK takes every message of an answer for one of the assistant.
    items = [item.model_dump(exclude_none=True, warnings=False) for item in compacted.output]
    assert items[-1]["type"] == "compaction"
    fields = {"model": model, "input": items + [{"role": "user", "content": "Where were we?"}]}
    if not stream:
        assert openai.responses.create(**fields).output_text
        return
    with openai.responses.stream(**fields) as events:
        assert events.get_final_response().output_text


def conversation(model, stream):
    items = [{"role": "user", "content": "The word is tangerine."}, {"role": "assistant", "content": "Noted."}]
    begun = openai.conversations.create(items=items)
    fields = {"model": model, "input": "From memory: what is the word?", "conversation": begun.id}
    if stream:
        with openai.responses.stream(**fields) as events:
            response = events.get_final_response()
    else:
        response = openai.responses.create(**fields)
    assert response.conversation.id == begun.id and "tangerine" in response.output_text
    assert len(list(openai.conversations.items.list(begun.id))) == 4
    openai.conversations.delete(begun.id)


passed = 0
for model in MODELS:
    for client in (chat, messages, responses, background, compaction, conversation):
        for stream in (False, True):
            client(model, stream)
            passed += 1
print(f"{passed} passed, 0 failed")
