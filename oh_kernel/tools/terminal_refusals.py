"""Why is a command not handed to the shell? Each function gives the reason, or an empty text."""

from oh_kernel.tools.shell_syntax import literal_kind, statements, unfinished

# How much of the time without an answer, after which the machine is taken away, one call may take.
_SHARE_OF_IDLE_CAP = 0.9
_SHOWN_CHARS = 60


def no_command(command: str) -> str:
    """It is the literal of a list or dictionary, as models send in place of a text."""
    if not (kind := literal_kind(command)):
        return ""
    return (
        f"[Tool-argument error] The `command` argument looks like a Python/JSON {kind}, not a "
        f"shell command. It starts with: {command.strip()[:_SHOWN_CHARS]!r}"
    )


def too_patient(timeout_s: float | None, idle_cap_s: float) -> str:
    """The machine would be taken away before the timeout is over; no cap: 0."""
    most = _SHARE_OF_IDLE_CAP * idle_cap_s
    if not most or timeout_s is None or timeout_s <= most:
        return ""
    return (
        f"Refusing to run foreground terminal command with timeout={timeout_s:g}s. The machine is "
        f"taken away after {idle_cap_s:g} s without an answer, so at most {most:g} s can be waited "
        "for. Run it with `&` and its output in a file, and look at that now and then, or set a "
        "shorter timeout and read on."
    )


def several_statements(command: str) -> str:
    """It is more than one command, on lines of their own."""
    if len(parts := statements(command)) < 2:
        return ""
    listed = "\n".join(f"({n}) {part}" for n, part in enumerate(parts, 1))
    return (
        "Cannot execute multiple commands at once.\nPlease run each command separately OR chain "
        f"them into a single command via && or ;\nProvided commands:\n{listed}"
    )


async def without_end(command: str) -> str:
    """A here-document or a substitution in it has no end."""
    if not (complaint := await unfinished(command)):
        return ""
    what = "here-document" if "here-document" in complaint else "$( ... )"
    return f"The command has a {what} without its end, so nothing was run. {complaint}"
