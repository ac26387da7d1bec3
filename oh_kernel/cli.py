"""What can be done from a terminal? `oh-kernel COMMAND`, each imported when it is called."""

import argparse
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import NoReturn

from oh_kernel.commands.signals import Ended
from oh_kernel.commands.standard import discard, ensure_open
from oh_kernel.errors import OpenHandsError
from oh_kernel.options import OPTIONS

# As a shell reports a process that C-c ended, and one that wrote to a pipe without a reader.
INTERRUPTED, UNREAD = 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what it returns is the exit code. Errors are one line on stderr."""
    ensure_open()
    parsed = _parser().parse_args(arguments)
    try:
        code = int(parsed.work(parsed))
        sys.stdout.flush()
        return code
    except OpenHandsError as error:
        print(f"oh-kernel: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        print("oh-kernel: stopped", file=sys.stderr)
        return stop.exit_code if isinstance(stop, Ended) else INTERRUPTED
    except BrokenPipeError:  # `| head` has seen enough
        discard(sys.stdout)
        return UNREAD


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, with the nearest valid word where there is one."""

    def parse_known_args(  # type: ignore[override]  # one of its overloads is all that is called
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As the original, but each command refuses its own unknown flags: it knows the others."""
        known, unknown = super().parse_known_args(args, namespace)
        for word in unknown:
            near = get_close_matches(word.partition("=")[0], self._option_string_actions, n=1)
            hint = f". Did you mean {near[0]}?" if near else ""
            self.error(f"{word} is not known here{hint}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith("?") else "."
        print(f"{self.prog}: {message}{end} See {self.prog} --help.", file=sys.stderr)
        raise SystemExit(2)


class _Version(argparse.Action):
    """Looked up when asked for: it reads files."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"oh-kernel {version('oh-kernel')}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="oh-kernel", description="A Jupyter kernel with a software agent in it.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=text, description=text)
        one.set_defaults(work=_late(name))
        return one

    command("demo", "run the quickstart notebook and show what happens")
    _add_run(command("run", "have the agent do one task, without a notebook"))
    lab = command("lab", "start JupyterLab in this environment")
    lab.usage = "%(prog)s [-h] [NOTEBOOK] [-- OPTION ...]"
    lab.add_argument(
        "words",
        nargs="*",
        metavar="NOTEBOOK",
        help="the notebook or folder to open; what stands behind -- goes to JupyterLab: "
        "oh-kernel lab NOTEBOOK -- --no-browser --port 9999",
    )
    _add_install(command("install", "make the kernel known to Jupyter"))
    doctor = command("doctor", "check what is set up, and say what to do")
    doctor.add_argument("--call", action="store_true", help="also ask the model once")
    _add_export(command("export", "write a stored conversation to a file"))
    _add_import(command("import", "take over a conversation that another program wrote"))
    _add_prune(command("prune", "delete old conversations"))
    _add_fork(command("fork", "copy a stored conversation, to go on from an earlier point of it"))
    _add_rerun(command("rerun", "carry out recorded actions again elsewhere and say what differs"))
    record = command("record", "do one task and keep the model's replies for a replay")
    record.add_argument("-o", dest="output", metavar="FILE", required=True, help="where to")
    _add_run(record)
    command("models", "list the profiles and providers of models, and what is set of each")
    login = command("login", "ask for a provider's key and store it")
    login.add_argument("provider", help="openai, anthropic, ...")
    return parser


def _late(name: str) -> Callable[[argparse.Namespace], int]:
    """The function `name` of the module oh_kernel.commands.NAME, imported when it is called."""

    def work(arguments: argparse.Namespace) -> int:
        module = import_module(f"oh_kernel.commands.{name}")
        return int(getattr(module, name)(arguments))

    return work


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="what to do; - reads it from stdin")
    parser.add_argument(
        "--resume", metavar="ID", help="go on with this conversation; its first characters do"
    )
    parser.add_argument("-C", dest="folder", metavar="DIR", help="the folder to work in")
    parser.add_argument(
        "--secret",
        dest="secrets",
        metavar="NAME",
        action="append",
        default=[],
        help="have commands get this variable of the environment, and no output show its value",
    )
    parser.add_argument(
        "--json", action="store_true", help="print events only, one a line; the rest to stderr"
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """A flag for each option that is no secret; one that is not given stays None."""
    for option in OPTIONS:
        if option.secret:
            continue
        choices = f" ({', '.join(option.choices)})" if option.choices else ""
        parser.add_argument(
            option.flag,
            dest=f"option_{option.name}",
            metavar=option.placeholder,
            help=(option.help + choices).replace("%", "%%"),
        )


def options_given(arguments: argparse.Namespace) -> dict[str, object]:
    """The options whose flags were given."""
    values = {option.name: getattr(arguments, f"option_{option.name}", None) for option in OPTIONS}
    return {name: value for name, value in values.items() if value is not None}


def _add_install(parser: argparse.ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true", help="for you alone (the default)")
    place.add_argument("--prefix", metavar="P", help="below this folder")
    place.add_argument("--sys-prefix", action="store_true", help="in this environment")
    parser.add_argument("--name", default="openhands", help="of the kernelspec (openhands)")
    parser.add_argument("--display-name", help="what Jupyter shows")


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="its first characters do; or the last")
    parser.add_argument(
        "--format",
        choices=("jsonl", "html", "md", "markdown", "text", "dir"),
        default="jsonl",
        help="(jsonl); dir is the folder layout of the OpenHands SDK, below -o or here",
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it is there")
    parser.add_argument("-o", dest="output", metavar="FILE", help="where to; by default to stdout")
    _add_store_path(parser)


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(work=_late("importing"))  # `import` cannot name a function
    parser.add_argument(
        "path", metavar="PATH", help="its folder (base_state.json, events), or a .jsonl file"
    )
    _add_store_path(parser)


def _add_prune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--older-than", type=float, metavar="DAYS", help="not used for so long")
    parser.add_argument("--keep", type=int, metavar="N", help="all but the N used last")
    parser.add_argument("--max-size", type=float, metavar="MB", help="until the rest is smaller")
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    _add_store_path(parser)


def _add_fork(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="its first characters do")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--turn", type=int, metavar="N", help="from the end of this turn")
    place.add_argument("--at", metavar="EVENT", help="from the event with this id")
    parser.add_argument("--title", metavar="TEXT", help="what the fork is called")
    _add_store_path(parser)


def _add_rerun(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="its first characters do")
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        required=True,
        help="the folder to work in: an empty one, or one with the files that it began with",
    )
    parser.add_argument(
        "--allow-risky", action="store_true", help="also what a person would be asked about"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    _add_store_path(parser)


def _add_store_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store-path", dest="option_store_path", metavar="FILE", help="the store")


if __name__ == "__main__":
    sys.exit(main())
