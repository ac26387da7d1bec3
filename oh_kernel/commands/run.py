"""How is one task done without a notebook?"""

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from oh_kernel.cli import options_given
from oh_kernel.commands.signals import ended_like_interrupts
from oh_kernel.commands.standard import Output
from oh_kernel.commands.stdout import only_ours
from oh_kernel.conversation.conversation import Conversation
from oh_kernel.conversation.log import Listener, Passing
from oh_kernel.conversation.lookup import found_in
from oh_kernel.conversation.state import Status
from oh_kernel.errors import ModelNotConfigured, SettingsError
from oh_kernel.events import Event, UserRejectObservation
from oh_kernel.llm.base import LLM
from oh_kernel.providers import how_to_set_a_model_in_a_terminal
from oh_kernel.security.registry import SecretWarning
from oh_kernel.security.secret_sources import EnvironmentSecret, SecretValue
from oh_kernel.settings import Settings, config_path, environment_variable, load_settings
from oh_kernel.views.console import ConsoleTranscript

EXIT = {Status.FINISHED: 0, Status.WAITING_FOR_CONFIRMATION: 3}
FAILED = 1

MakeLLM = Callable[[Settings, Path], LLM]


class JsonLines:
    """Writes each event as a line of JSON. A listener, called on the agent thread."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def event(self, event: Event) -> None:
        self._output.write(event.to_json() + "\n")

    def delta(self, delta: Passing) -> None:
        """Deltas are no events."""


def run(arguments: argparse.Namespace) -> int:
    """`oh-kernel run`: 0 finished, 1 failed, 3 waiting for a confirmation that nobody can give."""
    return do_task(arguments)


def do_task(arguments: argparse.Namespace, make_llm: MakeLLM | None = None) -> int:
    """Do the task of the command line, with the model that `make_llm` gives."""
    task = sys.stdin.read() if arguments.task == "-" else arguments.task
    if not task.strip():
        raise SettingsError("The task is empty.", remedy="Write it last, or - to read stdin.")
    settings = load_settings(options_given(arguments))
    if settings.model is None:
        how = how_to_set_a_model_in_a_terminal(config_path())
        raise ModelNotConfigured("No model is set.", remedy=how)
    stored = found_in(settings.store_file, arguments.resume) if arguments.resume else None
    settings = _entered(settings, arguments.folder or (stored.workspace if stored else None))
    goes_on_with = stored.id if stored else None
    secrets = _secrets_named(arguments.secrets)
    with ended_like_interrupts():
        if not arguments.json:
            output = Output(sys.stdout)
            console = ConsoleTranscript(output, workspace=settings.workspace)
            code = _turn(task, settings, goes_on_with, secrets, make_llm, console)
            return _told(output, code)
        with only_ours() as stream:
            output = Output(stream)
            code = _turn(task, settings, goes_on_with, secrets, make_llm, JsonLines(output))
            return _told(output, code)


def _told(output: Output, code: int) -> int:
    """The exit code, which tells of output that was lost; who stops reading (`| head`) knows."""
    if output.error is None or isinstance(output.error, BrokenPipeError):
        return code
    print(f"oh-kernel: the output could not be written: {output.error}", file=sys.stderr)
    return FAILED


def _entered(settings: Settings, folder: str | None) -> Settings:
    """The settings with the folder to work in, which is now the working folder: the agent's
    Python runs in this process.
    """
    workspace = Path(folder or settings.workspace or Path.cwd()).expanduser().resolve()
    if not workspace.is_dir():
        raise SettingsError(f"There is no folder {workspace}.", remedy="Make it, or name another.")
    os.chdir(workspace)
    return settings.with_("-C", workspace=workspace)


def _secrets_named(names: Sequence[str]) -> dict[str, SecretValue]:
    """The secrets of these names, whose values are in the environment: never on a command line."""
    for name in names:
        if not environment_variable(name):
            raise SettingsError(
                f"--secret {name}: the variable {name} is not set.",
                remedy="The flag takes the name alone; have the variable hold the value.",
            )
    return {name: EnvironmentSecret(variable=name) for name in names}


def _turn(
    task: str,
    settings: Settings,
    conversation_id: str | None,
    secrets: Mapping[str, SecretValue],
    make_llm: MakeLLM | None,
    listener: Listener,
) -> int:
    assert settings.workspace is not None
    llm = make_llm(settings, settings.workspace) if make_llm else None
    warnings.simplefilter("ignore", SecretWarning)  # `remarks` says the same
    with Conversation(
        settings=settings,
        secrets=secrets,
        conversation_id=conversation_id,
        llm=llm,
        unattended=settings.unattended,
    ) as conversation:
        conversation.subscribe(listener)
        try:
            conversation.send_message(task)
            for remark in conversation.remarks:
                print(f"oh-kernel: {remark}", file=sys.stderr)
            status = conversation.run()
        finally:
            if isinstance(listener, ConsoleTranscript):
                listener.close()
            _report(conversation)
    return EXIT.get(status, FAILED)


def _report(conversation: Conversation) -> None:
    rejected = [e for e in conversation.events if isinstance(e, UserRejectObservation)]
    refused = sum(event.rejection_source == "user" for event in rejected)
    if refused:
        calls, them = ("1 call was", "it") if refused == 1 else (f"{refused} calls were", "them")
        print(f"oh-kernel: {calls} refused, as nobody could confirm {them}", file=sys.stderr)
    for call in conversation.waiting_calls:
        print(f"oh-kernel: {call.tool_name} waits for a confirmation", file=sys.stderr)
