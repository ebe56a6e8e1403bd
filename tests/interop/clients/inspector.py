"""The CLI of the Inspector, one process for each thing asked.

``TROTH_NODE`` is a Node.js, ``TROTH_INSPECTOR`` the script. It cannot complete, listen or show notifications.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from seen import SECONDS, Seen, words

NODE, SCRIPT = os.environ["TROTH_NODE"], os.environ["TROTH_INSPECTOR"]


def ask(mode: str, target: list[str], method: str, *more: str) -> dict[str, Any]:
    """The answer of one call of the CLI."""
    command = [NODE, SCRIPT, "--cli", *target, "--protocol-era", mode, "--method", method, *more, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS, check=False)
    if done.returncode and not done.stdout.strip():
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-800:]}")
    answer = json.loads(done.stdout)
    return answer.get("result", answer)


def main() -> None:
    mode, url, command = words()
    target = [url] if url else command

    def asked(method: str, *more: str) -> dict[str, Any]:
        return ask(mode, target, method, *more)

    def call(name: str, *given: str) -> dict[str, Any]:
        return asked("tools/call", "--tool-name", name, *(("--tool-arg", *given) if given else ()))

    seen = Seen()
    seen.tools = sorted(tool["name"] for tool in asked("tools/list")["tools"])
    seen.prompts = sorted(prompt["name"] for prompt in asked("prompts/list")["prompts"])
    seen.resources = sorted(one["uri"] for one in asked("resources/list")["resources"])
    seen.templates = [one["uriTemplate"] for one in asked("resources/templates/list")["resourceTemplates"]]
    seen.structured = call("test_structured_content", "a=2", "b=3")["structuredContent"]
    seen.contents = [block["type"] for block in call("test_multiple_content_types")["content"]]
    seen.error = bool(call("test_error_handling").get("isError"))
    given = ("--prompt-name", "test_prompt_with_arguments", "--prompt-args", "arg1=one", "arg2=two")
    seen.prompt = asked("prompts/get", *given)["messages"][0]["content"]["text"]
    seen.read = asked("resources/read", "--uri", "test://static-text")["contents"][0]["text"]
    seen.template = asked("resources/read", "--uri", "test://template/7/data")["contents"][0]["text"]
    seen.show()


if __name__ == "__main__":
    main()
