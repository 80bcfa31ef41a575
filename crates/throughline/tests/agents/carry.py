"""Sessions of the real agents, carried to each other and resumed there, and what the backend was sent then.

Usage: carry.py THROUGHLINE BIN, where BIN has `claude` and `codex`.
"""

import atexit
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

THROUGHLINE, BIN = sys.argv[1], sys.argv[2]
SECONDS_MAX = 120


class User:
    """Somebody with a home of their own, a project and a backend behind each agent."""

    def __init__(self, folder):
        self.home = folder / "home"
        self.project = folder / "project"
        for path in (self.home / ".codex", self.project):
            path.mkdir(parents=True)
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ANTHROPIC_AUTH_TOKEN": "none",
            "DISABLE_AUTOUPDATER": "1",
        }
        (self.project / "notes.txt").write_text("alpha\nbeta\n")
        (self.project / "b.txt").write_text("one\ntwo\n")

    def run(self, *command):
        done = subprocess.run(
            command, cwd=self.project, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS_MAX,
        )
        if done.returncode != 0:
            sys.exit(f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def throughline(self, *args):
        return self.run(THROUGHLINE, *args, "--data", str(self.home / "data"), "--json")

    def claude(self, backend, *args, prompt="Go on"):
        self.environment["ANTHROPIC_BASE_URL"] = backend.url
        return self.run("claude", "-p", prompt, "--model", "claude-sonnet-4-5", "--allowedTools", "Read,Edit,Bash", *args)

    def codex(self, backend, *args):
        (self.home / ".codex/config.toml").write_text(
            'model = "gpt-5-codex"\nmodel_provider = "sim"\napproval_policy = "never"\n'
            'sandbox_mode = "danger-full-access"\n'
            f'[model_providers.sim]\nname = "sim"\nbase_url = "{backend.url}/v1"\nwire_api = "responses"\n'
        )
        return self.run("codex", "exec", "--skip-git-repo-check", *args, "Go on")

    def carry(self, source, to, *options):
        return json.loads(self.throughline("carry", source, "--to", to, *options).splitlines()[-1])


class Backend:
    """A simulated backend that follows a script and refuses what the providers refuse."""

    def __init__(self, folder, turns):
        script = folder / f"script-{id(turns)}.json"
        script.write_text(json.dumps({"turns": turns}))
        self.process = subprocess.Popen(
            [THROUGHLINE, "sim", "--listen", "127.0.0.1:0", "--script", str(script)], stdout=subprocess.PIPE, text=True
        )
        # A check that fails ends the program, and nothing of it is to be left.
        atexit.register(self.process.kill)
        line = self.process.stdout.readline()
        self.url = "http://" + line.split("http://")[1].split("/v1")[0]

    def requests(self):
        """Returns the bodies that it was sent; all of them must have been accepted."""
        with urllib.request.urlopen(f"{self.url}/__recorded") as answer:
            recorded = [json.loads(line) for line in answer]
        bodies = [each for each in recorded if each["body"]]
        refused = [each for each in bodies if each["status"] != 200]
        check("nothing is refused", not refused, refused)
        return [json.loads(each["body"]) for each in bodies]

    def request(self):
        """Returns the body that says most: agents ask side questions too, whenever they like."""
        return max(self.requests(), key=lambda body: len(body.get("messages") or body.get("input") or []))

    def stop(self):
        self.process.terminate()
        self.process.wait()


checks = 0


def check(what, holds, *details):
    global checks
    checks += 1
    if not holds:
        sys.exit(f"FAILED: {what}\n" + "\n".join(json.dumps(detail, indent=1)[:4000] for detail in details))


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


def pairs_of_messages(body):
    """Returns the pairs of a Messages request: arguments and result, in the order of the calls."""
    blocks = [block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]]
    results = {block["tool_use_id"]: block for block in blocks if block["type"] == "tool_result"}
    calls = [block for block in blocks if block["type"] == "tool_use"]
    return [(block["name"], block["input"], text(results[block["id"]]["content"])) for block in calls]


def pairs_of_responses(body):
    outputs = {item["call_id"]: item for item in body["input"] if item["type"].endswith("_call_output")}
    calls = [item for item in body["input"] if item["type"] in ("function_call", "custom_tool_call")]
    arguments = lambda item: json.loads(item["arguments"]) if "arguments" in item else item["input"]
    return [(item["name"], arguments(item), text(outputs[item["call_id"]]["output"])) for item in calls]


def text(content):
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def results(pairs):
    return [result for _, _, result in pairs]


def marked(result, body):
    """Says whether a result arrived word for word; where a dialect has no mark for failures, a line in front is one."""
    return result == body or body == f"[tool error]\n{result}"


def claude_to_codex_and_back(user, folder):
    notes, other = str(user.project / "notes.txt"), str(user.project / "b.txt")
    first = Backend(folder, [
        {"reasoning": "Both at once.", "text": "I will read both.",
         "calls": [call("Read", file_path=notes), call("Read", file_path=other)]},
        {"calls": [call("Edit", file_path=notes, old_string="beta", new_string="gamma")]},
        {"calls": [call("Bash", command="cat notes.txt && echo 'ünï \"quoted\"'")]},
        {"text": "Now one that fails.", "calls": [call("Bash", command="ls /nowhere-at-all", description="List")]},
        {"text": "Done."},
    ])
    user.claude(first)
    lived = pairs_of_messages(first.request())
    first.stop()
    check("the session has every kind of call", [name for name, _, _ in lived] == ["Read", "Read", "Edit", "Bash", "Bash"], lived)
    check("the failed command failed", "Exit code" in lived[-1][2], lived)

    second = Backend(folder, [{"text": "Went on."}])
    carried = user.carry("claude-code", "codex")
    user.codex(second, "resume", carried["session"])
    arrived = pairs_of_responses(second.request())
    second.stop()
    check("every pair arrives at Codex", len(arrived) == len(lived), arrived)
    for (name, arguments, result), (name_there, arguments_there, there) in zip(lived, arrived):
        check("the result is there word for word", marked(result, there), result, there)
        mapped = {"cmd": arguments["command"]} if name_there == "exec_command" else arguments
        check("the arguments are there", arguments_there == mapped, arguments, arguments_there)
        check("the name is its own or the same tool's", name_there == name or (name, name_there) == ("Bash", "exec_command"))

    third = Backend(folder, [{"text": "And back."}])
    back = user.carry("codex", "claude-code")
    check("it is another session", back["session"] != carried["session"])
    user.claude(third, "--resume", back["session"])
    returned = pairs_of_messages(third.request())
    third.stop()
    check("there and back every pair is the same", returned == lived, lived, returned)


def codex_to_claude(user, folder):
    first = Backend(folder, [
        {"reasoning": "Both at once.", "text": "Looking.",
         "calls": [call("exec_command", cmd="cat notes.txt"), call("exec_command", cmd="cat b.txt")]},
        {"calls": [call("exec_command", cmd="echo delta >>notes.txt", workdir=str(user.project))]},
        {"calls": [{"name": "apply_patch", "input": "*** Begin Patch\n*** Delete File: none.txt\n*** End Patch"}]},
        {"calls": [call("exec_command", cmd="ls /nowhere-at-all")]},
        {"text": "Done."},
    ])
    user.codex(first)
    lived = pairs_of_responses(first.request())
    first.stop()
    check("the session has every kind of call", len(lived) == 5, lived)

    second = Backend(folder, [{"text": "Went on."}])
    carried = user.carry("codex", "claude-code")
    user.claude(second, "--resume", carried["session"])
    arrived = pairs_of_messages(second.request())
    second.stop()
    check("every result arrives at Claude Code word for word", results(arrived) == results(lived), lived, arrived)
    names = [name for name, _, _ in arrived]
    check("the same tools have their names there", names == ["Bash", "Bash", "exec_command", "apply_patch", "Bash"], names)


def shortened(user, folder):
    """However little fits, what the user said is what the other agent shows to its backend."""
    task = "Mend the parser of dates, and nothing else."
    (user.project / "long.txt").write_text("".join(f"line {number} of a long file\n" for number in range(200)))
    reads = [{"calls": [call("Bash", command=f"cat long.txt # {number}")]} for number in range(60)]
    reads[0]["reasoning"] = "One after another."
    first = Backend(folder, [*reads, {"text": "Done."}])
    user.claude(first, prompt=task)
    first.stop()
    session = max((user.home / ".claude/projects").rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    for to, resume in [("codex", user.codex), ("claude-code", user.claude)]:
        second = Backend(folder, [{"text": "Went on."}])
        carried = user.carry("claude-code", to, "--session", str(session), "--budget", "3000")
        resume(second, "resume" if to == "codex" else "--resume", carried["session"])
        sent = json.dumps(second.request())
        second.stop()
        check(f"the calls were shortened for {to}", "Earlier in this session" in sent, sent)
        check(f"{to} shows what the user asked for", task in sent, sent)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, story in [
            ("claude", claude_to_codex_and_back), ("codex", codex_to_claude), ("shortened", shortened),
        ]:
            (folder / name).mkdir()
            story(User(folder / name), folder / name)
    print(f"the real agents carry on: {checks} checks")


main()
