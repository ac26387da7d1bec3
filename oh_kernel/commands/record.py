"""How are a model's replies kept, so that the same task can be replayed without it?"""

import argparse
import sys
from pathlib import Path

from oh_kernel.commands.run import do_task
from oh_kernel.conversation.models import model_of
from oh_kernel.errors import SettingsError
from oh_kernel.llm import RecordingLLM
from oh_kernel.llm.base import LLM
from oh_kernel.loop import run_blocking
from oh_kernel.settings import Settings


def record(arguments: argparse.Namespace) -> int:
    """`oh-kernel record -o FILE TASK`: as `run`, with each reply appended to FILE."""
    path = Path(arguments.output).expanduser().absolute()
    if path.exists() and path.stat().st_size:
        raise SettingsError(f"{path} is there already.", remedy="Delete it, or name another file.")

    made: list[LLM] = []

    def recording(settings: Settings, workspace: Path) -> LLM:
        made.append(RecordingLLM(model_of(settings, workspace), path, workspace=workspace))
        return made[0]

    try:
        code = do_task(arguments, recording)
    finally:
        for llm in made:
            run_blocking(llm.aclose())
    print(f"oh-kernel: recorded in {path}; use it as model replay:{path}", file=sys.stderr)
    return code
