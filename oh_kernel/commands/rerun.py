"""How are the recorded actions of a conversation carried out again from a terminal?"""

import argparse
import os
from pathlib import Path

from oh_kernel.cli import options_given
from oh_kernel.commands.signals import ended_like_interrupts
from oh_kernel.commands.stdout import only_ours
from oh_kernel.conversation.lookup import found_in
from oh_kernel.conversation.rerun import Rerun
from oh_kernel.conversation.rerun_report import RerunReport
from oh_kernel.errors import SettingsError
from oh_kernel.loop import run_blocking
from oh_kernel.settings import Settings, load_settings
from oh_kernel.store import EventStore
from oh_kernel.views.rerun import render_rerun

DRIFTED = 1


def rerun(arguments: argparse.Namespace) -> int:
    """`oh-kernel rerun`: 0 when every call that was carried out answered as it did before."""
    settings = load_settings(options_given(arguments))
    with ended_like_interrupts(), only_ours() as stream:
        report = _report(arguments, settings)
        text = report.model_dump_json() if arguments.json else render_rerun(report).text
        print(text, file=stream)
    return DRIFTED if report.drifted else 0


def _report(arguments: argparse.Namespace, settings: Settings) -> RerunReport:
    info = found_in(settings.store_file, arguments.id)
    with EventStore.open(settings.store_file, read_only=True) as store:
        events = list(store.iterate(info.id))
        outputs = store.outputs_of(info.id)
    workspace = _made(Path(arguments.workspace).expanduser().resolve())
    rerun = Rerun(
        Path(info.workspace),
        workspace,
        settings,
        allow_risky=arguments.allow_risky,
        recorded_outputs=outputs,
    )
    os.chdir(workspace)  # the agent's Python runs in this process
    try:
        return run_blocking(rerun(info.id, events))
    finally:
        rerun.close()


def _made(workspace: Path) -> Path:
    try:
        workspace.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"The folder {workspace} cannot be made: {error.strerror}.",
            remedy="Name another one with --workspace.",
        ) from error
    return workspace
