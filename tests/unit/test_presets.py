"""Which tools a model is given."""

import subprocess
import sys
from pathlib import Path

import pytest

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.errors import SettingsError
from oh_kernel.events import SystemPromptEvent
from oh_kernel.kernel.completion import complete
from oh_kernel.loop import run_blocking
from oh_kernel.settings import load_settings
from oh_kernel.tools.presets import (
    ALL_TOOLS,
    PRESETS,
    Resources,
    make_executor,
    preset_for,
    tool_named,
    tools_named,
    tools_of,
)
from tests.conversations import Scripted, say

OURS = {"ipython", "notebook_editor"}
OF_THE_CONTRACT = {
    "default": {"terminal", "file_editor", "task_tracker", "think", "finish"},
    "gpt5": {"terminal", "apply_patch", "task_tracker", "think", "finish"},
    "gemini": {
        *("terminal", "read_file", "write_file", "edit", "list_directory"),
        *("task_tracker", "think", "finish"),
    },
    "planning": {"glob", "grep", "planning_file_editor", "think", "finish"},
}


def names(wanted: str, model: str | None = None) -> list[str]:
    return [tool.name for tool in tools_named(wanted, model)]


@pytest.mark.parametrize("preset", PRESETS)
def test_preset_has_the_tools_of_the_contract_and_ours(preset: str) -> None:
    assert set(names(preset)) - OURS == OF_THE_CONTRACT[preset]
    assert (set(names(preset)) >= OURS) is (preset != "planning")


def test_a_model_that_acts_by_code_has_what_runs_code() -> None:
    for tool_calls, tools, expected in (
        ("code", "auto", ["ipython", "terminal"]),
        ("code", "default", names("default")),
        ("text", "auto", names("default")),
    ):
        settings = load_settings({"tool_calls": tool_calls, "tools": tools}, environ={})
        assert [tool.name for tool in tools_of(settings)] == expected


@pytest.mark.parametrize(
    ("model", "preset"),
    [
        ("openai:gpt-5", "gpt5"),
        ("openai/gpt-5.1-codex-max", "gpt5"),
        ("openrouter:openai/gpt-5-mini", "gpt5"),
        ("openai:gpt-6-luna", "gpt5"),
        ("openai-responses:o3", "gpt5"),
        ("openai:o4-mini-high", "gpt5"),
        ("openai:codex-mini-latest", "gpt5"),
        ("GPT-5", "gpt5"),
        ("google:gemini-3.8-flash", "gemini"),
        ("openrouter:google/gemini-4-carbon", "gemini"),
        ("gemini:gemini-3.8-flash", "gemini"),
        ("openai:gpt-4o", "default"),
        ("groq:openai/gpt-oss-120b", "default"),
        ("anthropic:claude-opus-5-5", "default"),
        ("ollama:qwen3:8b", "default"),
        ("ollama:olmo2", "default"),
        ("scripted:demo.json", "default"),
        (None, "default"),
    ],
)
def test_preset_follows_the_family_of_the_model(model: str | None, preset: str) -> None:
    assert preset_for(model) == preset
    assert names("auto", model) == names(preset)


def test_list_of_tools_in_their_order_and_each_once() -> None:
    assert names("think, terminal,think,") == ["think", "terminal"]
    assert names("terminal") == ["terminal"]


def test_preset_that_is_named_wins_over_the_family() -> None:
    assert names("default", "openai:gpt-5") == names("default")


def test_preset_may_stand_in_a_list() -> None:
    assert names("default,grep,terminal") == [*names("default"), "grep"]
    assert names("auto, glob", "openai:gpt-5") == [*names("gpt5"), "glob"]


@pytest.mark.parametrize("wanted", ["none", "", ",", "gpt-5"])
def test_what_is_neither_preset_nor_tool_names_both(wanted: str) -> None:
    with pytest.raises(SettingsError) as error:
        tools_named(wanted)
    assert repr(wanted) in str(error.value)
    assert "auto, default" in str(error.value) and "terminal" in str(error.value)


def test_unknown_tool_in_a_list_is_named() -> None:
    with pytest.raises(SettingsError, match="no tool 'colour'"):
        tools_named("terminal,colour")


@pytest.mark.parametrize("name", ALL_TOOLS)
def test_executor_of_each_tool_is_made_and_closed_without_being_used(
    name: str, tmp_path: Path
) -> None:
    executor = make_executor(tool_named(name), tmp_path, load_settings(environ={}), Resources())
    assert executor.workspace == tmp_path
    executor.close()
    executor.close()


def test_listing_the_tools_imports_none_of_them() -> None:
    code = (
        "import sys, oh_kernel.tools.presets as p; "
        "print([n for n in p.ALL_TOOLS if f'oh_kernel.tools.{n}' in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_presets_and_tools_are_offered_on_tab() -> None:
    offered = complete("--tools ")[1]
    assert offered == ["auto", *PRESETS, *ALL_TOOLS]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def prompts(conversation: Conversation) -> list[SystemPromptEvent]:
    return [event for event in conversation.events if isinstance(event, SystemPromptEvent)]


def kinds(prompt: SystemPromptEvent) -> list[str]:
    return [tool.kind for tool in prompt.tools]


def test_another_model_brings_its_tools_and_the_log_says_so(work: Path) -> None:
    settings = load_settings({"model": "anthropic:claude-opus-5-5"}, environ={})
    store = work.parent / "events.sqlite"
    with Conversation(work, settings=settings, store_path=store) as conversation:
        conversation.send_message("hello")
        changed = conversation.settings.with_(model="openai:gpt-5")
        run_blocking(conversation.use(changed))
        run_blocking(conversation.use(changed.with_(max_steps=3)))
        first, second = prompts(conversation)
    assert kinds(first) == [ALL_TOOLS[name] for name in PRESETS["default"]]
    assert kinds(second) == [ALL_TOOLS[name] for name in PRESETS["gpt5"]]
    assert "`file_editor`" in first.system_prompt.text
    assert "`file_editor`" not in second.system_prompt.text
    assert "`apply_patch`" in second.system_prompt.text


def test_tools_given_to_a_conversation_stay_whatever_the_settings_say(work: Path) -> None:
    with Scripted(work, [say("hi")], tools=["think", "finish"]) as scripted:
        scripted.ask()
        conversation = scripted.conversation
        run_blocking(conversation.use(conversation.settings.with_(tools="default")))
        assert [kinds(prompt) for prompt in prompts(conversation)] == [["ThinkTool", "FinishTool"]]


def test_preset_given_to_a_conversation_is_a_setting(work: Path) -> None:
    with Scripted(work, [say("hi")], tools="think,finish") as scripted:
        assert scripted.conversation.settings.tools == "think,finish"
        scripted.ask()
        (prompt,) = prompts(scripted.conversation)
        assert kinds(prompt) == ["ThinkTool", "FinishTool"]


def test_a_tool_that_is_given_twice_is_offered_once(work: Path) -> None:
    with Scripted(work, [say("done")], tools=["think", "think", "finish"]) as scripted:
        scripted.ask()
        prompts = [e for e in scripted.conversation.events if isinstance(e, SystemPromptEvent)]
        assert [tool.title for tool in prompts[0].tools] == ["think", "finish"]
