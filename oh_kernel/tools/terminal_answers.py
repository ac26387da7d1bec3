"""In which words does the terminal answer a model?"""

from pathlib import Path

from oh_kernel.sessions.bash import Outcome
from oh_kernel.sessions.capture import Capture
from oh_kernel.sessions.pty import LINE_MAX_BYTES
from oh_kernel.tools.base import clip

MAX_CHARS = 30_000
"""Characters of an answer."""

RESET = (
    "Terminal session has been reset. All previous environment variables and session state have "
    "been cleared."
)
GOING_ON = (
    "The command is still running. Send an empty command to read on, is_input=true with text or a "
    "key (C-c, C-z, C-d) to answer or stop it, or reset=true to start over; a longer timeout can "
    "be set next time."
)
LOST = (
    "completed but the exit code could not be determined. Terminal output may have corrupted the "
    "PS1 metadata markers."
)
NEW_SHELL = (
    "A new one was started in {folder}: the directory, variables and background jobs of the old "
    "one are gone."
)
TYPED_IN_PART = (
    "[Only {} of {} bytes were taken: the command does not read them, or it reads lines, of which "
    f"{LINE_MAX_BYTES} bytes can be typed. Use a file.]\n"
)
NO_SHELL = "Its directory, variables and jobs are gone, and no new one could be started."


def shortened(outcome: Outcome) -> tuple[str, Path | None]:
    """The output cut to what a model is shown, and the file with all of it if it was cut."""
    text = outcome.text.rstrip("\n")
    total = outcome.capture.total_chars
    if len(text) <= MAX_CHARS:
        return text, None
    path = outcome.capture.save()
    line = text.count("\n", 0, MAX_CHARS // 2) + 1
    notice = (
        "\n<response clipped><NOTE>Due to the max output limit, only part of the full response has "
        f"been shown to you: about {total - MAX_CHARS} of {total} characters are left out; "
        f"the truncated part starts around line {line}. {_whereabouts(outcome.capture)}</NOTE>\n"
    )
    return clip(text, MAX_CHARS, notice), path


def _whereabouts(capture: Capture) -> str:
    """Where the complete output is."""
    if capture.path is None:
        return f"The complete output could not be saved to a file: {capture.problem}."
    whole = capture.saved_chars == capture.total_chars
    stop = "" if whole else f" up to character {capture.saved_chars}"
    return f"The complete output has been saved to {capture.path}{stop}."
