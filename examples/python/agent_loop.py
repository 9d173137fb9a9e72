#!/usr/bin/env python3
"""An agent's tool loop on a sandbox: the agent works, you see a diff, and it is written back only if
the tests pass.

    sh examples/project.sh /tmp/project
    python3 examples/python/agent_loop.py /tmp/project

No model is asked: a script plays its part, so that this runs anywhere and always does the same.
`ScriptedModel.reply` is the place for a real one.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional

from ringfence import ExecResult, Sandbox, SandboxError

TESTS = "python3 -B -m unittest tests/test_app.py"
MOST_STEPS = 20
MOST_CHARACTERS = 4000

# Everything may be read and changed but what the preset hides, and the tests: an agent that may
# change those can always make them pass.
RULES = [{"pattern": "/tests/**", "permission": "read", "priority": 50}]


@dataclass
class ToolCall:
    name: str
    arguments: Dict[str, str]


@dataclass
class Reply:
    """What a model says: tools to call, or, without any, that it is done."""

    text: str
    calls: List[ToolCall] = field(default_factory=list)


class Tools:
    """What the agent can do. Each answer is a text, since that is what a model reads; a refusal is
    an answer too, so that the agent can take another way."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._by_name: Dict[str, Callable[..., str]] = {
            "run_command": self.run_command,
            "read_file": self.read_file,
            "write_file": self.write_file,
        }

    def call(self, call: ToolCall) -> str:
        tool = self._by_name.get(call.name)
        if tool is None:
            return f"error: there is no tool {call.name}; there are {', '.join(self._by_name)}"
        try:
            return tool(**call.arguments)
        except (SandboxError, TypeError) as error:
            return f"error: {error}"

    def run_command(self, command: str) -> str:
        return described(self._sandbox.run(command, timeout=120))

    # Calls for files have the owner's rights unless they ask for the agent's. These are made in the
    # agent's name.
    def read_file(self, path: str) -> str:
        return self._sandbox.read_file(path, view="agent")

    def write_file(self, path: str, content: str) -> str:
        self._sandbox.write_file(path, content, view="agent")
        return f"wrote {len(content)} characters"


def described(result: ExecResult) -> str:
    """A result for a model: the exit code, what was printed, and what the policy refused."""
    lines = [f"exit code {result.exit_code}", result.output.strip()[-MOST_CHARACTERS:]]
    for denial in result.denials:
        lines.append(f"refused by the policy: {denial.operation} {denial.path} "
                     f"(needs {denial.needed}, has {denial.level})")
    return "\n".join(line for line in lines if line)


class ScriptedModel:
    """Plays a model that was asked for a function `subtract`."""

    def __init__(self, body: str) -> None:
        self._replies = self._script(body)

    def reply(self, messages: List[Dict[str, Any]]) -> Reply:
        """The next reply to a conversation. A real model would be sent `messages` here."""
        return next(self._replies)

    @staticmethod
    def _script(body: str) -> Iterator[Reply]:
        yield Reply("I look at the project first.", [
            ToolCall("run_command", {"command": "ls -A"}),
            ToolCall("read_file", {"path": "src/app.py"}),
        ])
        yield Reply("Is there any configuration I should know of?", [
            ToolCall("run_command", {"command": "cat deploy.key"}),
        ])
        yield Reply("I may not know that. I write the function, and loosen a test.", [
            ToolCall("write_file", {"path": "src/app.py", "content": body}),
            ToolCall("write_file", {"path": "tests/test_app.py", "content": "pass\n"}),
        ])
        yield Reply("The tests are not mine to change. I see whether they pass.", [
            ToolCall("run_command", {"command": TESTS}),
        ])
        yield Reply("`subtract` is there.")


CAREFUL = '''\
def add(a, b):
    return a + b


def subtract(a, b):
    return a - b
'''

CARELESS = CAREFUL.replace("a + b", "a - b")


def work(model: ScriptedModel, tools: Tools, task: str) -> None:
    """The loop: replies and the results of the tools they call, until there is no call."""
    messages: List[Dict[str, Any]] = [{"role": "user", "content": task}]
    for _ in range(MOST_STEPS):
        reply = model.reply(messages)
        print(f"agent: {reply.text}")
        messages.append({"role": "assistant", "content": reply.text})
        if not reply.calls:
            return
        for call in reply.calls:
            answer = tools.call(call)
            print(f"  {call.name} {shown(call)}\n{indented(answer)}")
            messages.append({"role": "tool", "name": call.name, "content": answer})
    print(f"the agent did not come to an end in {MOST_STEPS} steps")


def shown(call: ToolCall) -> str:
    return json.dumps({name: value if len(value) <= 60 else value[:59] + "…"
                       for name, value in call.arguments.items()})


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.rstrip().splitlines())


def decide(sandbox: Sandbox) -> bool:
    """Shows what was changed, and writes it to the directory if the tests pass with it."""
    print(f"\nchanges:\n{sandbox.diff()}")
    # In a fork, so that nothing the tests leave behind counts as the agent's work.
    with sandbox.fork() as trial:
        tested = trial.run(TESTS, timeout=300)
    if not tested.success:
        print(f"the tests fail, nothing is applied:\n{indented(tested.output)}")
        return False
    # The sandbox must not run while the directory below it is written to.
    applied = sandbox.stop().apply()
    print(f"the tests pass; applied: {', '.join(change.path for change in applied.applied)}")
    return True


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        description="Let an agent work on a project, and apply what it did if the tests pass.")
    parser.add_argument("directory", help="the project; examples/project.sh makes one")
    parser.add_argument("--careless", action="store_true", help="let the agent make a mistake")
    asked = parser.parse_args(arguments)
    model = ScriptedModel(CARELESS if asked.careless else CAREFUL)
    # upload=False: what is applied is to land in this directory, not in a copy on some server.
    with Sandbox.from_local(
            asked.directory, preset="development", permissions=RULES, upload=False) as sandbox:
        work(model, Tools(sandbox), "Add a function subtract(a, b) to src/app.py.")
        return 0 if decide(sandbox) else 1


if __name__ == "__main__":
    sys.exit(main())
