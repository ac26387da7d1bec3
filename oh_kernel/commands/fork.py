"""How is a stored conversation forked from a terminal?"""

import argparse
from pathlib import Path

from oh_kernel.cli import options_given
from oh_kernel.conversation.conversation import Conversation
from oh_kernel.conversation.lookup import found_in
from oh_kernel.conversation.turns import last_event_of_turn
from oh_kernel.settings import load_settings


def fork(arguments: argparse.Namespace) -> int:
    """`oh-kernel fork`: prints the id of the fork, with which `oh-kernel run --resume` goes on."""
    settings = load_settings(options_given(arguments))
    info = found_in(settings.store_file, arguments.id)
    with Conversation(
        Path(info.workspace or "."), settings=settings, conversation_id=info.id
    ) as source:
        at = arguments.at
        if arguments.turn is not None:
            at = last_event_of_turn(source.events, arguments.turn).id
        with source.fork(at, title=arguments.title) as made:
            print(made.id)
    return 0
