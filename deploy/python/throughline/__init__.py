"""A client of Throughline, the gateway that owns the tool history of LLM agents.

The wheel carries the program. `Gateway()` starts it and stops it again; `Throughline(url)` speaks to one that runs. Nothing but the
standard library is needed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, TypedDict, Union

__all__ = ["Conversation", "Gateway", "Hit", "Pair", "Throughline", "ThroughlineError", "Usage", "program"]

Json = Dict[str, Any]


class Hit(TypedDict, total=False):
    """Something that a search found."""

    conversation: str
    entry: str
    at: str
    kind: str
    tool: Optional[str]
    exit_code: Optional[int]
    snippet: str
    title: Optional[str]


class Pair(TypedDict, total=False):
    """A tool call and its result."""

    call: Optional[Json]
    result: Optional[Json]
    state: str
    exit_code: Optional[int]


class Conversation(TypedDict, total=False):
    """A conversation in a list, with what it used."""

    id: str
    created: str
    updated: str
    title: Optional[str]
    backend: Optional[str]
    client: Optional[str]
    model: Optional[str]
    entries: int
    exchanges: int
    usage_total: Optional[Json]
    cost: Optional[Json]


class Usage(TypedDict):
    """Tokens of several conversations together."""

    conversations: int
    tokens: Dict[str, int]


class ThroughlineError(Exception):
    """Something that Throughline refused, with its own words."""

    def __init__(self, message: str, status: Optional[int] = None, code: Optional[str] = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def program() -> str:
    """Returns the path of the program: `THROUGHLINE_PROGRAM`, the one of this wheel, or the one on the PATH."""
    given = os.environ.get("THROUGHLINE_PROGRAM")
    if given:
        return given
    beside = Path(sysconfig.get_path("scripts")) / "throughline"
    found = str(beside) if beside.is_file() else shutil.which("throughline")
    if not found:
        raise ThroughlineError("the program `throughline` is not installed here")
    return found


class Throughline:
    """A gateway that runs."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:4141",
        key: Optional[str] = None,
        *,
        timeout: float = 60.0,
        arguments: Sequence[str] = (),
    ) -> None:
        self.url = url.rstrip("/")
        self._key = key if key is not None else os.environ.get("THROUGHLINE_KEY")
        self._timeout = timeout
        # What names the configuration and the history where the program is started from here.
        self._arguments = list(arguments)

    def run(
        self,
        prompt: str,
        *,
        cwd: Union[str, Path, None] = None,
        backend: Optional[str] = None,
        model: Optional[str] = None,
        approve: str = "none",
        max_tool_calls: Optional[int] = None,
        conversation: Optional[str] = None,
    ) -> Iterator[Json]:
        """Runs an agent task with tools in a directory and yields its frames; `approve` says what runs without asking."""
        command = [program(), *self._arguments, "run", "--json", "--approve", approve]
        options = {"--cwd": cwd, "--backend": backend, "--model": model, "--continue": conversation}
        options["--max-tool-calls"] = None if max_tool_calls is None else str(max_tool_calls)
        for name, value in options.items():
            if value is not None:
                command += [name, str(value)]
        process = subprocess.Popen(
            [*command, "--", prompt], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None and process.stderr is not None
        try:
            for line in process.stdout:
                yield json.loads(line)
            errors = process.stderr.read()
            # 1 says that the run did not complete, and the last frame says why.
            if process.wait() not in (0, 1):
                raise ThroughlineError(errors.strip() or f"the run ended with exit code {process.returncode}")
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait()
            process.stdout.close()
            process.stderr.close()

    def conversations(self, *, limit: Optional[int] = None, totals: bool = False) -> Iterator[Conversation]:
        """Yields conversations, the latest first; with `totals`, each with what it used."""
        parameters = {"totals": "true"} if totals else {}
        yield from self._pages("/api/conversations", "conversations", parameters, limit)

    def search(
        self,
        query: str = "",
        *,
        tool: Optional[str] = None,
        path: Optional[str] = None,
        command: Optional[str] = None,
        failed: bool = False,
        conversation: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = 20,
    ) -> Iterator[Hit]:
        """Searches tool history and talk, the latest first."""
        given = {
            "q": query,
            "tool": tool,
            "path": path,
            "command": command,
            "failed": "true" if failed else None,
            "conversation": conversation,
            "since": since,
            "until": until,
        }
        yield from self._pages("/api/search", "hits", {name: value for name, value in given.items() if value}, limit)

    def pairs(self, conversation: str) -> List[Pair]:
        """Returns the tool calls of a conversation with their results."""
        pairs: List[Pair] = self._request("GET", f"/api/conversations/{quoted(conversation)}/pairs")["pairs"]
        return pairs

    def switch(self, backend: Optional[str], *, conversation: Optional[str] = None) -> Json:
        """Switches to a backend, or BACKEND/MODEL, from the next request on; None takes the switch back."""
        path = f"/api/conversations/{quoted(conversation)}/backend" if conversation else "/api/active"
        return self._request("PUT", path, {"backend": backend})

    def usage(self, *, limit: Optional[int] = None) -> Usage:
        """Adds up the tokens of the latest conversations, or of all of them."""
        tokens: Dict[str, int] = {}
        count = 0
        for conversation in self.conversations(limit=limit, totals=True):
            count += 1
            for name, value in (conversation.get("usage_total") or {}).items():
                if isinstance(value, int):
                    tokens[name] = tokens.get(name, 0) + value
        return {"conversations": count, "tokens": tokens}

    def _pages(self, path: str, items: str, parameters: Dict[str, str], limit: Optional[int]) -> Iterator[Any]:
        left = limit
        while left is None or left > 0:
            size = 100 if left is None else min(left, 100)
            query = urllib.parse.urlencode({**parameters, "limit": str(size)})
            page = self._request("GET", f"{path}?{query}")
            yield from page[items]
            left = None if left is None else left - len(page[items])
            if not page.get("next"):
                return
            parameters = {**parameters, "after": page["next"]}

    def _request(self, method: str, path: str, body: Optional[Json] = None) -> Json:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("content-type", "application/json")
        if self._key:
            request.add_header("authorization", f"Bearer {self._key}")
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:
                answer: Json = json.load(response)
                return answer
        except urllib.error.HTTPError as error:
            raise refused(error) from None
        except urllib.error.URLError as error:
            raise ThroughlineError(f"no gateway answers at {self.url} ({error.reason}); is `throughline serve` running?") from None


class Gateway(Throughline):
    """A gateway of its own: it is started on a free port, and stopped at the end of the `with` block."""

    def __init__(
        self, *, config: Union[str, Path, None] = None, data: Union[str, Path, None] = None, key: Optional[str] = None
    ) -> None:
        arguments: List[str] = []
        for name, value in (("--config", config), ("--data", data)):
            if value is not None:
                arguments += [name, str(value)]
        super().__init__("", key, arguments=arguments)
        self._process: Optional[subprocess.Popen[str]] = None

    def __enter__(self) -> "Gateway":
        command = [program(), *self._arguments, "serve", "--listen", "127.0.0.1:0", "--json"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ThroughlineError(f"the gateway did not start (exit code {self._process.wait()})")
        self.url = json.loads(line)["ready"]
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()


def quoted(part: str) -> str:
    """Returns a part of a path."""
    return urllib.parse.quote(part, safe="")


def refused(error: urllib.error.HTTPError) -> ThroughlineError:
    """Returns what a refusal says."""
    try:
        told = json.load(error)["error"]
        return ThroughlineError(told["message"], error.code, told.get("code"))
    except (ValueError, KeyError, TypeError):
        return ThroughlineError(f"HTTP {error.code}", error.code)
