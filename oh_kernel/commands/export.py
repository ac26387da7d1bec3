"""How is a stored conversation written to a file?"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from oh_kernel.cli import options_given
from oh_kernel.commands.newfile import write_new
from oh_kernel.conversation.lookup import stored_conversation
from oh_kernel.errors import StoreError
from oh_kernel.events import Event, MessageEvent
from oh_kernel.settings import load_settings
from oh_kernel.store import ConversationInfo, EventStore
from oh_kernel.store.interchange import export_folder
from oh_kernel.views.escape import escape, one_line, printable
from oh_kernel.views.markdown import inert_markdown
from oh_kernel.views.rendered import Rendered
from oh_kernel.views.static import render_turn

# Nothing is left out of a file that was asked for.
WHOLE = 1_000_000_000


def export(arguments: argparse.Namespace) -> int:
    """`oh-kernel export`: one conversation as events, or as a person reads it."""
    path = load_settings(options_given(arguments)).store_file
    if not path.exists():
        raise StoreError(f"There is no store at {path}.", remedy="Name one with --store-path.")
    with EventStore.open(path, read_only=True) as store:
        info = stored_conversation(store, arguments.id)
        if arguments.format == "dir":
            parent = Path(arguments.output or ".").expanduser()
            place: str | None = str(export_folder(store, info, parent))
        else:
            text = "".join(_pieces(store, info, arguments.format))
            place = _write(arguments.output, text, arguments.force)
    if place:
        print(f"{info.events} events of {info.id} written to {place}")
    return 0


def _write(output: str | None, text: str, force: bool) -> str | None:
    """Where it was written; None when it went to stdout."""
    if not output:
        sys.stdout.write(text)
        return None
    path = Path(output).expanduser()
    try:
        write_new(path, text, force)
    except FileExistsError:
        raise StoreError(
            f"{path} exists already.", remedy="Name another file with -o, or add --force."
        ) from None
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror}.", remedy="Name another file with -o."
        ) from error
    return output


def _pieces(store: EventStore, info: ConversationInfo, form: str) -> Iterator[str]:
    if form == "jsonl":
        yield from (line + "\n" for line in store.iterate_json(info.id))
        return
    turns = [render_turn(turn, show_prompt=True, max_chars=WHOLE) for turn in _turns(store, info)]
    title = printable(one_line(info.title or info.id))
    yield from _FORMS[form](title, turns)


def _turns(store: EventStore, info: ConversationInfo) -> list[list[Event]]:
    """The events of each turn: from one message of the user to before the next."""
    turns: list[list[Event]] = [[]]
    spoken = False  # what stands before the first message is part of its turn
    for event in store.iterate(info.id):
        if isinstance(event, MessageEvent) and event.source == "user":
            turns += [[]] if spoken else []
            spoken = True
        turns[-1].append(event)
    return turns


def _html(title: str, turns: list[Rendered]) -> Iterator[str]:
    yield f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>\n'
    yield '<body style="font-family:sans-serif;max-width:60em;margin:2em auto">\n'
    yield f"<h1>{escape(title)}</h1>\n"
    yield from (turn.html + "\n<hr>\n" for turn in turns)
    yield "</body></html>\n"


def _markdown(title: str, turns: list[Rendered]) -> Iterator[str]:
    yield f"# {inert_markdown(title)}\n\n"
    yield from (turn.markdown + "\n\n---\n\n" for turn in turns)


def _text(title: str, turns: list[Rendered]) -> Iterator[str]:
    yield f"{title}\n\n"
    yield from (turn.text + "\n\n" for turn in turns)


_FORMS = {"html": _html, "markdown": _markdown, "md": _markdown, "text": _text}
